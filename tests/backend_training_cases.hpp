// Checks training arithmetic against plain loops in double precision, and perceptrons cut in many ways
// against an uncut one; the checks are the same for every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "backend/training/perceptron.hpp"
#include "backend/training/shard_optimizer.hpp"
#include "tests/catch.hpp"

namespace rehearse::training_cases {

inline std::vector<float> to_host(Arithmetic& arithmetic, const Array& array) {
  std::vector<float> result(array.elements);
  arithmetic.copy_to_host(0, array, result.data());
  return result;
}

inline OwnedArray to_device(Arithmetic& arithmetic, const std::vector<float>& numbers,
                            Precision precision = Precision::fp32) {
  OwnedArray array(arithmetic, numbers.size(), precision);
  arithmetic.copy_to_device(0, numbers.data(), array);
  return array;
}

inline std::vector<float> normal(std::uint64_t number, long count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  standard_normal(7, RandomUse::features, number, result.data(), count);
  return result;
}

// Returns a rounding bound at 1: the spacing of fp32 (24 bits), or half the spacing of bf16 (8 bits) for
// 16-bit precisions.
inline double unit(Precision precision) {
  return element_bytes(precision) < 4 ? 0x1p-8 : 0x1p-23;
}

inline void check_close(const std::vector<float>& found, const std::vector<double>& expected, double margin) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(found[i] == Approx(expected[i]).margin(margin));
  }
}

// The smooth ReLU of Shamir, Lin and Coviello 2020, with b = 1/2.
inline double smooth_relu(double x) {
  return x <= -0.5 ? 0 : x >= 0.5 ? x : (x + 0.5) * (x + 0.5) / 2;
}

inline void check_products(Arithmetic& arithmetic, Precision precision) {
  const long m = 5, n = 7, k = 33;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const float beta : {0.0f, 1.0f, -0.5f}) {
        CAPTURE(transpose_a, transpose_b, beta);
        const OwnedArray a = to_device(arithmetic, normal(1, m * k), precision);
        const OwnedArray b = to_device(arithmetic, normal(2, k * n), precision);
        const OwnedArray c = to_device(arithmetic, normal(3, m * n));
        const std::vector<float> left = to_host(arithmetic, a), right = to_host(arithmetic, b),
                                 before = to_host(arithmetic, c);
        std::vector<double> expected;
        for (long i = 0; i < m; ++i)
          for (long j = 0; j < n; ++j) {
            double sum = 0;
            for (long l = 0; l < k; ++l)
              sum += static_cast<double>(left[transpose_a ? l * m + i : i * k + l]) *
                     right[transpose_b ? j * k + l : l * n + j];
            expected.push_back(1.5 * sum + beta * before[i * n + j]);
          }
        arithmetic.gemm(0, {m, n, k}, transpose_a, transpose_b, 1.5f, a, b, beta, c);
        // Operands are stored exactly, products of bf16 are exact, sums are in fp32.
        check_close(to_host(arithmetic, c), expected, 1e-4);
      }
}

inline void check_layer_operations(Arithmetic& arithmetic, Precision precision) {
  const long rows = 37, columns = 41;
  const double margin = 16 * unit(precision);
  const OwnedArray y = to_device(arithmetic, normal(1, rows * columns), precision);
  const OwnedArray bias = to_device(arithmetic, normal(2, columns), precision);
  const std::vector<float> before = to_host(arithmetic, y), added = to_host(arithmetic, bias);
  for (const bool activate : {false, true}) {
    const OwnedArray result = to_device(arithmetic, before, precision);
    arithmetic.add_bias(0, result, bias, activate);
    std::vector<double> expected;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double sum = static_cast<double>(before[i]) + added[i % columns];
      expected.push_back(activate ? smooth_relu(sum) : sum);
    }
    check_close(to_host(arithmetic, result), expected, margin);
    if (!activate) continue;
    const OwnedArray gradient = to_device(arithmetic, normal(3, rows * columns), precision);
    std::vector<double> slope;
    for (const float above : to_host(arithmetic, gradient)) {
      const double x = static_cast<double>(before[slope.size()]) + added[slope.size() % columns];
      slope.push_back(above * std::clamp(x + 0.5, 0.0, 1.0));  // (x + b) / 2b for b = 1/2
    }
    arithmetic.activation_backward(0, result, gradient);
    check_close(to_host(arithmetic, gradient), slope, margin);
  }
  const OwnedArray sums = to_device(arithmetic, std::vector<float>(columns, 3.0f));
  for (const bool accumulate : {true, false}) {
    std::vector<double> expected(columns, accumulate ? 3 : 0);
    for (std::size_t i = 0; i < before.size(); ++i) expected[i % columns] += before[i];
    arithmetic.column_sums(0, y, sums, accumulate);
    check_close(to_host(arithmetic, sums), expected, 1e-4);
  }
  const OwnedArray x = to_device(arithmetic, normal(4, rows * columns), precision);
  std::vector<double> total;
  for (const float number : to_host(arithmetic, x)) total.push_back(number + before[total.size()]);
  arithmetic.add(0, x, y);
  check_close(to_host(arithmetic, y), total, margin);
  std::vector<double> quarters;
  for (const float number : to_host(arithmetic, y)) quarters.push_back(0.25 * number);
  arithmetic.scale(0, 0.25f, y);
  check_close(to_host(arithmetic, y), quarters, 0);
}

// Checks -ln softmax(x)[label] and its gradient softmax(x) - [j == label] (Goodfellow et al. 2016, section
// 6.2.2.3); logits of several hundred must not overflow.
inline void check_loss(Arithmetic& arithmetic, Precision gradient_precision) {
  const std::size_t rows = 3, classes = 300;
  std::vector<float> logits = normal(5, static_cast<long>(rows * classes)), labels = {0, 299, 17};
  for (std::size_t j = 0; j < classes; ++j) logits[classes + j] = 100 * logits[classes + j] + 500;
  const float scale = 0.25f;
  const OwnedArray x = to_device(arithmetic, logits), right = to_device(arithmetic, labels);
  const OwnedArray losses(arithmetic, rows, Precision::fp32),
      slope(arithmetic, rows * classes, gradient_precision);
  arithmetic.softmax_cross_entropy(0, x, right, scale, losses, slope);
  std::vector<double> expected_losses, expected_slope;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* row = &logits[r * classes];
    double sum = 0;
    for (std::size_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(row[j]) - row[0]);
    const auto label = static_cast<std::size_t>(labels[r]);
    expected_losses.push_back(std::log(sum) - (row[label] - static_cast<double>(row[0])));
    for (std::size_t j = 0; j < classes; ++j)
      expected_slope.push_back(scale * (std::exp(static_cast<double>(row[j]) - row[0]) / sum - (j == label)));
  }
  check_close(to_host(arithmetic, losses), expected_losses, 1e-4);
  check_close(to_host(arithmetic, slope), expected_slope, 4 * scale * unit(gradient_precision));
  arithmetic.softmax_cross_entropy(0, x, right, scale, losses, x);  // in place
  check_close(to_host(arithmetic, x), expected_slope, 1e-6);

  // The same in three parts with 100 of the classes each.
  constexpr std::size_t kParts = 3, kEach = classes / kParts;
  std::vector<OwnedArray> parts;
  const auto of_rows = [&] { return OwnedArray(arithmetic, rows, Precision::fp32); };
  OwnedArray maxima = of_rows(), sums = of_rows(), label_logits = of_rows();
  const OwnedArray here = of_rows(), label_here = of_rows();
  for (std::size_t p = 0; p < kParts; ++p) {
    std::vector<float> columns;
    for (std::size_t r = 0; r < rows; ++r)
      columns.insert(columns.end(), logits.data() + r * classes + p * kEach,
                     logits.data() + r * classes + (p + 1) * kEach);
    parts.push_back(to_device(arithmetic, columns));
    arithmetic.row_maxima(0, parts[p], here);
    if (p == 0)
      arithmetic.copy(0, here, maxima);
    else
      arithmetic.largest(0, here, maxima);
  }
  for (std::size_t p = 0; p < kParts; ++p) {
    arithmetic.exponential_sums(0, parts[p], {right, p * kEach}, maxima, here, label_here);
    arithmetic.add(0, here, sums);
    arithmetic.add(0, label_here, label_logits);
  }
  for (std::size_t p = 0; p < kParts; ++p) {
    const OwnedArray part_slope(arithmetic, rows * kEach, gradient_precision);
    arithmetic.split_cross_entropy(0, parts[p], {right, p * kEach}, {maxima, sums, label_logits}, scale,
                                   losses, part_slope);
    check_close(to_host(arithmetic, losses), expected_losses, 1e-4);
    std::vector<double> expected;
    for (std::size_t r = 0; r < rows; ++r)
      expected.insert(expected.end(), expected_slope.data() + r * classes + p * kEach,
                      expected_slope.data() + r * classes + (p + 1) * kEach);
    check_close(to_host(arithmetic, part_slope), expected, 4 * scale * unit(gradient_precision));
  }
}

// Checks two steps from w = 1 with gradients 0.5 and -0.25, computed by hand. Adam follows algorithm 1 of
// Kingma and Ba: the first step is rate g/(|g| + epsilon) for any g; for the second m = 0.9 0.05 - 0.1 0.25 =
// 0.02 and v = 0.999 0.00025 + 0.001 0.0625 = 0.00031225 give 0.1 (0.02 / 0.19) / sqrt(0.00031225 / 0.001999)
// = 0.0266337.
inline void check_optimizers(Arithmetic& arithmetic, Precision precision) {
  struct Case {
    Optimizer kind;
    double first, second;
  };
  for (const Case& c : {Case{Optimizer::sgd, 0.95, 0.975}, Case{Optimizer::momentum, 0.95, 0.93},
                        Case{Optimizer::adam, 0.9, 0.873366296}}) {
    CAPTURE(static_cast<int>(c.kind));
    OptimizerSettings settings = default_settings(c.kind);
    settings.learning_rate = 0.1f;
    settings.epsilon = 1e-8f;
    const std::size_t elements = 3000;
    ShardOptimizer shard(arithmetic, 0, std::vector<float>(elements, 1.0f), settings, precision);
    shard.apply(0, to_device(arithmetic, std::vector<float>(elements, 0.5f), precision));
    check_close(to_host(arithmetic, shard.weights()), std::vector<double>(elements, c.first),
                2 * unit(precision));
    shard.apply(0, to_device(arithmetic, std::vector<float>(elements, -0.25f), precision));
    check_close(to_host(arithmetic, shard.weights()), std::vector<double>(elements, c.second),
                2 * unit(precision));
    CHECK(shard.steps() == 2);
  }
}

// Computes the mean loss of `samples` for an entire perceptron by plain loops in double precision.
inline double reference_loss(const MultiLayerPerceptron& shape, const std::vector<float>& flat,
                             std::size_t moved, double by, const SampleData& data,
                             const std::vector<std::uint64_t>& samples) {
  double total = 0;
  for (const std::uint64_t sample : samples) {
    std::vector<float> features(static_cast<std::size_t>(shape.widths.front()));
    data.features(sample, features.data());
    std::vector<double> x(features.begin(), features.end());
    std::size_t at = 0;
    const auto next = [&] {
      const double weight = flat[at] + (at == moved ? by : 0);
      ++at;
      return weight;
    };
    for (std::size_t layer = 1; layer < shape.widths.size(); ++layer) {
      std::vector<double> y(static_cast<std::size_t>(shape.widths[layer]), 0.0);
      for (const double input : x)
        for (double& output : y) output += input * next();
      for (double& output : y) {
        output += next();
        if (layer + 1 < shape.widths.size()) output = smooth_relu(output);
      }
      x = y;
    }
    double sum = 0;
    for (const double logit : x) sum += std::exp(logit);
    total += std::log(sum) - x[static_cast<std::size_t>(data.label(sample))];
  }
  return total / static_cast<double>(samples.size());
}

inline void check_gradients(Arithmetic& arithmetic) {
  const MultiLayerPerceptron shape{{5, 8, 6, 4}};
  const std::vector<std::uint64_t> samples = {3, 1, 4, 159, 26, 535};
  PerceptronOptions options;
  options.held = {{0, 2}};
  options.micro_batch = 3;
  options.microbatches = 2;
  options.batch_samples = 6;
  options.optimizer = default_settings(Optimizer::sgd);
  Perceptron perceptron(arithmetic, shape, options);
  const std::vector<float> weights = to_host(arithmetic, perceptron.weights({0, 2}));
  const SampleData data(options.seed, 5, 4);
  std::vector<float> gradient;
  for (const long step : {0L, 1L}) {  // the second step's gradient replaces the first one's
    perceptron.set_batch(0, step, samples);
    for (const int microbatch : {0, 1}) perceptron.forward(0, step, microbatch, {0, 2});
    for (const int microbatch : {1, 0}) perceptron.backward(0, step, microbatch, {0, 2});
    gradient = to_host(arithmetic, perceptron.gradients({0, 2}));
  }
  CHECK(perceptron.take_loss(0, 1) ==
        Approx(6 * reference_loss(shape, weights, weights.size(), 0, data, samples)).epsilon(1e-6));
  const double move = 1e-5;
  std::vector<double> expected;
  for (std::size_t i = 0; i < weights.size(); ++i)
    expected.push_back((reference_loss(shape, weights, i, move, data, samples) -
                        reference_loss(shape, weights, i, -move, data, samples)) /
                       (2 * move));
  check_close(gradient, expected, 2e-6);
  CHECK(std::accumulate(expected.begin(), expected.end(), 0.0, [](double s, double g) { return s + g * g; }) >
        0.1);
}

// How to train on 32 samples per step: model parts of consecutive layers, each held by one rank.
struct Cut {
  std::string name;
  std::vector<int> rank_of_part;  // the rank that holds part p of the model
  std::vector<int> first_layer;   // by part
  long micro_batch = 32;
  bool one_by_one = false;  // backward and update layer by layer
  int warmup = -1;          // forward passes before the first backward; -1: all
};

inline std::vector<double> train(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, const Cut& cut,
                                 const OptimizerSettings& optimizer, int steps,
                                 Precision precision = Precision::fp32) {
  constexpr long kSamples = 32;
  const int layers = static_cast<int>(shape.widths.size()) - 1,
            parts = static_cast<int>(cut.rank_of_part.size());
  const auto part = [&](int p) {
    return LayerRange{cut.first_layer[p], p + 1 < parts ? cut.first_layer[p + 1] - 1 : layers - 1};
  };
  PerceptronOptions options;
  options.micro_batch = cut.micro_batch;
  options.microbatches = static_cast<int>(kSamples / cut.micro_batch);
  options.batch_samples = kSamples;
  options.optimizer = optimizer;
  options.precision = options.gradient_precision = precision;
  options.seed = 11;
  std::vector<Perceptron> ranks;
  for (int rank = 0; rank <= *std::max_element(cut.rank_of_part.begin(), cut.rank_of_part.end()); ++rank) {
    options.held.clear();
    for (int p = 0; p < parts; ++p)
      if (cut.rank_of_part[p] == rank) options.held.push_back(part(p));
    ranks.emplace_back(arithmetic, shape, options);
  }
  const auto of = [&](int p) -> Perceptron& { return ranks[static_cast<std::size_t>(cut.rank_of_part[p])]; };
  const auto forward = [&](long step, int m) {
    for (int p = 0; p < parts; ++p) {
      const LayerRange range = part(p);
      if (p > 0 && &of(p) != &of(p - 1))
        arithmetic.copy(0, of(p - 1).activation(m, range.first - 1), of(p).activation(m, range.first - 1));
      of(p).forward(0, step, m, range);
    }
  };
  const auto backward = [&](long step, int m) {
    for (int p = parts - 1; p >= 0; --p) {
      const LayerRange range = part(p);
      if (p + 1 < parts && &of(p) != &of(p + 1))
        arithmetic.copy(0, of(p + 1).activation_gradient(m, range.last),
                        of(p).activation_gradient(m, range.last));
      if (!cut.one_by_one) of(p).backward(0, step, m, range);
      for (int layer = range.last; cut.one_by_one && layer >= range.first; --layer)
        of(p).backward(0, step, m, {layer, layer});
    }
  };
  std::vector<double> losses;
  for (long step = 0; step < steps; ++step) {
    std::vector<std::uint64_t> samples(kSamples);
    std::iota(samples.begin(), samples.end(), static_cast<std::uint64_t>(step * kSamples));
    for (Perceptron& rank : ranks) rank.set_batch(0, step, samples);
    const int ahead = cut.warmup < 0 ? options.microbatches : cut.warmup;
    for (int m = 0; m < options.microbatches + ahead; ++m) {
      if (m < options.microbatches) forward(step, m);
      if (m >= ahead) backward(step, m - ahead);
    }
    for (int p = 0; p < parts; ++p)
      for (int layer = part(p).first; layer <= part(p).last; ++layer) {
        if (cut.one_by_one) of(p).update(0, {layer, layer});
        if (!cut.one_by_one && layer == part(p).last) of(p).update(0, part(p));
      }
    losses.push_back(of(parts - 1).take_loss(0, step));
  }
  return losses;
}

inline MultiLayerPerceptron preset() {
  return std::get<MultiLayerPerceptron>(model_preset("mlp").shape);
}

// The requirement is 1e-5 over 50 steps; this checks it with a margin of ten.
inline void check_preset_cuts(Arithmetic& arithmetic) {
  for (const Optimizer kind : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    const OptimizerSettings optimizer = default_settings(kind);
    const std::vector<double> expected = train(arithmetic, preset(), {"whole", {0}, {0}}, optimizer, 50);
    const std::vector<double> found =
        train(arithmetic, preset(), {"two stages", {0, 1}, {0, 1}, 1, true, 2}, optimizer, 50);
    for (std::size_t step = 0; step < found.size(); ++step) {
      INFO(kOptimizerNames[static_cast<std::size_t>(kind)] << ", step " << step);
      CHECK(found[step] == Approx(expected[step]).epsilon(1e-6));
    }
  }
}

inline void check_cuts(Arithmetic& arithmetic) {
  const MultiLayerPerceptron shape{{20, 32, 24, 16, 12, 5}};
  const Cut whole{"whole", {0}, {0}};
  const Cut cuts[] = {
      {"micro-batches of 8", {0}, {0}, 8},
      {"micro-batches of 1, 1F1B", {0}, {0}, 1, false, 1},
      {"layer by layer", {0}, {0}, 16, true},
      {"two stages", {0, 1}, {0, 3}, 32},
      {"three stages, micro-batches of 4, two ahead", {0, 1, 2}, {0, 2, 4}, 4, false, 2},
      {"interleaved: four parts on two ranks", {0, 1, 0, 1}, {0, 1, 2, 4}, 8, false, 3},
      {"parts that touch on one rank", {0, 0, 1}, {0, 1, 3}, 8, true},
  };
  for (const Optimizer kind : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    const std::vector<double> expected = train(arithmetic, shape, whole, default_settings(kind), 20);
    CHECK(expected.back() < expected.front());
    for (const Cut& cut : cuts) {
      const std::vector<double> found = train(arithmetic, shape, cut, default_settings(kind), 20);
      for (std::size_t step = 0; step < found.size(); ++step) {
        INFO(cut.name << ", " << kOptimizerNames[static_cast<std::size_t>(kind)] << ", step " << step);
        CHECK(found[step] == Approx(expected[step]).epsilon(1e-6));
      }
    }
  }
}

// Trains two replicas on half of the samples each, with servers that each add the gradients of one share: the
// losses equal those of one replica, and the weights of both replicas are identical bit for bit.
inline void check_replicas(Arithmetic& arithmetic) {
  const MultiLayerPerceptron shape{{20, 32, 24, 5}};
  const LayerRange all{0, 2};
  const OptimizerSettings optimizer = default_settings(Optimizer::adam);
  const std::vector<double> expected = train(arithmetic, shape, {"whole", {0}, {0}}, optimizer, 20);
  PerceptronOptions options;
  options.held = {all};
  options.micro_batch = 8;
  options.microbatches = 2;
  options.batch_samples = 32;
  options.seed = 11;
  std::vector<Perceptron> replicas;
  std::vector<ShardOptimizer> servers;
  const int shares = 3;
  const std::vector<float> initial = initial_weights(shape, options.seed, all, {});
  for (int i = 0; i < 2; ++i) replicas.emplace_back(arithmetic, shape, options);
  for (int i = 0; i < shares; ++i)
    servers.emplace_back(
        arithmetic, 0,
        std::vector<float>(initial.begin() + static_cast<long>(share_begin(initial.size(), i, shares)),
                           initial.begin() + static_cast<long>(share_begin(initial.size(), i + 1, shares))),
        optimizer);
  for (long step = 0; step < 20; ++step) {
    double loss = 0;
    for (std::size_t replica = 0; replica < 2; ++replica) {
      std::vector<std::uint64_t> samples(16);
      std::iota(samples.begin(), samples.end(), static_cast<std::uint64_t>(step) * 32 + 16 * replica);
      replicas[replica].set_batch(0, step, samples);
      for (const int m : {0, 1}) {
        replicas[replica].forward(0, step, m, all);
        replicas[replica].backward(0, step, m, all);
      }
      loss += replicas[replica].take_loss(0, step);
    }
    CHECK(loss == Approx(expected[static_cast<std::size_t>(step)]).epsilon(1e-6));
    for (int i = 0; i < shares; ++i) {
      const Array sum = share(replicas[0].gradients(all), i, shares);
      arithmetic.add(0, share(replicas[1].gradients(all), i, shares), sum);
      servers[static_cast<std::size_t>(i)].apply(0, sum);
      for (const Perceptron& replica : replicas)
        arithmetic.copy(0, servers[static_cast<std::size_t>(i)].weights(),
                        share(replica.weights(all), i, shares));
    }
  }
  CHECK(to_host(arithmetic, replicas[0].weights(all)) == to_host(arithmetic, replicas[1].weights(all)));
}

// Compares the mean loss of the last ten of 50 steps with ln 10, the loss of guessing.
inline void check_learning(Arithmetic& arithmetic, Precision precision) {
  for (const Optimizer kind : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    const std::vector<double> losses =
        train(arithmetic, preset(), {"whole", {0}, {0}}, default_settings(kind), 50, precision);
    const double last_ten = std::accumulate(losses.end() - 10, losses.end(), 0.0) / (10 * 32);
    CAPTURE(static_cast<int>(kind), losses.front() / 32);
    CHECK(last_ten < 0.6 * std::log(10.0));
  }
}

// Checks the device's memory and sample time, and that the timed seconds grow with the number of launches.
inline void check_times(Arithmetic& arithmetic) {
  const DeviceTraits traits = arithmetic.traits();
  CHECK(traits.memory_bytes > 1e8);
  CHECK(traits.sample_s > 0);
  const auto time_s = [&](long kernels) {
    const Timed timed = arithmetic.time(0, [&] {
      for (long i = 0; i < kernels; ++i) arithmetic.nothing(0);
    });
    return timed.seconds;
  };
  time_s(1);
  const double few_s = time_s(2), many_s = time_s(traits.sample_operations);
  CHECK(few_s > 0);
  CHECK(many_s > few_s);
  CHECK(many_s < 10);
}

// Checks that replays of products, convolutions and memory traffic do the FLOPs and bytes of their kernels.
inline void check_replay(Arithmetic& arithmetic, Precision precision) {
  const auto kernel = [](Kernel::Kind kind, double m, double n, double k, double batch, double count) {
    Kernel result;
    result.kind = kind;
    result.m = m, result.n = n, result.k = k;
    result.batch = batch, result.count = count;
    return result;
  };
  using Kind = Kernel::Kind;
  for (const Kernel& product :
       {kernel(Kind::gemm, 64, 48, 96, 1, 1), kernel(Kind::attention, 33, 17, 64, 12, 3),
        kernel(Kind::convolution, 196, 64, 576, 1, 2), kernel(Kind::gemm, 1, 1000, 1, 1, 5)}) {
    CAPTURE(product.m, product.n, product.k, product.batch, product.count);
    const Replayed done = arithmetic.replay(0, product, precision);
    CHECK(done.flops == product.flops());
    CHECK(done.bytes >= 2 * product.batch * product.count *
                            (product.m * product.k + product.k * product.n + product.m * product.n));
  }
  Kernel memory;
  memory.bytes = 1e6;
  memory.count = 3;
  const Replayed moved = arithmetic.replay(0, memory, precision);
  CHECK(moved.flops == 0);
  CHECK(moved.bytes == 3e6);
  arithmetic.settle(0);
}

}  // namespace rehearse::training_cases
