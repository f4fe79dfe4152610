// Expands the words of shell scripts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/jobs/shell_script.hpp"

namespace rehearse {

class ShellVariables {
public:
  explicit ShellVariables(std::string path) : path_(std::move(path)) {}

  void set(const std::string& name, std::vector<ShellWord> words, bool append, bool array);
  // Expands a word as it stands in the script, with its quotes, into words. `split`: text from variables
  // outside quotes is split at blanks.
  std::vector<ShellWord> expand(std::string_view raw, int line, bool split = true, int depth = 0);
  // The same as one text.
  std::string text_of(std::string_view raw, int line, int depth = 0);
  // Evaluates integers, + - * / %, comparisons, parentheses and variables; nullopt if anything is unknown.
  std::optional<long long> arithmetic(std::string_view expression, int line, int depth = 0);

private:
  struct Piece {
    std::vector<ShellWord> words;
    bool known = true;
  };
  // Expands what follows a "$" at `at`, and moves `at` behind it.
  Piece parameter(std::string_view raw, std::size_t& at, int line, int depth);
  Piece braced(std::string_view inside, int line, int depth);
  void check(std::size_t size, int line, int depth) const;

  std::string path_;
  std::map<std::string, std::vector<ShellWord>> values_;
};

// Returns the index behind the bracket that closes the one at `open`, or the text's length.
std::size_t behind_bracket(std::string_view text, std::size_t open, char opening, char closing);

}  // namespace rehearse
