#include "simulator/jobs/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "simulator/jobs/shell_expansion.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostCommands = 20'000, kDeepestBlock = 100;

struct RawWord {
  std::string text;  // with its quotes
  int line = 0;
};
struct Statement {
  std::vector<RawWord> words;
  std::string end;  // what ended it: ";", "&&", "||", "|", ")" or a line's end ""
  bool last = false;
};

bool is_assignment(std::string_view word, std::size_t& equals, bool& append) {
  std::size_t i = 0;
  while (i < word.size() && (std::isalnum(static_cast<unsigned char>(word[i])) || word[i] == '_')) ++i;
  if (i == 0 || i >= word.size() || std::isdigit(static_cast<unsigned char>(word[0]))) return false;
  append = word.substr(i, 2) == "+=";
  equals = i + (append ? 1 : 0);
  return equals < word.size() && word[equals] == '=';
}

// Cuts the text into statements and words.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  int line() const { return line_; }
  std::vector<std::pair<std::string, int>> comments;  // text behind "#SBATCH"
  std::vector<RawWord> documents;                     // here-documents
  std::string marker;                                 // of a here-document that begins behind this line

  // Reads the pattern of a case up to its ")"; "" at "esac".
  std::string pattern() {
    std::string found;
    skip_blank_lines();
    while (at_ < text_.size() && text_[at_] != ')') {
      found += take();
      if (found == "esac") return "";
    }
    if (at_ < text_.size()) take();
    if (!found.empty() && found[0] == '(') found.erase(0, 1);
    while (!found.empty() && std::isspace(static_cast<unsigned char>(found.back()))) found.pop_back();
    return found;
  }

  Statement next() {
    Statement statement;
    RawWord word;
    const auto finish = [&] {
      if (!word.text.empty()) statement.words.push_back(word);
      word = {};
    };
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const std::string_view two = text_.substr(at_, 2);
      const bool test = !statement.words.empty() && statement.words.front().text == "[[" &&
                        statement.words.back().text != "]]";
      if (two == "\\\n") {
        take(), take();
        finish();
      } else if (text_.substr(at_, 3) == "\\\r\n") {
        take(), take(), take();
        finish();
      } else if (c == '#' && word.text.empty()) {
        comment();
      } else if (c == '\n') {
        finish();
        take();
        here_document();
        if (statement.words.empty()) continue;
        return statement;
      } else if (!test && (two == "&&" || two == "||" || two == ";;")) {
        finish();
        statement.end = std::string(two);
        take(), take();
        return statement;
      } else if (two == "((" && word.text.empty()) {
        quote_bracket(word, '(', ')');
      } else if (!test && (c == ';' || c == '|' || c == '&') &&
                 !(c == '&' && !word.text.empty() && (word.text.back() == '>' || word.text.back() == '<')) &&
                 text_.substr(at_, 2) != "&>") {
        finish();
        statement.end = std::string(1, c);
        take();
        return statement;
      } else if (text_.substr(at_, 3) == "<<<") {
        finish();
        take(), take(), take();
        statement.words.push_back({"<<<", line_});
      } else if (two == "<<") {
        finish();
        take(), take();
        read_marker();
      } else if (c == '(') {
        quote_bracket(word, '(', ')');
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        finish();
        take();
      } else {
        character(word);
      }
    }
    finish();
    statement.last = true;
    return statement;
  }

private:
  char take() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }
  void add(RawWord& word, char c) {
    if (word.text.empty()) word.line = line_;
    word.text += c;
  }
  void skip_blank_lines() {
    while (at_ < text_.size() &&
           (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '#')) {
      if (text_[at_] == '#')
        comment();
      else
        take();
    }
  }
  void comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    if (line.rfind("#SBATCH", 0) == 0) comments.emplace_back(line.substr(7), line_);
    at_ = end;
  }
  // Copies a quoted text, a parameter or a single character into the word.
  void character(RawWord& word) {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      add(word, take());
      add(word, take());
    } else if (c == '\'' || c == '`') {
      add(word, take());
      while (at_ < text_.size() && text_[at_] != c) add(word, take());
      if (at_ < text_.size()) add(word, take());
    } else if (c == '"') {
      add(word, take());
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_.substr(at_, 2) == "\\\n") {
          take(), take();
          add(word, ' ');
        } else if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
          add(word, take());
          add(word, take());
        } else if (text_[at_] == '$' && at_ + 1 < text_.size() &&
                   (text_[at_ + 1] == '{' || text_[at_ + 1] == '(')) {
          add(word, take());
          quote_bracket(word, text_[at_], text_[at_] == '{' ? '}' : ')');
        } else {
          add(word, take());
        }
      }
      if (at_ < text_.size()) add(word, take());
    } else if (c == '$' && at_ + 1 < text_.size() && (text_[at_ + 1] == '{' || text_[at_ + 1] == '(')) {
      add(word, take());
      quote_bracket(word, text_[at_], text_[at_] == '{' ? '}' : ')');
    } else {
      add(word, take());
    }
  }
  // Copies everything up to the closing bracket. Comments in an array are left out.
  void quote_bracket(RawWord& word, char opening, char closing) {
    const bool array = !word.text.empty() && word.text.back() == '=';
    int depth = 0;
    bool blank = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (array && c == '#' && blank) {
        comment();
        continue;
      }
      blank = std::isspace(static_cast<unsigned char>(c)) || c == opening;
      if (c == '\\' && at_ + 1 < text_.size()) {
        add(word, take());
      } else if (array && (c == '\'' || c == '"')) {
        character(word);
        continue;
      } else if (c == opening) {
        ++depth;
      } else if (c == closing && --depth == 0) {
        add(word, take());
        return;
      }
      add(word, take());
    }
  }
  void read_marker() {
    marker.clear();
    if (at_ < text_.size() && text_[at_] == '-') take();
    while (at_ < text_.size() && text_[at_] == ' ') take();
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) && text_[at_] != ';' &&
           text_[at_] != '>') {
      const char c = take();
      if (c != '"' && c != '\'' && c != '\\') marker += c;
    }
  }
  void here_document() {
    if (marker.empty()) return;
    RawWord document{"", line_};
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string row(text_.substr(at_, end - at_));
      at_ = std::min(end + 1, text_.size());
      ++line_;
      const std::size_t first = row.find_first_not_of(" \t");
      std::string bare = first == std::string::npos ? "" : row.substr(first);
      while (!bare.empty() && (bare.back() == '\r' || bare.back() == ' ')) bare.pop_back();
      if (bare == marker) break;
      document.text += row + "\n";
    }
    documents.push_back(std::move(document));
    marker.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

class Interpreter {
public:
  Interpreter(std::string_view text, const std::string& path) : lexer_(text), variables_(path), path_(path) {}

  ShellScript read() {
    std::string before;  // what ended the statement before
    while (true) {
      if (!blocks_.empty() && blocks_.back().kind == Block::cases && blocks_.back().pattern) {
        case_pattern();
        continue;
      }
      Statement statement = lexer_.next();
      batch_options();
      documents();
      const bool last = statement.last;
      const std::string end = statement.end;
      if (!statement.words.empty()) run(std::move(statement), before);
      before = end;
      if (end == ";;" && !blocks_.empty() && blocks_.back().kind == Block::cases)
        blocks_.back().pattern = true;
      if (last) break;
    }
    return std::move(script_);
  }

private:
  struct Block {
    enum Kind { condition, loop, cases } kind = condition;
    bool outer = true;      // the block itself is reached
    bool active = false;    // this branch is
    bool taken = false;     // a branch was
    bool deciding = false;  // between "if" and "then"
    bool pattern = false;   // a case's pattern is next
    bool result = true;     // of the condition so far
    std::string value;
  };

  bool active() const { return blocks_.empty() || (blocks_.back().outer && blocks_.back().active); }

  void push(Block block) {
    if (blocks_.size() >= kDeepestBlock)
      throw InputError({path_, lexer_.line(), 1}, "is nested more deeply than a job's script needs");
    blocks_.push_back(std::move(block));
  }

  void case_pattern() {
    Block& block = blocks_.back();
    block.pattern = false;
    const std::string pattern = lexer_.pattern();
    if (pattern.empty()) {
      blocks_.pop_back();
      return;
    }
    block.active = false;
    for (std::size_t from = 0; from <= pattern.size();) {
      const std::size_t bar = std::min(pattern.find('|', from), pattern.size());
      std::string one = variables_.text_of(pattern.substr(from, bar - from), lexer_.line());
      one.erase(std::remove(one.begin(), one.end(), ' '), one.end());
      if (!block.taken && (one == "*" || one == block.value)) block.active = true;
      from = bar + 1;
    }
    block.taken = block.taken || block.active;
  }

  void batch_options() {
    for (; batched_ < lexer_.comments.size(); ++batched_) {
      const auto& [text, line] = lexer_.comments[batched_];
      const std::string words = text.substr(0, std::min(text.find('#'), text.size()));
      std::size_t at = words.find_first_not_of(" \t");
      if (at == std::string::npos) continue;
      std::size_t end = words.find_first_of(" =\t", at);
      std::string name = words.substr(at, end == std::string::npos ? end : end - at);
      std::string value = end == std::string::npos
                              ? ""
                              : words.substr(words.find_first_not_of(" =\t", end) == std::string::npos
                                                 ? words.size()
                                                 : words.find_first_not_of(" =\t", end));
      while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.pop_back();
      if (name == "-N") name = "--nodes";
      while (!name.empty() && name[0] == '-') name.erase(0, 1);
      script_.batch[name] = {value, line};
      for (const auto& [option, variable] : {std::pair("nodes", "SLURM_NNODES"),
                                             {"nodes", "SLURM_JOB_NUM_NODES"},
                                             {"nodes", "SLURM_NODES"},
                                             {"gpus-per-node", "SLURM_GPUS_PER_NODE"},
                                             {"gpus-per-node", "SLURM_GPUS_ON_NODE"},
                                             {"ntasks-per-node", "SLURM_NTASKS_PER_NODE"}})
        if (name == option)
          variables_.set(variable, {{value.substr(0, value.find('-')), line}}, false, false);
    }
  }

  void documents() {
    for (; document_ < lexer_.documents.size(); ++document_) {
      const RawWord& raw = lexer_.documents[document_];
      std::string quoted;  // quotes in a document are plain characters
      for (const char c : raw.text) {
        if (c == '"' || c == '\'') quoted += '\\';
        quoted += c;
      }
      if (active()) script_.documents.push_back({variables_.text_of(quoted, raw.line), raw.line});
    }
  }

  void run(Statement statement, const std::string& before) {
    std::vector<RawWord>& words = statement.words;
    // Keywords may stand before the statement: "then X=1", "do torchrun ...".
    while (!words.empty() && keyword(words)) {
    }
    if (words.empty() || !active_or_deciding()) return;
    const bool chained = before == "&&" || before == "||";
    if (chained && status_ == (before == "||")) {
      if (deciding()) decide(status_, before);
      return;
    }
    status_ = execute(words);
    if (deciding()) decide(status_, chained ? before : "");
  }

  bool deciding() const { return !blocks_.empty() && blocks_.back().deciding; }
  bool active_or_deciding() const { return deciding() ? blocks_.back().outer : active(); }
  void decide(bool result, const std::string& joined) {
    Block& block = blocks_.back();
    block.result = joined == "&&" ? block.result && result : joined == "||" ? block.result || result : result;
  }

  // Handles a leading keyword and takes it off; returns whether there was one.
  bool keyword(std::vector<RawWord>& words) {
    const std::string first = words.front().text;
    const auto take = [&] { words.erase(words.begin()); };
    if (first == "if" || first == "while" || first == "until") {
      push({first == "if" ? Block::condition : Block::loop, active(), false, false, true});
      take();
    } else if (first == "then" && !blocks_.empty()) {
      Block& block = blocks_.back();
      block.deciding = false;
      block.active = !block.taken && block.result;
      block.taken = block.taken || block.active;
      take();
    } else if (first == "elif" && !blocks_.empty()) {
      blocks_.back().deciding = !blocks_.back().taken;
      blocks_.back().active = false;
      blocks_.back().result = !blocks_.back().taken;
      take();
    } else if (first == "else" && !blocks_.empty()) {
      blocks_.back().active = !blocks_.back().taken;
      blocks_.back().taken = true;
      take();
    } else if (first == "for") {
      push({Block::loop, active(), true});
      if (active() && words.size() > 3 && words[2].text == "in") {
        const auto values = variables_.expand(words[3].text, words[3].line);
        if (!values.empty()) variables_.set(words[1].text, {values.front()}, false, false);
      }
      words.clear();
    } else if (first == "do" && !blocks_.empty()) {
      blocks_.back().deciding = false;
      blocks_.back().active = true;
      take();
    } else if (first == "fi" || first == "done" || first == "esac") {
      if (!blocks_.empty()) blocks_.pop_back();
      words.clear();
    } else if (first == "case") {
      Block block{Block::cases, active(), false};
      if (words.size() > 1) block.value = variables_.text_of(words[1].text, words[1].line);
      block.pattern = true;
      push(std::move(block));
      words.clear();
    } else if (first == "{" || first == "}" || first == "function" || first == "time" || first == "exec" ||
               first == "export" || first == "declare" || first == "local" || first == "readonly") {
      if (first == "function")
        words.clear();
      else
        take();
    } else {
      return false;
    }
    return !words.empty();
  }

  // Returns the statement's status, as far as it can be known.
  bool execute(const std::vector<RawWord>& words) {
    const std::string& first = words.front().text;
    if (first == "[[" || first == "[" || first == "test") return test(words);
    if (first.rfind("((", 0) == 0) {
      const auto value =
          variables_.arithmetic(first.substr(2, first.size() > 4 ? first.size() - 4 : 0), words.front().line);
      return value.value_or(1) != 0;
    }
    if (first == "!") return false;
    if (first == "read") return read_array(words);
    if (first[0] == '(') return true;  // a subshell
    std::vector<ShellWord> command;
    for (const RawWord& word : words) {
      std::size_t equals = 0;
      bool append = false;
      if (command.empty() && is_assignment(word.text, equals, append)) {
        assign(word, equals, append);
        continue;
      }
      for (ShellWord& one : variables_.expand(word.text, word.line)) command.push_back(std::move(one));
    }
    if (command.empty()) return true;
    if (script_.commands.size() >= kMostCommands)
      throw InputError({path_}, "has more commands than a job's script needs");
    script_.commands.push_back(std::move(command));
    return true;
  }

  void assign(const RawWord& word, std::size_t equals, bool append) {
    const std::string name = word.text.substr(0, equals - (append ? 1 : 0));
    const std::string_view value = std::string_view(word.text).substr(equals + 1);
    if (!value.empty() && value[0] == '(') {
      std::vector<ShellWord> all;
      Lexer inside(value.substr(1, value.size() - 2));
      for (bool last = false; !last;) {
        const Statement statement = inside.next();
        last = statement.last;
        for (const RawWord& one : statement.words)
          for (ShellWord& each : variables_.expand(one.text, word.line + one.line - 1))
            all.push_back(std::move(each));
      }
      variables_.set(name, std::move(all), append, true);
    } else {
      variables_.set(name, {{variables_.text_of(value, word.line), word.line}}, append, false);
    }
  }

  // read -r -a NAME <<< "TEXT"
  bool read_array(const std::vector<RawWord>& words) {
    if (words.size() < 4 || words[words.size() - 2].text != "<<<") return true;
    std::vector<ShellWord> all;
    for (const ShellWord& one : variables_.expand(words.back().text, words.back().line))
      for (std::size_t at = 0; at < one.text.size();) {
        const std::size_t end = std::min(one.text.find(' ', at), one.text.size());
        if (end > at) all.push_back({one.text.substr(at, end - at), one.line});
        at = end + 1;
      }
    variables_.set(words[words.size() - 3].text, std::move(all), false, true);
    return true;
  }

  // Evaluates [ ... ] and [[ ... ]]; what is unknown counts as empty, and files as absent.
  bool test(const std::vector<RawWord>& words) {
    std::vector<std::string> all;
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string text = variables_.text_of(words[i].text, words[i].line);
      if (text == "]" || text == "]]") break;
      if (text.find("${") != std::string::npos) text.clear();
      all.push_back(std::move(text));
    }
    bool result = true;
    std::string join;
    for (std::size_t from = 0; from < all.size();) {
      std::size_t end = from;
      while (end < all.size() && all[end] != "&&" && all[end] != "||" && all[end] != "-a" && all[end] != "-o")
        ++end;
      const bool one =
          test_one({all.begin() + static_cast<long>(from), all.begin() + static_cast<long>(end)});
      if (join.empty())
        result = one;
      else if (join == "&&" || join == "-a")
        result = result && one;
      else
        result = result || one;
      if (end < all.size()) join = all[end];
      from = end + 1;
    }
    return result;
  }

  static bool test_one(std::vector<std::string> words) {
    bool negated = false;
    while (!words.empty() && words.front() == "!") {
      negated = !negated;
      words.erase(words.begin());
    }
    bool result = false;
    if (words.size() == 1) result = !words[0].empty();
    if (words.size() == 2)
      result = words[0] == "-z" ? words[1].empty() : words[0] == "-n" && !words[1].empty();
    if (words.size() >= 3) {
      const std::string &a = words[0], &what = words[1], &b = words[2];
      const double x = std::atof(a.c_str()), y = std::atof(b.c_str());
      if (what == "=" || what == "==")
        result = a == b || b == "*";
      else if (what == "!=")
        result = a != b;
      else if (what == "-eq")
        result = x == y;
      else if (what == "-ne")
        result = x != y;
      else if (what == "-gt")
        result = x > y;
      else if (what == "-ge")
        result = x >= y;
      else if (what == "-lt")
        result = x < y;
      else if (what == "-le")
        result = x <= y;
    }
    return result != negated;
  }

  Lexer lexer_;
  ShellVariables variables_;
  std::string path_;
  ShellScript script_;
  std::vector<Block> blocks_;
  std::size_t batched_ = 0, document_ = 0;
  bool status_ = true;
};

}  // namespace

ShellScript read_shell(std::string_view text, const std::string& path) {
  return Interpreter(text, path).read();
}

}  // namespace rehearse
