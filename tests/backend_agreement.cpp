// Tests that ranks with different scenarios do not begin a run.
#include <unistd.h>

#include "backend/host/launch.hpp"
#include "backend/host/tcp_transport.hpp"
#include "backend/runs/agreement.hpp"
#include "models/text/error.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

constexpr const char* kIntentOfFirst = R"([model.transformer]
layers = 2
[run]
learning_rate = 0.1
steps = 3
)";

// Returns what differs if the text `from` in the other rank's scenario is `to`.
std::string told_of(const std::string& from, const std::string& to) {
  std::string other = kIntentOfFirst;
  other.replace(other.find(from), from.size(), to);
  return difference({"1.0", kIntentOfFirst, ""}, {"1.0", other, ""}, 3);
}

int free_port() {
  const Listener listener = listen_anywhere();
  close(listener.socket);
  return listener.port;
}

}  // namespace

TEST_CASE("How a rank's scenario differs from that of rank 0 is told by key") {
  CHECK(told_of("layers = 2", "layers = 2").empty());
  CHECK(told_of("learning_rate = 0.1", "learning_rate = 0.2") ==
        "run.learning_rate is 0.2 at rank 3 and 0.1 at rank 0");
  CHECK(told_of("steps = 3\n", "") == "run.steps is not set at rank 3 and 3 at rank 0");
  CHECK(told_of("learning_rate = 0.1\nsteps = 3", "steps = 4\nwarmup = 1") ==
        "run.learning_rate is not set at rank 3 and 0.1 at rank 0, run.steps is 4 at rank 3 and 3 at rank 0, "
        "run.warmup is 1 at rank 3 and not set at rank 0");
  // Another order, and another way to write a number, mean the same.
  CHECK(told_of("learning_rate = 0.1\nsteps = 3", "steps = 3.0\nlearning_rate = 1e-1").empty());
  CHECK(difference({"1.0", kIntentOfFirst, ""}, {"1.1", kIntentOfFirst, ""}, 1) ==
        "the version of rehearse-run is 1.1 at rank 1 and 1.0 at rank 0");
  CHECK(difference({"1.0", kIntentOfFirst, "--check-replicas"}, {"1.0", kIntentOfFirst, ""}, 1) ==
        "the command's options is none at rank 1 and --check-replicas at rank 0");
}

TEST_CASE("Ranks compare their scenarios when they join, and all are told", "[queued]") {
  const auto joined = [](const std::string& odd) {
    LaunchOptions options;
    options.ranks = 3;
    std::string failure;
    try {
      launch(options, [&](Transport& transport) {
        agree(transport, {"1.0", transport.rank() == 1 ? odd : kIntentOfFirst, ""});
      });
    } catch (const InputError& error) {
      failure = error.what();
    }
    return failure;
  };
  CHECK(joined(kIntentOfFirst).empty());
  CHECK(joined(std::string(kIntentOfFirst) + "seed = 4\n")
            .find("run.seed is 4 at rank 1 and not set at rank 0") != std::string::npos);
}

// Without the comparison, another learning rate gives wrong losses, another micro-batch ends in a crash, and
// another bucket hangs.
TEST_CASE("Ranks that others start with different scenarios end at once and name the key", "[queued]") {
  struct Odd {
    const char *setting, *told;
  };
  const Odd all[] = {
      {"run.learning_rate=0.5", "run.learning_rate is 0.5 at rank 1 and not set at rank 0"},
      {"training.micro_batch=8", "training.micro_batch is 8 at rank 1 and 4 at rank 0"},
      {"strategy.bucket_mb=0.01", "strategy.bucket_mb is 0.01 at rank 1 and not set at rank 0"},
      {"run.steps=7", "run.steps is 7 at rank 1 and 50 at rank 0"}};
  const Scratch scratch;
  const std::string common = "run " + scratch.write("deep.toml", kDeepPerceptron) +
                             " --set strategy.data=2 --set cluster.nodes=2 --patience 5";
  const std::string program = std::string(REHEARSE_BIN_DIR) + "/rehearse-run ";
  for (const Odd& odd : all) {
    const std::string joins = "WORLD_SIZE=2 MASTER_PORT=" + std::to_string(free_port());
    const std::string second = joins + " RANK=1 " + program + common + " --set " + odd.setting + " >" +
                               scratch.path("out") + " 2>&1; echo status $? >>" + scratch.path("out");
    const Outcome first =
        run_shell("( " + second + " ) & " + joins + " RANK=0 " + program + common, "; wait");
    CAPTURE(odd.setting, first.err);
    CHECK(first.status == 0);  // of wait
    const std::string said = read_file(scratch.path("out"));
    CAPTURE(said);
    for (const std::string& text : {first.err, said}) {
      std::string words;
      for (const std::string& line : lines_of(text)) words += line.substr(line.find_first_not_of(' ')) + " ";
      CHECK(words.find(odd.told) != std::string::npos);
    }
    CHECK(said.find("status 2") != std::string::npos);
    CHECK(first.out.empty());
  }
  if (!have_mpirun()) return;
  // Not `mpirun ... : ...`, at which Open MPI 5.0.7's mpirun crashes.
  const std::string script =
      scratch.write("rank.sh", "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] && set -- --set run.steps=7\nexec " +
                                   program + common + " \"$@\"\n");
  const Outcome under_mpi = run_shell(mpirun(2) + " sh " + script);
  CAPTURE(under_mpi.err);
  CHECK(under_mpi.status == 2);
  CHECK(under_mpi.err.find("run.steps is 7 at rank 1 and 50 at") != std::string::npos);
}
