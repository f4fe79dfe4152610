// Checks interleaved 1F1B: orders, transfers, buckets and memory of stages that hold several model chunks.
#include <algorithm>
#include <set>

#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Scenario interleaved(Model model, int data, int pipeline, int chunks, int microbatches, int servers = 0) {
  Scenario s = scenario(std::move(model), data, pipeline, microbatches, servers);
  s.strategy.schedule = PipelineSchedule::interleaved;
  s.strategy.virtual_stages = chunks;
  return s;
}

// Returns a pass as text: "F0a" is the forward pass of micro-batch 0 through chunk a, the first one.
std::string item_text(const PassItem& item) {
  return (item.forward() ? "F" : "B") + std::to_string(item.microbatch) + static_cast<char>('a' + item.chunk);
}

std::string table(int stages, int chunks, int microbatches) {
  std::string text;
  for (int s = 0; s < stages; ++s) {
    for (const PassItem& item :
         pipeline_order(PipelineSchedule::interleaved, {stages, s, microbatches, chunks}))
      text += " " + item_text(item);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("orders of interleaved 1F1B") {
  // Figure 4 (bottom) of Narayanan et al. (SC 2021), counted from 0: chunk a is drawn dark, chunk b light.
  CHECK(table(4, 2, 8) ==
        " F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b F4b B2b F5b B3b F6b B0a F7b B1a B2a B3a "
        "B4b B5b B6b B7b B4a B5a B6a B7a\n"
        " F0a F1a F2a F3a F0b F1b F2b F3b F4a B0b F5a B1b F6a B2b F7a B3b F4b B0a F5b B1a F6b B2a F7b B3a "
        "B4b B5b B6b B7b B4a B5a B6a B7a\n"
        " F0a F1a F2a F3a F0b F1b F2b B0b F3b B1b F4a B2b F5a B3b F6a B0a F7a B1a F4b B2a F5b B3a F6b B4b "
        "F7b B5b B6b B7b B4a B5a B6a B7a\n"
        " F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b F4a B0a F5a B1a F6a B2a F7a B3a F4b B4b F5b B5b "
        "F6b B6b F7b B7b B4a B5a B6a B7a\n");
  // The rules of Megatron-LM's get_schedule_table and get_pp_rank_microbatches: 2(p-s-1) + (v-1)p passes
  // ahead.
  CHECK(table(2, 2, 4) ==
        " F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a\n"
        " F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a\n");
  CHECK(table(2, 3, 4) ==
        " F0a F1a F0b F1b F0c F1c F2a B0c F3a B1c F2b B0b F3b B1b F2c B0a F3c B1a B2c B3c B2b B3b B2a B3a\n"
        " F0a F1a F0b F1b F0c B0c F1c B1c F2a B0b F3a B1b F2b B0a F3b B1a F2c B2c F3c B3c B2b B3b B2a B3a\n");
  CHECK(table(3, 2, 3) ==
        " F0a F1a F2a F0b F1b F2b B0b B1b B2b B0a B1a B2a\n"
        " F0a F1a F2a F0b F1b F2b B0b B1b B2b B0a B1a B2a\n"
        " F0a F1a F2a F0b B0b F1b B1b F2b B2b B0a B1a B2a\n");
  CHECK(table(4, 3, 4) ==
        " F0a F1a F2a F3a F0b F1b F2b F3b F0c F1c F2c F3c B0c B1c B2c B3c B0b B1b B2b B3b B0a B1a B2a B3a\n"
        " F0a F1a F2a F3a F0b F1b F2b F3b F0c F1c F2c F3c B0c B1c B2c B3c B0b B1b B2b B3b B0a B1a B2a B3a\n"
        " F0a F1a F2a F3a F0b F1b F2b F3b F0c F1c F2c B0c F3c B1c B2c B3c B0b B1b B2b B3b B0a B1a B2a B3a\n"
        " F0a F1a F2a F3a F0b F1b F2b F3b F0c B0c F1c B1c F2c B2c F3c B3c B0b B1b B2b B3b B0a B1a B2a "
        "B3a\n");
}

// Megatron-LM's rules, written as it states them: groups of micro-batches that run through all chunks, of
// which the last one has the rest, and the passes ahead (get_schedule_table, get_pp_rank_microbatches).
std::string by_megatrons_rules(int stages, int stage, int chunks, int microbatches, int group) {
  std::vector<std::pair<int, int>> table;  // micro-batch, chunk
  for (int first = 0; first < microbatches; first += group)
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = first; m < std::min(first + group, microbatches); ++m) table.emplace_back(m, chunk);
  const auto all = static_cast<int>(table.size()),
             ahead = std::min(all, 2 * (stages - stage - 1) + (chunks - 1) * group);
  const auto text = [&](int i, bool forward) {
    const auto& [m, chunk] = table[static_cast<std::size_t>(i)];
    return " " +
           item_text({forward ? Pass::forward : Pass::backward, m, forward ? chunk : chunks - 1 - chunk});
  };
  std::string order;
  for (int i = 0; i < ahead; ++i) order += text(i, true);
  for (int i = ahead; i < all; ++i) order += text(i, true) + text(i - ahead, false);
  for (int i = all - ahead; i < all; ++i) order += text(i, false);
  return order;
}

TEST_CASE("groups of micro-batches are those of Megatron-LM") {
  struct Case {
    int stages, chunks, microbatches, group;
  };
  const Case cases[] = {{2, 2, 4, 2},  {2, 2, 5, 3}, {2, 3, 7, 5},   {3, 2, 7, 4},   {4, 2, 12, 8},
                        {4, 2, 10, 6}, {4, 3, 8, 8}, {4, 2, 20, 16}, {8, 4, 40, 32}, {2, 2, 9, 7}};
  for (const Case& c : cases)
    for (int stage = 0; stage < c.stages; ++stage) {
      CAPTURE(c.stages, c.chunks, c.microbatches, c.group, stage);
      std::string found;
      for (const PassItem& item : pipeline_order(PipelineSchedule::interleaved,
                                                 {c.stages, stage, c.microbatches, c.chunks, false, c.group}))
        found += " " + item_text(item);
      CHECK(found == by_megatrons_rules(c.stages, stage, c.chunks, c.microbatches, c.group));
      Scenario s = interleaved(small_gpt(32), 2, c.stages, c.chunks, c.microbatches);
      s.strategy.microbatch_group = c.group;
      CHECK_NOTHROW(check(*write_schedule(s).schedule));
    }
}

TEST_CASE("numbers of micro-batches that leave too small a last group are refused") {
  struct Case {
    int microbatches, group;
    const char* allowed;
  };
  const Case cases[] = {
      {6, 0,
       "a multiple of pipeline, 4 micro-batches, with schedule = \"interleaved\" (or a larger "
       "strategy.microbatch_group)"},
      {9, 6,
       "a multiple of microbatch_group, 6, or at least pipeline, 4, micro-batches more, with schedule = "
       "\"interleaved\""},
      {6, 12,
       "a multiple of microbatch_group, 12, or at least pipeline, 4, micro-batches more, with schedule "
       "= \"interleaved\""},
      {10, 6, ""},
      {12, 6, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.microbatches, c.group);
    std::string text =
        "[model.transformer]\nlayers = 16\nhidden = 64\nheads = 4\nvocabulary = 100\nsequence_length = 32\n"
        "[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n[training]\nglobal_batch = " +
        std::to_string(2 * c.microbatches) +
        "\n[strategy]\ndata = 2\npipeline = 4\nschedule = \"interleaved\"\nvirtual_stages = 2\n";
    if (c.group > 0) text += "microbatch_group = " + std::to_string(c.group) + "\n";
    std::string error;
    try {
      read_scenario_text(text, "groups.toml");
    } catch (const InputError& e) {
      error = e.what();
    }
    const std::string allowed = error.empty() ? "" : error.substr(error.find("allowed: ") + 9);
    CHECK(allowed == c.allowed);
  }
}

TEST_CASE("every interleaved combination writes a sound schedule") {
  for (const int servers : {0, 2})
    for (const bool overlap : {true, false})
      for (const bool blocking : {true, false})
        for (const auto recompute : {Recompute::none, Recompute::full})
          for (const int pipeline : {2, 3, 4})
            for (const int chunks : {2, 3})
              for (const int data : {1, 3})
                for (const int groups : {1, 2, 3}) {
                  const int microbatches = groups * pipeline;
                  Scenario s = interleaved(small_gpt(14), data, pipeline, chunks, microbatches, servers);
                  s.training.recompute = recompute;
                  s.strategy.overlap = overlap;
                  s.strategy.blocking_p2p = blocking;
                  s.strategy.bucket_bytes = 4 * 1048576.0;
                  CAPTURE(servers, overlap, blocking, static_cast<int>(recompute), pipeline, chunks, data,
                          microbatches);
                  const Plan plan = write_schedule(s);
                  REQUIRE_NOTHROW(check(*plan.schedule));
                  REQUIRE(plan.stage_layers.size() == static_cast<std::size_t>(pipeline * chunks));
                  REQUIRE(plan.schedule->crosses_step() == (servers > 0 && overlap));
                  double flops = 0;
                  for (const Program& program : plan.schedule->programs)
                    for (const Op& op : program.ops)
                      if (op.kind == OpKind::compute) flops += plan.schedule->works[op.work].model_flops;
                  REQUIRE(flops ==
                          Approx(flops_per_sample(s.model, 0) * plan.schedule->samples / data).epsilon(1e-9));
                }
}

TEST_CASE("chunks go round the pipeline") {
  // Twelve layers over three stages of two chunks: chunk 0 of all stages is layers 0-5, chunk 1 layers 6-11.
  Scenario s = interleaved(perceptron(12), 1, 3, 2, 6);
  s.strategy.stage_layers = {1, 2, 3, 3, 2, 1};
  const Plan plan = write_schedule(s);
  const int first[3][2] = {{0, 6}, {1, 9}, {3, 11}}, last[3][2] = {{0, 8}, {2, 10}, {5, 11}};
  for (int stage = 0; stage < 3; ++stage) {
    CAPTURE(stage);
    const Program& program = plan.schedule->programs[stage];
    std::vector<std::string> found, expected;
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::compute || (op.pass != Pass::forward && op.pass != Pass::backward)) continue;
      const int chunk = op.first_layer >= 6 ? 1 : 0;
      CHECK(op.first_layer == first[stage][chunk]);
      CHECK(op.last_layer == last[stage][chunk]);
      CHECK(op.name == std::string(op.pass == Pass::forward ? "forward " : "backward ") +
                           std::to_string(op.microbatch) + ", chunk " + std::to_string(chunk));
      found.push_back(item_text({op.pass, op.microbatch, chunk}));
    }
    for (const PassItem& item : pipeline_order(PipelineSchedule::interleaved, {3, stage, 6, 2}))
      expected.push_back(item_text(item));
    CHECK(found == expected);
  }
  // Five boundaries between six parts, each crossed in both directions; the last stage sends chunk 0 to the
  // first.
  const double boundary = 2 * 1024.0 * 4;  // two samples of 1024 values of four bytes
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    s.strategy.blocking_p2p = blocking;
    const Schedule schedule = *write_schedule(s).schedule;
    CHECK(bytes_sent(schedule, 0, 0) == 6 * (2 + 1) * boundary);
    CHECK(bytes_sent(schedule, 0, 1) == 6 * (2 + 2) * boundary);
    CHECK(bytes_sent(schedule, 0, 2) == 6 * (1 + 2) * boundary);
    const Op* wrapped = nullptr;
    for (const Op& op : schedule.programs[2].ops)
      if (op.kind == OpKind::exchange && op.name.starts_with("send forward")) wrapped = &op;
    REQUIRE(wrapped != nullptr);
    CHECK(peer_ranks(schedule.roles, 0, wrapped->messages[0].peer, 2) == std::vector<int>{0});
  }
}

TEST_CASE("blocking transfers of interleaved 1F1B go in Megatron-LM's rounds") {
  Scenario s = interleaved(perceptron(4), 1, 2, 2, 4);
  s.strategy.blocking_p2p = true;
  const Plan plan = write_schedule(s);
  // The last stage: two warm-up passes, then pairs, then only backward passes.
  const std::vector<std::string> expected = {
      "receive forward 0, chunk 0",
      "forward 0, chunk 0",
      "send forward 0, chunk 0; receive forward 1, chunk 0",
      "forward 1, chunk 0",
      "send forward 1, chunk 0; receive forward 0, chunk 1",
      "forward 0, chunk 1",
      "backward 0, chunk 1",
      "send backward 0, chunk 1; receive forward 1, chunk 1",
      "forward 1, chunk 1",
      "backward 1, chunk 1",
      "send backward 1, chunk 1; receive forward 2, chunk 0; receive backward 0, chunk 0",
      "forward 2, chunk 0",
      "backward 0, chunk 0"};
  std::vector<std::string> names;
  for (const Op& op : plan.schedule->programs[1].ops) names.push_back(op.name);
  REQUIRE(names.size() > expected.size());
  names.resize(expected.size());
  CHECK(names == expected);
  // With as many micro-batches as stages, the first stage only fills and drains, and sends its last output in
  // a separate exchange.
  s = interleaved(perceptron(4), 1, 2, 2, 2);
  s.strategy.blocking_p2p = true;
  const Program first = write_schedule(s).schedule->programs[0];
  names.clear();
  for (const Op& op : first.ops) names.push_back(op.name);
  const auto at = std::find(names.begin(), names.end(), "send forward 1, chunk 1");
  REQUIRE(at != names.end());
  CHECK(*(at + 1) == "receive backward 0, chunk 1");
}

TEST_CASE("an interleaved stage keeps the activations of its warm-up") {
  const std::vector<LayerCost> costs = layer_costs(perceptron(36), {2, 0, Precision::fp32, Recompute::none});
  const double layer_bytes = costs[1].saved_bytes;
  const double of_loss = costs.back().saved_bytes - layer_bytes;  // the last layer stores more
  REQUIRE(layer_bytes == 2 * 1024.0 * 4);                         // two samples of 1024 inputs
  for (const int pipeline : {2, 3})
    for (const int chunks : {2, 3})
      for (const int groups : {1, 2, 4}) {
        const int m = groups * pipeline;
        const Plan plan = write_schedule(interleaved(perceptron(36), 1, pipeline, chunks, m));
        const int layers = 36 / (pipeline * chunks);
        for (int stage = 0; stage < pipeline; ++stage) {
          CAPTURE(pipeline, chunks, m, stage);
          const Program& program = plan.schedule->programs[stage];
          std::set<int> alive;
          double most = 0;
          for (const Op& op : program.ops) {
            for (const int t : op.writes)
              if (program.tensors[t].kind == TensorKind::activation) alive.insert(t);
            double bytes = 0;
            for (const int t : alive) bytes += program.tensors[t].bytes.base;
            most = std::max(most, bytes);
            if (op.pass == Pass::backward && op.kind == OpKind::compute)
              for (const int t : op.reads)
                if (program.tensors[t].kind == TensorKind::activation) alive.erase(t);
          }
          CHECK(alive.empty());
          // One more pass than the stage runs ahead; each stores the activations of its chunk's layers.
          const int passes = std::min(2 * (pipeline - stage - 1) + (chunks - 1) * pipeline + 1, m * chunks);
          CHECK(most == Approx(passes * layers * layer_bytes + (stage == pipeline - 1 ? of_loss : 0)));
        }
      }
}

TEST_CASE("a chunk's gradients leave after its last backward pass") {
  // Two chunks of three layers of 4.2 MB; each chunk has a bucket with its last layer and one of 8 MiB, as in
  // DDP.
  Scenario s = interleaved(perceptron(12), 3, 2, 2, 4);
  s.strategy.bucket_bytes = 8 * 1048576.0;
  const Program worker = write_schedule(s).schedule->programs[0];
  const int layers[][2] = {{8, 8}, {6, 7}, {2, 2}, {0, 1}};
  std::vector<Op> sync;
  for (const Op& op : worker.ops)
    if (op.kind == OpKind::collective) sync.push_back(op);
  REQUIRE(sync.size() == 4);
  for (std::size_t b = 0; b < sync.size(); ++b) {
    CAPTURE(b);
    CHECK(sync[b].first_layer == layers[b][0]);
    CHECK(sync[b].last_layer == layers[b][1]);
    REQUIRE(sync[b].after.size() == 1);
    const Op& ready = worker.ops[sync[b].after[0].op];
    CHECK(ready.pass == Pass::backward);
    CHECK(ready.microbatch == 3);
    CHECK(ready.first_layer == layers[b][0]);
    CHECK(ready.last_layer == layers[b][1]);
  }
  // Chunk 1 finishes before the last pass of chunk 0 begins, which hides the sum of its gradients.
  CHECK(sync[1].after[0].op < sync[2].after[0].op);
  CHECK(count_ops(worker, OpKind::compute, Pass::backward) == 2 * 3 + 4);  // split in the last micro-batch
  CHECK(count_ops(worker, OpKind::compute, Pass::forward) == 2 * 4);

  // With servers, the next step's first pass of a chunk waits for the weights of the chunk's own layers.
  s = interleaved(perceptron(12), 3, 2, 2, 4, 2);
  const Program pulled = write_schedule(s).schedule->programs[0];
  int awaited = 0;
  for (const Op& op : pulled.ops)
    for (const Dependency& d : op.after)
      if (d.steps_back == 1) {
        ++awaited;
        CHECK(op.pass == Pass::forward);
        CHECK(op.microbatch == 0);
        CHECK(pulled.ops[d.op].first_layer == op.first_layer);
        CHECK(pulled.ops[d.op].last_layer == op.last_layer);
      }
  CHECK(awaited == 4);
}

TEST_CASE("the first and the last part share a tied embedding") {
  const Plan plan = write_schedule(interleaved(small_gpt(10), 2, 3, 2, 3));
  for (int stage = 0; stage < 3; ++stage) {
    CAPTURE(stage);
    int found = 0;
    for (const Op& op : plan.schedule->programs[stage].ops) {
      if (op.name != "all-reduce tied embedding") continue;
      ++found;
      CHECK(op.first_layer == (stage == 0 ? 0 : 11));
      CHECK(group_members(plan.schedule->roles[0], op.collective.group, 1) == std::vector<int>{1, 5});
    }
    CHECK(found == (stage == 1 ? 0 : 1));
  }
  double weights = 0;
  for (const Program& program : plan.schedule->programs) weights += bytes_of(program, TensorKind::weight) / 4;
  CHECK(weights == Approx(parameter_count(small_gpt(10)) + 1000 * 256.0));
}

TEST_CASE("what cannot be interleaved is refused") {
  struct Case {
    Scenario scenario;
    std::string said;
  };
  std::vector<Case> cases = {
      {interleaved(perceptron(6), 1, 2, 2, 3), "with 3 micro-batches; allowed: a multiple of pipeline, 2"},
      {interleaved(perceptron(6), 1, 2, 1, 2), "allowed: at least 2 and 2"},
      {interleaved(perceptron(6), 1, 1, 2, 2), "allowed: at least 2 and 2"},
      {interleaved(perceptron(6), 1, 2, 4, 2), "with 4 virtual stages each; allowed: at most 1"},
      {scenario(perceptron(6), 1, 2, 2), "virtual_stages is 2 with schedule = \"1f1b\"; allowed: 1"},
      {interleaved(perceptron(6), 1, 2, 2, 2), "has 2 numbers; allowed: 4"},
  };
  cases[4].scenario.strategy.virtual_stages = 2;
  cases[5].scenario.strategy.stage_layers = {3, 3};
  for (const Case& c : cases) {
    CAPTURE(c.said);
    const std::string said = refusal_of(c.scenario);
    CAPTURE(said);
    CHECK(said.find(c.said) != std::string::npos);
  }
}
