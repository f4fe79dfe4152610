// Compares steps that are predicted from a few micro-batches with simulations of all micro-batches.
#include <cstdlib>
#include <map>

#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "simulator/scenario/fewer_microbatches.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/strategies/most_ops.hpp"
#include "tests/catch.hpp"
#include "tests/planner_optimal_cases.hpp"
#include "tests/random_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kRounding = 1e-9;
const RoundsEffort kAnyStep = {.least_ops = 0};

std::map<std::string, double> figures_of(const Metrics& m) {
  std::map<std::string, double> figures = {{"step", m.step_time_s},
                                           {"samples", m.samples},
                                           {"samples/s", m.samples_per_s},
                                           {"tokens/s", m.tokens_per_s},
                                           {"TFLOP/s", m.model_tflops_per_device},
                                           {"MFU", m.mfu},
                                           {"HFU", m.hfu},
                                           {"compute", m.breakdown.compute_s},
                                           {"exposed", m.breakdown.exposed_communication_s},
                                           {"bubble", m.breakdown.pipeline_bubble_s},
                                           {"other", m.breakdown.other_s},
                                           {"launches", m.breakdown.launches_s},
                                           {"slowed", m.breakdown.slowed_s},
                                           {"memory", m.memory.total},
                                           {"activations", m.memory.activations},
                                           {"bytes", m.network_bytes_per_step},
                                           {"busiest", m.busiest_utilization}};
  for (const auto& [purpose, seconds] : m.breakdown.exposed_s)
    figures["exposed " + std::to_string(static_cast<int>(purpose))] = seconds;
  return figures;
}

// Checks all figures; returns whether the step was predicted from a few micro-batches.
bool same_as_whole(const Scenario& scenario) {
  std::optional<Prediction> few = predict_from_rounds(scenario, {}, kAnyStep);
  if (!few) return false;
  Prediction whole = predict(scenario, Where::child, {}, Detail::every_span);
  CHECK(ops_of(*whole.plan.schedule) <= most_ops_of(scenario));
  const std::map<std::string, double> expected = figures_of(whole.metrics), found = figures_of(few->metrics);
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    const double scale =
        std::max(std::abs(value), name == "memory" || name == "bytes" ? 0 : whole.metrics.step_time_s);
    CHECK(std::abs(found.at(name) - value) <= kRounding * scale);
  }
  CHECK(few->metrics.busiest_link == whole.metrics.busiest_link);
  CHECK(few->metrics.memory.fullest == whole.metrics.memory.fullest);
  explain(*few);
  explain(whole);
  const auto path = path_by_kind(few->result()), whole_path = path_by_kind(whole.result());
  const std::map<std::string, double> by_kind(path.begin(), path.end());
  for (const auto& [kind, seconds] : whole_path) {
    INFO(kind);
    const auto its = by_kind.find(kind);
    CHECK(std::abs((its == by_kind.end() ? 0 : its->second) - seconds) <=
          kRounding * whole.metrics.step_time_s);
  }
  REQUIRE(few->faster.size() == whole.faster.size());
  for (std::size_t i = 0; i < whole.faster.size(); ++i) {
    const WhatIf &one = few->faster[i], &other = whole.faster[i];
    CHECK(one.resource == other.resource);
    if (one.step_time_s && other.step_time_s)
      CHECK(std::abs(*one.step_time_s / *other.step_time_s - 1) <= kRounding);
  }
  return true;
}

}  // namespace

TEST_CASE("rounds of micro-batches that are alike are simulated once, with the result of all") {
  struct Case {
    const char *model, *cluster, *strategy;
    int microbatches;
    bool alike;
  };
  const Case cases[] = {
      {kGpt, kOneNode, "data = 8\n", 50, true},
      {kGpt, kOneNode, "data = 8\nzero_stage = 3\n", 33, true},
      {kGpt, kEthernet, "pipeline = 4\n", 64, true},
      {kGpt, kEthernet, "pipeline = 4\nblocking_p2p = true\n", 64, true},
      {kDeepGpt, kOneNode, "tensor = 2\npipeline = 4\n", 81, true},
      {kDeepGpt, kOneNode, "tensor = 2\npipeline = 2\nschedule = \"interleaved\"\nvirtual_stages = 4\n", 96,
       true},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"zb-h1\"\n", 100, true},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"zb-h2\"\n", 300, true},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"zb-v\"\nvirtual_stages = 2\n", 72, true},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"dualpipe-v\"\nvirtual_stages = 2\n", 72, true},
      // Every stage retains all micro-batches: memory grows with their number.
      {kGpt, kEthernet, "pipeline = 4\nschedule = \"gpipe\"\n", 64, false},
      // Workers do not wait for each other.
      {kImages, kEthernet, "gradients = \"parameter-server\"\nparameter_server.mode = \"async\"\n", 64,
       false},
      // Too few to save anything.
      {kGpt, kEthernet, "pipeline = 4\n", 16, false},
  };
  for (const Case& c : cases) {
    INFO(c.model << c.cluster << c.strategy << c.microbatches);
    const Scenario scenario = read_scenario_text(std::string(c.model) + c.cluster +
                                                     "[training]\nmicro_batch = 1\nglobal_batch = 64\n" +
                                                     "[strategy]\n" + c.strategy,
                                                 "case.toml");
    CHECK(same_as_whole(with_microbatches(scenario, c.microbatches)) == c.alike);
  }
}

TEST_CASE("a step's ops are bounded before they are written, and a small step is simulated in full") {
  const struct {
    const char *model, *cluster, *strategy;
    int microbatches;
    bool small;
  } cases[] = {
      {kGpt, kOneNode, "data = 8\n", 50, true},
      {kGpt, kOneNode, "data = 8\nzero_stage = 3\n", 33, false},
      {kGpt, kOneNode, "data = 8\ngradients = \"local-sgd\"\n", 33, true},
      {kGpt, kEthernet, "pipeline = 4\n", 64, true},
      {kGpt, kEthernet, "pipeline = 4\n", 2000, false},
      {kDeepGpt, kOneNode, "tensor = 2\npipeline = 4\n", 81, false},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"zb-h1\"\n", 100, true},
      {kProfiled, kSingles, "pipeline = 4\nschedule = \"zb-v\"\nvirtual_stages = 2\n", 72, true},
  };
  for (const auto& c : cases) {
    INFO(c.model << c.cluster << c.strategy << c.microbatches);
    const Scenario scenario =
        with_microbatches(read_scenario_text(std::string(c.model) + c.cluster +
                                                 "[training]\nmicro_batch = 1\nglobal_batch = 64\n" +
                                                 "[strategy]\n" + c.strategy,
                                             "case.toml"),
                          c.microbatches);
    const double ops = ops_of(*write_schedule(scenario).schedule);
    CHECK(ops <= most_ops_of(scenario));
    CHECK((most_ops_of(scenario) <= kMostOpsInFull) == c.small);
  }
}

TEST_CASE("a large step whose rounds differ is extrapolated within the bound, or simulated in full") {
  // GPipe keeps all micro-batches: its memory grows with them, and is extended with the step.
  const Scenario scenario = with_microbatches(
      read_scenario_text(std::string(kGpt) + kEthernet + "[training]\nmicro_batch = 1\nglobal_batch = 64\n" +
                             "[strategy]\npipeline = 4\nschedule = \"gpipe\"\n",
                         "case.toml"),
      200);
  CHECK_FALSE(predict_from_rounds(scenario, {}, kAnyStep));
  const std::optional<Prediction> few = predict_from_rounds(scenario, {}, {.least_ops = 0, .most_ops = 1});
  REQUIRE(few);
  CHECK_FALSE(few->rounds->exact);
  const Prediction whole = predict(scenario, Where::child, {}, Detail::every_span);
  CHECK(std::abs(few->metrics.step_time_s / whole.metrics.step_time_s - 1) <= kMostUneven);
  CHECK(std::abs(few->metrics.memory.total / whole.metrics.memory.total - 1) <= kMostUneven);
  CHECK(std::abs(few->metrics.breakdown.total_s() / few->metrics.step_time_s - 1) <= kRounding);
  // The first two numbers of micro-batches will do if the caller says so.
  const std::optional<Prediction> rough = predict_from_rounds(
      scenario, {}, {.least_ops = 0, .most_ops = 1, .roughly = [](double, double) { return true; }});
  REQUIRE(rough);
  CHECK(rough->rounds->microbatches < few->rounds->microbatches);
}

TEST_CASE("random steps of many micro-batches are those of all", "[release]") {
  const char* inputs = std::getenv("REHEARSE_INPUTS");
  const int scenarios = inputs ? std::atoi(inputs) : 40;
  RandomAxes random(42);
  int alike = 0;
  for (int i = 0; i < scenarios; ++i) {
    const RandomFabric& fabric = kRandomFabrics[random.below(4)];
    const Scenario scenario = random.scenario(fabric, fabric.devices_per_node * (random.maybe() ? 2 : 4));
    const int rounds = 10 + random.below(6);
    INFO(scenario.text << rounds);
    alike +=
        same_as_whole(with_microbatches(scenario, rounds * std::max(2, scenario.strategy.pipeline))) ? 1 : 0;
  }
  INFO(alike << " of " << scenarios);
  CHECK(alike > scenarios / 2);
}
