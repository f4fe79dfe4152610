// Tests the results file that processes share: contents it accepts and refuses, claims, torn lines, and who
// starts it.
#include "simulator/commands/tasks/shared_results.hpp"

#include <sys/resource.h>

#include <csignal>

#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

const std::string kHead = "rehearse-results\t1\tquestion\n";

// Runs `part` in a child process; status() is its return value, or -1 if a signal ended it.
class Process {
public:
  template <typename Part>
  explicit Process(const Part& part) {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
    id_ = fork();
    if (id_ != 0) return;
    try {
      _exit(part([&] { (void)!write(ends_[1], "+", 1); }));
    } catch (...) {
      _exit(99);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (!ended_) kill_it();
    close(ends_[0]);
    close(ends_[1]);
  }
  void await_sign() {
    char sign = 0;
    (void)!read(ends_[0], &sign, 1);
  }
  void kill_it() {
    kill(id_, SIGKILL);
    status();
  }
  int status() {
    int status = 0;
    ended_ = waitpid(id_, &status, 0) == id_;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

private:
  pid_t id_ = -1;
  int ends_[2] = {-1, -1};
  bool ended_ = false;
};

// Returns the kind of error and its message.
template <typename Part>
std::string error_of(const Part& part) {
  try {
    part();
  } catch (const InputError& error) {
    return std::string("input: ") + error.what();
  } catch (const RunError& error) {
    return std::string("run: ") + error.what();
  }
  return "none";
}

std::string opening(const std::string& path, bool force_new = false, Ranks ranks = {}) {
  return error_of([&] { const SharedResults results(path, "question", force_new, ranks, 0.05); });
}

}  // namespace

TEST_CASE("a file of results is a head and a line for each task") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  {
    SharedResults results(path, "question");
    CHECK(results.find(0) == nullptr);
    REQUIRE(results.claim(70));
    results.add(70, "{\"a\": 1}");
    REQUIRE(results.claim(0));
    results.add(0, "");
    results.add(0, "too late");
    CHECK_FALSE(results.claim(0));
  }
  CHECK(read_file(path) == kHead + "70\t{\"a\": 1}\n0\t\n");
  SharedResults again(path, "question");
  CHECK(again.size() == 2);
  CHECK(*again.find(70) == "{\"a\": 1}");
  CHECK(again.find(0)->empty());
  CHECK_THROWS_AS(again.add(1, "two\nlines"), std::invalid_argument);
  CHECK_THROWS_AS(again.add(-1, ""), std::invalid_argument);
  CHECK_THROWS_AS(SharedResults(scratch.path("other"), "two\nlines"), std::invalid_argument);
}

TEST_CASE("a file of results that is not this question's stays as it is") {
  struct Case {
    const char* text;
    bool force_new;
    const char* error;  // "": no error
  };
  const Case c = GENERATE(
      Case{"rehearse-results\t1\tanother\n0\tx\n", false,
           "input: FILE:1:1: these results answer another question (another; now it is question); choose "
           "another file, or start over with --force-new"},
      Case{"rehearse-results\t1\tques", false, ""},  // torn
      Case{"rehearse-results\t1\tanot", false, "another question (anot; now it is question)"},
      Case{"rehearse-results\t2\tquestion\n", false, "another version of the format; allowed: 1; choose"},
      Case{"point,time\n1,2\n", false, "input: FILE:1:1: is not a results file, and is left unchanged"},
      Case{"point,time\n1,2\n", true, "is not a results file, and is left unchanged; choose another file"},
      Case{"x", true, "is not a results file"}, Case{"", false, ""}, Case{"", true, ""},
      Case{"rehearse-results\t1\tanother\n0\tx\n", true, ""},
      Case{"rehearse-results\t1\tquestion\n0\tx\nthree\ty\n", false,
           "input: FILE:3:1: the line \"three\\x09y\" is damaged; allowed: TASK, a tab, RESULT"},
      Case{"rehearse-results\t1\tquestion\n-1\tx\n", false, "FILE:2:1: the line"},
      Case{"rehearse-results\t1\tquestion\n7\n", false, "FILE:2:1: the line \"7\" is damaged"},
      Case{"rehearse-results\t1\tquestion\n\n", false, "FILE:2:1: the line \"\" is damaged"});
  const Scratch scratch;
  const std::string path = scratch.write("results", c.text);
  CAPTURE(c.text, c.force_new);
  std::string error = opening(path, c.force_new);
  for (std::size_t at; (at = error.find(path)) != std::string::npos;) error.replace(at, path.size(), "FILE");
  if (*c.error == '\0') {
    CHECK(error == "none");
    CHECK(read_file(path) == kHead);
  } else {
    CHECK_THAT(error, contains_text(c.error));
    CHECK(read_file(path) == c.text);
  }
}

TEST_CASE("a file of results that cannot be written is an error that names it") {
  const Scratch scratch;
  CHECK_THAT(opening(scratch.path("no/results")),
             contains_text("run: " + scratch.path("no/results") + ": cannot be written: No such file"));
  for (const char* path : {"/dev/full", "/dev/null", "/"})
    CHECK_THAT(opening(path), contains_text("input: " + std::string(path) + ": is not a regular file"));
  CHECK_THAT(opening("/sys/kernel/results"), contains_text("run: /sys/kernel/results: cannot be written"));
}

TEST_CASE("a process holds its claims until it ends") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  Process other([&](const auto& sign) {
    SharedResults results(path, "question");
    const bool claimed = results.claim(3) && results.claim(4) && results.claim(5) && results.claim(6);
    results.release(4);
    results.add(5, "five");
    sign();
    while (claimed) pause();  // NOLINT(bugprone-infinite-loop): until it is killed
    return 0;
  });
  other.await_sign();
  SharedResults results(path, "question");
  CHECK_FALSE(results.claim(3));
  CHECK(results.claim(4));
  CHECK_FALSE(results.claim(5));
  CHECK(*results.find(5) == "five");
  CHECK_FALSE(results.claim(6));
  // A child process holds no claims and releases none.
  CHECK(Process([&](const auto&) { return results.find(5) != nullptr ? 0 : 1; }).status() == 0);
  other.kill_it();
  CHECK(results.claim(3));
  CHECK(results.claim(6));
  Process third([&](const auto&) { return SharedResults(path, "question").claim(4) ? 1 : 0; });
  CHECK(third.status() == 0);
}

TEST_CASE("what a dead process left of a line is cut off by the next that writes") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  SharedResults results(path, "question");
  results.add(0, "zero");
  // By another process: closing a descriptor in this one would release its locks.
  REQUIRE(run_shell("printf '2\\ttw' >> " + path).status == 0);
  results.refresh();
  CHECK(results.find(2) == nullptr);
  results.add(1, "one");
  CHECK(run_shell("cat " + path).out == kHead + "0\tzero\n1\tone\n");
}

TEST_CASE("a file of results that goes away in use is an error") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  const bool removed = GENERATE(true, false);
  SharedResults results(path, "question");
  results.add(0, "zero");
  REQUIRE(run_shell((removed ? "rm " : "truncate -s 5 ") + path).status == 0);
  const std::string expected = "run: " + path + ": another process has " +
                               (removed ? "removed" : "truncated") + " this file, which was in use";
  CHECK(error_of([&] { results.refresh(); }) == expected);
  CHECK(error_of([&] { results.add(1, "one"); }) == expected);
}

TEST_CASE("a full disk leaves whole lines") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  // Like a full disk, the limit lets part of a line through.
  Process full([&](const auto&) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kHead.size() + 12, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    SharedResults results(path, "question");
    results.add(0, "zero");
    const std::string error = error_of([&] { results.add(1, "a longer one"); });
    return error == "run: " + path + ": cannot be written: File too large" ? 0 : 2;
  });
  CHECK(full.status() == 0);
  CHECK(read_file(path) == kHead + "0\tzero\n");
}

TEST_CASE("ranks wait for rank 0 to make the file, but not for ever") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  CHECK(opening(path, false, {1, 2}) ==
        "run: " + path + ": rank 1 has waited 0.05 s for rank 0 to create this file");
  CHECK_FALSE(std::filesystem::exists(path));
  scratch.write("results", kHead.substr(0, 5));
  CHECK(opening(path, false, {1, 2}) ==
        "run: " + path + ": rank 1 has waited 0.05 s for rank 0 to begin this file");
  const std::string text = kHead + "0\tzero\n";
  scratch.write("results", text);
  CHECK(opening(path, false, {1, 2}) == "none");
  CHECK(opening(path, true, {1, 2}) ==
        "run: " + path + ": rank 1 has waited 0.05 s for rank 0 to restart this file");
  CHECK(read_file(path) == text);
  CHECK(opening(path, true, {0, 2}) == "run: " + path + ": rank 0 has waited 0.05 s for rank 1 of 2");
}

TEST_CASE("a rank whose rank 0 dies before the file is begun anew takes no old result") {
  const Scratch scratch;
  const std::string path = scratch.write("results", kHead + "0\tzero\n");
  Process first([&](const auto&) {  // waits in vain for rank 2
    return error_of([&] {
             const SharedResults results(path, "question", true, {0, 3}, 1);
           }) == "none"
               ? 1
               : 0;
  });
  CHECK(error_of([&] {
          const SharedResults results(path, "question", true, {1, 3}, 20);
        }) == "run: " + path + ": rank 0 ended before it had restarted this file");
  CHECK(first.status() == 0);
  CHECK(opening(path) == "none");
  CHECK(read_file(path) == kHead);
}

TEST_CASE("no process throws away what others work on") {
  const Scratch scratch;
  const std::string path = scratch.path("results");
  SharedResults results(path, "question");
  results.add(0, "zero");
  Process other([&](const auto&) {
    const std::string error = opening(path, true);
    return error.find("input: " + path + ": other processes are using this file") == 0 ? 0 : 1;
  });
  CHECK(other.status() == 0);
  results.refresh();
  CHECK(results.size() == 1);
}
