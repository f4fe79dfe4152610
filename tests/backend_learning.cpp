// Ways of bringing gradients together that do not learn as one rank alone does: each against a reference that
// goes by the published formulas, in plain loops over all ranks, one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "backend/host/host_arithmetic.hpp"
#include "backend/training/perceptron.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

// n replicas of the whole network, each with its share of the batch, in one process.
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

  // Forward and backward passes of a step; the mean loss of all samples.
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

// What comes out of a run of the program: its losses; ranks with the same layers stayed the same.
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

// n trainings that know nothing of each other, whose weights are averaged every `every` steps.
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
    "strategy.local_sgd.every=3 run.steps=15"};

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
