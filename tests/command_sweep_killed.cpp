// Tests kill -9 at any moment of a sweep: complete lines stay, nothing is computed twice, no process is left
// behind.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"
#include "tests/started_program.hpp"

using namespace rehearse::test;

namespace {

const std::string kProgram = std::string(REHEARSE_BIN_DIR) + "/rehearse",
                  kKilledScenario =
                      std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/resnet50-ring.toml";

std::vector<std::string> arguments_of(const std::string& out) {
  return {kProgram,
          "sweep",
          kKilledScenario,
          "--vary",
          "cluster.nic_gbps=1..30",
          "--vary",
          "training.micro_batch=32,64",
          "--out",
          out,
          "--jobs",
          "2"};
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
  const TakesOrphans orphans;
  const auto begun = std::chrono::steady_clock::now();
  int status = -1;
  REQUIRE(waitpid(start_program(arguments_of(undisturbed)), &status, 0) > 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  // Measures a sweep's entire run time, including its start.
  const double life_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const std::vector<std::string> expected = sorted(read_file(undisturbed));
  REQUIRE(expected.size() == 61);

  const int moments = rehearse::testing::kSanitized ? 6 : 20;
  std::mt19937 random(20240501);
  std::uniform_real_distribution<double> moment(0, life_s);
  int kills = 0, torn_inside = 0, sweeps = 0;
  for (std::string out = scratch.path("0.csv"); kills < moments;) {
    const std::string before = whole_lines(read_file(out));
    const pid_t sweep = start_program(arguments_of(out));
    std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
    kill(sweep, SIGKILL);
    REQUIRE(waitpid(sweep, &status, 0) == sweep);
    REQUIRE(orphans.all_are_gone());
    const std::string after = read_file(out), kept = whole_lines(after);
    REQUIRE(kept.compare(0, before.size(), before) == 0);
    if (WIFSIGNALED(status)) ++kills;
    torn_inside += kept.size() > before.size() && sorted(kept).size() < expected.size() ? 1 : 0;
    if (sorted(kept).size() < expected.size() && kills < moments) continue;
    // When it is continued to its end, the sweep equals the undisturbed one: each point once, earlier lines
    // untouched.
    REQUIRE(waitpid(start_program(arguments_of(out)), &status, 0) > 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    const std::string end = read_file(out);
    CHECK(end.compare(0, kept.size(), kept) == 0);
    CHECK(sorted(end) == expected);
    out = scratch.path(std::to_string(++sweeps) + ".csv");
  }
  CHECK(torn_inside >= moments / 10);  // kills hit during the work, not only before or after it
}
