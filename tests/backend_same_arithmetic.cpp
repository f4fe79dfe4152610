// Tests that strategies that wait for all gradients train as a single rank does: except for fp32 rounding,
// the sum of a batch's gradients does not depend on which rank computes which part.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::test;

namespace {

struct SameArithmetic {
  const char* name;
  int ranks;  // number, of all roles
  const char* optimizer;
  const char* settings;
  bool representative = false;  // runs over MPI and under sanitizers too, for its message pattern
};

constexpr const char* kRing2 = "strategy.data=2 cluster.nodes=2 strategy.bucket_mb=0.02";
const SameArithmetic kSameArithmetic[] = {
    {"ring of 2", 2, "sgd", kRing2},
    {"ring of 4", 4, "momentum", "strategy.data=4 cluster.nodes=4 strategy.bucket_mb=0.02", true},
    {"ring of 8", 8, "adam", "strategy.data=8 cluster.nodes=8 strategy.bucket_mb=0.02"},
    {"ring in chunks", 4, "adam", "strategy.data=4 cluster.nodes=4 strategy.chunk_kb=1"},
    {"without overlap", 4, "sgd", "strategy.data=4 cluster.nodes=4 strategy.overlap=false"},
    {"DDP's copies over Gloo, two buckets at a time", 4, "adam",
     "strategy.data=4 cluster.nodes=4 strategy.bucket_mb=0.02 strategy.preset=\"pytorch-ddp\" "
     "simulation.protocol=\"gloo\""},
    {"Horovod's fusion", 4, "adam", "strategy.data=4 cluster.nodes=4 strategy.fusion_mb=1"},
    {"double tree", 8, "momentum", "strategy.data=8 cluster.nodes=8 strategy.all_reduce=\"tree\"", true},
    {"halving-doubling", 8, "adam",
     "strategy.data=8 cluster.nodes=8 strategy.all_reduce=\"halving-doubling\""},
    {"recursive doubling", 8, "adam",
     "strategy.data=8 cluster.nodes=8 strategy.all_reduce=\"recursive-doubling\"", true},
    {"recursive doubling in chunks", 4, "momentum",
     "strategy.data=4 cluster.nodes=4 strategy.all_reduce=\"recursive-doubling\" strategy.chunk_kb=1"},
    {"hierarchical", 8, "sgd",
     "strategy.data=8 cluster.preset=\"p100x4-25gbe\" cluster.nodes=2 strategy.all_reduce=\"hierarchical\""},
    {"torus", 8, "adam",
     "strategy.data=8 cluster.nodes=8 cluster.kind=\"torus\" cluster.dims=[2,4] "
     "strategy.all_reduce=\"torus\""},
    {"ZeRO-1", 4, "adam", "strategy.data=4 cluster.nodes=4 strategy.bucket_mb=0.02 strategy.zero_stage=1",
     true},
    {"ZeRO-1 without overlap", 2, "momentum",
     "strategy.data=2 cluster.nodes=2 strategy.zero_stage=1 strategy.overlap=false"},
    {"ZeRO-2", 4, "momentum",
     "strategy.data=4 cluster.nodes=4 strategy.bucket_mb=0.02 strategy.zero_stage=2"},
    {"ZeRO-3", 8, "adam", "strategy.data=8 cluster.nodes=8 strategy.zero_stage=3", true},
    {"FSDP of a pipeline, weights kept", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.fsdp=\"full\" "
     "strategy.reshard_after_forward=false"},
    {"hybrid FSDP without prefetch", 8, "sgd",
     "strategy.data=8 cluster.nodes=8 strategy.fsdp=\"hybrid\" strategy.shard_degree=4 strategy.prefetch=0"},
    {"ZeRO-3 with tensor and sequence parallelism", 4, "adam",
     "strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true cluster.nodes=4 "
     "strategy.zero_stage=3"},
    {"ZeRO-1, interleaved", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"interleaved\" "
     "strategy.virtual_stages=2 strategy.zero_stage=1"},
    {"ZeRO-3 with ZB-H1", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"zb-h1\" strategy.zero_stage=3"},
    {"1 server", 5, "momentum", "strategy.data=4 cluster.nodes=4 strategy.gradients=\"parameter-server\""},
    {"3 servers", 7, "adam",
     "strategy.data=4 cluster.nodes=4 strategy.gradients=\"parameter-server\" "
     "strategy.parameter_server.servers=3 strategy.bucket_mb=0.02",
     true},
    {"2 colocated servers without overlap", 6, "sgd",
     "strategy.data=4 cluster.nodes=4 strategy.gradients=\"parameter-server\" strategy.overlap=false "
     "strategy.parameter_server.servers=2 strategy.parameter_server.placement=\"colocated\" "
     "strategy.bucket_mb=0.02"},
    {"2 servers behind aggregators", 12, "adam",
     "strategy.data=8 cluster.preset=\"p100x4-25gbe\" cluster.nodes=2 "
     "strategy.gradients=\"hierarchical-parameter-server\" "
     "strategy.hierarchical_parameter_server.servers=2 "
     "strategy.hierarchical_parameter_server.placement=\"colocated\" strategy.bucket_mb=0.02"},
    {"a server behind aggregators of one worker, without overlap", 5, "momentum",
     "strategy.data=2 cluster.nodes=2 strategy.gradients=\"hierarchical-parameter-server\" "
     "strategy.hierarchical_parameter_server.placement=\"colocated\" strategy.overlap=false",
     true},
    {"DataParallel", 4, "adam",
     "strategy.data=4 cluster.preset=\"p100x4-25gbe\" cluster.nodes=1 strategy.gradients=\"first-device\"",
     true},
    {"DataParallel in one micro-batch", 4, "momentum",
     "strategy.data=4 cluster.preset=\"p100x4-25gbe\" cluster.nodes=1 strategy.gradients=\"first-device\" "
     "training.micro_batch=16"},
    {"GPipe", 4, "adam", "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"gpipe\""},
    {"1F1B", 8, "momentum", "strategy.pipeline=8 cluster.nodes=8"},
    {"1F1B, blocking", 4, "adam", "strategy.pipeline=4 cluster.nodes=4 strategy.blocking_p2p=true", true},
    {"interleaved", 4, "adam",
     "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"interleaved\" strategy.virtual_stages=2"},
    {"interleaved, blocking", 2, "sgd",
     "strategy.pipeline=2 cluster.nodes=2 strategy.schedule=\"interleaved\" strategy.virtual_stages=4 "
     "strategy.blocking_p2p=true"},
    {"data x pipeline", 8, "adam", "strategy.data=4 strategy.pipeline=2 cluster.nodes=8"},
    {"data x interleaved", 4, "momentum",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"interleaved\" "
     "strategy.virtual_stages=2",
     true},
    {"fusion, interleaved", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"interleaved\" "
     "strategy.virtual_stages=2 strategy.fusion_mb=0.02 strategy.cycle_ms=0.2"},
    {"breadth-first", 4, "momentum",
     "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"breadth-first\" strategy.virtual_stages=2"},
    {"ZB-H1", 4, "adam", "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"zb-h1\"", true},
    {"ZB-H2", 8, "momentum", "strategy.pipeline=8 cluster.nodes=8 strategy.schedule=\"zb-h2\""},
    {"ZB-V", 4, "adam", "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"zb-v\"", true},
    {"DualPipeV", 4, "adam", "strategy.pipeline=4 cluster.nodes=4 strategy.schedule=\"dualpipe-v\""},
    {"data x DualPipeV with sequence parallelism", 8, "momentum",
     "strategy.data=2 strategy.tensor=2 strategy.pipeline=2 strategy.sequence_parallel=true cluster.nodes=8 "
     "strategy.schedule=\"dualpipe-v\""},
    {"data x ZB-H1", 4, "momentum",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"zb-h1\" "
     "strategy.bucket_mb=0.02"},
    {"data x ZB-H2 with fusion", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"zb-h2\" "
     "strategy.fusion_mb=0.02 strategy.cycle_ms=0.2"},
    {"data x ZB-V", 4, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.schedule=\"zb-v\" "
     "strategy.bucket_mb=0.02"},
    {"tensor x ZB-H1 with sequence parallelism", 4, "momentum",
     "strategy.tensor=2 strategy.pipeline=2 strategy.sequence_parallel=true cluster.nodes=4 "
     "strategy.schedule=\"zb-h1\""},
    {"data x tensor x ZB-V with sequence parallelism", 8, "adam",
     "strategy.data=2 strategy.tensor=2 strategy.pipeline=2 strategy.sequence_parallel=true cluster.nodes=8 "
     "strategy.schedule=\"zb-v\""},
    {"ZB-H1 with 2 servers", 6, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.gradients=\"parameter-server\" "
     "strategy.parameter_server.servers=2 strategy.schedule=\"zb-h1\""},
    {"tensor", 2, "adam", "strategy.tensor=2 cluster.nodes=2"},
    {"tensor with sequence parallelism", 4, "momentum",
     "strategy.tensor=4 strategy.sequence_parallel=true cluster.nodes=4", true},
    {"data x tensor", 4, "adam", "strategy.data=2 strategy.tensor=2 cluster.nodes=4 strategy.bucket_mb=0.02"},
    {"data x tensor x pipeline with sequence parallelism", 8, "adam",
     "strategy.data=2 strategy.tensor=2 strategy.pipeline=2 strategy.sequence_parallel=true cluster.nodes=8"},
    {"tensor x pipeline, blocking", 4, "sgd",
     "strategy.tensor=2 strategy.pipeline=2 cluster.nodes=4 strategy.blocking_p2p=true"},
    {"tensor x interleaved with sequence parallelism", 4, "momentum",
     "strategy.tensor=2 strategy.pipeline=2 strategy.sequence_parallel=true cluster.nodes=4 "
     "strategy.schedule=\"interleaved\" strategy.virtual_stages=2"},
    {"data x tensor with sequence parallelism and fusion", 4, "adam",
     "strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true cluster.nodes=4 "
     "strategy.fusion_mb=0.02 strategy.cycle_ms=0.2"},
    {"data x tensor with sequence parallelism and 2 servers", 6, "adam",
     "strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true cluster.nodes=4 "
     "strategy.gradients=\"parameter-server\" strategy.parameter_server.servers=2"},
    {"data x pipeline with 2 servers", 6, "adam",
     "strategy.data=2 strategy.pipeline=2 cluster.nodes=4 strategy.gradients=\"parameter-server\" "
     "strategy.parameter_server.servers=2"},
};

constexpr std::size_t kSteps = 50;       // for representative cases: enough for rounding errors to grow
constexpr std::size_t kFewerSteps = 15;  // for other cases, and under MPI, where ranks poll for messages

nlohmann::json train(const Scratch& scratch, const std::string& optimizer, const std::string& settings,
                     const std::string& launcher, std::size_t steps = kSteps) {
  std::string arguments = "run --format json --check-replicas " +
                          scratch.write("deep.toml", kDeepPerceptron) + " --set training.optimizer='\"" +
                          optimizer + "\"' --set run.steps=" + std::to_string(steps);
  std::istringstream words(settings);
  for (std::string word; words >> word;) arguments += " --set '" + word + "'";
  const Outcome outcome = run_program("rehearse-run", arguments, launcher);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out);
}

void compare_all(bool under_mpi) {
  const Scratch scratch;
  std::map<std::string, std::vector<double>> alone;  // losses of one rank, by optimizer
  for (const SameArithmetic& c : kSameArithmetic) {
    if ((under_mpi || rehearse::testing::kSanitized) && !c.representative) continue;
    CAPTURE(c.name);
    const std::size_t steps = c.representative && !under_mpi ? kSteps : kFewerSteps;
    if (alone.count(c.optimizer) == 0) {
      alone[c.optimizer] =
          train(scratch, c.optimizer, "cluster.nodes=1", "")["measured"]["losses"].get<std::vector<double>>();
      REQUIRE(alone[c.optimizer].size() == kSteps);
      CHECK(alone[c.optimizer].back() < 0.9 * alone[c.optimizer].front());  // it learns
    }
    std::vector<double> expected = alone[c.optimizer];
    expected.resize(steps);
    const nlohmann::json result =
        train(scratch, c.optimizer, c.settings, under_mpi ? mpirun(c.ranks) : "", steps);
    const auto losses = result["measured"]["losses"].get<std::vector<double>>();
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (std::size_t step = 0; step < losses.size(); ++step)
      worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    CHECK(worst < 1e-5);
    const std::string settings = c.settings;
    if (settings.find("data=") != std::string::npos || settings.find("tensor=") != std::string::npos)
      CHECK(result["measured"]["gradients_identical"].get<bool>());
  }
}

}  // namespace

TEST_CASE("Synchronous strategies train as one rank alone") {
  compare_all(false);
}

TEST_CASE("MPI's own all-reduce trains as one rank alone", "[release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  const Scratch scratch;
  const auto alone =
      train(scratch, "adam", "cluster.nodes=1", "")["measured"]["losses"].get<std::vector<double>>();
  for (const char* settings : {"cluster.nodes=4", "cluster.nodes=4 strategy.data=2 strategy.pipeline=2",
                               "cluster.nodes=4 strategy.data=2 strategy.tensor=2"}) {
    CAPTURE(settings);
    const nlohmann::json result =
        train(scratch, "adam", settings + std::string(" run.collectives=\"library\""), mpirun(4));
    const auto losses = result["measured"]["losses"].get<std::vector<double>>();
    REQUIRE(losses.size() == alone.size());
    for (std::size_t step = 0; step < losses.size(); ++step)
      CHECK(losses[step] == Approx(alone[step]).epsilon(1e-5));
    CHECK(result["measured"]["gradients_identical"].get<bool>());
    CHECK(result["measured"]["notes"].dump().find("library's own") != std::string::npos);
  }
}

TEST_CASE("A transport without collectives of its own is told") {
  const Scratch scratch;
  const Outcome outcome =
      run_program("rehearse-run", "run " + scratch.write("deep.toml", kDeepPerceptron) +
                                      " --set cluster.nodes=2 --set 'run.collectives=\"library\"'");
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("run.collectives is \"library\", and TCP has no built-in all-reduce") !=
        std::string::npos);
}

TEST_CASE("Synchronous strategies under mpirun train as one rank alone", "[release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  compare_all(true);
}
