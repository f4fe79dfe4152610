// Tests training on processors: operations, gradients, optimizers, and perceptrons cut into stages in many
// ways.
#include "backend/host/host_arithmetic.hpp"
#include "backend/training/element_wise.hpp"
#include "backend/training/replay.hpp"
#include "models/text/error.hpp"
#include "tests/backend_training_cases.hpp"

using namespace rehearse;
using namespace rehearse::training_cases;

TEST_CASE("operations of training on processors") {
  HostArithmetic host;
  check_products(host, Precision::fp32);
  check_layer_operations(host, Precision::fp32);
  check_loss(host, Precision::fp32);
}

TEST_CASE("optimizers against values computed by hand") {
  HostArithmetic host;
  check_optimizers(host, Precision::fp32);
}

TEST_CASE("gradients against finite differences") {
  HostArithmetic host;
  check_gradients(host);
}

TEST_CASE("a perceptron in parts learns as a whole one does") {
  HostArithmetic host;
  check_cuts(host);
  check_preset_cuts(host);
  check_replicas(host);
}

TEST_CASE("the loss falls") {
  HostArithmetic host;
  check_learning(host, Precision::fp32);
}

TEST_CASE("processors time what is issued to them") {
  HostArithmetic host;
  check_times(host);
}

TEST_CASE("kernels of which only shapes are known do the work that they state") {
  HostArithmetic host;
  check_replay(host, Precision::bf16);
  Kernel measured;
  measured.kind = Kernel::Kind::fixed;
  CHECK_THROWS_AS(host.replay(0, measured, Precision::fp32), RunError);
}

// For every kernel of every kind of model, the launched pieces fit into memory and add up to the kernel.
TEST_CASE("plans to replay kernels keep their FLOPs and bytes") {
  constexpr std::size_t kScratch = 1 << 20;
  for (const char* name : {"mlp", "resnet50", "bert-large", "gpt3-175b", "mixtral-8x7b"})
    for (const LayerCost& layer : layer_costs(model_preset(name), {}))
      for (const std::vector<Kernel>* kernels :
           {&layer.forward, &layer.backward_input, &layer.backward_weight})
        for (const Kernel& kernel : *kernels) {
          CAPTURE(name, layer.name, kernel.m, kernel.n, kernel.k, kernel.batch, kernel.count);
          const ReplayPlan plan = plan_replay(kernel, kScratch);
          const Replayed main = plan.main.work(2), rest = plan.rest.work(2);
          CHECK(main.flops + rest.flops == Approx(kernel.flops()).epsilon(1e-9));
          if (kernel.kind == Kernel::Kind::memory)
            CHECK(main.bytes + rest.bytes == Approx(kernel.bytes * kernel.count).margin(8));
          for (const ReplayPart& part : {plan.main, plan.rest})
            if (part.batch != 1) CHECK(part.scratch_elements() <= kScratch);
        }
}

// Known answers of Philox4x32-10, from Random123's kat_vectors.
TEST_CASE("random numbers") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  // Mean, variance and fourth moment of 10^5 numbers are 0, 1 and 3, to four standard errors.
  std::vector<float> numbers(100000);
  standard_normal(5, RandomUse::features, 9, numbers.data(), 100000);
  double mean = 0, square = 0, fourth = 0;
  for (const double x : numbers) {
    mean += x / 1e5;
    square += x * x / 1e5;
    fourth += x * x * x * x / 1e5;
  }
  CHECK(std::abs(mean) < 4 * std::sqrt(1 / 1e5));
  CHECK(std::abs(square - 1) < 4 * std::sqrt(2 / 1e5));
  CHECK(std::abs(fourth - 3) < 4 * std::sqrt(96 / 1e5));
}

TEST_CASE("data depend on the seed and the sample's number alone") {
  const SampleData data(3, 20, 5), same(3, 20, 5), other(4, 20, 5), wider(3, 100, 5);
  const auto features = [](const SampleData& from, std::uint64_t sample, std::size_t count) {
    std::vector<float> result(count);
    from.features(sample, result.data());
    return result;
  };
  std::vector<int> counts(5);
  for (std::uint64_t sample = 0; sample < SampleData::kSamples; ++sample)
    ++counts[static_cast<std::size_t>(data.label(sample))];
  CHECK(*std::min_element(counts.begin(), counts.end()) > 0);
  CHECK(features(data, 7, 20) == features(same, 7, 20));
  CHECK(features(data, 7, 20) == features(data, 7 + SampleData::kSamples, 20));
  CHECK(features(data, 7, 20) != features(data, 8, 20));
  CHECK(features(data, 7, 20) != features(other, 7, 20));
  std::vector<float> first = features(wider, 7, 100);
  first.resize(20);
  CHECK(first == features(data, 7, 20));
  CHECK(data.label(7) == same.label(7));
}

TEST_CASE("weights depend on the seed and the layer alone") {
  HostArithmetic host;
  const MultiLayerPerceptron shape{{6, 5, 4, 3}};
  PerceptronOptions options;
  options.held = {{0, 2}};
  const Perceptron whole(host, shape, options);
  options.held = {{0, 0}, {2, 2}};
  const Perceptron ends(host, shape, options);
  CHECK(to_host(host, whole.weights({2, 2})) == to_host(host, ends.weights({2, 2})));
  CHECK(to_host(host, whole.weights({0, 2})) == initial_weights(shape, 1, {0, 2}, {}));
  CHECK(whole.weights({0, 2}).elements == 7 * 5 + 6 * 4 + 5 * 3);
  CHECK(ends.holds(2));
  CHECK_FALSE(ends.holds(1));
  CHECK_THROWS_AS(ends.weights({0, 2}), std::out_of_range);
  CHECK_THROWS_AS(whole.activation(0, -1), std::out_of_range);
  CHECK_THROWS_AS(whole.activation_gradient(0, 1), std::out_of_range);
}

TEST_CASE("shares of an array lie end to end") {
  std::vector<std::byte> memory(4 * 11);
  const Array whole{memory.data(), 11, Precision::fp32};
  for (int n = 1; n <= 13; ++n) {
    const std::byte* end = memory.data();
    for (int i = 0; i < n; ++i) {
      const Array part = share(whole, i, n);
      CHECK(part.data == end);
      CHECK(part.elements <= static_cast<std::size_t>(11 / n + 1));
      end += part.bytes();
    }
    CHECK(end == memory.data() + memory.size());
  }
  CHECK_THROWS_AS(whole.part(5, 7), std::out_of_range);
}

TEST_CASE("rounding to bf16") {
  struct Case {
    float from, to;
  };
  // With 8 bits of precision, numbers around 1 are 2^-7 apart, and ties round to even.
  for (const Case& c : {Case{1, 1}, Case{1 + 0x1p-8f, 1}, Case{1 + 0x3p-8f, 1 + 0x1p-6f},
                        Case{1 + 0x1p-8f + 0x1p-20f, 1 + 0x1p-7f}, Case{-3.1415927f, -3.140625f}, Case{0, 0},
                        Case{INFINITY, INFINITY}, Case{3.4028235e38f, INFINITY}})
    CHECK(to_float(rounded<Bfloat16>(c.from)) == c.to);
  CHECK(std::isnan(to_float(rounded<Bfloat16>(NAN))));
}

TEST_CASE("what cannot be trained is refused") {
  HostArithmetic host;
  const MultiLayerPerceptron shape{{6, 5, 4}};
  PerceptronOptions good;
  good.held = {{0, 1}};
  struct Case {
    std::string message;
    std::function<void(PerceptronOptions&)> change;
  };
  for (const Case& c : {
           Case{"processors train in fp32",
                [](auto& o) { o.precision = o.gradient_precision = Precision::bf16; }},
           Case{"processors train in fp32", [](auto& o) { o.precision = Precision::tf32; }},
           Case{"training.precision is fp8", [](auto& o) { o.precision = Precision::fp8; }},
           Case{"training.precision is mxfp8", [](auto& o) { o.precision = Precision::mxfp8; }},
           Case{"training.precision is nvfp4", [](auto& o) { o.precision = Precision::nvfp4; }},
           Case{"gradients in bf16 with weights in fp32",
                [](auto& o) { o.gradient_precision = Precision::bf16; }},
           Case{"held layers 1 to 2",
                [](auto& o) {
                  o.held = {{1, 2}};
                }},
           Case{"held layers 0 to 1",
                [](auto& o) {
                  o.held = {{0, 0}, {0, 1}};
                }},
           Case{"0 micro-batches", [](auto& o) { o.microbatches = 0; }},
       }) {
    PerceptronOptions options = good;
    c.change(options);
    std::string message = "accepted";
    try {
      const Perceptron perceptron(host, shape, options);
    } catch (const RunError& why) {
      message = why.what();
    }
    INFO(message);
    CHECK(message.find(c.message) != std::string::npos);
  }
  CHECK_THROWS_AS(host.allocate(SIZE_MAX / 4, Precision::fp32), RunError);
  Perceptron perceptron(host, shape, good);
  CHECK_THROWS_AS(perceptron.forward(0, 0, 0, {0, 1}), std::out_of_range);  // no batch is set
  CHECK_THROWS_AS(perceptron.set_batch(0, 0, {1, 2}), std::invalid_argument);
}
