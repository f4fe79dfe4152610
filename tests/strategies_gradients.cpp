// Checks the gradient strategies: sound schedules, fusion, bytes on the wire, memory.
#include <algorithm>
#include <cmath>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/fusion.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

// Returns the scenario with the keys of [strategy] that the gradient strategy parses itself.
Scenario with(Scenario s, const std::string& gradients, const std::string& keys = "") {
  Document document = Document::parse_text(keys, "test");
  Section section = document.root();
  s.strategy.gradients = gradients;
  s.strategy.gradient_strategy = find_gradient_strategy(gradients)->read(section, s.strategy);
  section.finish();
  return s;
}

std::vector<const Op*> ops_of(const Program& program, OpKind kind) {
  std::vector<const Op*> found;
  for (const Op& op : program.ops)
    if (op.kind == kind) found.push_back(&op);
  return found;
}

// Returns the bytes that a rank sends in its collectives along the data axis: Thakur et al. (2005).
double collective_bytes(const Schedule& schedule, const Program& program) {
  double bytes = 0;
  for (const Op* op : ops_of(program, OpKind::collective)) {
    const double n = group_size(schedule.roles[0], op->collective.group), b = op->collective.bytes.base;
    switch (op->collective.kind) {
      case CollectiveKind::all_reduce:
        bytes += 2 * (n - 1) / n * b;
        break;
      case CollectiveKind::all_gather:
        bytes += (n - 1) / n * b;
        break;
      case CollectiveKind::all_to_all:
        bytes += (n - 1) * b;
        break;
      default:
        FAIL_CHECK("another collective");
    }
  }
  return bytes;
}

constexpr double kLayer = 1024.0 * 1025;  // parameters of a layer of perceptron()

}  // namespace

TEST_CASE("every way to bring gradients together writes a sound schedule") {
  struct Way {
    const char *gradients, *keys;
  };
  const Way ways[] = {
      {"first-device", ""},
      {"local-sgd", "[local_sgd]\nevery = 1"},
      {"local-sgd", "[local_sgd]\nevery = 3"},
      {"all-reduce", "fusion_mb = 4\ncycle_ms = 0.05"},
      {"all-reduce", "fusion_mb = 0\ncycle_ms = 0"},
      {"all-reduce", "cycle_ms = 1000"},
      {"all-reduce", "compression = \"fp16\""},
      {"all-reduce", "compression = \"top-k\"\ntop_k_density = 0.001"},
      {"all-reduce", "compression = \"one-bit\""},
      {"all-reduce", "compression = \"powersgd\"\npowersgd_rank = 2"},
  };
  for (const Way& way : ways)
    for (const bool overlap : {true, false})
      for (const bool blocking : {true, false})
        for (const auto recompute : {Recompute::none, Recompute::full})
          for (const int layers : {3, 6})
            for (const int pipeline : {1, 2, 4})
              for (const int data : {1, 2, 3, 8})
                for (const int microbatches : {1, 3}) {
                  const bool fused = std::string(way.keys).find("cycle") != std::string::npos;
                  if (pipeline > 1 && std::string(way.gradients) == "first-device") continue;
                  if (!overlap && fused) continue;  // refused
                  CAPTURE(way.gradients, way.keys, overlap, blocking, static_cast<int>(recompute), layers,
                          pipeline, data, microbatches);
                  Scenario s = scenario(small_gpt(layers), data, pipeline, microbatches);
                  s.training.recompute = recompute;
                  s.strategy.overlap = overlap;
                  s.strategy.blocking_p2p = blocking;
                  s.strategy.bucket_bytes = 4 * 1048576.0;
                  const Plan plan = write_schedule(with(s, way.gradients, way.keys));
                  REQUIRE_NOTHROW(check(*plan.schedule));
                  REQUIRE_FALSE(plan.schedule->crosses_step());
                  REQUIRE(plan.schedule->samples ==
                          2.0 * microbatches * data * plan.schedule->optimizer_steps);
                }
}

// Schedule::crosses_step() says that the next step waits for the sums; the check finds races between both.
TEST_CASE("a delayed all-reduce writes a sound schedule, whose sums can run during the next step") {
  for (const bool overlap : {true, false})
    for (const bool blocking : {true, false})
      for (const bool tied : {true, false})
        for (const int pipeline : {1, 2, 4})
          for (const int data : {1, 2, 8})
            for (const int microbatches : {1, 3}) {
              CAPTURE(overlap, blocking, tied, pipeline, data, microbatches);
              Scenario s = scenario(small_gpt(6), data, pipeline, microbatches);
              std::get<Transformer>(s.model.shape).tied_embeddings = tied;
              s.strategy.overlap = overlap;
              s.strategy.blocking_p2p = blocking;
              const Plan plan = write_schedule(with(s, "delayed-all-reduce"));
              const Plan usual = write_schedule(s);
              REQUIRE_NOTHROW(check(*plan.schedule));
              REQUIRE(plan.schedule->crosses_step() == (overlap && data > 1));
              REQUIRE(plan.schedule->samples == usual.schedule->samples);
              for (std::size_t p = 0; p < plan.schedule->programs.size(); ++p) {
                const Program& program = plan.schedule->programs[p];
                REQUIRE(collective_bytes(*plan.schedule, program) ==
                        Approx(collective_bytes(*usual.schedule, usual.schedule->programs[p])));
                REQUIRE(bytes_of(program, TensorKind::gradient) ==
                        Approx(2 * bytes_of(usual.schedule->programs[p], TensorKind::gradient)));
                for (const Op* op : ops_of(program, OpKind::collective))
                  REQUIRE(op->for_next_step == (overlap && op->action.kind == Action::Kind::none));
              }
            }
}

TEST_CASE("the first device alone updates, and computes the loss of all") {
  for (const int n : {1, 2, 8}) {
    CAPTURE(n);
    const Plan plan = write_schedule(with(scenario(perceptron(3), n, 1, 2), "first-device"));
    const Plan alone = write_schedule(scenario(perceptron(3), 1, 1, 2));
    REQUIRE(plan.schedule->programs.size() == (n == 1 ? 1 : 2));
    const Program& first = plan.schedule->programs[0];
    CHECK(bytes_of(first, TensorKind::optimizer_state) == Approx(8 * 3 * kLayer));  // Adam, fp32
    CHECK(count_ops(first, OpKind::compute, Pass::optimizer) == 1);
    // For each device, the inputs and outputs of two samples with 1024 values of 4 bytes; outputs with their
    // softmax and their gradients.
    CHECK(bytes_of(first, TensorKind::batch) == n * 2 * 1024 * 4.0);
    CHECK(bytes_of(first, TensorKind::buffer) == n * 2 * 1024 * (4.0 + 4));
    double gradients = 0;
    for (const Tensor& tensor : first.tensors)
      if (tensor.kind == TensorKind::activation_gradient && tensor.boundary >= 0)
        gradients += tensor.bytes.base;
    CHECK(gradients == n * 2 * 1024 * 4.0);
    // Both passes of the loss run once per micro-batch; a single device does the same work in other ops.
    double loss = 0, kernels = 0, expected = 0;
    for (const Op& op : first.ops) {
      if (op.kind != OpKind::compute) continue;
      for (const Kernel& kernel : plan.schedule->works[op.work].kernels) {
        loss += kernel.loss ? kernel.bytes : 0;
        kernels += kernel.bytes;
      }
    }
    double loss_alone = 0;
    for (const Op& op : alone.schedule->programs[0].ops)
      for (const Kernel& kernel : alone.schedule->works[op.work].kernels) {
        loss_alone += kernel.loss ? kernel.bytes : 0;
        expected += kernel.bytes;
      }
    REQUIRE(loss_alone > 0);
    CHECK(loss == Approx(n * loss_alone));
    CHECK(kernels == Approx(expected + (n - 1) * loss_alone));
    if (n == 1) continue;
    const Program& replica = plan.schedule->programs[1];
    CHECK(bytes_of(replica, TensorKind::optimizer_state) == 0);
    CHECK(count_ops(replica, OpKind::compute, Pass::optimizer) == 0);
    CHECK(bytes_of(replica, TensorKind::weight) == bytes_of(first, TensorKind::weight));
    for (const Program* program : {&first, &replica}) {
      CHECK(passes(*program) == "F0 B0 F1 B1");
      std::string names;
      for (const Op& op : program->ops)
        if (op.kind != OpKind::compute && op.name.back() == '1') names += op.name + "; ";
      CHECK(names ==
            "scatter inputs 1; broadcast weights 1; gather outputs 1; scatter gradients 1; reduce gradients "
            "1; ");
    }
  }
}

TEST_CASE("local SGD: steps of its own, then one all-reduce of the weights") {
  for (const int every : {1, 2, 7})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      CAPTURE(every, static_cast<int>(precision));
      Scenario s = scenario(perceptron(3), 4, 1, 2);
      s.training.precision = s.training.gradient_precision = precision;
      const Plan plan = write_schedule(with(s, "local-sgd", "[local_sgd]\nevery = " + std::to_string(every)));
      const Program& worker = plan.schedule->programs[0];
      CHECK(plan.schedule->optimizer_steps == every);
      CHECK(count_ops(worker, OpKind::compute, Pass::forward) == 2 * every);
      // The master weights are averaged in fp32 and then cast.
      const bool cast = precision == Precision::bf16;
      CHECK(count_ops(worker, OpKind::compute, Pass::optimizer) == every + cast);
      const auto averages = ops_of(worker, OpKind::collective);
      REQUIRE(averages.size() == 1);
      CHECK(averages[0]->collective.bytes.base == 4 * 3 * kLayer);
      // A round stores one optimizer state, however many steps it has; equal passes share their work.
      CHECK(bytes_of(worker, TensorKind::optimizer_state) == (cast ? 12 : 8) * 3 * kLayer);
      CHECK(plan.schedule->works.size() == 2 + static_cast<std::size_t>(every) + cast);
    }
}

TEST_CASE("fusion takes what is ready at a tick, up to the buffer's size") {
  struct Case {
    const char* what;
    std::vector<ReadyTensor> tensors;
    FusionBuffer buffer;
    std::string fused;  // first-last@tick in ms
  };
  const std::vector<ReadyTensor> five = {{4e6, 1e-3}, {4e6, 2e-3}, {4e6, 3.5e-3}, {4e6, 5e-3}, {4e6, 5.1e-3}};
  const Case cases[] = {
      {"every 5 ms; what is ready at the tick itself is taken", five, {64e6, 5e-3}, "0-3@5 4-4@10"},
      {"every 2 ms", five, {64e6, 2e-3}, "0-1@2 2-2@4 3-4@6"},
      {"two fill the buffer", five, {8e6, 5e-3}, "0-1@5 2-3@5 4-4@10"},
      {"two and a half fill it", five, {10e6, 5e-3}, "0-1@5 2-3@5 4-4@10"},
      {"no buffer: each alone", five, {0, 5e-3}, "0-0@5 1-1@5 2-2@5 3-3@5 4-4@10"},
      {"no sleep: each as it gets ready", five, {64e6, 0}, "0-0@1 1-1@2 2-2@3.5 3-3@5 4-4@5.1"},
      {"one cycle for all", five, {64e6, 1}, "0-4@1000"},
      {"a tensor larger than the buffer goes alone",
       {{1e6, 1e-3}, {99e6, 1e-3}, {1e6, 1e-3}, {1e6, 1e-3}},
       {64e6, 1e-3},
       "0-0@1 1-1@1 2-3@1"},
      {"rounding does not cost a cycle", {{1, 0.1 + 0.2}}, {64e6, 0.1}, "0-0@300"},
      {"what needs no time waits for the first tick", {{1, 0}}, {64e6, 2e-3}, "0-0@2"},
      {"nothing", {}, {}, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    std::string text;
    for (const FusedTensors& f : fuse(c.tensors, c.buffer)) {
      std::string ms = std::to_string(std::llround(1e4 * f.tick_s) / 10.0);
      ms.erase(ms.find_last_not_of('0') + 1);
      if (ms.back() == '.') ms.pop_back();
      text += (text.empty() ? "" : " ") + std::to_string(f.first) + "-" + std::to_string(f.last) + "@" + ms;
    }
    CHECK(text == c.fused);
  }
}

TEST_CASE("Horovod's loop sends no bucket before its tick") {
  // Six layers of 4.2 MB; a layer's backward pass takes t, so that of layer 5 - i ends at (i + 1) t, except
  // the first layer's, which computes no gradient of its input.
  Scenario s = scenario(perceptron(6), 4, 1, 2);
  const Plan layers = write_schedule(with(s, "all-reduce", "fusion_mb = 0\ncycle_ms = 0"));
  const auto single = ops_of(layers.schedule->programs[0], OpKind::collective);
  REQUIRE(single.size() == 6);
  for (std::size_t b = 0; b < single.size(); ++b) {
    CHECK(single[b]->first_layer == 5 - static_cast<int>(b));
    CHECK(single[b]->collective.bytes.base == 4 * kLayer);
  }
  // Without a cycle time nothing is fused, and a single tensor is not copied.
  for (const Op& op : layers.schedule->programs[0].ops)
    CHECK(op.name.find("fusion buffer") == std::string::npos);

  const Plan all = write_schedule(with(s, "all-reduce", "cycle_ms = 1000"));
  const Program& worker = all.schedule->programs[0];
  const auto fused = ops_of(worker, OpKind::collective);
  REQUIRE(fused.size() == 1);
  CHECK(fused[0]->collective.bytes.base == 6 * 4 * kLayer);
  const auto sleeps = ops_of(worker, OpKind::host);
  REQUIRE(sleeps.size() == 1);
  CHECK(sleeps[0]->seconds == 1);
  CHECK(worker.ops[sleeps[0]->after.at(0).op].name == "begin backward");
  int copies = 0;
  for (const Op& op : worker.ops) {
    if (op.name.find("fusion buffer") == std::string::npos) continue;
    ++copies;
    CHECK(all.schedule->works[op.work].kernels.at(0).bytes == 2 * 6 * 4 * kLayer);  // read and written
  }
  CHECK(copies == 2);

  // Two layers fit in a buffer: three buckets, all sent at the one tick.
  const Plan pairs = write_schedule(with(s, "all-reduce", "cycle_ms = 1000\nfusion_mb = 9"));
  const auto capped = ops_of(pairs.schedule->programs[0], OpKind::collective);
  REQUIRE(capped.size() == 3);
  for (const Op* op : capped) CHECK(op->collective.bytes.base == 2 * 4 * kLayer);
  CHECK(ops_of(pairs.schedule->programs[0], OpKind::host).size() == 1);
}

TEST_CASE("compressed gradients: bytes on the wire and what is kept") {
  const double parameters = 6 * kLayer;
  for (const int n : {2, 3, 8})
    for (const Precision sent : {Precision::fp32, Precision::bf16}) {
      Scenario s = scenario(perceptron(6), n, 1, 2);
      s.training.gradient_precision = sent;
      s.strategy.bucket_bytes = 1e9;
      const double element = element_bytes(sent);
      CAPTURE(n, element);
      const auto planned = [&](const std::string& keys) {
        return write_schedule(with(s, "all-reduce", keys));
      };
      const double kept = bytes_of(planned("").schedule->programs[0], TensorKind::gradient);
      const auto wire = [&](const Plan& plan) {
        return collective_bytes(*plan.schedule, plan.schedule->programs[0]);
      };
      const auto error = [&](const Plan& plan) {
        return bytes_of(plan.schedule->programs[0], TensorKind::gradient) - kept;
      };
      // The first bucket closes at 1 MiB: it has a single layer, the second one has the other five.
      const double buckets[] = {kLayer, 5 * kLayer};
      if (element == 4) {
        const Plan fp16 = planned("compression = \"fp16\"");
        CHECK(wire(fp16) == Approx(2.0 * (n - 1) / n * 2 * parameters).epsilon(1e-12));
        CHECK(error(fp16) == 0);
      }
      for (const double density : {0.01, 0.001}) {
        const Plan top = planned("compression = \"top-k\"\ntop_k_density = " + std::to_string(density));
        double expected = 0;  // k values and k indices of every other rank
        for (const double b : buckets) expected += (n - 1) * std::ceil(density * b) * (element + 4);
        CHECK(wire(top) == Approx(expected).epsilon(1e-12));
        CHECK(error(top) == element * parameters);
      }
      const Plan bit = planned("compression = \"one-bit\"");
      double expected = 0;  // a bit and a scale: each rank's share to its owner, then the owner's sum to all
      for (const double b : buckets) expected += 2 * (n - 1) * (std::ceil(b / 8 / n) + 4);
      CHECK(wire(bit) == Approx(expected).epsilon(1e-12));
      CHECK(error(bit) == Approx(element * parameters * (1 + 1.0 / n)).epsilon(1e-12));

      for (const int rank : {1, 4}) {
        const Plan low = planned("compression = \"powersgd\"\npowersgd_rank = " + std::to_string(rank));
        // Six matrices of 1024 x 1024 and six vectors of 1024.
        const double elements = 6 * ((1024 + 1024) * rank + 1024);
        CHECK(wire(low) == Approx(2.0 * (n - 1) / n * element * elements).epsilon(1e-12));
        CHECK(error(low) == element * 6 * 1024 * 1024);
        CHECK(ops_of(low.schedule->programs[0], OpKind::collective).size() == 2 * 2);  // P and Q, per bucket
      }
      const Plan high = planned("compression = \"powersgd\"\npowersgd_rank = 512");  // would not shrink
      CHECK(wire(high) == Approx(2.0 * (n - 1) / n * element * parameters).epsilon(1e-12));
      CHECK(error(high) == 0);
    }
}

TEST_CASE("PowerSGD finds a transformer's matrices, a tied table once") {
  for (const int pipeline : {1, 2}) {
    CAPTURE(pipeline);
    const Plan plan = write_schedule(with(scenario(small_gpt(4), 2, pipeline, 2), "all-reduce",
                                          "compression = \"powersgd\"\npowersgd_rank = 2"));
    const double h = 256, v = 1000, positions = 128, n = 2;
    const double tables = pipeline == 1 ? 1 : 2;  // the first and the last stage each store one
    // Queries, keys and values; projection; up and down; the tables of tokens and positions.
    const double sides = 4 * ((3 * h + h) + (h + h) + 2 * (4 * h + h)) + tables * (v + h) + (positions + h);
    const double elements = 4 * 12 * h * h + tables * v * h + positions * h;
    const double parameters = parameter_count(small_gpt(4)) + (tables - 1) * v * h;
    double wire = 0, tied = 0;
    for (const Program& program : plan.schedule->programs) {
      wire += collective_bytes(*plan.schedule, program);
      for (const Op* op : ops_of(program, OpKind::collective))
        if (op->name == "all-reduce tied embedding") tied += op->collective.bytes.base;
    }
    CHECK(wire - tied == Approx(2 * (n - 1) / n * 4 * (2 * sides + parameters - elements)).epsilon(1e-12));
  }
}

TEST_CASE("combinations send what each of their parts sends") {
  // Parameters of each layer of perceptron(4) on one of two tensor ranks: outputs split, inputs split (the
  // bias is added after the sum), not split, outputs split.
  const double tensor_parameters[] = {1025.0 * 512, 512.0 * 1024 + 1024, kLayer, 1025.0 * 512};
  const double on_a_rank =
      tensor_parameters[0] + tensor_parameters[1] + tensor_parameters[2] + tensor_parameters[3];
  const auto tensor = [](Scenario s) {
    s.strategy.tensor = 2;
    s.strategy.placement = {"tensor", "data", "pipeline"};
    s.cluster = cluster(2 * s.strategy.data * s.strategy.pipeline, 2);
    return s;
  };
  const auto interleaved = [](Scenario s) {
    s.strategy.schedule = PipelineSchedule::interleaved;
    s.strategy.virtual_stages = 2;
    return s;
  };
  const auto mode = [](Scenario s, ParameterServer::Mode m) {
    s.strategy.parameter_server.mode = m;
    return s;
  };
  const double four = 4;  // bytes
  struct Case {
    std::string name;
    Scenario scenario;
    double collectives;  // bytes in buffers of gradients or weights; one rank of the last stage, one step
    double pushed;       // bytes to all servers
  };
  const double top = std::ceil(0.01 * kLayer);
  const std::vector<Case> cases = {
      {"fusion, interleaved: every chunk's layers",
       with(interleaved(scenario(perceptron(8), 4, 2, 4)), "all-reduce", "fusion_mb = 5\ncycle_ms = 0"),
       four * 4 * kLayer, 0},
      {"fusion, then top-k of each buffer: pairs of value and index from four ranks",
       with(scenario(perceptron(4), 4, 1, 2), "all-reduce",
            "fusion_mb = 5\ncycle_ms = 0\ncompression = \"top-k\"\ntop_k_density = 0.01"),
       4 * 4 * top * 8, 0},
      {"local SGD of a pipeline: each stage's weights",
       with(scenario(perceptron(4), 4, 2, 2), "local-sgd", "local_sgd.every = 3"), four * 2 * kLayer, 0},
      {"local SGD with tensor parallelism: each rank's weights",
       with(tensor(scenario(perceptron(4), 4, 1, 2)), "local-sgd", "local_sgd.every = 3"), four * on_a_rank,
       0},
      {"all-reduce with tensor parallelism", tensor(scenario(perceptron(4), 4, 1, 2)), four * on_a_rank, 0},
      {"servers with tensor parallelism", tensor(scenario(perceptron(4), 4, 1, 2, 2)), 0, four * on_a_rank},
      {"asynchronous servers of a pipeline",
       mode(scenario(perceptron(4), 4, 2, 2, 2), ParameterServer::Mode::async), 0, four * 2 * kLayer},
      {"stale-synchronous servers of a pipeline",
       mode(scenario(perceptron(4), 4, 2, 2, 2), ParameterServer::Mode::stale_synchronous), 0,
       four * 2 * kLayer},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Plan plan = write_schedule(c.scenario);
    check(*plan.schedule);
    const Schedule& schedule = *plan.schedule;
    const int rank = schedule.roles[0].size() - 1;
    double collectives = 0, pushed = 0;
    for (const Op& op : schedule.programs[schedule.program_of(0, rank)].ops) {
      if (op.purpose != Purpose::gradient_sync) continue;
      if (op.kind == OpKind::collective) collectives += op.collective.bytes.base;
      for (const Message& message : op.messages)
        if (message.direction == Message::Direction::send)
          pushed += message.bytes.base *
                    static_cast<double>(peer_ranks(schedule.roles, 0, message.peer, rank).size());
    }
    CHECK(collectives == Approx(c.collectives).epsilon(1e-12));
    CHECK(pushed == Approx(c.pushed).epsilon(1e-12));
    // Servers receive as many bytes as workers push.
    double received = 0, all_pushed = 0;
    for (int role = 0; role < static_cast<int>(schedule.roles.size()); ++role)
      for (int r = 0; r < schedule.roles[role].size(); ++r)
        for (const Op& op : schedule.programs[schedule.program_of(role, r)].ops)
          for (const Message& message : op.messages) {
            if (op.purpose != Purpose::gradient_sync) continue;
            const double bytes =
                message.bytes.base *
                static_cast<double>(peer_ranks(schedule.roles, role, message.peer, r).size());
            if (role == 0 && message.direction == Message::Direction::send) all_pushed += bytes;
            if (role == 1 && message.direction == Message::Direction::receive) received += bytes;
          }
    CHECK(received == Approx(all_pushed).epsilon(1e-12));
  }
}
