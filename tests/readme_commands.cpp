// Checks the command lines of the README: runs the predictions as printed, and checks that the options of all
// others exist. A command is in a block after "$ ", in a usage block, or in backticks within the text.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = fs::path(REHEARSE_TESTS_DIR) / "..";
const std::vector<std::string> kPrograms = {"rehearse", "rehearse-run", "rehearse-gui"};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

struct Command {
  std::string line;                // as printed
  std::string program;             // such as "rehearse-run"
  std::vector<std::string> words;  // arguments after the program
};

// Returns an empty vector if the line calls none of the programs.
std::vector<Command> commands_in(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::string name = fs::path(*word).filename();
    if (std::find(kPrograms.begin(), kPrograms.end(), name) == kPrograms.end()) continue;
    if (*word != name && *word != "build/bin/" + name) continue;
    return {{line, name, {word + 1, words.end()}}};
  }
  return {};
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<Command> readme_commands() {
  std::istringstream readme(read_file(kRoot / "README.md"));
  std::vector<Command> commands;
  const auto add = [&](const std::string& line) {
    for (Command& command : commands_in(line)) commands.push_back(std::move(command));
  };
  std::string prose;
  bool block = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind("```", 0) == 0) {
      block = !block;
      continue;
    }
    if (!block) {
      prose += line + " ";
      continue;
    }
    const bool usage = std::any_of(kPrograms.begin(), kPrograms.end(), [&](const std::string& program) {
      return line.rfind(program + " ", 0) == 0;
    });
    if (line.rfind("$ ", 0) != 0 && !usage) continue;
    const auto goes_on = [&] { return ends_with(line, "\\") || (usage && std::isspace(readme.peek())); };
    while (goes_on()) {
      std::string next;
      std::getline(readme, next);
      if (line.back() == '\\') line.pop_back();
      line += " " + next;
    }
    if (const std::size_t comment = line.find(" # "); comment != std::string::npos) line.resize(comment);
    if (line.rfind("$ ", 0) == 0) line.erase(0, 2);
    add(line);
  }
  for (std::size_t begin = 0; (begin = prose.find('`', begin)) != std::string::npos;) {
    const std::size_t end = prose.find('`', begin + 1);
    if (end == std::string::npos) break;
    add(prose.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return commands;
}

// Returns the options of a program's subcommand, as its help prints them.
std::set<std::string> options_of(const std::string& program, const std::string& subcommand) {
  static std::map<std::string, std::set<std::string>> known;
  const std::string key = program + " " + subcommand;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  std::set<std::string> options;
  std::string help = run_program(program, subcommand + " --help").out;
  std::replace_if(
      help.begin(), help.end(), [](char c) { return c == ',' || c == '=' || c == '['; }, ' ');
  for (const std::string& word : words_of(help))
    if (word.rfind("--", 0) == 0) options.insert(word);
  return known[key] = options;
}

// Extracts an option from a word, e.g. "--format" from "[--format"; returns "" if there is none.
std::string option_in(const std::string& word) {
  const std::size_t begin = word.find_first_not_of('[');
  if (begin == std::string::npos || word.compare(begin, 2, "--") != 0) return "";
  const std::size_t end = word.find_first_of("]=,|", begin);
  return word.substr(begin, end == std::string::npos ? end : end - begin);
}

bool has_placeholder(const Command& command) {
  return std::any_of(command.words.begin(), command.words.end(), [](const std::string& word) {
    return word.find_first_of("[|") != std::string::npos || word == "..." ||
           std::all_of(word.begin(), word.end(), [](char c) { return std::isupper(c) || c == '.'; });
  });
}

// Returns whether the command is a prediction cheap enough to run; entire tables of measurements are not, and
// the tests of `validate` predict them.
bool can_run(const Command& command) {
  if (command.program != "rehearse" || command.words.empty() || has_placeholder(command)) return false;
  const std::string& subcommand = command.words[0];
  if (subcommand == "validate")
    return command.words.size() > 1 && fs::is_regular_file(kRoot / command.words[1]);
  if (subcommand == "simulate" || subcommand == "compare") return command.words.size() > 1;
  return subcommand == "sweep" ? command.words.size() > 1 : subcommand == "list" || subcommand == "show";
}

}  // namespace

TEST_CASE("the README's options exist") {
  const std::vector<Command> commands = readme_commands();
  std::set<std::string> seen;
  for (const Command& command : commands) {
    if (!fs::exists(fs::path(REHEARSE_BIN_DIR) / command.program)) continue;  // not part of this build
    const bool subcommand =
        command.program != "rehearse-gui" && !command.words.empty() && std::islower(command.words[0][0]) != 0;
    const std::string name = subcommand ? command.words[0] : "";
    CAPTURE(command.line, command.program, name);
    const std::set<std::string> options = options_of(command.program, name);
    REQUIRE_FALSE(options.empty());
    for (const std::string& word : command.words) {
      const std::string option = option_in(word);
      if (option.empty()) continue;
      CAPTURE(option);
      CHECK(options.count(option) == 1);
      seen.insert(command.program + " " + name + " " + option);
    }
  }
  CHECK(seen.size() > 20);
  // The section "Commands" of the README lists every option of a subcommand of `rehearse`.
  for (const std::string name : {"simulate", "compare", "sweep", "validate"})
    for (const std::string& option : options_of("rehearse", name)) {
      CAPTURE(name, option);
      if (option != "--help") CHECK(seen.count("rehearse " + name + " " + option) == 1);
    }
}

TEST_CASE("the README's predictions run as printed") {
  // Runs in a scratch folder that looks like the repository's root and receives the commands' output, with a
  // program that has the strategy which the README adds.
  const Scratch scratch;
  for (const char* name : {"simulator", "benchmarks", "tests", "models", "topologies"})
    fs::create_directory_symlink(fs::canonical(kRoot / name), scratch.path(name));
  fs::create_directory(scratch.path("build"));
  fs::create_directory_symlink(REHEARSE_README_DIR, scratch.path("build/bin"));
  std::set<std::string> run;
  for (const Command& command : readme_commands()) {
    if (!can_run(command) || !run.insert(command.line).second) continue;
    CAPTURE(command.line);
    std::string line = "cd " + scratch.path("") + " && build/bin/rehearse";
    for (const std::string& word : command.words) line += " " + word;
    const Outcome outcome = run_shell(line);
    CAPTURE(outcome.err);
    // The example of a sweep has a point that fails, and reports it.
    CHECK(outcome.status == (command.words[0] == "sweep" ? 1 : 0));
    CHECK_FALSE((outcome.out + outcome.err).empty());
  }
  CHECK(run.size() >= 8);
}

TEST_CASE("code that the README shows of the tree stands there") {
  struct Case {
    const char* before;  // text before the code in the README
    const char* file;
  };
  const std::string readme = read_file(kRoot / "README.md");
  for (const Case& c : {Case{"This is the table of tensor parallelism", "axes/tensor.cpp"},
                        Case{"This is how local SGD", "gradients/local_sgd.cpp"}}) {
    CAPTURE(c.file);
    const std::size_t section = readme.find(c.before);
    REQUIRE(section != std::string::npos);
    const std::size_t begin = readme.find("```cpp\n", section) + 7, end = readme.find("```", begin);
    REQUIRE(end != std::string::npos);
    const std::string shown = readme.substr(begin, end - begin);
    CHECK(std::count(shown.begin(), shown.end(), '\n') > 4);
    CHECK(read_file(kRoot / "simulator/strategies" / c.file).find(shown) != std::string::npos);
  }
}
