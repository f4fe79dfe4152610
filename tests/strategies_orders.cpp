// Tests every pipeline schedule of the table: a stage runs each pass once, and no stage waits forever.
#include <map>
#include <tuple>

#include "simulator/strategies/orders/order.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

struct Pipe {
  PipelineSchedule schedule;
  int stages, microbatches, chunks, group = 0;

  StagePlace place(int stage) const { return {stages, stage, microbatches, chunks, false, group}; }
  PartPlacement placement() const { return order_of(schedule).placement; }
  int part(int stage, int chunk) const { return part_of(placement(), stages, stage, chunk); }
};

std::vector<Pipe> pipes() {
  std::vector<Pipe> all;
  for (std::size_t i = 0; i < kPipelineScheduleNames.size(); ++i) {
    const auto schedule = static_cast<PipelineSchedule>(i);
    const OrderEntry& entry = order_of(schedule);
    for (const int stages : {1, 2, 3, 4, 8})
      for (const int microbatches : {1, 2, 5, 8, 24})
        for (const int chunks : {1, 2, 3, 4}) {
          if (stages < entry.fewest_stages || chunks < entry.fewest_chunks || chunks > entry.most_chunks)
            continue;
          for (const int group : {0, stages + 1, 2 * stages, 5 * stages}) {
            const Pipe pipe{schedule, stages, microbatches, chunks, group};
            if ((group == 0 || entry.in_groups) && fits_groups(entry, pipe.place(0))) all.push_back(pipe);
          }
        }
  }
  return all;
}

// Whether the pass is done, by pass, part of the model and micro-batch.
using Done = std::map<std::tuple<Pass, int, int>, bool>;

// Returns whether a stage may run the pass: its input is there, from the part before or, going back, from the
// part after.
bool may_run(const Pipe& pipe, int stage, const PassItem& item, const Done& done) {
  const int part = pipe.part(stage, item.chunk), last = pipe.stages * pipe.chunks - 1;
  const auto was = [&](Pass pass, int of) { return done.count({pass, of, item.microbatch}) > 0; };
  switch (item.pass) {
    case Pass::forward:
      return part == 0 || was(Pass::forward, part - 1);
    case Pass::backward:
    case Pass::backward_input:
      return was(Pass::forward, part) &&
             (part == last || was(Pass::backward, part + 1) || was(Pass::backward_input, part + 1));
    case Pass::backward_weight:
      return was(Pass::backward_input, part);
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("every pipeline schedule runs each pass once, and in an order in which no stage waits forever") {
  std::vector<bool> seen(kPipelineScheduleNames.size(), false);
  for (const Pipe& pipe : pipes()) {
    const OrderEntry& entry = order_of(pipe.schedule);
    seen[static_cast<std::size_t>(pipe.schedule)] = true;
    CAPTURE(entry.title, pipe.stages, pipe.microbatches, pipe.chunks, pipe.group);
    std::vector<std::vector<PassItem>> orders;
    for (int stage = 0; stage < pipe.stages; ++stage)
      orders.push_back(pipeline_order(pipe.schedule, pipe.place(stage)));
    Done done;
    std::vector<std::size_t> next(orders.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t s = 0; s < orders.size(); ++s)
        while (next[s] < orders[s].size() && may_run(pipe, static_cast<int>(s), orders[s][next[s]], done)) {
          const PassItem& item = orders[s][next[s]++];
          const int part = pipe.part(static_cast<int>(s), item.chunk);
          REQUIRE(done.try_emplace({item.pass, part, item.microbatch}, true).second);
          progress = true;
        }
    }
    std::size_t forward = 0, whole = 0, input = 0, weight = 0;
    for (const auto& [pass, is_done] : done) {
      forward += std::get<0>(pass) == Pass::forward;
      whole += std::get<0>(pass) == Pass::backward;
      input += std::get<0>(pass) == Pass::backward_input;
      weight += std::get<0>(pass) == Pass::backward_weight;
    }
    const auto passes = static_cast<std::size_t>(pipe.stages * pipe.chunks * pipe.microbatches);
    for (std::size_t s = 0; s < orders.size(); ++s) CHECK(next[s] == orders[s].size());
    CHECK(forward == passes);
    CHECK(whole + input == passes);
    CHECK(input == weight);
    if (!entry.splits_backward) CHECK(input == 0);
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(kPipelineScheduleNames[i]);
    CHECK(seen[i]);
  }
}

TEST_CASE("every pipeline schedule describes itself") {
  for (std::size_t i = 0; i < kPipelineScheduleNames.size(); ++i) {
    const OrderEntry& entry = order_of(static_cast<PipelineSchedule>(i));
    CAPTURE(kPipelineScheduleNames[i]);
    CHECK(!entry.title.empty());
    CHECK(entry.summary.starts_with("pipeline: "));
    CHECK(!entry.more.empty());
    const std::string key = "schedule = \"" + std::string(kPipelineScheduleNames[i]) + "\"";
    CHECK(entry.keys.find(key) != std::string_view::npos);
  }
}
