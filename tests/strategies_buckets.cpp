// Checks buckets that end inside layers, and the copies into and out of buckets: schedules, bytes, order.
#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

TEST_CASE("buckets of tensors end inside layers, and together carry every gradient once") {
  for (const int pipeline : {1, 2})
    for (const auto recompute : {Recompute::none, Recompute::full})
      for (const int microbatches : {1, 3})
        for (const double cap : {1.0, 2.0, 1e6}) {  // MiB
          CAPTURE(pipeline, static_cast<int>(recompute), microbatches, cap);
          Scenario s = scenario(small_gpt(4), 4, pipeline, microbatches);
          s.training.recompute = recompute;
          s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = cap * 1048576;
          const Plan layers = write_schedule(s);
          s.strategy.bucket_unit = BucketUnit::tensor;
          const Plan tensors = write_schedule(s);
          REQUIRE_NOTHROW(check(*tensors.schedule));
          // Stages that share a tied table sum it once, after all other operations on its bucket.
          Scenario over_gloo = s;
          over_gloo.strategy.bucket_copies = BucketCopies::in_out;
          over_gloo.engine.protocol = Protocol::gloo;
          REQUIRE_NOTHROW(check(*write_schedule(over_gloo).schedule));
          REQUIRE(tensors.schedule->programs.size() == layers.schedule->programs.size());
          for (std::size_t p = 0; p < tensors.schedule->programs.size(); ++p) {
            const Program &whole = layers.schedule->programs[p], &cut = tensors.schedule->programs[p];
            for (const TensorKind kind : {TensorKind::gradient, TensorKind::weight})
              CHECK(bytes_of(cut, kind) == Approx(bytes_of(whole, kind)).epsilon(1e-12));
            // The last backward pass computes every segment once, beginning with the last segment.
            int next = -1, last = -1;
            double most = 0;
            for (const Op& op : cut.ops) {
              if (op.pass == Pass::backward && op.kind == OpKind::compute &&
                  op.microbatch == microbatches - 1) {
                if (next >= 0) CHECK(op.action.end_segment == next);
                next = op.action.first_segment;
              }
              if (op.kind != OpKind::collective || op.collective.kind != CollectiveKind::all_reduce ||
                  op.name.find("bucket") == std::string::npos)
                continue;
              // Every bucket except the last one has reached its limit.
              if (last >= 0)
                CHECK(cut.ops[static_cast<std::size_t>(last)].collective.bytes.base >= cap * 1048576);
              last = static_cast<int>(&op - cut.ops.data());
              most = std::max(most, op.collective.bytes.base);
            }
            // A layer with 256 hidden units has 3.0 MiB of gradients; its largest tensor has 1 MiB.
            if (cap == 1) CHECK(most < 3 * 1048576);
            CHECK((count_ops(cut, OpKind::collective, Pass::gradient_sync) >=
                   count_ops(whole, OpKind::collective, Pass::gradient_sync)));
          }
        }
}

TEST_CASE("buckets that end with layers are the same, whatever fills them") {
  // Perceptrons: a layer's bias arrives before its weight, which fills the bucket.
  for (const double cap : {1.0, 5.0, 25.0}) {
    Scenario s = scenario(perceptron(6), 4, 1, 2);
    s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = cap * 1048576;
    const Plan layers = write_schedule(s);
    s.strategy.bucket_unit = BucketUnit::tensor;
    const Plan tensors = write_schedule(s);
    const Program &a = layers.schedule->programs[0], &b = tensors.schedule->programs[0];
    REQUIRE(a.ops.size() == b.ops.size());
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
      CHECK(a.ops[i].name == b.ops[i].name);
      CHECK(a.ops[i].collective.bytes.base == b.ops[i].collective.bytes.base);
    }
  }
}

TEST_CASE("over Gloo two buckets are summed at a time, and the optimizer waits for both") {
  for (const auto kind : {Protocol::gloo, Protocol::tcp}) {
    Scenario s = scenario(perceptron(5), 4, 1, 1);
    s.engine.protocol = kind;
    s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = 1048576;  // one bucket per layer
    const Plan plan = write_schedule(s);
    REQUIRE_NOTHROW(check(*plan.schedule));
    const Program& worker = plan.schedule->programs[0];
    std::string streams;
    std::map<int, int> last;  // by stream
    for (std::size_t i = 0; i < worker.ops.size(); ++i)
      if (worker.ops[i].kind == OpKind::collective) {
        streams += worker.streams[static_cast<std::size_t>(worker.ops[i].stream)] + "; ";
        last[worker.ops[i].stream] = static_cast<int>(i);
      }
    CHECK(streams == (kind == Protocol::gloo ? "gradients; gradients 2; gradients; gradients 2; gradients; "
                                             : "gradients; gradients; gradients; gradients; gradients; "));
    const Op& optimizer = worker.ops.back();
    REQUIRE(optimizer.pass == Pass::optimizer);
    CHECK(optimizer.after.size() == last.size());
    for (const Dependency& dependency : optimizer.after) {
      const Op& op = worker.ops[static_cast<std::size_t>(dependency.op)];
      CHECK(dependency.op == last.at(op.stream));
    }
  }
}

TEST_CASE("gradients are copied into buckets as they fill, and back in their order") {
  constexpr double kLayer = 4 * 1024.0 * 1025;  // bytes of a layer of perceptron()
  for (const auto copies : {BucketCopies::none, BucketCopies::in, BucketCopies::in_out})
    for (const int data : {1, 4})
      for (const bool overlap : {true, false}) {
        CAPTURE(static_cast<int>(copies), data, overlap);
        Scenario s = scenario(perceptron(3), data, 1, 2);
        s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = 1048576;  // one bucket per layer
        s.strategy.bucket_copies = copies;
        s.strategy.overlap = overlap;
        const Plan plan = write_schedule(s);
        REQUIRE_NOTHROW(check(*plan.schedule));
        const Program& worker = plan.schedule->programs[0];
        std::map<std::string, double> moved;
        std::string order;
        for (const Op& op : worker.ops)
          if (op.name.rfind("copy gradients ", 0) == 0) {
            order += op.name.substr(15) + "; ";
            moved[op.name.substr(15, 3)] +=
                plan.schedule->works[static_cast<std::size_t>(op.work)].kernels[0].bytes;
            CHECK(worker.streams[static_cast<std::size_t>(op.stream)] == "compute");
          }
        const bool in = data > 1 && copies != BucketCopies::none,
                   out = data > 1 && copies == BucketCopies::in_out;
        CHECK(moved["int"] == (in ? 2 * 3 * kLayer : 0));  // "into": read and written
        CHECK(moved["out"] == (out ? 2 * 3 * kLayer : 0));
        CHECK(order == std::string(in ? "into bucket 0; into bucket 1; into bucket 2; " : "") +
                           (out ? "out of bucket 0; out of bucket 1; out of bucket 2; " : ""));
        CHECK(bytes_of(worker, TensorKind::buffer) == (out ? 3 * kLayer : 0));
      }
}

// Bucket sizes that torch 2.15.0 reported after rebuilding (DistributedDataParallel._get_ddp_logging_data(),
// rebuilt_bucket_sizes) for models whose parameters are tensors of these sizes.
TEST_CASE("buckets are those that PyTorch rebuilt") {
  Model unequal = perceptron(0);
  std::get<MultiLayerPerceptron>(unequal.shape).widths = {256, 2048, 2048, 128, 1024, 1024, 64, 3072, 512};
  Model transformer = small_gpt(3);
  auto& shape = std::get<Transformer>(transformer.shape);
  shape.hidden = 512;
  shape.heads = 8;
  shape.vocabulary = 2048;
  shape.tied_embeddings = false;
  struct Case {
    const Model& model;
    double cap_mib;  // 0: bucket_cap_mb was not given
    std::vector<double> bytes;
  };
  const Case cases[] = {
      {unequal, 0, {6293504, 25727744}},
      {unequal, 1, {6293504, 1061120, 4198400, 1577472, 16785408, 2105344}},
      {unequal, 5, {6293504, 5259520, 18362880, 2105344}},
      {unequal, 25, {29915904, 2105344}},
      {unequal, 100, {32021248}},
      {transformer, 0, {4194304, 29419520, 12869632}},
      {transformer,
       1,
       {4194304, 4200448, 4202496, 1054720, 3151872, 4200448, 4202496, 1054720, 3151872, 4200448, 4202496,
        1054720, 3151872, 4460544}},
      {transformer, 5, {8394752, 5257216, 7352320, 5257216, 7352320, 5257216, 7612416}},
      {transformer, 25, {26261504, 20221952}},
      {transformer, 100, {46483456}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model.name, c.cap_mib);
    Scenario s = scenario(c.model, 4, 1, 1);
    s.strategy.bucket_unit = BucketUnit::tensor;
    if (c.cap_mib > 0) s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = c.cap_mib * 1048576;
    std::vector<double> bytes;
    const Plan plan = write_schedule(s);
    for (const Op& op : plan.schedule->programs[0].ops)
      if (op.kind == OpKind::collective) bytes.push_back(op.collective.bytes.base);
    CHECK(bytes == c.bytes);
  }
}
