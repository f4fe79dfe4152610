// Tests that a search which is killed, restarted, distributed over ranks or stopped gives the same answer and
// leaves no process behind.
#include <csignal>
#include <random>

#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/command_plan.hpp"
#include "tests/sanitized.hpp"
#include "tests/started_program.hpp"

using namespace rehearse::test;

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> plan_words(const std::string& arguments) {
  std::vector<std::string> words = {std::string(REHEARSE_BIN_DIR) + "/rehearse", "plan"};
  for (std::string& word : words_of(arguments)) words.push_back(std::move(word));
  return words;
}

}  // namespace

TEST_CASE("a search killed at random moments gives the undisturbed answer", "[release]") {
  const Scratch scratch;
  const TakesOrphans orphans;
  const std::string arguments =
      scratch.write("scenario.toml", kPlanned) + kFewPlans + " --jobs 2 --format json";
  const auto begun = std::chrono::steady_clock::now();
  const Outcome undisturbed = run_rehearse("plan " + arguments);
  const double life_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  REQUIRE(undisturbed.status == 0);
  const std::string results = scratch.path("results"), out = scratch.path("out");
  const std::vector<std::string> words = plan_words(arguments + " --results " + results);

  constexpr int kKills = 10;
  std::mt19937 random(20260801);
  std::uniform_real_distribution<double> moment(0, life_s);
  int kills = 0, inside = 0;
  while (kills < kKills) {
    const std::string before = read_file(results);
    const pid_t search = start_program(words, out);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
    kill(search, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(search, &status, 0) == search);
    REQUIRE(orphans.all_are_gone());
    const std::string after = read_file(results);
    const std::string kept = before.substr(0, before.rfind('\n') + 1);  // a torn line is cut off
    CHECK(after.compare(0, kept.size(), kept) == 0);
    if (!WIFSIGNALED(status)) {  // it finished: start again from nothing
      CHECK(read_file(out) == undisturbed.out);
      std::filesystem::remove(results);
      continue;
    }
    ++kills;
    inside += after.size() > before.size() ? 1 : 0;
  }
  CHECK(inside > 0);  // some kills hit while results were being added
  const Outcome again = run_rehearse("plan " + arguments + " --results " + results);
  CHECK(again.status == 0);
  CHECK(again.out == undisturbed.out);
  // Known results are not simulated again, and nothing is written.
  const std::string whole = read_file(results);
  CHECK(run_rehearse("plan " + arguments + " --results " + results).out == undisturbed.out);
  CHECK(read_file(results) == whole);
}

TEST_CASE("any number of jobs and ranks finds the same plans", "[release]") {
  const Scratch scratch;
  const std::string arguments =
      "plan " + scratch.write("scenario.toml", kPlanned) + kFewPlans + " --format json";
  const Outcome alone = run_rehearse(arguments + " --jobs 1");
  REQUIRE(alone.status == 0);
  for (const int jobs : {2, 5}) {
    CAPTURE(jobs);
    CHECK(run_rehearse(arguments + " --jobs " + std::to_string(jobs)).out == alone.out);
  }
  if (run_shell("mpirun --version").status != 0) SKIP("no mpirun");
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::string results = scratch.path("results-" + std::to_string(ranks));
    const Outcome together = run_rehearse(arguments + " --jobs 1 --results " + results, mpirun(ranks));
    CHECK(together.status == 0);
    CHECK(together.out == alone.out);
  }
}

TEST_CASE("a signal ends a search and its simulations", "[release]") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  CAPTURE(signal);
  const Scratch scratch;
  const TakesOrphans orphans;
  const std::string results = scratch.path("results");
  // Searches all plans, of which a thousand or so are simulated.
  const pid_t search =
      start_program(plan_words(scratch.write("scenario.toml", kPlanned) + " --jobs 2 --results " + results));
  for (int i = 0; i < 2000 && read_file(results).find("\n0\t") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(search, signal);
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 200 && (ended = waitpid(search, &status, WNOHANG)) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(ended == search);
  if (ended != search) {
    kill(search, SIGKILL);
    waitpid(search, &status, 0);
  }
  CHECK(WIFSIGNALED(status));
  CHECK(orphans.all_are_gone());
}
