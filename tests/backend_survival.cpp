// Tests that a failure ends an entire run: within seconds, with a clear error, and without leaving anything
// behind.
#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backend/emulate/network.hpp"
#include "backend/emulate/shaping.hpp"
#include "backend/host/host_executor.hpp"
#include "backend/host/launch.hpp"
#include "backend/runtime/journal.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/trace/asynchrony.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse::test;

namespace {

using Clock = std::chrono::steady_clock;

// A run should end within 10 s; a machine shared with other work may take longer.
constexpr double kPatienceS = 30;

// Half a minute of steps, on four ranks that compute almost nothing.
constexpr const char* kLong = R"([model.profiled]
stages = 1
forward_ms = 5
backward_input_ms = 5
backward_weight_ms = 5
p2p_bytes = 1000
parameters = [20000]
[training]
global_batch = 4
micro_batch = 1
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 4
[strategy]
data = 4
[run]
steps = 2000
compute = "timed"
)";

// A program in the background that writes its output to files.
class Background {
public:
  Background(const std::string& command, const Scratch& scratch)
      : out_(scratch.path("out")), err_(scratch.path("err")) {
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("no process");
    if (pid_ > 0) return;
    setpgid(0, 0);
    dup2(open(out_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 1);
    dup2(open(err_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    execl("/bin/sh", "sh", "-c", ("exec env " + command).c_str(), nullptr);
    _exit(127);
  }
  ~Background() {
    if (!ended_ && pid_ > 1) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  pid_t pid() const { return pid_; }
  bool ends_within(double seconds) {
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (!ended_ && Clock::now() < until) {
      ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
      if (!ended_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return ended_;
  }
  int status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_); }
  std::string err() const { return read_file(err_); }
  std::string out() const { return read_file(out_); }

private:
  std::string out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

// Returns the processes with `word` among their arguments; skips any that end during the search.
std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == getpid()) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::string arguments;
    std::getline(file, arguments, '\n');  // unlike an iterator over the buffer, never throws
    if (arguments.find("rehearse-run") != std::string::npos && arguments.find(word) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

bool eventually(const std::function<bool()>& condition, double seconds = kPatienceS) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::string program() {
  return std::string(REHEARSE_BIN_DIR) + "/rehearse-run run ";
}

// Waits until all processes exist and have run for a moment; returns the process id of a rank.
pid_t a_rank_of(const std::string& scenario, pid_t parent, std::size_t processes, int moment_ms = 2500) {
  REQUIRE(eventually([&] { return processes_with(scenario).size() >= processes; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(moment_ms));
  pid_t rank = 0;
  for (const pid_t pid : processes_with(scenario))
    if (pid != parent && getsid(pid) != pid) rank = pid;  // the recorder process has its own session
  REQUIRE(rank > 1);                                      // never a process group
  return rank;
}

// Checks the record of a failed run: some complete steps, and notes that say how many.
void check_finished_steps(const std::string& trace, const std::string& err, const std::string& cause,
                          bool under_mpi = false) {
  const int steps = 2000;
  CAPTURE(err);
  REQUIRE(std::filesystem::exists(trace));
  const rehearse::RecordedRun run = rehearse::read_run(trace);  // throws if a step is incomplete
  REQUIRE(run.measured);
  REQUIRE(run.measured->ended_early);
  const rehearse::EndedEarly& early = *run.measured->ended_early;
  CHECK(early.steps == steps);
  CHECK(early.cause.find(cause) != std::string::npos);
  CHECK(early.finished_steps > 3);  // in two seconds of 15 ms steps, even on a busy machine
  CHECK(early.finished_steps < steps);
  const std::string told = fmt::format("ended early, after {} of {} steps", early.finished_steps, steps);
  if (!under_mpi) {  // mpirun does not wait for messages printed after the ranks have ended
    CHECK(err.find(cause) != std::string::npos);
    CHECK(err.find(told + ", which are recorded in " + trace) != std::string::npos);
  }
  REQUIRE(run.measured->notes.size() >= 1);
  CHECK(run.measured->notes.front().find(told) != std::string::npos);
  const rehearse::StepTimes times = rehearse::step_times(run.trace, 0, run.measured->warmup_steps);
  CHECK(times.seconds.size() == static_cast<std::size_t>(early.finished_steps - run.measured->warmup_steps));
  CHECK(times.median_s > 0.015);
}

}  // namespace

TEST_CASE("A rank that is killed ends the run, finished steps are recorded and no process stays behind",
          "[queued]") {
  const bool recorded = GENERATE(false, true);
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong), trace = scratch.path("run.json");
  Background run(program() + (recorded ? "--trace " + trace + " " : "") + scenario, scratch);
  const pid_t rank = a_rank_of(scenario, run.pid(), 5);
  kill(rank, SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  CHECK(run.out().empty());
  CAPTURE(run.err());
  CHECK(run.err().find("was ended by signal 9 (Killed)") != std::string::npos);
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
  if (recorded) check_finished_steps(trace, run.err(), "was ended by signal 9 (Killed)");
}

TEST_CASE("What a run had finished before it failed is predicted and judged like any other run",
          "[queued][release]") {
  const bool judged_here = std::filesystem::exists(std::string(REHEARSE_BIN_DIR) + "/rehearse");
  if (!judged_here) SKIP("rehearse was not built: SimGrid is missing");
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong), trace = scratch.path("run.json");
  Background run(program() + "--trace " + trace + " " + scenario, scratch);
  a_rank_of(scenario, run.pid(), 5);
  kill(run.pid(), SIGINT);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  check_finished_steps(trace, run.err(), "interrupted by Interrupt");
  const Outcome judged = run_rehearse("validate " + trace);
  CAPTURE(judged.out, judged.err);
  CHECK(judged.status == 0);
  CHECK(judged.out.find("the run ended early, after ") != std::string::npos);
}

TEST_CASE("Where no step was finished, the message says so and nothing is written", "[queued]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong), trace = scratch.path("run.json");
  Background run(program() + "--trace " + trace + " --set model.profiled.forward_ms=60000 " + scenario,
                 scratch);
  kill(a_rank_of(scenario, run.pid(), 5), SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  CAPTURE(run.err());
  CHECK(run.err().find("no step is known to be finished by all ranks, so nothing is recorded") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(trace));
}

TEST_CASE("Finished steps that cannot be written are told with the cause", "[queued]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong);
  const std::string folder = scratch.path("records");
  std::filesystem::create_directory(folder);
  Background run(program() + "--trace " + folder + "/run.json " + scenario, scratch);
  const pid_t rank = a_rank_of(scenario, run.pid(), 5);
  std::filesystem::remove(folder);
  kill(rank, SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  CAPTURE(run.err());
  CHECK(run.err().find("was ended by signal 9 (Killed); the run ended early, after ") != std::string::npos);
  CHECK(run.err().find("not recorded: " + folder +
                       "/run.json: cannot be written: No such file or directory") != std::string::npos);
}

TEST_CASE("Rounds that asynchronous workers had finished are recorded", "[queued]") {
  const Scratch scratch;
  const std::string scenario =
      scratch.write("long.toml", std::string(kLong) + "[strategy.parameter_server]\nmode = \"async\"\n");
  const std::string trace = scratch.path("run.json");
  Background run(
      program() + "--trace " + trace + " --set 'strategy.gradients=\"parameter-server\"' " + scenario,
      scratch);
  kill(a_rank_of(scenario, run.pid(), 6), SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  CAPTURE(run.err());
  REQUIRE(run.err().find(", which are recorded in " + trace) != std::string::npos);
  const rehearse::RecordedRun kept = rehearse::read_run(trace);
  REQUIRE(kept.measured->ended_early);
  const int rounds = kept.measured->ended_early->finished_steps;
  CHECK(rounds > 3);
  CHECK(rehearse::applied_pushes(kept.trace, 0).size() == static_cast<std::size_t>(4 * rounds));
}

TEST_CASE("Losses of the steps that a run had finished are recorded, those of a run that ends well",
          "[queued][release]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("deep.toml", kDeepPerceptron);
  const std::string trace = scratch.path("run.json"), whole = scratch.path("whole.json");
  const std::string settings = "--set cluster.nodes=4 --set strategy.data=2 --set strategy.pipeline=2 ";
  // On a busy machine no step may be finished after the first of these moments.
  std::string err;
  for (const int moment_ms : {2500, 10000, 40000}) {
    Background run(program() + settings + "--set run.steps=20000 --trace " + trace + " " + scenario, scratch);
    kill(a_rank_of(scenario, run.pid(), 5, moment_ms), SIGKILL);
    REQUIRE(run.ends_within(kPatienceS));
    err = run.err();
    if (std::filesystem::exists(trace)) break;
  }
  CAPTURE(err);
  REQUIRE(std::filesystem::exists(trace));
  const rehearse::Measurement kept = *rehearse::read_run(trace).measured;
  REQUIRE(kept.ended_early);
  const int finished = kept.ended_early->finished_steps;
  // The loss of the last finished step is only known once the next step begins.
  REQUIRE(static_cast<int>(kept.losses.size()) >= finished - 1);
  REQUIRE(static_cast<int>(kept.losses.size()) <= finished);
  REQUIRE(finished > 5);
  const Outcome outcome =
      run_program("rehearse-run", "run " + settings + "--set run.steps=6 --trace " + whole + " " + scenario);
  REQUIRE(outcome.status == 0);
  const std::vector<double> expected = rehearse::read_run(whole).measured->losses;
  for (std::size_t step = 0; step < std::min(expected.size(), kept.losses.size()); ++step)
    CHECK(kept.losses[step] == expected[step]);
}

TEST_CASE("Spans that a rank has written are there when it is killed, and half a step is not taken",
          "[queued]") {
  using namespace rehearse;
  const Scenario scenario = read_scenario_text(kLong, "long.toml");
  const Plan plan = write_schedule(scenario);
  const Schedule& schedule = *plan.schedule;
  Journal made(schedule, 3);
  if (made.name().empty()) SKIP("this system gives no memory with a name");
  CHECK_THROWS_AS(Journal(schedule, 4, made.name()), RunError);  // wrong size
  CHECK_THROWS_AS(Journal(schedule, 3, made.name() + "x"), RunError);
  const Journal journal(schedule, 3, made.name());  // opened as another process would
  std::vector<int> spans_of_step;                   // by rank: number of spans per step
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    spans_of_step.push_back(static_cast<int>(schedule.programs[schedule.program_of(0, rank)].ops.size()));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (int rank = 0; rank < schedule.ranks(); ++rank)
      for (int step = 0; step < 3; ++step)
        for (int op = 0; op < spans_of_step[rank]; ++op) {
          const bool missing = rank == 2 && step == 1 && op + 1 == spans_of_step[rank];
          const int stream = schedule.programs[schedule.program_of(0, rank)].ops[op].stream;
          if (!missing && (rank != 2 || step < 2))
            made.write(rank, {{op, stream, step, 0}, 1.0 * op, 2.0 * op, 3.0 * op, -1});
        }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK_FALSE(journal.closed());
  std::vector<std::vector<RankSpan>> by_rank;
  for (int rank = 0; rank < schedule.ranks(); ++rank) by_rank.push_back(journal.read(rank));
  CHECK(by_rank[0].size() == static_cast<std::size_t>(3 * spans_of_step[0]));
  CHECK(by_rank[2].size() == static_cast<std::size_t>(2 * spans_of_step[2] - 1));
  CHECK(by_rank[1].at(1).end_s == 3.0 * by_rank[1].at(1).call.op);
  const FinishedSteps finished = finished_steps(schedule, by_rank, 3);
  CHECK(finished.steps == 1);
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    CHECK(finished.spans[rank].size() == static_cast<std::size_t>(spans_of_step[rank]));
}

TEST_CASE("A run that is interrupted by any signal says so, keeps its record and stops its ranks",
          "[queued]") {
  const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGABRT};
  std::vector<std::unique_ptr<Scratch>> folders;
  std::vector<std::unique_ptr<Background>> runs;
  std::vector<std::string> scenarios;
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    folders.push_back(std::make_unique<Scratch>());
    scenarios.push_back(folders.back()->write("long.toml", kLong));
    runs.push_back(std::make_unique<Background>(
        program() + scenarios.back() +
            " --set strategy.data=2 --set cluster.nodes=2 --set training.global_batch=2"
            " --trace " +
            folders.back()->path("run.json"),
        *folders.back()));
  }
  for (std::size_t i = 0; i < std::size(signals); ++i)
    a_rank_of(scenarios[i], runs[i]->pid(), 3, i == 0 ? 2500 : 100);
  for (std::size_t i = 0; i < std::size(signals); ++i) kill(runs[i]->pid(), signals[i]);
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    CAPTURE(signals[i]);
    REQUIRE(runs[i]->ends_within(kPatienceS));
    CHECK(runs[i]->status() == 1);
    check_finished_steps(folders[i]->path("run.json"), runs[i]->err(), "interrupted by");
    CHECK(eventually([&] { return processes_with(scenarios[i]).empty(); }));
  }
}

TEST_CASE("Ranks end with a run that is killed outright", "[queued]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong);
  Background run(program() + scenario, scratch);
  a_rank_of(scenario, run.pid(), 5);
  kill(run.pid(), SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
}

TEST_CASE("A rank that stands still is given up", "[queued]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong);
  Background run(program() + "--patience 2 " + scenario, scratch);
  const pid_t rank = a_rank_of(scenario, run.pid(), 5);
  kill(rank, SIGSTOP);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() == 1);
  CAPTURE(run.err());
  CHECK(run.err().find("no progress for 2 s; waiting for rank") != std::string::npos);
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
}

TEST_CASE("An emulated run leaves no process behind, and with them no network", "[queued][release]") {
  if (const std::string missing = rehearse::emulation_missing(); !missing.empty()) SKIP(missing);
  const int signal = GENERATE(SIGINT, SIGKILL);
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong);
  const std::string before = run_program("rehearse-run", "--version; ip -o link | wc -l; ip netns").out;
  Background run(std::string(REHEARSE_BIN_DIR) + "/rehearse-run emulate " + scenario, scratch);
  a_rank_of(scenario, run.pid(), 5);
  kill(run.pid(), signal);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
  CHECK(run_program("rehearse-run", "--version; ip -o link | wc -l; ip netns").out == before);
}

TEST_CASE("A link that goes down ends the run", "[queued][release]") {
  if (const std::string missing = rehearse::emulation_missing(); !missing.empty()) SKIP(missing);
  using namespace rehearse;
  const Scenario scenario = read_scenario_text(kLong, "long.toml");
  const Plan plan = write_schedule(scenario);
  EmulatedNetwork network(emulation_graph(*scenario.cluster, plan.endpoints, {}, kMostEmulatedBandwidth));
  const pid_t cutter = fork();
  REQUIRE(cutter >= 0);
  if (cutter == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    network.set_link_down("node2.nic0");
    _exit(0);
  }
  LaunchOptions options;
  options.ranks = plan.schedule->ranks();
  options.enter = [&](int rank) { network.enter(plan.endpoints[rank]); };
  options.first_address = network.address(plan.endpoints.front());
  std::string failure;
  const auto began = Clock::now();
  try {
    launch(options, [&](Transport& transport) { run_rank(scenario, plan, transport, host_executor()); });
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  waitpid(cutter, nullptr, WNOHANG);
  CAPTURE(failure, seconds);
  CHECK(failure.find("no answer for 6 s") != std::string::npos);
  CHECK(seconds < 1.5 + kPatienceS);
}

TEST_CASE("A record that cannot be written is told before the run", "[queued]") {
  const Scratch scratch;
  struct Case {
    std::string trace, told;
    int status;
  };
  const std::string scenario = scratch.write("s.toml", kLong), text = scratch.write("notes.txt", "my notes");
  const Case cases[] = {
      {"/dev/full", "/dev/full: cannot be written: No space left on device", 1},
      {scratch.path("missing/run.json"), "missing/run.json: cannot be written: No such file or directory", 1},
      {text, "is a file that is no record of a run; allowed: a new file, or a record to replace", 2},
  };
  for (const Case& c : cases) {
    // The run would take half a minute.
    const Outcome outcome =
        run_program("rehearse-run", "run --trace " + c.trace + " " + scenario, "timeout 10");
    CAPTURE(c.trace, outcome.err);
    CHECK(outcome.status == c.status);
    CHECK(outcome.out.empty());
    std::string words;
    for (const std::string& line : lines_of(outcome.err))
      words += line.substr(line.find_first_not_of(' ')) + " ";
    CHECK(words.find(c.told) != std::string::npos);
  }
  CHECK(read_file(text) == "my notes");
  const Outcome full = run_program("rehearse-run", "run --set run.steps=3 " + scratch.write("s.toml", kLong),
                                   "", ">/dev/full");
  CHECK(full.status == 1);
  CHECK(full.err.find("standard output cannot be written") != std::string::npos);
}

TEST_CASE("Under mpirun a killed rank ends the run, and leaves no process and no shared memory",
          "[queued][release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong);
  const std::string before = run_program("rehearse-run", "--version; ls /dev/shm | grep -v gpu-stand-in").out;
  Background run(mpirun(4) + " " + program() + scenario, scratch);
  // mpirun also has the scenario among its arguments.
  const pid_t rank = a_rank_of(scenario, run.pid(), 5);
  kill(rank, SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() != 0);
  CAPTURE(run.err());
  CHECK(run.err().find("signal 9") != std::string::npos);
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
  CHECK(run_program("rehearse-run", "--version; ls /dev/shm | grep -v gpu-stand-in").out == before);
}

TEST_CASE("Under mpirun a run that fails has its finished steps recorded, whoever was killed",
          "[queued][release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong), trace = scratch.path("run.json");
  const std::string before = run_program("rehearse-run", "--version; ls /dev/shm | grep -v gpu-stand-in").out;
  Background run(mpirun(4) + " " + program() + "--trace " + trace + " " + scenario, scratch);
  const pid_t rank = a_rank_of(scenario, run.pid(), 6);          // including the recorder process
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // MPI takes a while to start
  kill(rank, SIGKILL);
  REQUIRE(run.ends_within(kPatienceS));
  CHECK(run.status() != 0);
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
  check_finished_steps(trace, run.err(), "rank 0 was ended before it had the result", true);
  CHECK(run_program("rehearse-run", "--version; ls /dev/shm | grep -v gpu-stand-in").out == before);
}

TEST_CASE("Under mpirun a run that ends well is recorded by rank 0, and nobody stays", "[queued][release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  const Scratch scratch;
  const std::string scenario = scratch.write("long.toml", kLong), trace = scratch.path("run.json");
  const Outcome outcome =
      run_program("rehearse-run", "run --set run.steps=20 --trace " + trace + " " + scenario, mpirun(4));
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.err.find("recorded") == std::string::npos);
  CHECK_FALSE(rehearse::read_run(trace).measured->ended_early);
  CHECK(eventually([&] { return processes_with(scenario).empty(); }));
}

TEST_CASE("What a run needs and does not have is told", "[queued]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kLong);
  struct Case {
    const char* environment;
    const char* arguments;
    const char* expected;
  };
  const Case cases[] = {
      {"RANK=0", "--transport tcp",
       "the environment variable WORLD_SIZE is not set; allowed: a number of 1 or more"},
      {"RANK=x WORLD_SIZE=4", "--transport tcp",
       "the environment variable RANK is \"x\"; allowed: a number of 0 or more"},
      {"RANK=0 WORLD_SIZE=1 MASTER_PORT=29777", "--transport tcp", "s needs 4 ranks; 1 were started"},
      {"", "--set strategy.parameter_server.servers=2 --set 'strategy.gradients=\"first\"'",
       "strategy.gradients"},
  };
  for (const Case& c : cases) {
    const Outcome outcome =
        run_program("rehearse-run", std::string("run ") + c.arguments + " " + scenario, c.environment);
    CAPTURE(c.arguments, outcome.err);
    CHECK(outcome.status != 0);
    CHECK(outcome.err.find(c.expected) != std::string::npos);
  }
}
