// Tests runs on GPUs, if there are any: messages and collectives deliver the right data, events give times of
// this machine's clock, and training gives the same losses as on processors.
#ifdef REHEARSE_HAVE_CUDA

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backend/cuda/cuda_executor.hpp"
#include "backend/host/launch.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/rank_executor.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/schedule_builders.hpp"

using namespace rehearse;

namespace {

constexpr int kRanks = 2;
constexpr std::size_t kElements = 1000;              // in a collective's buffer, or in a pair's part of it
constexpr std::size_t kLong = std::size_t{2} << 20;  // in a message: more than NCCL's buffers hold
constexpr const char* kNoGpu = "finds no GPU";

float number(int rank, std::size_t i) {
  return static_cast<float>(1000 * (rank + 1)) + static_cast<float>(i % 997);
}

// Ops 0 to 5 are the collectives, ordered by kind. In op 6 both ranks send to each other at once, on another
// stream, after the first collective.
Schedule all_kinds() {
  Schedule schedule;
  schedule.roles = {testing::role("worker", {{"data", kRanks}})};
  Program program;
  program.name = "worker";
  program.streams = {"collectives", "messages"};
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind) {
    Op op = testing::all_reduce(std::string(kCollectiveNames[kind]), 0, {{{0}}}, 4.0 * kElements);
    op.collective.kind = static_cast<CollectiveKind>(kind);
    program.ops.push_back(op);
  }
  program.ops.push_back(testing::exchange("swap", 1,
                                          {testing::send(Peer::along(0, 1, true), 4.0 * kLong),
                                           testing::receive(Peer::along(0, -1, true), 4.0 * kLong)},
                                          {{0}}));
  schedule.programs = {program};
  return schedule;
}

class Numbers : public Workload {
public:
  Numbers(Arithmetic& arithmetic, int rank) : arithmetic_(arithmetic) {
    for (std::size_t op = 0; op < kCollectiveNames.size(); ++op)
      buffers_.push_back(filled(rank, kElements * (op == 3 ? kRanks * kRanks : 1)));
    buffers_.push_back(filled(rank, kLong));
    buffers_.emplace_back(arithmetic, kLong, Precision::fp32);  // receive buffer
  }
  void compute(const OpCall&) override {}
  Payload message(const OpCall&, const ExchangePart& part) override { return payload(part.send ? 6 : 7); }
  Payload collective(const OpCall& call, const CollectiveWiring&) override {
    return payload(static_cast<std::size_t>(call.op));
  }
  Learned learned() override { return {}; }

  std::vector<float> numbers(std::size_t buffer) {
    std::vector<float> host(buffers_[buffer]->elements);
    arithmetic_.copy_to_host(0, buffers_[buffer], host.data());
    return host;
  }

private:
  OwnedArray filled(int rank, std::size_t elements) {
    std::vector<float> host(elements);
    for (std::size_t i = 0; i < elements; ++i) host[i] = number(rank, i);
    OwnedArray array(arithmetic_, elements, Precision::fp32);
    arithmetic_.copy_to_device(0, host.data(), array);
    arithmetic_.settle(0);
    return array;
  }
  Payload payload(std::size_t buffer) const {
    return {buffers_[buffer]->data, buffers_[buffer]->bytes(), Precision::fp32};
  }
  Arithmetic& arithmetic_;
  std::vector<OwnedArray> buffers_;
};

void require(bool condition, const std::string& what) {  // for ranks: the launch reports the failure
  if (!condition) throw RunError(what);
}

// MPI-3.1, chapter 5, defines what each member ends up with.
void require_all_there(Numbers& numbers, int rank) {
  const int other = 1 - rank;
  const auto expect = [&](std::size_t buffer, std::size_t first, std::size_t count, const auto& expected) {
    const std::vector<float> found = numbers.numbers(buffer);
    for (std::size_t i = first; i < first + count; ++i)
      require(found[i] == expected(i), "buffer " + std::to_string(buffer) + ", element " + std::to_string(i) +
                                           ": " + std::to_string(found[i]) + " instead of " +
                                           std::to_string(expected(i)));
  };
  const auto sum = [](std::size_t i) { return number(0, i) + number(1, i); };
  const auto of = [](int r) { return [r](std::size_t i) { return number(r, i); }; };
  constexpr std::size_t kPart = kElements / kRanks;
  expect(0, 0, kElements, sum);
  expect(1, static_cast<std::size_t>(rank) * kPart, kPart, sum);
  for (int r = 0; r < kRanks; ++r) expect(2, static_cast<std::size_t>(r) * kPart, kPart, of(r));
  expect(3, static_cast<std::size_t>(other * kRanks + rank) * kElements, kElements, of(other));
  expect(4, 0, kElements, of(0));
  if (rank == 0) expect(5, 0, kElements, sum);
  expect(7, 0, kLong, of(other));
}

void require_times(const std::vector<RankSpan>& spans, double before_s, double after_s) {
  constexpr double kClock_s = 1e-3;  // error of reading GPU clocks through drivers and virtual machines
  double first_end_s = 0, swap_ready_s = 0;
  for (const RankSpan& span : spans) {
    require(
        before_s - kClock_s < span.begin_s && span.begin_s <= span.end_s && span.end_s < after_s + kClock_s,
        "a span lies outside the run");
    if (span.call.op == 0) first_end_s = span.end_s;
    if (span.call.op == 6) swap_ready_s = span.ready_s;
  }
  require(spans.size() == 7 && swap_ready_s >= first_end_s - 1e-5,
          "an op was ready before what it waits for");
}

nlohmann::json train(const test::Scratch& scratch, const std::string& settings) {
  std::string arguments =
      "run --format json --check-replicas " + scratch.write("deep.toml", test::kDeepPerceptron);
  std::istringstream words(settings);
  for (std::string word; words >> word;) arguments += word[0] == '-' ? " " + word : " " + ("'" + word + "'");
  const test::Outcome outcome = test::run_program("rehearse-run", arguments);
  if (outcome.err.find(kNoGpu) != std::string::npos) return {};
  INFO(settings << ": " << outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out);
}

}  // namespace

// Needs separate processes, because CUDA does not survive a fork.
TEST_CASE("ranks that share a GPU", "[.][forked]") {
  LaunchOptions options;
  options.ranks = kRanks;
  options.patience_s = 60;
  launch(options, [&](Transport& transport) {
    const CudaChoice choice = cuda_executor({true, 60, false}, transport);
    require(choice.refused.empty(), choice.refused);
    const int rank = transport.rank();
    const Schedule schedule = all_kinds();
    const Scenario scenario =
        read_scenario_text(test::kDeepPerceptron, "test", {"strategy.data=2", "cluster.nodes=2"});
    const Plan plan = write_schedule(scenario);
    const Wiring wiring(schedule, *scenario.cluster, plan.endpoints, 0);
    const auto arithmetic = choice.executor.arithmetic(2);
    Numbers numbers(*arithmetic, rank);
    const auto hardware = choice.executor.hardware(schedule, wiring, rank, transport, numbers, *arithmetic);
    const double before_s = monotonic_s();
    const std::vector<RankSpan> spans = execute_rank(schedule, 0, rank, 1, *hardware);
    require_times(spans, before_s, monotonic_s());
    require_all_there(numbers, rank);
    barrier(transport);
  });
}

TEST_CASE("messages and collectives between GPUs", "[gpu]") {
  const test::Scratch scratch;
  const std::string said = scratch.path("said");
  const int status =
      std::system(("/proc/" + std::to_string(getpid()) + "/exe '[forked]' >" + said + " 2>&1").c_str());
  const std::string text = test::read_file(said);
  if (text.find(kNoGpu) != std::string::npos) SKIP("no GPU");
  INFO(text);
  CHECK(status == 0);
}

namespace {

void check_losses(const std::string& optimizer) {
  struct {
    const char* settings;
    double margin;  // relative, for the losses
  } const cases[] = {
      {"--set cluster.nodes=1", 1e-5},
      {"--set strategy.data=2 --set cluster.nodes=2 --set strategy.bucket_mb=0.02", 1e-5},
      {"--set strategy.pipeline=2 --set cluster.nodes=2", 1e-5},
      {"--set cluster.nodes=1 --set strategy.gradients=\"parameter-server\"", 1e-5},
      {"--set cluster.preset=\"p100x4-25gbe\" --set cluster.nodes=1 --set strategy.data=4 "
       "--set strategy.gradients=\"first-device\"",
       1e-5},
      // Processor cores have no bf16.
      {"--set cluster.node.device=\"h200\" --set cluster.nodes=1 --set training.precision=\"bf16\" "
       "--set training.gradient_precision=\"fp32\"",
       0.05},
  };
  const test::Scratch scratch;
  const std::string common = "--set training.optimizer=\"" + optimizer + "\" ";
  const nlohmann::json host = train(scratch, "--device cpu --set cluster.nodes=1 " + common);
  const auto expected = host.at("measured").at("losses").get<std::vector<double>>();
  CHECK(expected.back() < 0.9 * expected.front());
  for (const auto& c : cases) {
    INFO(c.settings);
    const nlohmann::json gpu = train(scratch, "--device gpu --oversubscribe " + common + c.settings);
    if (gpu.is_null()) SKIP("no GPU");
    CHECK(gpu.at("measured").at("executor").get<std::string>() == "cuda");
    const auto losses = gpu.at("measured").at("losses").get<std::vector<double>>();
    REQUIRE(losses.size() == expected.size());
    double worst = 0;
    for (std::size_t step = 0; step < losses.size(); ++step)
      worst = std::max(worst, std::abs(losses[step] - expected[step]) / expected[step]);
    CHECK(worst < c.margin);
    const auto& identical = gpu.at("measured").at("gradients_identical");
    if (!identical.is_null()) CHECK(identical.get<bool>());
  }
}

}  // namespace

TEST_CASE("GPUs train as processors do by SGD", "[gpu]") {
  check_losses("sgd");
}

TEST_CASE("GPUs train as processors do by momentum", "[gpu]") {
  check_losses("momentum");
}

TEST_CASE("GPUs train as processors do by Adam", "[gpu]") {
  check_losses("adam");
}

#endif
