// Tests sharding axes that are defined only by their tables on a transformer. All ranks of a device mesh run
// in one process, exchange what the walk over the segments prescribes, and must get the losses and gradients
// of a single rank.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/host/host_arithmetic.hpp"
#include "backend/training/transformer_network.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "tests/backend_training_cases.hpp"

using namespace rehearse;
using namespace rehearse::training_cases;

namespace {

using enum SegmentKind;

// Shards the samples: every rank has some of them.
Factor batch(int size) {
  return {"data", size, 1, AxisTable(by(Dim::batch)), false};
}
Factor context(int size) {  // shards tokens; gathers keys and values
  return {"data", size, 1, AxisTable(by(Dim::sequence)), false};
}
// Jacobs et al., "DeepSpeed Ulysses", 2023: inside attention, heads are sharded instead of tokens.
Factor ulysses(int size) {
  AxisTable table(by(Dim::sequence));
  table.rows({attention}, by(Dim::kv_heads));
  return {"data", size, 1, table, false};
}
// The tables in simulator/strategies/axes/tensor.cpp.
std::vector<Factor> tensor(const Scenario& scenario, int degree, bool sequence) {
  Scenario shared = scenario;
  shared.strategy.tensor = degree;
  shared.strategy.sequence_parallel = sequence;
  return factors_of(shared);
}
// Shards norms and residual sums by tokens; all ranks compute everything else in full.
Factor sliced(int size) {
  AxisTable table;
  table.rows({norm, residual}, by(Dim::sequence));
  return {"data", size, 1, table, false};
}

class Ranks {
public:
  Ranks(const Scenario& scenario, std::vector<Factor> factors, Arithmetic& arithmetic)
      : factors_(std::move(factors)) {
    if (factors_.empty()) factors_.push_back({"data", 1, 1, AxisTable(), false});
    PassShape pass = pass_shape(scenario);
    pass.splits = splits_of(factors_);
    model_ = model_layers(scenario.model, pass);
    walk_ = walk(model_, factors_);
    int count = 1;
    for (const Factor& factor : factors_) count *= factor.size;
    for (int rank = 0; rank < count; ++rank) {
      std::vector<int> coordinates(factors_.size());
      int rest = rank;
      for (std::size_t f = factors_.size(); f-- > 0; rest /= factors_[f].size)
        coordinates[f] = rest % factors_[f].size;
      coordinates_.push_back(coordinates);
      NetworkPart part;
      part.held = {layers()};
      part.coordinates = coordinates;
      const Part own = Shards(factors_, coordinates).part(norm, Dim::batch);
      part.summed = own.of;
      networks_.push_back(std::make_unique<TransformerNetwork>(scenario, factors_, part, 1, arithmetic));
      std::vector<std::uint64_t> samples(static_cast<std::size_t>(own.size(4)));
      std::iota(samples.begin(), samples.end(), static_cast<std::uint64_t>(own.first(4)));
      networks_.back()->set_batch(0, 0, samples);
    }
  }

  // Runs a forward and a backward pass and returns the sum of the samples' losses.
  double pass() {
    const int segments = static_cast<int>(walk_.segments.size());
    for (int s = 0; s < segments; ++s) {
      for (const ValueChange& change : walk_.sites[static_cast<std::size_t>(s)].forward)
        exchange(change, false);
      for (const auto& network : networks_) network->forward_segments(0, 0, 0, {s, s + 1});
    }
    for (int s = segments; s-- > 0;) {
      for (const ValueChange& change : walk_.sites[static_cast<std::size_t>(s) + 1].backward)
        exchange(change, true);
      for (const auto& network : networks_) network->backward_segments(0, 0, 0, {s, s + 1});
    }
    for (const PartialGradient& partial : walk_.partial_gradients) {
      unsigned mask = 0;
      for (const int factor : partial.factors) mask |= 1U << factor;
      const SharedSum sum{{partial.layer, partial.layer}, mask};
      for (const std::vector<int>& group : groups(partial.factors)) {
        std::vector<Array> arrays;
        for (const int rank : group) arrays.push_back(at(rank).begin_sum(0, sum));
        CHECK(static_cast<double>(arrays.front().elements) == partial.parameters);
        combine(arrays, false);
        for (const int rank : group) at(rank).end_sum(0, sum);
      }
    }
    double loss = 0;
    for (const auto& network : networks_)
      if (network->tells_loss()) loss += network->take_loss(0, 0);
    return loss;
  }

  LayerRange layers() const { return {0, static_cast<int>(model_.size()) - 1}; }
  int count() const { return static_cast<int>(networks_.size()); }
  TransformerNetwork& at(int rank) const { return *networks_[static_cast<std::size_t>(rank)]; }
  Shards shards(int rank) const { return {factors_, coordinates_[static_cast<std::size_t>(rank)]}; }
  const std::vector<Layer>& model() const { return model_; }
  // Kinds of changes that were executed.
  std::set<Change::Kind> seen;

private:
  // Returns the groups of ranks that differ only in these factors.
  std::vector<std::vector<int>> groups(const std::vector<int>& factors) const {
    std::map<std::vector<int>, std::vector<int>> by_others;
    for (int rank = 0; rank < count(); ++rank) {
      std::vector<int> others = coordinates_[static_cast<std::size_t>(rank)];
      for (const int factor : factors) others[static_cast<std::size_t>(factor)] = -1;
      by_others[others].push_back(rank);
    }
    std::vector<std::vector<int>> all;
    for (const auto& [others, ranks] : by_others) all.push_back(ranks);
    return all;
  }

  static float* numbers(const Array& array) { return reinterpret_cast<float*>(array.data); }
  static void combine(const std::vector<Array>& arrays, bool maximum) {
    for (std::size_t i = 0; i < arrays.front().elements; ++i) {
      float all = numbers(arrays.front())[i];
      for (std::size_t m = 1; m < arrays.size(); ++m)
        all = maximum ? std::max(all, numbers(arrays[m])[i]) : all + numbers(arrays[m])[i];
      for (const Array& array : arrays) numbers(array)[i] = all;
    }
  }

  void exchange(const ValueChange& change, bool of_gradient) {
    seen.insert(change.change.kind);
    for (const std::vector<int>& group : groups(change.change.factors)) {
      std::vector<std::vector<int>> members;
      for (const int rank : group) members.push_back(coordinates_[static_cast<std::size_t>(rank)]);
      const std::size_t n = group.size();
      std::vector<Array> arrays;
      const auto transfer = [&](std::size_t m) {
        return ValueTransfer{change.layer, change.value, 0,        of_gradient,        {},
                             change.route, change.step,  &members, static_cast<int>(m)};
      };
      for (std::size_t m = 0; m < n; ++m) arrays.push_back(at(group[m]).begin_transfer(0, transfer(m)));
      const std::size_t elements = arrays.front().elements;
      const auto copy = [&](std::size_t from, std::size_t to, std::size_t first, std::size_t size) {
        std::copy_n(numbers(arrays[from]) + first, size, numbers(arrays[to]) + first);
      };
      switch (change.change.kind) {
        case Change::Kind::all_reduce:
        case Change::Kind::reduce_scatter:
          combine(arrays, change.maker == maximum);
          break;
        case Change::Kind::all_gather:
          for (std::size_t from = 0; from < n; ++from)
            for (std::size_t to = 0; to < n; ++to)
              copy(from, to, from * (elements / n), from == to ? 0 : elements / n);
          break;
        default:
          for (std::size_t from = 0; from < n; ++from)
            for (std::size_t to = 0; to < n; ++to)
              copy(from, to, (from * n + to) * (elements / n / n), from == to ? 0 : elements / n / n);
      }
      for (std::size_t m = 0; m < n; ++m) at(group[m]).end_transfer(0, transfer(m));
    }
  }

  std::vector<Factor> factors_;
  std::vector<Layer> model_;
  Walk walk_;
  std::vector<std::vector<int>> coordinates_;
  std::vector<std::unique_ptr<TransformerNetwork>> networks_;
};

constexpr const char* kModel = R"([model.transformer]
layers = 2
hidden = 16
heads = 8
kv_heads = 4
feed_forward = 24
vocabulary = 16
sequence_length = 8
tied_embeddings = false
dropout = false
[training]
global_batch = 4
micro_batch = 4
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 1
)";

}  // namespace

TEST_CASE("a transformer is trained alike on every axis, by its table alone") {
  struct Axes {
    std::string name;
    std::vector<Factor> factors;
  };
  HostArithmetic host;
  for (const char* more : {"rotary=false", "rotary=true", "qk_norm=true", "dropout=true"}) {
    const Scenario scenario =
        read_scenario_text(kModel, "axes.toml", {std::string("model.transformer.") + more});
    Ranks alone(scenario, {}, host);
    const double expected = alone.pass();
    const auto with = [](std::vector<Factor> factors, const std::vector<Factor>& others) {
      factors.insert(factors.end(), others.begin(), others.end());
      return factors;
    };
    const std::vector<Axes> all = {
        {"batch", {batch(4)}},
        {"context", {context(4)}},
        {"Ulysses", {ulysses(4)}},
        {"sliced", {sliced(2)}},
        {"tensor", tensor(scenario, 4, false)},
        {"queries of shared heads", tensor(scenario, 8, true)},
        {"batch x context", {batch(2), context(2)}},
        {"context x Ulysses", {context(2), ulysses(2)}},
        {"context x tensor", with({context(2)}, tensor(scenario, 2, false))},
        {"batch x context x tensor, sequence", with({batch(2), context(2)}, tensor(scenario, 2, true))},
        {"tensor x Ulysses", with(tensor(scenario, 2, false), {ulysses(2)})},
    };
    std::set<Change::Kind> seen;
    for (const Axes& axes : all) {
      CAPTURE(more, axes.name);
      Ranks ranks(scenario, axes.factors, host);
      CHECK(ranks.pass() == Approx(expected).epsilon(1e-5));
      seen.insert(ranks.seen.begin(), ranks.seen.end());
      double worst = 0, most = 0;
      for (int rank = 0; rank < ranks.count(); ++rank)
        for (int layer = 0; layer <= ranks.layers().last; ++layer) {
          const LayerParameters whole =
              layer_parameters(scenario, alone.model(), layer, alone.shards(0), false);
          const LayerParameters here =
              layer_parameters(scenario, ranks.model(), layer, ranks.shards(rank), false);
          const std::vector<float> of_one = to_host(host, alone.at(0).gradients({layer, layer})),
                                   found = to_host(host, ranks.at(rank).gradients({layer, layer}));
          REQUIRE(here.tensors.size() == whole.tensors.size());
          for (std::size_t t = 0; t < here.tensors.size(); ++t) {
            const auto from = of_one.begin() + static_cast<std::ptrdiff_t>(whole.tensors[t].offset);
            const std::vector<float> part =
                part_of(here.tensors[t], ranks.shards(rank),
                        {from, from + static_cast<std::ptrdiff_t>(whole.tensors[t].local.elements())});
            for (std::size_t i = 0; i < part.size(); ++i) {
              const double other = found[here.tensors[t].offset + i];
              worst = std::max(worst, std::abs(part[i] - other));
              most = std::max(most, std::abs(static_cast<double>(part[i])));
            }
          }
        }
      CHECK(most > 1e-3);
      CHECK(worst < 1e-5 * most);
    }
    CHECK(seen.size() == 4);  // all kinds that send something
  }
}
