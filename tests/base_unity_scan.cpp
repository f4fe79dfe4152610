// Implements tests/unity_names.hpp.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "tests/unity_names.hpp"

namespace rehearse::test {
namespace {

struct Word {
  std::string text;
  int line = 0;
};
using Words = std::vector<Word>;

bool in_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_name(const std::string& word) {
  return in_a_name(word[0]) && std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

// Returns the words and punctuation of a source, without comments, directives, texts and characters.
Words words_of(std::string_view source) {
  Words words;
  int line = 1;
  bool line_begins = true;
  std::size_t at = 0;
  const auto skip_to = [&](std::size_t end) {
    end = std::min(end, source.size());
    line += static_cast<int>(std::count(source.begin() + static_cast<std::ptrdiff_t>(at),
                                        source.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at = end;
  };
  const auto after = [&](std::string_view what, std::size_t from) {
    const std::size_t found = source.find(what, from);
    return found == std::string_view::npos ? source.size() : found + what.size();
  };
  while (at < source.size()) {
    const char c = source[at];
    if (c == '\n') line_begins = true;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      skip_to(at + 1);
    } else if (c == '#' && line_begins) {
      std::size_t end = after("\n", at);
      while (end < source.size() && end >= 2 && source[end - 2] == '\\') end = after("\n", end);
      skip_to(end);
    } else if (source.substr(at, 2) == "//") {
      skip_to(after("\n", at) - 1);
      if (at + 1 >= source.size()) break;
    } else if (source.substr(at, 2) == "/*") {
      skip_to(after("*/", at + 2));
    } else if (source.substr(at, 2) == "R\"") {
      const std::size_t open = std::min(source.find('(', at), source.size() - 1);
      skip_to(after(")" + std::string(source.substr(at + 2, open - at - 2)) + "\"", open));
    } else if (c == '"' || c == '\'') {
      std::size_t end = at + 1;
      while (end < source.size() && source[end] != c) end += source[end] == '\\' ? 2 : 1;
      skip_to(end + 1);
    } else if (in_a_name(c)) {
      std::size_t end = at;
      while (end < source.size() && (in_a_name(source[end]) || source[end] == '\'')) ++end;
      words.push_back({std::string(source.substr(at, end - at)), line});
      skip_to(end);
      line_begins = false;
    } else {
      const std::size_t length = source.substr(at, 2) == "::" ? 2 : 1;
      words.push_back({std::string(source.substr(at, length)), line});
      skip_to(at + length);
      line_begins = false;
    }
  }
  return words;
}

// Returns the index of the bracket that closes the one at `open`. Angle brackets count if `angles` is set.
std::size_t closing(const Words& words, std::size_t open, bool angles = false) {
  int depth = 0;
  for (std::size_t i = open; i < words.size(); ++i) {
    const std::string& w = words[i].text;
    if (w == "(" || w == "[" || w == "{" || (angles && w == "<")) ++depth;
    if (w == ")" || w == "]" || w == "}" || (angles && w == ">")) --depth;
    if (depth == 0) return i;
  }
  return words.size() - 1;
}

class Scan {
public:
  explicit Scan(std::string_view source) : words_(words_of(source)) {}

  std::vector<OwnName> run() {
    while (at_ < words_.size()) {
      if (is("}")) {
        if (!spaces_.empty()) spaces_.pop_back();
        ++at_;
      } else if (is(";")) {
        ++at_;
      } else {
        statement();
      }
    }
    return std::move(found_);
  }

private:
  bool is(std::string_view word) const { return at_ < words_.size() && words_[at_].text == word; }

  void skip_attributes() {
    while (is("[") || is("alignas")) {
      if (is("alignas")) ++at_;
      at_ = closing(words_, at_) + 1;
    }
  }

  void statement() {
    while (is("template")) at_ = closing(words_, at_ + 1, true) + 1;
    skip_attributes();
    if (is("inline") && at_ + 1 < words_.size() && words_[at_ + 1].text == "namespace") ++at_;
    if (is("namespace")) return name_space();
    if (is("extern") && at_ + 1 < words_.size() && words_[at_ + 1].text == "{") {
      spaces_.push_back("");
      at_ += 2;
      return;
    }
    if (is("using") || is("typedef")) return alias();
    if (is("struct") || is("class") || is("union") || is("enum")) {
      if (type()) return;
    }
    function_or_variable();
  }

  void name_space() {
    std::string name;
    for (++at_; at_ < words_.size() && !is("{") && !is(";"); ++at_) name += words_[at_].text;
    if (is("{")) spaces_.push_back(name.empty() ? kAnonymous : name);
    ++at_;
  }

  void alias() {
    const std::size_t begin = at_;
    std::string meaning;
    for (; at_ < words_.size() && !is(";"); ++at_)
      if (at_ > begin + 1) meaning += words_[at_].text;
    if (words_[begin].text == "using" && begin + 2 < words_.size() && words_[begin + 2].text == "=")
      add(words_[begin + 1], meaning, true);
  }

  // Returns whether the statement defines or declares a type.
  bool type() {
    const std::size_t begin = at_;
    ++at_;
    if (is("class") || is("struct")) ++at_;
    skip_attributes();
    const std::size_t name = at_;
    while (at_ < words_.size() && !is("{") && !is(";") && !is("(") && !is("=")) ++at_;
    if (is("{") && (name == at_ || is_name(words_[name].text))) {
      if (name != at_ && (name + 1 == at_ || words_[name + 1].text != "::")) add(words_[name], "", true);
      at_ = closing(words_, at_) + 1;
      while (at_ < words_.size() && !is(";")) ++at_;  // variables of the type
      return true;
    }
    if (is(";")) return true;
    at_ = begin;
    return false;
  }

  // Reads up to the end of the statement. The first name before a parenthesis that is not in angle brackets
  // is a function's, unless there is an `=` or a `{` before it.
  void function_or_variable() {
    const std::size_t begin = at_;
    bool internal = false, constant = false, external = false;
    int angles = 0;
    for (; at_ < words_.size() && !is(";") && !is("}"); ++at_) {
      const std::string& w = words_[at_].text;
      internal = internal || w == "static";
      constant = constant || w == "const" || w == "constexpr";
      external = external || w == "extern" || w == "inline";
      if (w == "operator") return skip_function();
      if (w == "<") ++angles;
      if (w == ">") --angles;
      if (angles > 0) continue;
      if (w == "(" && at_ > begin) {
        const Word& name = words_[at_ - 1];
        if (name.text == "TEST_CASE") return skip_function();
        if (name.text == "decltype" || name.text == "alignas" || name.text == "noexcept") {
          at_ = closing(words_, at_);
          continue;
        }
        const bool of_class = at_ >= begin + 2 && words_[at_ - 2].text == "::";
        const std::size_t close = closing(words_, at_);
        std::size_t end = close + 1;
        while (end < words_.size() && words_[end].text != "{" && words_[end].text != ";") ++end;
        const bool defines = end < words_.size() && words_[end].text == "{";
        if (is_name(name.text) && !of_class && defines) add(name, parameters(at_ + 1, close), internal);
        return skip_function();
      }
      if (w == "=" || w == "{" || w == "[") {
        return variables(begin, internal || (constant && !external));
      }
    }
    if (is(";") && at_ > begin + 1) variables(begin, internal || (constant && !external));
  }

  void skip_function() {
    while (at_ < words_.size() && !is("{") && !is(";")) at_ = is("(") ? closing(words_, at_) + 1 : at_ + 1;
    if (is("{")) at_ = closing(words_, at_);
    ++at_;
  }

  // Adds the names before `=`, `{`, `[`, a comma or the end, at the place where the first of these was found.
  void variables(std::size_t begin, bool internal) {
    bool named = false;
    for (; at_ < words_.size(); ++at_) {
      const std::string w = words_[at_].text;
      const bool ends = w == "=" || w == "{" || w == "[" || w == "," || w == ";";
      if (ends && !named && at_ > begin && is_name(words_[at_ - 1].text)) {
        const bool of_class = at_ >= begin + 2 && words_[at_ - 2].text == "::";
        if (!of_class) add(words_[at_ - 1], "", internal);
        named = true;
      }
      if (w == ";") return;
      if (w == ",") named = false;
      if (w == "(" || w == "[" || w == "{") at_ = closing(words_, at_);
    }
  }

  // Returns the parameter types that the words [begin, end) declare.
  std::string parameters(std::size_t begin, std::size_t end) const {
    std::string all = "(";
    std::vector<std::string> one;
    bool in_default = false;
    int depth = 0;
    const auto finish = [&] {
      // The name comes last. A type alone has no name.
      const bool has_name = one.size() > 1 && is_name(one.back()) && one[one.size() - 2] != "::" &&
                            !(one.size() == 2 && one.front() == "const");
      for (std::size_t i = 0; i + (has_name ? 1 : 0) < one.size(); ++i) all += one[i] + " ";
      all += ",";
      one.clear();
      in_default = false;
    };
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& w = words_[i].text;
      if (w == "(" || w == "<" || w == "{" || w == "[") ++depth;
      if (w == ")" || w == ">" || w == "}" || w == "]") --depth;
      if (depth == 0 && w == ",") {
        finish();
        continue;
      }
      in_default = in_default || (depth == 0 && w == "=");
      if (!in_default) one.push_back(w);
    }
    finish();
    return all + ")";
  }

  void add(const Word& name, const std::string& parameters, bool internal) {
    std::string path;
    for (const std::string& space : spaces_) {
      if (space == kAnonymous) internal = true;
      if (!space.empty() && space != kAnonymous) path += space + "::";
    }
    if (internal) found_.push_back({path + name.text, parameters, name.line});
  }

  inline static const std::string kAnonymous = "{}";
  Words words_;
  std::size_t at_ = 0;
  std::vector<std::string> spaces_;  // the open namespaces; empty: extern "C"
  std::vector<OwnName> found_;
};

}  // namespace

std::vector<OwnName> own_names(std::string_view source) {
  return Scan(source).run();
}

std::vector<std::string> collisions(const std::vector<std::pair<std::string, std::string>>& sources,
                                    std::size_t batch) {
  struct Place {
    std::size_t source;
    OwnName what;
    std::string text(const std::vector<std::pair<std::string, std::string>>& all) const {
      return all[source].first + ":" + std::to_string(what.line);
    }
  };
  std::map<std::string, std::vector<Place>> by_name;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (OwnName& what : own_names(sources[i].second)) by_name[what.name].push_back({i, std::move(what)});
  std::vector<std::string> sentences;
  const auto overloads = [](const OwnName& a, const OwnName& b) {
    return a.parameters[0] == '(' && b.parameters[0] == '(' && a.parameters != b.parameters;
  };
  const auto same_alias = [](const OwnName& a, const OwnName& b) {
    return a.parameters[0] == '=' && a.parameters == b.parameters;
  };
  for (const auto& [name, places] : by_name) {
    std::set<std::size_t> told;
    for (std::size_t i = 0; i < places.size(); ++i)
      for (std::size_t j = i + 1; j < places.size(); ++j) {
        const Place &a = places[i], &b = places[j];
        if (a.source == b.source || b.source - a.source >= batch) continue;
        if (overloads(a.what, b.what) || same_alias(a.what, b.what)) continue;
        if (told.insert(b.source).second)
          sentences.push_back(name + ": " + a.text(sources) + " and " + b.text(sources));
      }
  }
  return sentences;
}

}  // namespace rehearse::test
