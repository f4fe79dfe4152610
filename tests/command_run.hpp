// Runs the built program as a user does.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/golden.hpp"

namespace rehearse::test {

struct Outcome {
  int status = -1;  // -1: ended by a signal
  std::string out, err;
};

// Four stages of 10 ms forward and 20 ms backward on four chips with one switch.
inline constexpr const char* kMeasuredStages = R"([model.profiled]
stages = 4
forward_ms = 10
backward_input_ms = 12
backward_weight_ms = 8
p2p_bytes = 20e6
[training]
global_batch = 16
micro_batch = 2
[cluster]
nodes = 4
[cluster.node]
device = "a100-80"
devices = 1
nic_gbps = 80
[cluster.fabric]
kind = "switch"
latency_us = 1
)";

// Returns the path of a shipped scenario.
inline std::string shipped_scenario(const std::string& name) {
  return std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name + ".toml";
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A temporary folder for one test.
class Scratch {
public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rehearse-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

private:
  std::string folder_;
};

// Runs a shell command line. Captures standard error only of a single command or of the last of several.
inline Outcome run_shell(const std::string& line, const std::string& after = "") {
  const Scratch scratch;
  const std::string errors = scratch.path("err");
  const std::string command = line + " 2>" + errors + " " + after;
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.out.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  outcome.err = read_file(errors);
  return outcome;
}

// Runs a program of the build; the shell expands `arguments`, and `environment` (variables or a launcher)
// comes before its path.
inline Outcome run_program(const std::string& program, const std::string& arguments,
                           const std::string& environment = "", const std::string& after = "") {
  return run_shell(environment + " " + REHEARSE_BIN_DIR + "/" + program + " " + arguments, after);
}

inline Outcome run_rehearse(const std::string& arguments, const std::string& environment = "",
                            const std::string& after = "") {
  return run_program("rehearse", arguments, environment, after);
}

}  // namespace rehearse::test
