// kill -9 at any moment of a sweep: whole lines stay, nothing is computed twice, no process is left behind.
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::test;

namespace {

const std::string kProgram = std::string(REHEARSE_BIN_DIR) + "/rehearse",
                  kScenario = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/resnet50-ring.toml";

std::vector<std::string> arguments_of(const std::string& out) {
  return {kProgram,
          "sweep",
          kScenario,
          "--vary",
          "cluster.nic_gbps=1..30",
          "--vary",
          "training.micro_batch=32,64",
          "--out",
          out,
          "--jobs",
          "2"};
}

pid_t start(const std::string& out) {
  std::vector<std::string> arguments = arguments_of(out);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  return child;
}

// Ends when all processes that came to be under this one have; workers that lose their parent come to us.
bool all_are_gone() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno == ECHILD) return true;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string whole_lines(const std::string& text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

std::vector<std::string> sorted(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TEST_CASE("a sweep killed at random moments loses at most the runs in flight", "[release]") {
  const Scratch scratch;
  const std::string undisturbed = scratch.path("undisturbed.csv");
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  const auto begun = std::chrono::steady_clock::now();
  int status = -1;
  REQUIRE(waitpid(start(undisturbed), &status, 0) > 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  // Of the whole of a sweep's life, its start included.
  const double life_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const std::vector<std::string> expected = sorted(read_file(undisturbed));
  REQUIRE(expected.size() == 61);

  const int moments = rehearse::testing::kSanitized ? 6 : 20;
  std::mt19937 random(20240501);
  std::uniform_real_distribution<double> moment(0, life_s);
  int kills = 0, torn_inside = 0, sweeps = 0;
  for (std::string out = scratch.path("0.csv"); kills < moments;) {
    const std::string before = whole_lines(read_file(out));
    const pid_t sweep = start(out);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
    kill(sweep, SIGKILL);
    REQUIRE(waitpid(sweep, &status, 0) == sweep);
    REQUIRE(all_are_gone());
    const std::string after = read_file(out), kept = whole_lines(after);
    REQUIRE(kept.compare(0, before.size(), before) == 0);
    if (WIFSIGNALED(status)) ++kills;
    torn_inside += kept.size() > before.size() && sorted(kept).size() < expected.size() ? 1 : 0;
    if (sorted(kept).size() < expected.size() && kills < moments) continue;
    // Continued to its end, it is the undisturbed sweep: each point once, earlier lines untouched.
    REQUIRE(waitpid(start(out), &status, 0) > 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const std::string end = read_file(out);
    CHECK(end.compare(0, kept.size(), kept) == 0);
    CHECK(sorted(end) == expected);
    out = scratch.path(std::to_string(++sweeps) + ".csv");
  }
  CHECK(torn_inside >= moments / 10);  // the moments did fall into the work, not all before or after it
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}
