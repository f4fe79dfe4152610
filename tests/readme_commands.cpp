// Checks the READMEs of the tree: their predictions run as printed and print what is shown, the options and
// links in them exist, and the code that they show is in the tree.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = fs::canonical(fs::path(REHEARSE_TESTS_DIR) / "..");
const std::vector<std::string> kPrograms = {"rehearse", "rehearse-run", "rehearse-gui"};

bool starts_with(const std::string& text, const std::string& begin) {
  return text.rfind(begin, 0) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string without_indent(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Returns sorted paths relative to the root; skips build folders and hidden ones.
std::vector<std::string> readme_files() {
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator entry(kRoot), end; entry != end; ++entry) {
    const std::string name = entry->path().filename();
    if (entry->is_directory()) {
      if (starts_with(name, ".") || starts_with(name, "build") ||
          fs::exists(entry->path() / "CMakeCache.txt"))
        entry.disable_recursion_pending();
    } else if (name == "README.md") {
      files.push_back(fs::relative(entry->path(), kRoot));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The contents of a README.
struct Readme {
  std::vector<std::string> prose;                // paragraphs, bullets, headings and rows of tables
  std::vector<std::vector<std::string>> blocks;  // lines of fenced blocks
  int lines = 0;
};

Readme read_readme(const fs::path& file) {
  std::istringstream in(read_file(file));
  Readme readme;
  bool block = false, paragraph = false;
  for (std::string line; std::getline(in, line); ++readme.lines) {
    const std::string text = without_indent(line);
    if (starts_with(text, "```")) {
      block = !block;
      paragraph = false;
      if (block) readme.blocks.emplace_back();
    } else if (block) {
      readme.blocks.back().push_back(line);
    } else if (text.empty()) {
      paragraph = false;
    } else {
      const bool begins = starts_with(text, "* ") || starts_with(text, "|") || starts_with(line, "#");
      if (paragraph && !begins)
        readme.prose.back() += " " + text;
      else
        readme.prose.push_back(text);
      paragraph = !starts_with(line, "#");
    }
  }
  return readme;
}

// Returns the texts in backticks.
std::vector<std::string> inline_code(const Readme& readme) {
  std::vector<std::string> code;
  for (const std::string& prose : readme.prose)
    for (std::size_t begin = 0; (begin = prose.find('`', begin)) != std::string::npos;) {
      const std::size_t end = prose.find('`', begin + 1);
      if (end == std::string::npos) break;
      code.push_back(prose.substr(begin + 1, end - begin - 1));
      begin = end + 1;
    }
  return code;
}

struct Command {
  std::string readme;
  std::string line;                // as printed
  std::string program;             // "rehearse-run"
  std::vector<std::string> words;  // after the program
  std::vector<std::string> shown;  // the lines printed below it, in the same block
};

// Adds the command of a line; adds nothing if the line calls none of the programs.
void add_command(const std::string& readme, const std::string& line, std::vector<Command>& commands) {
  const std::vector<std::string> words = words_of(line);
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::string name = fs::path(*word).filename();
    if (std::find(kPrograms.begin(), kPrograms.end(), name) == kPrograms.end()) continue;
    if (*word != name && *word != "build/bin/" + name) continue;
    commands.push_back({readme, line, name, {word + 1, words.end()}, {}});
    return;
  }
}

// Adds the commands of a block: lines that begin with "$ ", and usage, which begins with a program's name.
// Both can continue on further lines.
void add_block(const std::string& readme, const std::vector<std::string>& lines,
               std::vector<Command>& commands) {
  const std::size_t before = commands.size();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    const bool usage = std::any_of(kPrograms.begin(), kPrograms.end(), [&](const std::string& program) {
      return starts_with(line, program + " ");
    });
    if (!starts_with(line, "$ ") && !usage) {
      if (commands.size() > before) commands.back().shown.push_back(line);
      continue;
    }
    const auto goes_on = [&] {
      return i + 1 < lines.size() && (ends_with(line, "\\") || (usage && starts_with(lines[i + 1], " ")));
    };
    while (goes_on()) {
      if (line.back() == '\\') line.pop_back();
      line += " " + lines[++i];
    }
    if (const std::size_t comment = line.find(" # "); comment != std::string::npos) line.resize(comment);
    if (starts_with(line, "$ ")) line.erase(0, 2);
    add_command(readme, line, commands);
  }
}

// Returns the commands of all READMEs: those in blocks, and those in backticks within the text.
std::vector<Command> readme_commands() {
  std::vector<Command> commands;
  for (const std::string& file : readme_files()) {
    const Readme readme = read_readme(kRoot / file);
    for (const std::vector<std::string>& block : readme.blocks) add_block(file, block, commands);
    for (const std::string& code : inline_code(readme)) add_command(file, code, commands);
  }
  return commands;
}

bool is_built(const std::string& program) {
  return fs::exists(fs::path(REHEARSE_BIN_DIR) / program);
}

std::string help_of(const std::string& program, const std::string& subcommand) {
  static std::map<std::string, std::string> known;
  const std::string arguments = subcommand + " --help";
  const std::string key = program + " " + arguments;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known[key] = run_program(program, arguments).out;
}

// Returns the options of a program's subcommand ("": of the program), from its help.
std::set<std::string> options_of(const std::string& program, const std::string& subcommand) {
  std::set<std::string> options;
  std::string help = help_of(program, subcommand);
  std::replace_if(
      help.begin(), help.end(), [](char c) { return c == ',' || c == '=' || c == '['; }, ' ');
  for (const std::string& word : words_of(help))
    if (starts_with(word, "--")) options.insert(word);
  return options;
}

// Returns "" and all subcommands, from the program's help.
std::vector<std::string> subcommands_of(const std::string& program) {
  std::vector<std::string> names = {""};
  std::istringstream help(help_of(program, ""));
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (starts_with(line, "Subcommands:"))
      listed = true;
    else if (listed && line.size() > 2 && starts_with(line, "  ") && line[2] != ' ')
      names.push_back(words_of(line).front());
  }
  return names;
}

// Returns "--format" for "[--format"; empty if the word is no option.
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

// Returns whether the test can run the command: predictions are cheap, except those of whole tables of
// measurements, which the tests of `validate` predict.
bool can_run(const Command& command) {
  if (command.program != "rehearse" || command.words.empty() || has_placeholder(command)) return false;
  const std::string& subcommand = command.words[0];
  const bool has_input = command.words.size() > 1 && command.words[1][0] != '-';
  if (subcommand == "validate") return has_input && fs::is_regular_file(kRoot / command.words[1]);
  const std::set<std::string> cheap = {"simulate", "compare", "sweep", "kernel", "list", "show"};
  return has_input && cheap.count(subcommand) == 1;
}

// Returns the anchors that GitHub makes of headings: in lower case, spaces as hyphens, without punctuation
// and markup; repeated names are numbered.
std::set<std::string> anchors_of(const fs::path& file) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  for (const std::string& prose : read_readme(file).prose) {
    if (prose[0] != '#') continue;
    const std::string heading = std::regex_replace(prose.substr(prose.find_first_not_of("# ")),
                                                   std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1");
    std::string anchor;
    for (const char c : heading) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 || std::isalnum(byte) || c == '-' || c == '_')
        anchor += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
      else if (c == ' ')
        anchor += '-';
    }
    const int before = seen[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

// Returns the targets of links and pictures that are relative.
std::vector<std::string> relative_links(const Readme& readme) {
  static const std::regex code("`[^`]*`"), link(R"(\]\(([^)\s]+)\))"), scheme("[a-z]+:.*");
  std::vector<std::string> targets;
  for (const std::string& prose : readme.prose) {
    const std::string text = std::regex_replace(prose, code, "");
    for (std::sregex_iterator found(text.begin(), text.end(), link), end; found != end; ++found)
      if (const std::string target = (*found)[1]; !std::regex_match(target, scheme))
        targets.push_back(target);
  }
  return targets;
}

// Options of other programs that the READMEs name in backticks.
struct OthersOption {
  const char* option;
  const char* program;
};
constexpr OthersOption kOthersOptions[] = {
    {"--carry", "backend/check-gpu.sh"},
    {"--map-by", "mpirun"},
    {"--mpi", "srun"},
    {"--only", "backend/check-gpu.sh"},
    {"--overlap-moe-expert-parallel-comm", "Megatron-LM"},
    {"--recompute-method", "Megatron-LM"},
    {"--recompute-num-layers", "Megatron-LM"},
};

}  // namespace

TEST_CASE("the options in the READMEs' command lines exist") {
  std::set<std::string> seen, printed;
  for (const Command& command : readme_commands()) {
    if (!is_built(command.program)) continue;  // left out of this build
    const bool subcommand =
        command.program != "rehearse-gui" && !command.words.empty() && std::islower(command.words[0][0]) != 0;
    const std::string name = subcommand ? command.words[0] : "";
    CAPTURE(command.readme, command.line, command.program, name);
    const std::set<std::string> options = options_of(command.program, name);
    REQUIRE_FALSE(options.empty());
    for (const std::string& word : command.words) {
      const std::string option = option_in(word);
      if (option.empty()) continue;
      CAPTURE(option);
      CHECK(options.count(option) == 1);
      seen.insert(command.program + " " + name + " " + option);
      if (command.readme == "simulator/commands/README.md")
        printed.insert(command.program + " " + name + " " + option);
    }
  }
  CHECK(seen.size() > 20);
  // What each subcommand of `rehearse` can do is printed beside the commands.
  for (const std::string& name : subcommands_of("rehearse"))
    for (const std::string& option : options_of("rehearse", name)) {
      CAPTURE(name, option);
      if (option != "--help") CHECK(printed.count("rehearse " + name + " " + option) == 1);
    }
}

TEST_CASE("options that the READMEs name alone exist") {
  std::set<std::string> options;
  for (const std::string& program : kPrograms) {
    if (!is_built(program)) SKIP(program + " is left out of this build");
    for (const std::string& name : subcommands_of(program)) options.merge(options_of(program, name));
  }
  for (const OthersOption& other : kOthersOptions) {
    CAPTURE(other.option, other.program);
    CHECK(options.insert(other.option).second);  // else the table need not have it
  }
  for (const std::string& file : readme_files())
    for (const std::string& code : inline_code(read_readme(kRoot / file))) {
      const std::string option = option_in(code.substr(0, code.find(' ')));
      if (option.empty()) continue;
      CAPTURE(file, code, option);
      CHECK(options.count(option) == 1);
    }
}

TEST_CASE("the READMEs' predictions run as printed, and print what is shown") {
  // In a folder like the repository's root, which keeps what the commands write, by a program that has the
  // strategy that simulator/README.md adds.
  const Scratch scratch;
  for (const char* name : {"simulator", "benchmarks", "tests", "models", "topologies"})
    fs::create_directory_symlink(kRoot / name, scratch.path(name));
  fs::create_directory(scratch.path("build"));
  fs::create_directory_symlink(REHEARSE_README_DIR, scratch.path("build/bin"));
  std::map<std::string, Outcome> outcomes;  // by arguments: what is printed several times runs once
  for (const Command& command : readme_commands()) {
    if (!can_run(command)) continue;
    std::string arguments;
    for (const std::string& word : command.words) arguments += " " + word;
    const auto [entry, is_new] = outcomes.try_emplace(arguments);
    Outcome& outcome = entry->second;
    if (is_new) outcome = run_shell("cd " + scratch.path("") + " && build/bin/rehearse" + arguments);
    if (!is_new && command.shown.empty()) continue;
    CAPTURE(command.readme, command.line, outcome.err);
    const bool fails = std::any_of(command.shown.begin(), command.shown.end(), [](const std::string& line) {
      return line.find("first failure") != std::string::npos;  // of a sweep, one of whose points fails
    });
    CHECK(outcome.status == (fails ? 1 : 0));
    const std::string printed = outcome.out + outcome.err;
    CHECK_FALSE(printed.empty());
    if (command.words[0] == "sweep") continue;  // shows how long it took
    for (const std::string& line : command.shown) {
      CAPTURE(line);
      CHECK((words_of(line).empty() || without_indent(line) == "..." ||
             ("\n" + printed).find("\n" + line + "\n") != std::string::npos));
    }
  }
  CHECK(outcomes.size() >= 8);
}

TEST_CASE("files, headings and pictures that the READMEs link exist") {
  std::map<std::string, std::set<std::string>> anchors;
  int links = 0;
  for (const std::string& file : readme_files())
    for (const std::string& link : relative_links(read_readme(kRoot / file))) {
      CAPTURE(file, link);
      const std::size_t hash = std::min(link.find('#'), link.size());
      const fs::path target = hash == 0 ? kRoot / file : (kRoot / file).parent_path() / link.substr(0, hash);
      CHECK(fs::exists(target));
      ++links;
      if (hash == link.size() || !fs::is_regular_file(target)) continue;
      auto [entry, is_new] = anchors.try_emplace(fs::canonical(target));
      if (is_new) entry->second = anchors_of(target);
      CHECK(entry->second.count(link.substr(hash + 1)) == 1);
    }
  CHECK(links > 20);
}

TEST_CASE("the front page is short, and leads to all other READMEs") {
  const int lines = read_readme(kRoot / "README.md").lines;
  CHECK(lines <= 200);
  std::set<std::string> reached = {"README.md"};
  std::vector<std::string> open = {"README.md"};
  while (!open.empty()) {
    const std::string file = open.back();
    open.pop_back();
    for (const std::string& link : relative_links(read_readme(kRoot / file))) {
      const fs::path target =
          (fs::path(file).parent_path() / link.substr(0, link.find('#'))).lexically_normal();
      if (target.filename() == "README.md" && fs::exists(kRoot / target) && reached.insert(target).second)
        open.push_back(target);
    }
  }
  for (const std::string& file : readme_files()) {
    CAPTURE(file);
    CHECK(reached.count(file) == 1);
  }
}

TEST_CASE("code of the tree that READMEs show is in the tree") {
  struct Case {
    const char* readme;
    const char* before;  // the code, in the README
    const char* file;
  };
  for (const Case& c : {Case{"simulator/README.md", "This is the table of tensor parallelism",
                             "simulator/strategies/axes/tensor.cpp"},
                        Case{"simulator/README.md", "This is how local SGD",
                             "simulator/strategies/gradients/local_sgd.cpp"}}) {
    CAPTURE(c.readme, c.file);
    const std::string readme = read_file(kRoot / c.readme);
    const std::size_t section = readme.find(c.before);
    REQUIRE(section != std::string::npos);
    const std::size_t begin = readme.find("```cpp\n", section) + 7, end = readme.find("```", begin);
    REQUIRE(end != std::string::npos);
    const std::string shown = readme.substr(begin, end - begin);
    CHECK(std::count(shown.begin(), shown.end(), '\n') > 4);
    CHECK(read_file(kRoot / c.file).find(shown) != std::string::npos);
  }
}
