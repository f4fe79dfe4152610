// Buckets that end inside layers, and the copies into and out of buckets: schedules, bytes, order.
#include <map>
#include <string>

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
          REQUIRE(tensors.schedule->programs.size() == layers.schedule->programs.size());
          for (std::size_t p = 0; p < tensors.schedule->programs.size(); ++p) {
            const Program &whole = layers.schedule->programs[p], &cut = tensors.schedule->programs[p];
            for (const TensorKind kind : {TensorKind::gradient, TensorKind::weight})
              CHECK(bytes_of(cut, kind) == Approx(bytes_of(whole, kind)).epsilon(1e-12));
            // The last backward pass computes every segment once, its last one first.
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
              // Every bucket but the last one has reached its limit.
              if (last >= 0)
                CHECK(cut.ops[static_cast<std::size_t>(last)].collective.bytes.base >= cap * 1048576);
              last = static_cast<int>(&op - cut.ops.data());
              most = std::max(most, op.collective.bytes.base);
            }
            // A layer of 256 has 3.0 MiB of gradients, its largest tensor 1 MiB.
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

TEST_CASE("gradients are copied into buckets as they fill, and back in their order") {
  constexpr double kLayer = 4 * 1024.0 * 1025;  // bytes of a layer of perceptron()
  for (const auto copies : {BucketCopies::none, BucketCopies::in, BucketCopies::in_out})
    for (const int data : {1, 4})
      for (const bool overlap : {true, false}) {
        CAPTURE(static_cast<int>(copies), data, overlap);
        Scenario s = scenario(perceptron(3), data, 1, 2);
        s.strategy.first_bucket_bytes = s.strategy.bucket_bytes = 1048576;  // a bucket a layer
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
