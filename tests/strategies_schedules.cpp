// Checks complete schedules: that they are sound and have the right shape and bytes.
#include <algorithm>
#include <map>
#include <set>

#include "models/text/error.hpp"
#include "simulator/costs/memory.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

TEST_CASE("every combination writes a sound schedule") {
  int combinations = 0;
  for (const int servers : {0, 1, 3})
    for (const bool overlap : {true, false})
      for (const bool blocking : {true, false})
        for (const auto kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
          for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full})
            for (const int pipeline : {1, 2, 4})
              for (const int data : {1, 3})
                for (const int microbatches : {1, 2, 3, 8}) {
                  Scenario s = scenario(small_gpt(6), data, pipeline, microbatches, servers);
                  s.training.recompute = recompute;
                  s.strategy.overlap = overlap;
                  s.strategy.blocking_p2p = blocking;
                  s.strategy.schedule = kind;
                  s.strategy.bucket_bytes = 4 * 1048576.0;
                  CAPTURE(servers, overlap, blocking, static_cast<int>(kind), static_cast<int>(recompute),
                          pipeline, data, microbatches);
                  const Plan plan = write_schedule(s);
                  REQUIRE_NOTHROW(check(*plan.schedule));
                  REQUIRE(plan.endpoints.size() == static_cast<std::size_t>(plan.schedule->ranks()));
                  // One program for each stage, and one for all servers.
                  REQUIRE(plan.schedule->programs.size() ==
                          static_cast<std::size_t>(pipeline + (servers > 0)));
                  // Only pulls that overlap with the next step cross the step's end.
                  REQUIRE(plan.schedule->crosses_step() == (servers > 0 && overlap));
                  REQUIRE(plan.schedule->samples == 2.0 * microbatches * data);
                  REQUIRE(plan.schedule->tokens == 128 * plan.schedule->samples);
                  ++combinations;
                }
  CHECK(combinations == 3 * 2 * 2 * 2 * 3 * 3 * 2 * 4);
}

TEST_CASE("a worker alone computes and updates") {
  const Plan plan = write_schedule(scenario(perceptron(4), 1, 1, 3));
  REQUIRE(plan.schedule->programs.size() == 1);
  const Program& worker = plan.schedule->programs[0];
  CHECK(worker.streams == std::vector<std::string>{"compute"});
  CHECK(passes(worker) == "F0 B0 F1 B1 F2 B2");
  CHECK(worker.ops.size() == 7);
  CHECK(worker.ops.back().pass == Pass::optimizer);
  // Micro-batches share their work: forward, backward, update.
  CHECK(plan.schedule->works.size() == 3);
}

TEST_CASE("buckets leave when their layers' backward pass is done") {
  // Six layers of 1,049,600 parameters of 4 bytes, 4.2 MB each: the last one alone, then two in a bucket (8
  // MiB).
  Scenario s = scenario(perceptron(6), 4, 1, 2);
  s.strategy.bucket_bytes = 8 * 1048576.0;
  const double layer_bytes = 1024.0 * 1025 * 4;

  SECTION("overlapped") {
    const Program worker = write_schedule(s).schedule->programs[0];
    std::vector<Op> sync;
    for (const Op& op : worker.ops)
      if (op.kind == OpKind::collective) sync.push_back(op);
    REQUIRE(sync.size() == 4);
    const int layers[][2] = {{5, 5}, {3, 4}, {1, 2}, {0, 0}};
    for (std::size_t b = 0; b < sync.size(); ++b) {
      CAPTURE(b);
      CHECK(sync[b].first_layer == layers[b][0]);
      CHECK(sync[b].last_layer == layers[b][1]);
      CHECK(sync[b].collective.bytes.base == layer_bytes * (layers[b][1] - layers[b][0] + 1));
      // A bucket waits for the backward op of exactly these layers in the last micro-batch.
      REQUIRE(sync[b].after.size() == 1);
      const Op& ready = worker.ops[sync[b].after[0].op];
      CHECK(ready.pass == Pass::backward);
      CHECK(ready.microbatch == 1);
      CHECK(ready.first_layer == layers[b][0]);
      CHECK(ready.last_layer == layers[b][1]);
      CHECK(worker.streams[sync[b].stream] == "gradients");
    }
    // The first micro-batch is one op, the last has one op per bucket: gradient accumulation synchronizes
    // only at its end.
    CHECK(count_ops(worker, OpKind::compute, Pass::backward) == 1 + 4);
    CHECK(count_ops(worker, OpKind::compute, Pass::forward) == 2);
    const Op& optimizer = worker.ops.back();
    REQUIRE(optimizer.pass == Pass::optimizer);
    REQUIRE(optimizer.after.size() == 1);
    CHECK(worker.ops[optimizer.after[0].op].name == "all-reduce bucket 3");
  }
  SECTION("not overlapped") {
    s.strategy.overlap = false;
    const Program worker = write_schedule(s).schedule->programs[0];
    CHECK(count_ops(worker, OpKind::compute, Pass::backward) == 2);
    for (const Op& op : worker.ops) {
      if (op.kind != OpKind::collective) continue;
      REQUIRE(op.after.size() == 1);
      CHECK(worker.ops[op.after[0].op].name == "backward 1");
    }
  }
}

TEST_CASE("bytes on the wire") {
  const double parameters = 6 * 1024.0 * 1025;
  SECTION("ring: 2(n-1)/n of the gradients from every rank") {
    for (const int n : {1, 2, 4, 7})
      for (const Precision sent : {Precision::fp32, Precision::bf16}) {
        CAPTURE(n, static_cast<int>(sent));
        Scenario s = scenario(perceptron(6), n, 1, 2);
        s.training.gradient_precision = sent;
        const Plan plan = write_schedule(s);
        for (int r = 0; r < n; ++r)
          CHECK(bytes_sent(*plan.schedule, 0, r) ==
                Approx(2.0 * (n - 1) / n * parameters * element_bytes(sent)).epsilon(1e-12));
      }
  }
  SECTION("parameter server: all gradients up and all weights down for every worker") {
    for (const int servers : {1, 3})
      for (const bool overlap : {true, false}) {
        CAPTURE(servers, overlap);
        Scenario s = scenario(perceptron(6), 4, 1, 2, servers);
        s.training.gradient_precision = Precision::fp16;
        s.strategy.overlap = overlap;
        const Plan plan = write_schedule(s);
        for (int r = 0; r < 4; ++r)
          CHECK(bytes_sent(*plan.schedule, 0, r) == Approx(2 * parameters).epsilon(1e-12));
        for (int r = 0; r < servers; ++r)
          CHECK(bytes_sent(*plan.schedule, 1, r) == Approx(4 * parameters * 4 / servers).epsilon(1e-12));
      }
  }
  SECTION("pipeline: an activation forward and its gradient backward at every boundary") {
    for (const bool blocking : {true, false}) {
      CAPTURE(blocking);
      Scenario s = scenario(perceptron(6), 1, 3, 5);
      s.strategy.blocking_p2p = blocking;
      s.training.activation_precision = Precision::bf16;
      const Plan plan = write_schedule(s);
      const double boundary = 2 * 1024.0 * 2;  // two samples of 1024 values of two bytes
      CHECK(bytes_sent(*plan.schedule, 0, 0) == 5 * boundary);
      CHECK(bytes_sent(*plan.schedule, 0, 1) == 2 * 5 * boundary);
      CHECK(bytes_sent(*plan.schedule, 0, 2) == 5 * boundary);
    }
  }
}

TEST_CASE("each stage keeps as many micro-batches as its schedule says") {
  for (const auto kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (const int microbatches : {1, 2, 4, 9}) {
      Scenario s = scenario(perceptron(8), 1, 4, microbatches);
      s.strategy.schedule = kind;
      const Plan plan = write_schedule(s);
      for (int stage = 0; stage < 4; ++stage) {
        CAPTURE(static_cast<int>(kind), microbatches, stage);
        const Program& program = plan.schedule->programs[stage];
        std::set<int> alive;
        std::size_t most = 0;
        for (const Op& op : program.ops) {
          for (const int t : op.writes)
            if (program.tensors[t].kind == TensorKind::activation) alive.insert(t);
          most = std::max(most, alive.size());
          if (op.pass == Pass::backward && op.kind == OpKind::compute)
            for (const int t : op.reads)
              if (program.tensors[t].kind == TensorKind::activation) alive.erase(t);
        }
        CHECK(alive.empty());
        // m for GPipe, p - s for 1F1B (Narayanan et al., SC 2021).
        const int expected =
            kind == PipelineSchedule::gpipe ? microbatches : std::min(microbatches, 4 - stage);
        CHECK(most == static_cast<std::size_t>(expected));
      }
    }
}

TEST_CASE("blocking transfers go in Megatron-LM's pairs") {
  Scenario s = scenario(perceptron(6), 1, 3, 4);
  s.strategy.blocking_p2p = true;
  const Plan plan = write_schedule(s);
  // The middle stage: one warm-up forward pass, then the steady state of
  // forward_backward_pipelining_without_interleaving.
  const std::vector<std::string> expected = {"receive forward 0",
                                             "forward 0",
                                             "send forward 0",  // warm-up
                                             "receive forward 1",
                                             "forward 1",
                                             "send forward 1, receive backward 0",
                                             "backward 0",
                                             "send backward 0, receive forward 2",
                                             "forward 2",
                                             "send forward 2, receive backward 1",
                                             "backward 1",
                                             "send backward 1, receive forward 3",
                                             "forward 3",
                                             "send forward 3, receive backward 2",
                                             "backward 2",
                                             "send backward 2",
                                             "receive backward 3",
                                             "backward 3",
                                             "send backward 3",
                                             "optimizer"};
  std::vector<std::string> names;
  for (const Op& op : plan.schedule->programs[1].ops) {
    CHECK(plan.schedule->programs[1].streams[op.stream] == "compute");
    names.push_back(op.name);
  }
  CHECK(names == expected);
}

TEST_CASE("transfers that do not block have a stream for each direction") {
  const Plan plan = write_schedule(scenario(perceptron(6), 1, 3, 4));
  std::set<std::string> streams(plan.schedule->programs[1].streams.begin(),
                                plan.schedule->programs[1].streams.end());
  CHECK(streams == std::set<std::string>{"compute", "receive forward", "send forward", "receive backward",
                                         "send backward"});
  const Program& first = plan.schedule->programs[0];
  CHECK(std::count(first.streams.begin(), first.streams.end(), "receive forward") == 0);
}

TEST_CASE("a receive is posted while the pass before its own runs") {
  // Stage 1 of 3 runs F0 F1 B0 F2 B1 F3 B2 B3: the input of a pass can be received once the last pass but one
  // before it has ended.
  const Plan plan = write_schedule(scenario(perceptron(6), 1, 3, 4));
  const Program& program = plan.schedule->programs[1];
  std::map<std::string, std::string> posted;
  for (const Op& op : program.ops)
    if (op.kind == OpKind::exchange && op.messages[0].direction == Message::Direction::receive) {
      REQUIRE(op.after.size() == 1);
      posted[op.name] = program.ops[op.after[0].op].name;
    }
  CHECK(posted == std::map<std::string, std::string>{{"receive forward 0", "begin step"},
                                                     {"receive forward 1", "begin step"},
                                                     {"receive backward 0", "forward 0"},
                                                     {"receive forward 2", "forward 1"},
                                                     {"receive backward 1", "backward 0"},
                                                     {"receive forward 3", "forward 2"},
                                                     {"receive backward 2", "backward 1"},
                                                     {"receive backward 3", "forward 3"}});
}

TEST_CASE("overlapped pulls are awaited layer by layer in the next step") {
  Scenario s = scenario(perceptron(6), 2, 1, 2, 2);
  s.strategy.bucket_bytes = 8 * 1048576.0;
  const Plan plan = write_schedule(s);
  const Program& worker = plan.schedule->programs[0];
  std::map<int, std::string> awaited;  // by first layer of a forward op: the pull
  for (const Op& op : worker.ops)
    for (const Dependency& d : op.after)
      if (d.steps_back == 1) {
        CHECK(op.pass == Pass::forward);
        CHECK(op.microbatch == 0);
        CHECK(worker.ops[d.op].first_layer == op.first_layer);
        CHECK(worker.ops[d.op].last_layer == op.last_layer);
        awaited[op.first_layer] = worker.ops[d.op].name;
      }
  CHECK(awaited ==
        std::map<int, std::string>{
            {0, "pull bucket 3"}, {1, "pull bucket 2"}, {3, "pull bucket 1"}, {5, "pull bucket 0"}});
  // Each server stores half of everything: fp32 weights and Adam's two moments.
  const Program& server = plan.schedule->programs[1];
  CHECK(bytes_of(server, TensorKind::weight) == Approx(6 * 1024.0 * 1025 * 4 / 2));
  CHECK(bytes_of(server, TensorKind::optimizer_state) == Approx(6 * 1024.0 * 1025 * 8 / 2));
  CHECK(bytes_of(worker, TensorKind::optimizer_state) == 0);
}

TEST_CASE("servers sit where the placement says") {
  Scenario s = scenario(perceptron(3), 4, 1, 1, 2);
  CHECK(write_schedule(s).endpoints ==
        std::vector<int>{0, 1, 2, 3, s.cluster->server_processor(0), s.cluster->server_processor(1)});
  s.strategy.parameter_server.placement = ParameterServer::Placement::colocated;
  CHECK(write_schedule(s).endpoints ==
        std::vector<int>{0, 1, 2, 3, s.cluster->processor_of_node(0), s.cluster->processor_of_node(2)});
}

TEST_CASE("memory of a stage is that of its parameters") {
  Scenario s = scenario(perceptron(6), 2, 3, 4);
  s.training.precision = s.training.activation_precision = s.training.gradient_precision = Precision::bf16;
  const Plan plan = write_schedule(s);
  CHECK(plan.stage_layers == std::vector<int>{2, 2, 2});
  for (int stage = 0; stage < 3; ++stage) {
    const Program& program = plan.schedule->programs[stage];
    const double parameters = 2 * 1024.0 * 1025;
    CHECK(bytes_of(program, TensorKind::weight) == 2 * parameters);
    CHECK(bytes_of(program, TensorKind::gradient) == 2 * parameters);
    CHECK(bytes_of(program, TensorKind::optimizer_state) == 12 * parameters);  // ZeRO paper: 12
  }
}

TEST_CASE("all FLOPs of the model are in the schedule, recomputed ones apart") {
  for (const bool overlap : {true, false})
    for (const auto recompute : {Recompute::none, Recompute::full})
      for (const int pipeline : {1, 3}) {
        CAPTURE(overlap, static_cast<int>(recompute), pipeline);
        Scenario s = scenario(small_gpt(4), 2, pipeline, 3);
        s.training.recompute = recompute;
        s.strategy.overlap = overlap;
        s.strategy.bucket_bytes = 1048576;
        const Plan plan = write_schedule(s);
        double model = 0, extra = 0, blocks_forward = 0;
        for (const Program& program : plan.schedule->programs)
          for (const Op& op : program.ops)
            if (op.kind == OpKind::compute) {
              model += plan.schedule->works[op.work].model_flops;
              extra += plan.schedule->works[op.work].extra_flops;
            }
        // One of two data-parallel ranks computes half of the step's samples.
        CHECK(model == Approx(flops_per_sample(s.model, 0) * plan.schedule->samples / 2).epsilon(1e-9));
        // Full recomputation repeats the forward pass of the transformer's blocks: 24 h^2 + 4 s h FLOPs per
        // token each.
        if (recompute == Recompute::full)
          blocks_forward = 4 * (24 * 256.0 * 256 + 4 * 128.0 * 256) * plan.schedule->tokens / 2;
        CHECK(extra == Approx(blocks_forward).epsilon(1e-9));
      }
}

TEST_CASE("a tied embedding is summed over the pipeline's ends") {
  Scenario s = scenario(small_gpt(6), 2, 3, 4);
  const Plan plan = write_schedule(s);
  const double table = 1000 * 256.0;
  for (int stage = 0; stage < 3; ++stage) {
    CAPTURE(stage);
    int found = 0;
    for (const Op& op : plan.schedule->programs[stage].ops) {
      if (op.name != "all-reduce tied embedding") continue;
      ++found;
      CHECK(op.collective.bytes.base == table * 4);
      CHECK(group_members(plan.schedule->roles[0], op.collective.group, 1) == std::vector<int>{1, 5});
    }
    CHECK(found == (stage == 1 ? 0 : 1));
  }
  // The first and the last stage both store it, so the parameters of all stages exceed the model's by one
  // table.
  double weights = 0;
  for (const Program& program : plan.schedule->programs) weights += bytes_of(program, TensorKind::weight) / 4;
  CHECK(weights == Approx(parameter_count(s.model) + table));
  CHECK(plan.notes.size() == 1);
}

TEST_CASE("profiled models run as they were measured") {
  Scenario s = scenario(profile(4), 2, 4, 6);
  const Plan plan = write_schedule(s);
  check(*plan.schedule);
  for (const Program& program : plan.schedule->programs) {
    CHECK(count_ops(program, OpKind::collective, Pass::gradient_sync) == 0);
    CHECK(count_ops(program, OpKind::compute, Pass::optimizer) == 0);
    CHECK(count_ops(program, OpKind::compute, Pass::backward) == 6);
    for (const Op& op : program.ops) {
      for (const Message& m : op.messages) CHECK(m.bytes.base == 1e6);
      if (op.pass != Pass::backward || op.kind != OpKind::compute) continue;
      double seconds = 0;
      for (const Kernel& kernel : plan.schedule->works[op.work].kernels)
        seconds += kernel.seconds * kernel.count;
      CHECK(seconds == Approx(2e-3));
    }
  }
  SECTION("with parameters, gradients are synced") {
    const Plan trained = write_schedule(scenario(profile(4, {1e6, 1e6, 1e6, 1e6}), 2, 4, 6));
    for (const Program& program : trained.schedule->programs) {
      CHECK(count_ops(program, OpKind::collective, Pass::gradient_sync) == 1);
      CHECK(count_ops(program, OpKind::compute, Pass::optimizer) == 1);
    }
  }
}

TEST_CASE("placement decides which axis is innermost") {
  Scenario s = scenario(perceptron(4), 2, 3, 1);
  s.strategy.placement = {"tensor", "pipeline", "data"};
  const Plan plan = write_schedule(s);
  const Mesh& mesh = plan.schedule->roles[0].meshes[0];
  REQUIRE(mesh.axes().size() == 2);
  CHECK(mesh.axes()[0].name == "pipeline");
  CHECK(plan.schedule->program_of(0, 1) == 1);
  CHECK(plan.schedule->program_of(0, 3) == 0);
  s.strategy.placement = {};
  CHECK(write_schedule(s).schedule->roles[0].meshes[0].axes()[0].name == "data");
}

TEST_CASE("what cannot be planned is refused") {
  struct Case {
    std::string what;
    Scenario scenario;
    std::string said;
  };
  std::vector<Case> cases = {
      {"more stages than layers", scenario(perceptron(3), 1, 4, 1), "at most 3"},
      {"stages that do not add up", scenario(perceptron(6), 1, 2, 1), "add up to 5"},
      {"too few stages", scenario(perceptron(6), 1, 2, 1), "has 1 numbers"},
      {"an empty stage", scenario(perceptron(6), 1, 2, 1), "without layers"},
      {"more ranks than devices", scenario(perceptron(6), 3, 2, 1), "needs 6 devices"},
      {"no room for servers", scenario(perceptron(6), 2, 1, 1, 2), "server_nodes"},
  };
  cases[1].scenario.strategy.stage_layers = {2, 3};
  cases[2].scenario.strategy.stage_layers = {6};
  cases[3].scenario.strategy.stage_layers = {6, 0};
  cases[4].scenario.cluster = cluster(4);
  cases[5].scenario.cluster = cluster(2, 1);
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const std::string said = refusal_of(c.scenario);
    CAPTURE(said);
    CHECK(said.find(c.said) != std::string::npos);
  }
}

TEST_CASE("a schedule's size depends on its stages, not on its ranks") {
  const Plan small = write_schedule(scenario(small_gpt(6), 2, 4, 8));
  const Plan large = write_schedule(scenario(small_gpt(6), 256, 4, 8));
  REQUIRE(small.schedule->programs.size() == large.schedule->programs.size());
  for (std::size_t p = 0; p < 4; ++p)
    CHECK(small.schedule->programs[p].ops.size() == large.schedule->programs[p].ops.size());
  CHECK(small.schedule->works.size() == large.schedule->works.size());
}
