// Checks stages, buckets and the order of passes against values worked out by hand.
#include <algorithm>
#include <numeric>

#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/programs/buckets.hpp"
#include "simulator/strategies/programs/program_writer.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("stages are balanced by time") {
  struct Case {
    std::vector<double> times;
    int stages;
    std::vector<int> layers;
  };
  const Case cases[] = {
      {{1, 1, 1, 1}, 2, {2, 2}},
      {{1, 1, 1, 1}, 4, {1, 1, 1, 1}},
      {{3, 1, 1, 1}, 2, {1, 3}},
      {{1, 1, 1, 3}, 2, {3, 1}},
      {{1, 2, 3, 4, 5}, 2, {3, 2}},        // 6 and 9; any other split has 10 or more
      {{5, 1, 1, 1, 1, 1}, 3, {1, 2, 3}},  // 5 is the bound; the other stages are balanced
      {{0.5, 1, 1, 1, 1, 2}, 2, {4, 2}},   // embedding and head count: 3.5 and 3 instead of 2.5 and 4
      {{7}, 1, {1}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.times, c.stages);
    CHECK(balance_stages(c.times, c.stages) == c.layers);
  }
  SECTION("no other cut of twelve uneven layers into three is faster") {
    const std::vector<double> t = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    double best = 1e9;
    const auto sum = [&](int a, int b) { return std::accumulate(t.begin() + a, t.begin() + b, 0.0); };
    for (int a = 1; a < 11; ++a)
      for (int b = a + 1; b < 12; ++b) best = std::min(best, std::max({sum(0, a), sum(a, b), sum(b, 12)}));
    const std::vector<int> layers = balance_stages(t, 3);
    const int a = layers[0], b = a + layers[1];
    CHECK(std::max({sum(0, a), sum(a, b), sum(b, 12)}) == best);
  }
  CHECK(layer_ranges({2, 1, 3}) == std::vector<LayerRange>{{0, 1}, {2, 2}, {3, 5}});
}

TEST_CASE("gradients fill buckets as DistributedDataParallel fills them") {
  // A bucket closes once it has reached its limit: `first_mib` for the first bucket, the cap for the others.
  constexpr double kMi = 1048576;  // parameters; four bytes each
  struct Case {
    std::vector<double> parameters;
    double cap_mib;
    std::vector<Bucket> buckets;
    double first_mib = 1;
  };
  const Case cases[] = {
      // 4 MiB a layer: the last one alone reaches 1 MiB; 24 MiB do not reach 25.
      {{kMi, kMi, kMi, kMi, kMi, kMi}, 25, {{5, 5, kMi}, {0, 4, 5 * kMi}}},
      {std::vector<double>(9, kMi), 25, {{8, 8, kMi}, {1, 7, 7 * kMi}, {0, 0, kMi}}},
      {{kMi, kMi, kMi, kMi, kMi}, 8, {{4, 4, kMi}, {2, 3, 2 * kMi}, {0, 1, 2 * kMi}}},
      // Small layers are collected until the limit is reached.
      {{kMi / 8, kMi / 8, kMi / 8, kMi / 8}, 25, {{2, 3, kMi / 4}, {0, 1, kMi / 4}}},
      // A huge layer forms a bucket.
      {{kMi / 4, 100 * kMi, kMi / 4}, 25, {{2, 2, kMi / 4}, {1, 1, 100 * kMi}, {0, 0, kMi / 4}}},
      // Layers without parameters join the layer that follows in the backward pass; after the last gradient,
      // they form a bucket of their own.
      {{0, kMi, 0, kMi}, 4, {{3, 3, kMi}, {1, 2, kMi}, {0, 0, 0}}},
      {{0, 0}, 25, {{0, 1, 0}}},
      // A cap below 1 MiB also limits the first bucket.
      {{kMi / 8, kMi / 8, kMi / 8}, 0.5, {{2, 2, kMi / 8}, {1, 1, kMi / 8}, {0, 0, kMi / 8}}},
      // If its limit equals the cap, the first bucket is as large as the others.
      {std::vector<double>(9, kMi), 25, {{2, 8, 7 * kMi}, {0, 1, 2 * kMi}}, 25},
      {{kMi, kMi, kMi, kMi, kMi}, 8, {{3, 4, 2 * kMi}, {1, 2, 2 * kMi}, {0, 0, kMi}}, 8},
  };
  for (const Case& c : cases) {
    CAPTURE(c.parameters, c.cap_mib);
    const std::vector<Bucket> buckets =
        gradient_buckets(c.parameters, 0, 4, c.first_mib * 1048576, c.cap_mib * 1048576);
    REQUIRE(buckets.size() == c.buckets.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      CAPTURE(b);
      CHECK(buckets[b].first_layer == c.buckets[b].first_layer);
      CHECK(buckets[b].last_layer == c.buckets[b].last_layer);
      CHECK(buckets[b].parameters == c.buckets[b].parameters);
    }
  }
  CHECK(gradient_buckets({kMi, kMi}, 10, 4, 1048576, kMi)[1].first_layer == 10);
}

namespace {

std::string table(PipelineSchedule schedule, int stages, int microbatches) {
  std::string text;
  for (int s = 0; s < stages; ++s) {
    for (const PassItem& item : pipeline_order(schedule, {stages, s, microbatches}))
      text += (item.forward() ? " F" : " B") + std::to_string(item.microbatch);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("orders of the pipelines") {
  // Figure 4 (top) of Narayanan et al. (SC 2021), counted from 0.
  CHECK(table(PipelineSchedule::one_f_one_b, 4, 8) ==
        " F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7\n"
        " F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7\n"
        " F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7\n"
        " F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7\n");
  // Figure 3.
  CHECK(table(PipelineSchedule::gpipe, 4, 8) ==
        " F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7\n"
        " F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7\n"
        " F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7\n"
        " F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7\n");
  // Fewer micro-batches than stages.
  CHECK(table(PipelineSchedule::one_f_one_b, 4, 2) ==
        " F0 F1 B0 B1\n F0 F1 B0 B1\n F0 F1 B0 B1\n F0 B0 F1 B1\n");
  CHECK(table(PipelineSchedule::one_f_one_b, 1, 3) == " F0 B0 F1 B1 F2 B2\n");
}
