// Tests that manual pages and completion in shells agree with --help.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;

namespace {

bool is_installed(const std::string& program) {
  return run_shell("command -v " + program + " >/dev/null").status == 0;
}

std::set<std::string> set_of_lines(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Reads the names of a program's subcommands from the error about a wrong one: "...; allowed: a, b".
std::vector<std::string> allowed_by(const std::string& program, const std::string& arguments) {
  const std::string told = run_program(program, arguments).err;
  const std::string before = "allowed: ";
  const std::size_t begin = told.find(before);
  if (begin == std::string::npos) return {};
  std::string names = told.substr(begin + before.size(), told.find('\n') - begin - before.size());
  names.erase(std::remove(names.begin(), names.end(), ','), names.end());
  std::istringstream in(names);
  std::vector<std::string> all;
  for (std::string name; in >> name;) all.push_back(name);
  return all;
}

// Reads the long options of a subcommand, or of the program if `command` is empty, from the help, whose lines
// are like "  -h,--help  Print ...".
std::vector<std::string> options_of(const std::string& program, const std::string& command) {
  std::istringstream help(run_program(program, command + " --help").out);
  std::vector<std::string> options;
  for (std::string line; std::getline(help, line);) {
    if (line.rfind("  -", 0) != 0) continue;
    const std::size_t begin = line.find("--");
    options.push_back(line.substr(begin, line.find_first_of(" ,", begin) - begin));
  }
  return options;
}

std::vector<std::string> programs() {
  std::vector<std::string> built;
  for (const char* name : {"rehearse", "rehearse-run", "rehearse-gui"})
    if (std::filesystem::exists(std::string(REHEARSE_BIN_DIR) + "/" + name)) built.emplace_back(name);
  return built;
}

}  // namespace

TEST_CASE("bash completes subcommands, options, their values, presets and files") {
  const Scratch scratch;
  scratch.write("completion", run_rehearse("completion bash").out);
  scratch.write("scenario.toml", "");
  scratch.write("sc ace.toml", "");
  std::filesystem::create_directory(scratch.path("scenes"));
  struct Case {
    std::vector<std::string> words;  // as bash takes a line apart; the last one is completed
    std::set<std::string> all;       // all candidates; empty: there are some, and `among` is one of them
    std::string among;
  };
  for (const Case& one : {
           Case{{"sim"}, {"simulate"}, ""},
           Case{{"co"}, {"compare", "collective", "completion", "convert"}, ""},
           Case{{"--v"}, {"--version"}, ""},
           Case{{"simulate", "--f"}, {"--format"}, ""},
           Case{{"simulate", "--format", ""}, {"text", "json", "csv"}, ""},
           Case{{"simulate", "--format", "=", "j"}, {"json"}, ""},
           Case{{"simulate", "--format", "="}, {"text", "json", "csv"}, ""},
           Case{{"simulate", "sc"}, {"scenario.toml", "sc ace.toml", "scenes"}, ""},
           Case{{"simulate", "--strict", "--format", "json", "sce"}, {"scenario.toml", "scenes"}, ""},
           Case{{"simulate", "--trace", "sce"}, {"scenario.toml", "scenes"}, ""},
           Case{{"simulate", "scenario.toml", "sc"}, {""}, ""},  // it takes one
           Case{{"compare", "scenario.toml", "sce"}, {"scenario.toml", "scenes"}, ""},
           Case{{"sweep", "scenario.toml", "--jobs", ""}, {""}, ""},  // a number
           Case{{"simulate", "--set", "sce"}, {""}, ""},              // a key and its value
           Case{{"plan", "scenario.toml", "--out", "sc"}, {"scenes"}, ""},
           Case{{"plan", "scenario.toml", "--cluster", "dgx-a"}, {"dgx-a100", "dgx-a100-40"}, ""},
           Case{{"plan", "--cluster", "ethernet,dgx-h"}, {"ethernet,dgx-h100"}, ""},
           Case{{"collective", "all-re"}, {"all-reduce"}, ""},
           Case{{"collective", "all-reduce", "--cluster", "eth"}, {"ethernet"}, ""},
           Case{{"kernel", "ge"}, {"gemm"}, ""},
           Case{{"kernel", "gemm", "--device", ""}, {}, "a100-80"},
           Case{{"kernel", "gemm", "--device", "sce"}, {"scenario.toml", "scenes"}, ""},
           Case{{"list", ""}, {"models", "clusters", "devices", "strategies", "frameworks", "inputs"}, ""},
           Case{{"show", "gpt3-175"}, {"gpt3-175b"}, ""},
           Case{{"show", "pytorch-dd"}, {"pytorch-ddp"}, ""},
           Case{{"show", "gpi"}, {"gpipe"}, ""},
           Case{{"validate", "zero-bubble-t"}, {"zero-bubble-table-6"}, ""},
           Case{{"launch", "scenario.toml", "--for", "meg"}, {"megatron"}, ""},
           Case{{"completion", ""}, {"bash", "zsh", "fish"}, ""},
       }) {
    std::string words = "rehearse";
    for (const std::string& word : one.words) words += " '" + word + "'";
    CAPTURE(words);
    scratch.write("complete", "cd " + scratch.path("") + "\n. ./completion\nCOMP_WORDS=(" + words +
                                  ")\nCOMP_CWORD=" + std::to_string(one.words.size()) +
                                  "\n_rehearse\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const Outcome run = run_shell("bash --norc " + scratch.path("complete"));
    CHECK(run.err.empty());
    if (one.all.empty())
      CHECK(set_of_lines(run.out).count(one.among) == 1);
    else
      CHECK(set_of_lines(run.out) == one.all);
  }
}

TEST_CASE("the manual and the completions of all programs have all subcommands and options") {
  for (const std::string& program : programs()) {
    const std::string manual = run_program(program, "--manual").out;
    const std::string bash = run_program(program, "--completion bash").out;
    const std::string zsh = run_program(program, "--completion zsh").out;
    const std::string fish = run_program(program, "--completion fish").out;
    std::vector<std::string> commands;
    if (program != "rehearse-gui") commands = allowed_by(program, "no-such-command");
    CHECK(commands.empty() == (program == "rehearse-gui"));
    commands.emplace_back();  // the program's own options
    for (const std::string& command : commands) {
      CAPTURE(program, command);
      if (!command.empty()) {
        CHECK(contains(manual, "\n.SS " + program.substr(0, 8)));
        CHECK(contains(bash, "'" + command + " -') words="));
        CHECK(contains(zsh, "\n        " + command + ")\n"));
        CHECK(contains(fish, " -a " + command + " -d "));
      }
      const std::vector<std::string> options = options_of(program, command);
      CHECK(options.size() >= 1);
      for (const std::string& option : options) {
        CAPTURE(option);
        std::string in_roff = option;
        for (std::size_t at = 0; (at = in_roff.find('-', at)) != std::string::npos; at += 2)
          in_roff.insert(at, "\\");
        CHECK(contains(manual, "\\fB" + in_roff + "\\fR"));
        CHECK(contains(bash, option));
        CHECK(contains(zsh, option));
        CHECK(contains(fish, " -l " + option.substr(2) + " "));
      }
    }
  }
}

TEST_CASE("the scripts and the pages are what their readers take") {
  const Scratch scratch;
  struct Case {
    std::string reader, arguments, command;
  };
  for (const std::string& program : programs())
    for (const Case& one :
         {Case{"bash", "--completion bash", "bash -n "}, Case{"zsh", "--completion zsh", "zsh -n "},
          Case{"fish", "--completion fish", "fish --no-execute "},
          Case{"groff", "--manual", "groff -man -Tutf8 -ww -z "},
          Case{"man", "--manual",
               "LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings "
               "-E UTF-8 -l -Tutf8 -Z "}}) {
      if (!is_installed(one.reader)) continue;
      CAPTURE(program, one.reader);
      const std::string file = scratch.write("file.1", run_program(program, one.arguments).out);
      const Outcome run = run_shell(one.command + file + " >/dev/null");
      CHECK(run.status == 0);
      CHECK(run.err.empty());
    }
}

TEST_CASE("completion's own arguments") {
  CHECK(run_rehearse("completion").status == 2);
  CHECK(contains(run_rehearse("completion tcsh").err, "is \"tcsh\"; allowed: bash, zsh, fish"));
  CHECK(contains(run_rehearse("--help").out, "completion"));
  for (const char* shell : {"bash", "zsh", "fish"})
    CHECK(run_rehearse(std::string("completion ") + shell).out ==
          run_rehearse(std::string("--completion ") + shell).out);
}
