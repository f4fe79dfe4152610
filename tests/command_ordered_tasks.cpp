// Tests ordered tasks: the delivered results do not depend on the number of children or processes, or on
// kills.
#include "simulator/commands/tasks/ordered_tasks.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/commands/tasks/shared_results.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

constexpr std::int64_t kTasks = 40;

std::int64_t value_of(std::int64_t task) {
  return (task * 7919 + 104729) % 997;
}

// Returns a lower bound of a task's value that is known without computing it.
std::int64_t bound_of(std::int64_t task) {
  return value_of(task) - task * 31 % 400;
}

std::string result_of(std::int64_t task) {
  return fmt::format("{{\"task\": {}, \"value\": {}}}", task, value_of(task));
}

// Searches for the least value: a task is wanted if its value could be less than the least so far.
struct Question {
  bool prunes = true;
  std::int64_t least = 1000;
  bool wanted(std::int64_t task) const { return !prunes || bound_of(task) < least; }
  void take(const std::string& result) {
    least = std::min(least, static_cast<std::int64_t>(std::stoll(result.substr(result.rfind(' ')))));
  }
};

std::string sequence_of(bool prunes, std::int64_t count = kTasks) {
  std::string sequence;
  Question question{prunes};
  for (std::int64_t task = 0; task < count; ++task) {
    if (!question.wanted(task)) continue;
    sequence += fmt::format("{}: {}\n", task, result_of(task));
    question.take(result_of(task));
  }
  return sequence;
}

void append_line(const std::string& path, std::int64_t task) {
  const std::string line = fmt::format("{}\n", task);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  (void)!write(file, line.data(), line.size());
  close(file);
}

std::vector<std::int64_t> numbers_in(const std::string& path) {
  std::vector<std::int64_t> numbers;
  std::istringstream lines(read_file(path));
  for (std::int64_t number; lines >> number;) numbers.push_back(number);
  return numbers;
}

// Returns how often each task was started, according to the log.
std::map<std::int64_t, int> begun(const std::string& log) {
  std::map<std::int64_t, int> times;
  for (const std::int64_t task : numbers_in(log)) ++times[task];
  return times;
}

struct Worker {
  int jobs = 1;
  bool prunes = true;
  std::int64_t count = kTasks;
  int slowest_ms = 3;
  std::string file = {}, log = {};  // empty `file`: nothing is shared
  bool force_new = false;
  Ranks ranks = {};
  std::function<void(std::int64_t)> before_work = {};  // runs in the child
  std::function<void()> tick = {};
};

// Runs the tasks and returns what was delivered.
std::string run_worker(const Worker& worker) {
  std::string sequence;
  Question question{worker.prunes};
  OrderedTasks tasks;
  tasks.jobs = worker.jobs;
  tasks.count = worker.count;
  tasks.wanted = [&](std::int64_t task) { return question.wanted(task); };
  tasks.work = [&](std::int64_t task) {
    append_line(worker.log, task);
    if (worker.before_work) worker.before_work(task);
    std::this_thread::sleep_for(std::chrono::milliseconds(
        worker.slowest_ms > 0 ? value_of(task * getpid()) % (worker.slowest_ms + 1) : 0));
    return result_of(task);
  };
  tasks.taken = [&](const TaskEnd& end) {
    sequence += fmt::format("{}: {}{}\n", end.task, end.output, end.failure);
    if (end.failure.empty()) question.take(end.output);
  };
  tasks.tick = worker.tick;
  std::optional<SharedResults> results;
  if (!worker.file.empty())
    tasks.results = &results.emplace(worker.file, "question", worker.force_new, worker.ranks);
  run(tasks);
  return sequence;
}

// Runs a worker in a separate process, which writes what was delivered to the file `out`.
pid_t start_worker(const Worker& worker, const std::string& out) {
  const pid_t process = fork();
  if (process != 0) return process;
  try {
    const std::string sequence = run_worker(worker);
    std::ofstream(out) << sequence;
    _exit(0);
  } catch (const std::exception& error) {
    std::ofstream(out) << error.what();
    _exit(1);
  }
}

bool ended_well(pid_t process) {
  int status = -1;
  return waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void kill_process(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

}  // namespace

TEST_CASE("ordered tasks are handed over as if computed one after the other") {
  const bool prunes = GENERATE(true, false);
  const int jobs = GENERATE(1, 2, 4), processes = GENERATE(0, 1, 2, 4);  // 0: no shared file
  CAPTURE(prunes, jobs, processes);
  const Scratch scratch;
  Worker worker{jobs, prunes};
  worker.log = scratch.path("log");
  if (processes == 0) {
    CHECK(run_worker(worker) == sequence_of(prunes));
  } else {
    worker.file = scratch.path("results");
    std::vector<pid_t> started;
    for (int i = 0; i < processes; ++i)
      started.push_back(start_worker(worker, scratch.path(std::to_string(i))));
    for (const pid_t process : started) CHECK(ended_well(process));
    for (int i = 0; i < processes; ++i)
      CHECK(read_file(scratch.path(std::to_string(i))) == sequence_of(prunes));
  }
  const std::string sequence = sequence_of(prunes);
  const auto handed_over = static_cast<std::size_t>(std::count(sequence.begin(), sequence.end(), '\n'));
  CHECK((handed_over < 20) == prunes);
  const std::map<std::int64_t, int> times = begun(worker.log);
  for (const auto& [task, count] : times) CHECK(count == 1);
  CHECK(times.size() >= handed_over);
  if (jobs * processes <= 1 && jobs == 1) CHECK(times.size() == handed_over);
}

TEST_CASE("a child whose task is no longer wanted is stopped") {
  const int processes = GENERATE(0, 2);  // 0: no shared file
  const Scratch scratch;
  const std::string sequence = sequence_of(true);
  Worker worker{4};
  worker.log = scratch.path("log");
  if (processes > 0) worker.file = scratch.path("results");
  worker.before_work = [&](std::int64_t task) {
    // Tasks up to 3 must all be running before the first result is delivered, after which 1 turns out to be
    // unwanted.
    while (task == 0 && begun(worker.log).size() < 4)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (("\n" + sequence).find(fmt::format("\n{}: ", task)) == std::string::npos) pause();
  };
  std::vector<pid_t> others;
  for (int i = 1; i < processes; ++i) others.push_back(start_worker(worker, scratch.path("other")));
  CHECK(run_worker(worker) == sequence);
  for (const pid_t process : others) CHECK(ended_well(process));
  if (!others.empty()) CHECK(read_file(scratch.path("other")) == sequence);
  CHECK(sequence.find("\n1: ") == std::string::npos);
  CHECK(begun(worker.log)[1] == 1);
}

TEST_CASE("a task that is wanted again is an error, and no endless wait") {
  bool is_first_done = false;
  OrderedTasks tasks;
  tasks.jobs = 3;
  tasks.count = 3;
  tasks.wanted = [&](std::int64_t task) { return task != 1 || is_first_done; };
  tasks.work = result_of;
  tasks.taken = [&](const TaskEnd&) { is_first_done = true; };
  CHECK_THROWS_AS(run(tasks), std::logic_error);
}

TEST_CASE("a child that dies is handed over at its turn, and computed again after a restart") {
  const Scratch scratch;
  Worker worker{GENERATE(1, 3), false};
  worker.log = scratch.path("log");
  worker.before_work = [](std::int64_t task) {
    if (task == 7) raise(SIGKILL);
    if (task == 9) throw std::runtime_error("no");
  };
  std::string expected = sequence_of(false);
  for (const auto& [task, failure] : {std::pair(7, "the simulation was ended by signal 9 (Killed)"),
                                      std::pair(9, "the simulation ended without a result")}) {
    const std::string result = result_of(task);
    expected.replace(expected.find(result), result.size(), failure);
  }
  CHECK(run_worker(worker) == expected);
  worker.file = scratch.path("results");
  CHECK(run_worker(worker) == expected);
  CHECK(run_worker(worker) == expected);
  for (const auto& [task, count] : begun(worker.log)) CHECK(count == (task == 7 || task == 9 ? 3 : 2));
  worker.before_work = nullptr;  // without failures
  CHECK(run_worker(worker) == sequence_of(false));
}

TEST_CASE("tasks of a process that is killed are taken over, and no others") {
  const Scratch scratch;
  Worker lost{2, false};
  lost.file = scratch.path("results");
  lost.log = scratch.path("log");
  lost.before_work = [](std::int64_t) {
    for (;;) pause();
  };
  const pid_t process = start_worker(lost, scratch.path("lost"));
  while (numbers_in(lost.log).size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // The other process computes all it can, then waits while its tick function is still called, and takes
  // over.
  Worker other{2, false};
  other.file = lost.file;
  other.log = lost.log;
  bool killed = false;
  other.tick = [&] {
    if (killed || numbers_in(other.log).size() < kTasks) return;
    kill_process(process);
    killed = true;
  };
  CHECK(run_worker(other) == sequence_of(false));
  CHECK(killed);
  for (const auto& [task, count] : begun(other.log)) CHECK(count == (task < 2 ? 2 : 1));
}

TEST_CASE("killed at random moments and started again, ordered tasks are handed over all the same") {
  constexpr int kRounds = 4, kKills = 6, kProcesses = 3, kJobs = 2;
  std::mt19937 random(20240607);
  std::uniform_int_distribution<int> moment_us(1000, 25000);
  int inside = 0;  // kills after some but not all tasks were computed
  for (int round = 0; round < kRounds; ++round) {
    const Scratch scratch;
    Worker worker{kJobs, round % 2 == 0};
    worker.slowest_ms = 6;
    worker.file = scratch.path("results");
    worker.log = scratch.path("log");
    const auto start_all = [&] {
      std::vector<pid_t> processes;
      for (int i = 0; i < kProcesses; ++i)
        processes.push_back(start_worker(worker, scratch.path(std::to_string(i))));
      return processes;
    };
    for (int kills = 0; kills < kKills; ++kills) {
      for (const pid_t process : start_all()) {
        std::this_thread::sleep_for(std::chrono::microseconds(moment_us(random)));
        kill_process(process);
      }
      const std::size_t computed = begun(worker.log).size();
      inside += computed > 0 && !std::filesystem::exists(scratch.path("0")) ? 1 : 0;
    }
    for (const pid_t process : start_all()) CHECK(ended_well(process));
    for (int i = 0; i < kProcesses; ++i)
      CHECK(read_file(scratch.path(std::to_string(i))) == sequence_of(worker.prunes));
    const std::size_t lost = numbers_in(worker.log).size() - begun(worker.log).size();
    CHECK(lost <= kKills * kProcesses * kJobs);
  }
  CHECK(inside > 0);
}

TEST_CASE("a file of results that is torn anywhere is continued to the same end") {
  const Scratch scratch;
  Worker worker{1, false, 4, 0};
  worker.log = scratch.path("log");
  worker.file = scratch.path("whole");
  const std::string sequence = run_worker(worker), whole = read_file(worker.file);
  CHECK(sequence == sequence_of(false, 4));
  worker.file = scratch.path("torn");
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    CAPTURE(bytes);
    std::filesystem::remove(worker.log);
    scratch.write("torn", whole.substr(0, bytes));
    CHECK(run_worker(worker) == sequence);
    CHECK(read_file(worker.file) == whole);
    // Tasks with a complete line in the file were not computed again.
    const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    const auto missing = lines(whole) - std::max<std::ptrdiff_t>(lines(whole.substr(0, bytes)), 1);
    CHECK(numbers_in(worker.log).size() == static_cast<std::size_t>(missing));
  }
}

TEST_CASE("ranks that begin anew together take no old result, whoever comes first") {
  const Scratch scratch;
  Worker worker{2, false};
  worker.file = scratch.path("results");
  worker.log = scratch.path("log");
  std::string old = "rehearse-results\t1\tquestion\n";
  for (std::int64_t task = 0; task < kTasks; ++task) old += fmt::format("{}\t\"value\": 0\n", task);
  constexpr int kRanks = 4;
  for (const std::vector<int>& order : {std::vector{0, 1, 2, 3}, std::vector{3, 1, 0, 2}}) {
    scratch.write("results", old);
    std::filesystem::remove(worker.log);
    worker.force_new = true;
    std::vector<pid_t> processes;
    for (const int rank : order) {
      worker.ranks = {rank, kRanks};
      processes.push_back(start_worker(worker, scratch.path(std::to_string(rank))));
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    for (const pid_t process : processes) CHECK(ended_well(process));
    for (int rank = 0; rank < kRanks; ++rank)
      CHECK(read_file(scratch.path(std::to_string(rank))) == sequence_of(false));
    for (const auto& [task, count] : begun(worker.log)) CHECK(count == 1);
  }
}

// A rank that mpirun starts in the test case below.
TEST_CASE("a rank of ordered tasks", "[.]") {
  const char* folder = std::getenv("REHEARSE_TEST_FOLDER");
  if (folder == nullptr) SKIP("this is a part of another case");
  const Ranks ranks = ranks_of_this_run();
  Worker worker{2, true};
  worker.file = fmt::format("{}/results", folder);
  worker.log = fmt::format("{}/log", folder);
  worker.ranks = ranks;
  std::ofstream(fmt::format("{}/{}-of-{}", folder, ranks.rank, ranks.size)) << run_worker(worker);
}

TEST_CASE("ranks under mpirun hand over the same") {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) SKIP("no mpirun");
  const Scratch scratch;
  const std::string folder = scratch.path("ranks");
  std::filesystem::create_directory(folder);
  const Outcome outcome =
      run_shell(fmt::format("REHEARSE_TEST_FOLDER={} ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 4 {} "
                            "'a rank of ordered tasks'",
                            folder, std::filesystem::read_symlink("/proc/self/exe").string()));
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  for (int rank = 0; rank < 4; ++rank)
    CHECK(read_file(fmt::format("{}/{}-of-4", folder, rank)) == sequence_of(true));
  for (const auto& [task, count] : begun(folder + "/log")) CHECK(count == 1);
}
