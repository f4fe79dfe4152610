#include "simulator/jobs/shell_expansion.hpp"

#include <cctype>
#include <climits>

namespace rehearse {
namespace {

constexpr std::size_t kMostText = 1 << 16, kMostWords = 20'000;  // of one value
constexpr int kDeepestShell = 30;

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string joined_words(const std::vector<ShellWord>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i ? " " : "") + words[i].text;
  return text;
}

// Evaluates arithmetic in which all variables are replaced by numbers.
class Arithmetic {
public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  std::optional<long long> evaluate() {
    const long long value = comparison(0);
    blanks();
    return failed_ || at_ != text_.size() ? std::nullopt : std::optional(value);
  }

private:
  void blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(std::string_view symbol) {
    blanks();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  long long comparison(int depth) {
    const long long left = sum(depth);
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(symbol)) continue;
      const long long right = sum(depth);
      if (symbol == "==") return left == right;
      if (symbol == "!=") return left != right;
      if (symbol == "<=") return left <= right;
      if (symbol == ">=") return left >= right;
      return symbol == "<" ? left < right : left > right;
    }
    return left;
  }
  long long sum(int depth) {
    long long value = product(depth);
    while (!failed_) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      value = limited(static_cast<double>(value) + (plus ? 1.0 : -1.0) * static_cast<double>(product(depth)));
    }
    return value;
  }
  long long product(int depth) {
    long long value = primary(depth);
    while (!failed_) {
      if (take("*")) {
        value = limited(static_cast<double>(value) * static_cast<double>(primary(depth)));
      } else if (take("/") || take("%")) {
        const bool rest = text_[at_ - 1] == '%';
        const long long by = primary(depth);
        if (by == 0) failed_ = true;
        if (!failed_) value = rest ? value % by : value / by;
      } else {
        break;
      }
    }
    return value;
  }
  long long primary(int depth) {
    if (depth > kDeepestShell) failed_ = true;
    if (failed_) return 0;
    if (take("-")) return -primary(depth + 1);
    if (take("(")) {
      const long long value = comparison(depth + 1);
      if (!take(")")) failed_ = true;
      return value;
    }
    blanks();
    long long value = 0;
    const std::size_t from = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && at_ - from < 15)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == from) failed_ = true;
    return value;
  }
  long long limited(double value) {
    if (value > 1e15 || value < -1e15) failed_ = true;
    return failed_ ? 0 : static_cast<long long>(value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::size_t behind_bracket(std::string_view text, std::size_t open, char opening, char closing) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == opening)
      ++depth;
    else if (text[i] == closing && --depth == 0)
      return i + 1;
  }
  return text.size();
}

void ShellVariables::check(std::size_t size, int line, int depth) const {
  if (size > kMostText || depth > kDeepestShell)
    throw InputError({path_, line, 1}, "expands to more text than a job's script needs");
}

void ShellVariables::set(const std::string& name, std::vector<ShellWord> words, bool append, bool array) {
  std::vector<ShellWord>& value = values_[name];
  if (!append) {
    value = std::move(words);
  } else if (array || value.empty()) {
    value.insert(value.end(), words.begin(), words.end());
  } else {
    value.back().text += joined_words(words);
  }
  std::size_t size = value.size();
  for (const ShellWord& word : value) size += word.text.size();
  if (value.size() > kMostWords) size = kMostText + 1;
  check(size, value.empty() ? 0 : value.back().line, 0);
}

std::string ShellVariables::text_of(std::string_view raw, int line, int depth) {
  return joined_words(expand(raw, line, false, depth));
}

std::optional<long long> ShellVariables::arithmetic(std::string_view expression, int line, int depth) {
  std::string numbers;
  for (std::size_t i = 0; i < expression.size();) {
    const char c = expression[i];
    if (c == '$') {
      const Piece piece = parameter(expression, i, line, depth + 1);
      numbers += joined_words(piece.words);
    } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      std::string name = "$";
      while (i < expression.size() && in_name(expression[i])) name += expression[i++];
      std::size_t at = 0;
      numbers += joined_words(parameter(name, at, line, depth + 1).words);
    } else {
      if (c != '"') numbers += c;
      ++i;
    }
    check(numbers.size(), line, depth);
  }
  return Arithmetic(numbers).evaluate();
}

ShellVariables::Piece ShellVariables::braced(std::string_view inside, int line, int depth) {
  std::size_t end = 0;
  if (!inside.empty() && (inside[0] == '#' || inside[0] == '!'))
    return {{{"${" + std::string(inside) + "}", line}}, false};
  while (end < inside.size() && in_name(inside[end])) ++end;
  const std::string name(inside.substr(0, end));
  std::string_view rest = inside.substr(end);
  bool all = false;
  std::optional<std::size_t> index;
  if (!rest.empty() && rest[0] == '[') {
    const std::size_t behind = behind_bracket(rest, 0, '[', ']');
    const std::string_view what = rest.substr(1, behind > 2 ? behind - 2 : 0);
    all = what == "@" || what == "*";
    if (!all) {
      const auto number = arithmetic(what, line, depth + 1);
      if (number && *number >= 0) index = static_cast<std::size_t>(*number);
    }
    rest.remove_prefix(behind);
  }
  const auto found = values_.find(name);
  const bool set = found != values_.end();
  const bool empty = !set || joined_words(found->second).empty();
  const bool colon = !rest.empty() && rest[0] == ':';
  const std::string_view operation = colon ? rest.substr(1) : rest;
  if (!operation.empty() && (operation[0] == '-' || operation[0] == '=') && (colon ? empty : !set)) {
    std::vector<ShellWord> words = {{text_of(operation.substr(1), line, depth + 1), line}};
    if (operation[0] == '=') this->set(name, words, false, false);
    return {std::move(words)};
  }
  if (!operation.empty() && operation[0] == '+')
    return {{{(colon ? empty : !set) ? "" : text_of(operation.substr(1), line, depth + 1), line}}};
  const bool positional = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0]));
  if (!set) {
    if (all || positional || inside == "@" || inside == "*") return {};
    return {{{"${" + name + "}", line}}, false};
  }
  if (index) return *index < found->second.size() ? Piece{{found->second[*index]}} : Piece{};
  if (!all && found->second.size() > 1) return {{found->second.front()}};
  return {found->second};
}

ShellVariables::Piece ShellVariables::parameter(std::string_view raw, std::size_t& at, int line, int depth) {
  check(0, line, depth);
  ++at;  // the dollar sign
  if (at >= raw.size()) return {{{"$", line}}};
  if (raw.substr(at, 2) == "((") {
    const std::size_t behind = behind_bracket(raw, at, '(', ')');
    const std::string_view inside = raw.substr(at + 2, behind - at > 4 ? behind - at - 4 : 0);
    at = behind;
    const auto value = arithmetic(inside, line, depth + 1);
    if (value) return {{{std::to_string(*value), line}}};
    return {{{"${" + std::string(inside.substr(0, 60)) + "}", line}}, false};
  }
  if (raw[at] == '(') {  // a command's output
    const std::size_t behind = behind_bracket(raw, at, '(', ')');
    const std::string inside(raw.substr(at, std::min<std::size_t>(behind - at, 60)));
    at = behind;
    return {{{"${" + inside + "}", line}}, false};
  }
  if (raw[at] == '{') {
    const std::size_t behind = behind_bracket(raw, at, '{', '}');
    const std::string_view inside = raw.substr(at + 1, behind - at > 2 ? behind - at - 2 : 0);
    at = behind;
    return braced(inside, line, depth + 1);
  }
  if (!in_name(raw[at])) {  // $@ $* $? $$ $#
    ++at;
    return {};
  }
  const std::size_t from = at;
  if (std::isdigit(static_cast<unsigned char>(raw[at])))
    ++at;
  else
    while (at < raw.size() && in_name(raw[at])) ++at;
  return braced(raw.substr(from, at - from), line, depth + 1);
}

std::vector<ShellWord> ShellVariables::expand(std::string_view raw, int line, bool split, int depth) {
  std::vector<ShellWord> words;
  ShellWord word{"", line};
  bool some = false;  // the word exists, if only as ""
  const auto end = [&] {
    if (some) words.push_back(word);
    word = {"", line};
    some = false;
  };
  char quote = 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < raw.size();) {
    const char c = raw[i];
    check(size + word.text.size(), line, depth);
    if (quote == '\'') {
      if (c == '\'')
        quote = 0;
      else
        word.text += c;
      ++i;
    } else if (c == '\\' && i + 1 < raw.size()) {
      word.text += raw[i + 1];
      some = true;
      i += 2;
    } else if (c == '"' || (c == '\'' && quote == 0)) {
      quote = quote == c ? 0 : c;
      some = true;
      ++i;
    } else if (c == '`') {
      const std::size_t close = std::min(raw.find('`', i + 1), raw.size() - 1);
      word.text += "${" + std::string(raw.substr(i + 1, std::min<std::size_t>(60, close - i - 1))) + "}";
      some = true;
      i = close + 1;
    } else if (c == '$') {
      const Piece piece = parameter(raw, i, line, depth + 1);
      for (std::size_t n = 0; n < piece.words.size(); ++n) {
        if (n > 0) end();
        const ShellWord& one = piece.words[n];
        size += one.text.size() + 1;
        check(size, line, depth);
        if (!some && word.text.empty()) word.line = one.line;
        if (quote || !split || !piece.known) {
          word.text += one.text;
          some = some || quote || !one.text.empty();
          continue;
        }
        for (const char each : one.text) {
          if (is_blank(each)) {
            end();
            word.line = one.line;
          } else {
            word.text += each;
            some = true;
          }
        }
      }
    } else {
      word.text += c;
      some = true;
      ++i;
    }
  }
  end();
  if (words.size() > kMostWords) check(kMostText + 1, line, depth);
  return words;
}

}  // namespace rehearse
