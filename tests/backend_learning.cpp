// Tests gradient synchronization that does not learn like a single rank. Each method is compared with a
// reference that follows the published formulas in plain loops over all ranks, one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "backend/host/host_arithmetic.hpp"
#include "backend/runtime/combine_numbers.hpp"
#include "backend/training/perceptron.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using Gradients = std::vector<std::vector<float>>;  // by rank

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

// n replicas of the entire network in one process, each with its share of the batch.
class Replicas {
public:
  Replicas(const Scenario& scenario, bool alone) : n_(static_cast<std::size_t>(scenario.strategy.data)) {
    const auto& shape = std::get<MultiLayerPerceptron>(scenario.model.shape);
    layers_ = {0, static_cast<int>(shape.widths.size()) - 2};
    options_.held = {layers_};
    options_.micro_batch = std::lround(scenario.training.micro_batch);
    options_.microbatches = scenario.microbatches;
    options_.batch_samples = scenario.training.global_batch / (alone ? scenario.strategy.data : 1);
    options_.optimizer = default_settings(scenario.training.optimizer);
    if (scenario.run.learning_rate > 0)
      options_.optimizer.learning_rate = static_cast<float>(scenario.run.learning_rate);
    options_.seed = scenario.run.seed;
    global_batch_ = std::lround(scenario.training.global_batch);
    for (std::size_t r = 0; r < n_; ++r)
      nets_.push_back(std::make_unique<Perceptron>(host_, shape, options_));
  }

  // Runs the forward and backward passes of a step and returns the mean loss of all samples.
  double pass(long step) {
    double loss = 0;
    for (std::size_t r = 0; r < n_; ++r) {
      const auto own = static_cast<std::size_t>(global_batch_) / n_;
      std::vector<std::uint64_t> samples(own);
      std::iota(samples.begin(), samples.end(), static_cast<std::uint64_t>(step * global_batch_) + r * own);
      nets_[r]->set_batch(0, step, samples);
      for (int k = 0; k < options_.microbatches; ++k) {
        nets_[r]->forward(0, step, k, layers_);
        nets_[r]->backward(0, step, k, layers_);
      }
      loss += nets_[r]->take_loss(0, step);
    }
    return loss / static_cast<double>(global_batch_);
  }
  void update() {
    for (const auto& net : nets_) net->update(0, layers_);
  }

  std::size_t count() const { return n_; }
  LayerRange layers() const { return layers_; }
  std::span<float> gradients(std::size_t rank, LayerRange layers) {
    return view(nets_[rank]->gradients(layers));
  }
  std::span<float> weights(std::size_t rank) { return view(nets_[rank]->weights(layers_)); }

private:
  static std::span<float> view(const Array& array) {
    return {reinterpret_cast<float*>(array.data), array.elements};
  }
  HostArithmetic host_;
  std::size_t n_;
  LayerRange layers_;
  PerceptronOptions options_;
  long global_batch_ = 0;
  std::vector<std::unique_ptr<Perceptron>> nets_;
};

// Runs the program and returns its losses; checks that ranks with the same layers stayed identical.
std::vector<double> trained(const std::string& settings, int ranks_under_mpi) {
  const Scratch scratch;
  std::string arguments = "run --format json --check-replicas " + scratch.write("deep.toml", kDeepPerceptron);
  for (const std::string& word : words(settings)) arguments += " --set '" + word + "'";
  const Outcome outcome =
      run_program("rehearse-run", arguments, ranks_under_mpi > 0 ? mpirun(ranks_under_mpi) : "");
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const nlohmann::json measured = nlohmann::json::parse(outcome.out)["measured"];
  INFO(measured.dump());
  CHECK(measured["gradients_identical"].get<bool>());
  return measured["losses"].get<std::vector<double>>();
}

void check_losses(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t step = 0; step < found.size(); ++step)
    worst = std::max(worst, std::abs(found[step] - expected[step]) / expected[step]);
  CAPTURE(worst, found.front(), found.back());
  CHECK(worst < tolerance);
  const auto mean = [&](std::size_t first, std::size_t end) {
    return std::accumulate(found.begin() + static_cast<std::ptrdiff_t>(first),
                           found.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
           static_cast<double>(end - first);
  };
  CHECK(mean(found.size() - 5, found.size()) < 0.9 * mean(0, 5));  // it learns
}

// ----- References for compressed gradients: take a bucket's gradients of all ranks, return what every rank
// gets.

using Sync = std::function<std::vector<float>(const Gradients&)>;

// PyTorch's fp16_compress_hook: cast, sum in fp16, cast. With two ranks there is a single sum, in either
// order.
Sync fp16_of_two() {
  return [](const Gradients& g) {
    std::vector<float> sum(g[0].size());
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = float_from_half(half_from_float(float_from_half(half_from_float(g[0][i])) +
                                               float_from_half(half_from_float(g[1][i]))));
    return sum;
  };
}

// Aji and Heafield 2017, algorithm 1; Lin et al. 2018, section 3.1: sends the largest elements of gradient
// plus residual; the others stay in the residual.
Sync top_k(double density) {
  auto residuals = std::make_shared<Gradients>();
  return [=](const Gradients& g) {
    residuals->resize(g.size(), std::vector<float>(g[0].size(), 0.0f));
    std::vector<float> sum(g[0].size(), 0.0f);
    const auto k = static_cast<std::size_t>(std::ceil(density * static_cast<double>(sum.size())));
    for (std::size_t r = 0; r < g.size(); ++r) {
      std::vector<float>& own = (*residuals)[r];
      for (std::size_t i = 0; i < own.size(); ++i) own[i] += g[r][i];
      std::vector<std::size_t> order(own.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return std::abs(own[a]) > std::abs(own[b]); });
      for (std::size_t i = 0; i < k; ++i) {
        sum[order[i]] += own[order[i]];
        own[order[i]] = 0;
      }
    }
    return sum;
  };
}

// Seide et al. 2014, equations 1 to 3 (the quantization error is added to the next gradient), in the two
// rounds of Tang et al. 2021, section 4: signs with one scale from each rank, and then of the sum of each
// share. The errors are stored in fp32, because a sum that is 0 except for rounding has a sign, too.
Sync one_bit() {
  struct State {
    std::vector<std::vector<float>> of_rank;
    std::vector<float> of_sum;
  };
  auto state = std::make_shared<State>();
  return [=](const Gradients& g) {
    const std::size_t n = g.size(), elements = g[0].size();
    const std::size_t share = (elements + 8 * n - 1) / (8 * n) * 8;  // a whole number of sign bytes
    state->of_rank.resize(n, std::vector<float>(elements, 0.0f));
    state->of_sum.resize(elements, 0.0f);
    const auto scale = [](const std::vector<float>& x, std::size_t begin, std::size_t end) {
      double squares = 0;
      for (std::size_t i = begin; i < end; ++i) squares += std::pow(static_cast<double>(x[i]), 2);
      return static_cast<float>(std::sqrt(squares / static_cast<double>(end - begin)));
    };
    std::vector<float> sum(elements, 0.0f);
    for (std::size_t r = 0; r < n; ++r) {
      std::vector<float>& own = state->of_rank[r];
      for (std::size_t i = 0; i < elements; ++i) own[i] += g[r][i];
      const float s = scale(own, 0, elements);
      for (std::size_t i = 0; i < elements; ++i) {
        const float said = own[i] < 0 ? -s : s;
        sum[i] += said;
        own[i] -= said;
      }
    }
    std::vector<float> out(elements);
    for (std::size_t begin = 0; begin < elements; begin += share) {
      const std::size_t end = std::min(elements, begin + share);
      for (std::size_t i = begin; i < end; ++i) state->of_sum[i] += sum[i];
      const float s = scale(state->of_sum, begin, end);
      for (std::size_t i = begin; i < end; ++i) {
        const float said = state->of_sum[i] < 0 ? -s : s;
        out[i] = said;
        state->of_sum[i] -= said;
      }
    }
    return out;
  };
}

// Vogels et al. 2019, algorithms 1 and 2, in double precision, for each matrix that is larger than its two
// factors; biases and other matrices are summed uncompressed.
Sync power_sgd(const std::vector<double>& widths, LayerRange layers, long rank, std::uint64_t seed) {
  struct State {
    std::map<int, std::vector<double>> q;                              // by layer: [columns, rank]
    std::map<std::pair<int, std::size_t>, std::vector<double>> error;  // by layer and worker: [rows, columns]
  };
  auto state = std::make_shared<State>();
  return [=](const Gradients& g) {
    const std::size_t n = g.size();
    std::vector<float> out(g[0].size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      double sum = 0;
      for (const auto& own : g) sum += static_cast<double>(own[i]);
      out[i] = static_cast<float>(sum);
    }
    // The first factors are drawn for all matrices of the bucket in sequence.
    std::vector<float> drawn(100'000);
    standard_normal(seed, RandomUse::factors, static_cast<std::uint64_t>(layers.first), drawn.data(),
                    100'000);
    std::size_t at = 0, first_q = 0;
    for (int layer = layers.first; layer <= layers.last; ++layer) {
      const long columns = std::lround(widths[layer]), rows = std::lround(widths[layer + 1]);
      const bool compressed = (rows + columns) * rank < rows * columns;
      const std::size_t begin = at;
      at += static_cast<std::size_t>((columns + 1) * rows);
      if (!compressed) continue;
      std::vector<double>& q = state->q[layer];
      if (q.empty()) q.assign(drawn.begin() + first_q, drawn.begin() + first_q + columns * rank);
      first_q += static_cast<std::size_t>(columns * rank);
      // Returns M of worker w times the number of workers: its gradient plus its residual error.
      const auto m = [&](std::size_t w, long r, long c) -> double {
        const std::vector<double>& error = state->error[{layer, w}];
        const double g_rc = static_cast<double>(g[w][begin + static_cast<std::size_t>(c * rows + r)]);
        return static_cast<double>(n) * g_rc + (error.empty() ? 0 : error[r * columns + c]);
      };
      std::vector<double> p(rows * rank, 0.0), next_q(columns * rank, 0.0);
      std::vector<std::vector<double>> all(n);
      for (std::size_t w = 0; w < n; ++w)
        for (long r = 0; r < rows; ++r)
          for (long c = 0; c < columns; ++c) {
            all[w].push_back(m(w, r, c));
            for (long k = 0; k < rank; ++k)
              p[r * rank + k] += all[w].back() * q[c * rank + k] / static_cast<double>(n);
          }
      for (long k = 0; k < rank; ++k) {
        for (long j = 0; j < k; ++j) {
          double along = 0;
          for (long r = 0; r < rows; ++r) along += p[r * rank + j] * p[r * rank + k];
          for (long r = 0; r < rows; ++r) p[r * rank + k] -= along * p[r * rank + j];
        }
        double squares = 0;
        for (long r = 0; r < rows; ++r) squares += p[r * rank + k] * p[r * rank + k];
        for (long r = 0; r < rows; ++r) p[r * rank + k] /= std::sqrt(squares);
      }
      for (std::size_t w = 0; w < n; ++w)
        for (long r = 0; r < rows; ++r)
          for (long c = 0; c < columns; ++c)
            for (long k = 0; k < rank; ++k)
              next_q[c * rank + k] += all[w][r * columns + c] * p[r * rank + k] / static_cast<double>(n);
      q = next_q;
      for (long r = 0; r < rows; ++r)
        for (long c = 0; c < columns; ++c) {
          double sum = 0;
          for (long k = 0; k < rank; ++k) sum += p[r * rank + k] * q[c * rank + k];
          out[begin + static_cast<std::size_t>(c * rows + r)] = static_cast<float>(sum);
          for (std::size_t w = 0; w < n; ++w) {
            std::vector<double>& error = state->error[{layer, w}];
            error.resize(rows * columns, 0.0);
            error[r * columns + c] = all[w][r * columns + c] - sum;
          }
        }
    }
    return out;
  };
}

std::vector<double> reference_of_compressed(const Scenario& scenario,
                                            const std::function<Sync(LayerRange)>& sync_of_bucket) {
  const Plan plan = write_schedule(scenario);
  std::vector<LayerRange> buckets;
  for (const Tensor& tensor : plan.schedule->programs.front().tensors)
    if (tensor.kind == TensorKind::gradient && tensor.name.find("gradients") == 0)
      buckets.push_back({tensor.first_layer, tensor.last_layer});
  std::vector<Sync> syncs;
  for (const LayerRange& bucket : buckets) syncs.push_back(sync_of_bucket(bucket));
  Replicas replicas(scenario, false);
  std::vector<double> losses;
  for (long step = 0; step < scenario.run.steps; ++step) {
    losses.push_back(replicas.pass(step));
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      Gradients all;
      for (std::size_t r = 0; r < replicas.count(); ++r) {
        const std::span<float> own = replicas.gradients(r, buckets[b]);
        all.emplace_back(own.begin(), own.end());
      }
      const std::vector<float> out = syncs[b](all);
      for (std::size_t r = 0; r < replicas.count(); ++r)
        std::copy(out.begin(), out.end(), replicas.gradients(r, buckets[b]).begin());
    }
    replicas.update();
  }
  return losses;
}

struct CompressedCase {
  const char* name;
  const char* settings;
  double tolerance;
};

void check_compressed(const std::string& settings, double tolerance, bool under_mpi) {
  const Scenario scenario = read_scenario_text(kDeepPerceptron, "deep.toml", words(settings));
  const auto& widths = std::get<MultiLayerPerceptron>(scenario.model.shape).widths;
  const CompressionChoice& choice = scenario.strategy.compression;
  const auto sync = [&](LayerRange bucket) -> Sync {
    if (choice.kind == Compression::fp16) return fp16_of_two();
    if (choice.kind == Compression::top_k) return top_k(choice.density);
    if (choice.kind == Compression::one_bit) return one_bit();
    return power_sgd(widths, bucket, std::lround(choice.rank), scenario.run.seed);
  };
  check_losses(trained(settings, under_mpi ? scenario.strategy.data : 0),
               reference_of_compressed(scenario, sync), tolerance);
}

const CompressedCase kCompressed[] = {
    {"fp16", "cluster.nodes=2 training.optimizer=\"momentum\" strategy.compression=\"fp16\"", 1e-5},
    {"fp16 in buckets",
     "cluster.nodes=2 training.optimizer=\"adam\" strategy.compression=\"fp16\" strategy.bucket_mb=0.02",
     1e-5},
    {"top-k",
     "cluster.nodes=4 training.optimizer=\"sgd\" strategy.compression=\"top-k\" strategy.top_k_density=0.05",
     1e-5},
    {"top-k of 3 ranks in buckets",
     "cluster.nodes=3 training.global_batch=60 training.optimizer=\"momentum\" "
     "strategy.compression=\"top-k\" "
     "strategy.bucket_mb=0.02",
     1e-5},
    {"one bit", "cluster.nodes=4 training.optimizer=\"sgd\" strategy.compression=\"one-bit\"", 1e-5},
    {"one bit of 3 ranks in buckets",
     "cluster.nodes=3 training.global_batch=60 training.optimizer=\"momentum\" "
     "strategy.compression=\"one-bit\" "
     "strategy.bucket_mb=0.02",
     1e-5},
    // The factors continue from those of the previous step and carry rounding errors along: losses of the
    // same formulas in double precision differ by 1e-8 within 20 steps, by 2e-6 within 30 and by 3e-4 within
    // 50.
    {"PowerSGD", "cluster.nodes=4 training.optimizer=\"sgd\" strategy.compression=\"powersgd\" run.steps=30",
     1e-5},
    {"PowerSGD of rank 2 in buckets, 3 ranks",
     "cluster.nodes=3 training.global_batch=60 training.optimizer=\"sgd\" "
     "strategy.compression=\"powersgd\" strategy.powersgd_rank=2 strategy.bucket_mb=0.02 run.steps=30",
     1e-5},
};

}  // namespace

TEST_CASE("Gradients that are compressed teach what the published formulas say") {
  int number = 0;
  for (const CompressedCase& c : kCompressed) {
    if (rehearse::testing::kSanitized && number++ % 9 != 0) continue;
    CAPTURE(c.name);
    check_compressed(c.settings, c.tolerance, false);
  }
}

TEST_CASE("Under mpirun compressed gradients teach the same", "[release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  for (const CompressedCase& c : kCompressed) {
    // Only cases with buckets, which send several messages per step.
    if (std::string(c.settings).find("bucket_mb") == std::string::npos) continue;
    CAPTURE(c.name);
    check_compressed(c.settings, c.tolerance, true);
  }
}

// More than two ranks: each partial sum is rounded, following the ring.
TEST_CASE(
    "Compressed gradients of pipelines, of tensor ranks and of fusion, and fp16 over other algorithms, are "
    "the same on all "
    "ranks",
    "[release]") {
  for (const char* settings :
       {"cluster.nodes=4 strategy.compression=\"fp16\"",
        "cluster.nodes=8 strategy.compression=\"fp16\" strategy.all_reduce=\"tree\"",
        "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.compression=\"top-k\" "
        "training.optimizer=\"sgd\" strategy.top_k_density=0.05",
        "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.schedule=\"interleaved\" "
        "strategy.virtual_stages=2 strategy.compression=\"powersgd\" training.optimizer=\"sgd\"",
        "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.compression=\"one-bit\" "
        "training.optimizer=\"sgd\"",
        "cluster.nodes=4 strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true "
        "strategy.compression=\"powersgd\" training.optimizer=\"sgd\"",
        "cluster.nodes=4 strategy.fusion_mb=0.02 strategy.cycle_ms=0.2 strategy.compression=\"fp16\"",
        "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.schedule=\"interleaved\" "
        "strategy.virtual_stages=2 strategy.fusion_mb=0.02 strategy.cycle_ms=0.2 "
        "strategy.compression=\"top-k\" training.optimizer=\"sgd\" strategy.top_k_density=0.05"}) {
    CAPTURE(settings);
    const std::vector<double> losses = trained(settings, 0);
    check_losses(losses, losses, 1);  // checks that it learns
  }
}

namespace {

// Compares with n independent trainings whose weights are averaged every `every` steps.
void check_local(const std::string& settings, bool under_mpi) {
  const Scenario scenario = read_scenario_text(kDeepPerceptron, "deep.toml", words(settings));
  const int every = write_schedule(scenario).schedule->optimizer_steps;
  Replicas replicas(scenario, true);
  std::vector<double> expected;
  for (long step = 0; step < scenario.run.steps * every; ++step) {
    expected.push_back(replicas.pass(step));
    replicas.update();
    if ((step + 1) % every != 0) continue;
    for (std::size_t i = 0; i < replicas.weights(0).size(); ++i) {
      double sum = 0;
      for (std::size_t r = 0; r < replicas.count(); ++r) sum += static_cast<double>(replicas.weights(r)[i]);
      for (std::size_t r = 0; r < replicas.count(); ++r)
        replicas.weights(r)[i] = static_cast<float>(sum / static_cast<double>(replicas.count()));
    }
  }
  check_losses(trained(settings, under_mpi ? scenario.strategy.data * scenario.strategy.pipeline : 0),
               expected, 1e-5);
}

const char* const kLocal[] = {
    "cluster.nodes=4 training.optimizer=\"sgd\" strategy.gradients=\"local-sgd\" strategy.local_sgd.every=5 "
    "run.steps=10",
    "cluster.nodes=2 training.optimizer=\"adam\" strategy.gradients=\"local-sgd\" strategy.local_sgd.every=8 "
    "run.steps=6",
    "cluster.nodes=3 training.global_batch=60 training.optimizer=\"momentum\" "
    "strategy.gradients=\"local-sgd\" "
    "strategy.local_sgd.every=1 run.steps=50",
    "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 training.optimizer=\"momentum\" "
    "strategy.gradients=\"local-sgd\" strategy.local_sgd.every=4 run.steps=12",
    "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.schedule=\"interleaved\" "
    "strategy.virtual_stages=2 training.optimizer=\"adam\" strategy.gradients=\"local-sgd\" "
    "strategy.local_sgd.every=3 run.steps=15",
    "cluster.nodes=4 strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true "
    "training.optimizer=\"momentum\" strategy.gradients=\"local-sgd\" strategy.local_sgd.every=4 "
    "run.steps=12"};

}  // namespace

TEST_CASE("Local SGD is n trainings averaged every few steps") {
  for (const char* settings : kLocal) {
    CAPTURE(settings);
    check_local(settings, false);
  }
}

TEST_CASE("Under mpirun local SGD is the same") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  check_local(kLocal[0], true);
  check_local(kLocal[3], true);
}

namespace {

// PipeDream-2BW, section 3.1: W(t + 1) = W(t) - rate x gradient(W(t - 1)). Any optimizer applies in step t
// the sum over all ranks of the gradients of step t - 1, and zeros in the first step.
void check_delayed(const std::string& settings, bool under_mpi) {
  const Scenario scenario = read_scenario_text(kDeepPerceptron, "deep.toml", words(settings));
  Replicas replicas(scenario, false);
  std::vector<float> delayed(replicas.weights(0).size(), 0.0f);
  std::vector<double> expected;
  for (long step = 0; step < scenario.run.steps; ++step) {
    expected.push_back(replicas.pass(step));
    std::vector<float> sum(delayed.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double all = 0;
      for (std::size_t r = 0; r < replicas.count(); ++r)
        all += static_cast<double>(replicas.gradients(r, replicas.layers())[i]);
      sum[i] = static_cast<float>(all);
    }
    for (std::size_t r = 0; r < replicas.count(); ++r)
      std::copy(delayed.begin(), delayed.end(), replicas.gradients(r, replicas.layers()).begin());
    replicas.update();
    delayed = std::move(sum);
  }
  check_losses(trained(settings, under_mpi ? scenario.strategy.data * scenario.strategy.pipeline : 0),
               expected, 1e-5);
}

const char* const kDelayed[] = {
    "cluster.nodes=4 training.optimizer=\"sgd\" strategy.gradients=\"delayed-all-reduce\" run.steps=40",
    "cluster.nodes=2 training.optimizer=\"adam\" strategy.gradients=\"delayed-all-reduce\" run.steps=40",
    "cluster.nodes=3 training.global_batch=60 training.optimizer=\"momentum\" run.steps=40 "
    "strategy.gradients=\"delayed-all-reduce\" strategy.overlap=false",
    "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 training.optimizer=\"adam\" run.steps=40 "
    "strategy.gradients=\"delayed-all-reduce\" strategy.all_reduce=\"halving-doubling\"",
    "cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.schedule=\"interleaved\" "
    "strategy.virtual_stages=2 training.optimizer=\"sgd\" strategy.gradients=\"delayed-all-reduce\" "
    "run.steps=40",
    "cluster.nodes=4 strategy.data=2 strategy.tensor=2 strategy.sequence_parallel=true "
    "training.optimizer=\"momentum\" strategy.gradients=\"delayed-all-reduce\" run.steps=40"};

}  // namespace

TEST_CASE("Gradients that are delayed by a step teach what the formula of the delayed update says") {
  for (const char* settings : kDelayed) {
    CAPTURE(settings);
    check_delayed(settings, false);
  }
}

TEST_CASE("Under mpirun delayed gradients teach the same") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  check_delayed(kDelayed[3], true);
}

// IEEE 754-2008, binary16: sign, 5 exponent bits with a bias of 15, 10 fraction bits.
TEST_CASE("Halves are those of the standard, and roundings go to the nearest, ties to even") {
  const auto value = [](unsigned bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31), fraction = static_cast<int>(bits & 1023);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
  };
  for (unsigned bits = 0; bits < 0x7c00; ++bits)
    for (const unsigned sign : {0u, 0x8000u}) {
      const auto half = static_cast<std::uint16_t>(bits | sign);
      if (float_from_half(half) != value(half) || half_from_float(value(half)) != half) FAIL(half);
      if (bits == 0x7bff) continue;
      const float here = value(half), next = value(half + 1u), middle = (here + next) / 2;
      const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? half : half + 1);
      if (half_from_float(middle) != even) FAIL(half);
      if (half_from_float(std::nextafter(middle, here)) != half) FAIL(half);
      if (half_from_float(std::nextafter(middle, next)) != half + 1) FAIL(half);
    }
  CHECK(half_from_float(65519.996f) == 0x7bff);
  CHECK(half_from_float(65520.0f) == 0x7c00);
  CHECK(half_from_float(-1e30f) == 0xfc00);
  CHECK(float_from_half(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(float_from_half(half_from_float(std::nanf("")))));
}

TEST_CASE("Pipelines learn from asynchronous and stale-synchronous servers", "[release]") {
  const Scratch scratch;
  for (const char* mode : {"async", "stale-synchronous"}) {
    CAPTURE(mode);
    const Outcome outcome = run_program(
        "rehearse-run",
        "run --format json " + scratch.write("deep.toml", kDeepPerceptron) +
            " --set training.optimizer='\"sgd\"' --set cluster.nodes=4 --set strategy.data=2 --set "
            "strategy.pipeline=2 --set run.steps=30 --set strategy.gradients='\"parameter-server\"' --set "
            "strategy.parameter_server.mode='\"" +
            mode + "\"'");
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    const auto losses = nlohmann::json::parse(outcome.out)["measured"]["losses"].get<std::vector<double>>();
    REQUIRE(losses.size() >= 20);
    const auto mean = [&](std::size_t first) {
      return std::accumulate(losses.begin() + static_cast<std::ptrdiff_t>(first),
                             losses.begin() + static_cast<std::ptrdiff_t>(first) + 5, 0.0) /
             5;
    };
    CHECK(mean(losses.size() - 5) < 0.9 * mean(0));
  }
}

TEST_CASE("What a scenario keeps off its devices is refused by real ranks") {
  const Scratch scratch;
  const std::string file = scratch.write("offloaded.toml", kDeepPerceptron);
  const Outcome refused = run_program(
      "rehearse-run", "run " + file +
                          " --set cluster.nodes=2 --set strategy.zero_stage=2 --set strategy.offload=cpu"
                          " --set cluster.node.host_link_gb_per_s=10 --set cluster.node.cpu_gb_per_s=10");
  CHECK(refused.status == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("strategy.offload is \"cpu\"; allowed: \"none\"") != std::string::npos);
}

TEST_CASE("What a framework sends in another size than it is stored in is refused by real ranks") {
  const Outcome refused =
      run_program("rehearse-run", std::string("run ") + REHEARSE_TESTS_DIR +
                                      "/../simulator/scenarios/small-gpt.toml --set strategy.context=2 --set "
                                      "strategy.data=1 --set framework.expanded_keys=true");
  CHECK(refused.status == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("framework.expanded_keys is true; allowed: false") != std::string::npos);
}
