// Tests transformers on processors: losses and gradients against a reference that follows the published
// formulas in plain loops and double precision.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "backend/host/host_arithmetic.hpp"
#include "backend/training/token_data.hpp"
#include "backend/training/token_order.hpp"
#include "backend/training/training_workload.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_training_cases.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse;
using namespace rehearse::training_cases;

namespace {

constexpr const char* kTiny = R"([model.transformer]
layers = 1
hidden = 8
heads = 4
feed_forward = 12
vocabulary = 11
sequence_length = 5
dropout = false
[training]
global_batch = 4
micro_batch = 2
precision = "fp32"
optimizer = "sgd"
[cluster]
preset = "cpu-cluster"
nodes = 1
)";

Scenario tiny(const std::string& settings) {
  std::vector<std::string> overrides;
  std::istringstream words(settings);
  for (std::string word; words >> word;)
    overrides.push_back((word.find('.') == std::string::npos ? "model.transformer." : "") + word);
  return read_scenario_text(kTiny, "tiny.toml", overrides);
}

using Row = std::vector<double>;
using Rows = std::vector<Row>;

// Reads the weights in storage order.
class Weights {
public:
  explicit Weights(const Row& all) : all_(all) {}
  Row take(double count) {
    const auto from = all_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += static_cast<std::size_t>(count);
    if (at_ > all_.size()) throw std::out_of_range("the reference takes more weights than there are");
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }
  std::size_t taken() const { return at_; }

private:
  const Row& all_;
  std::size_t at_ = 0;
};

// Computes x w, where w is [inputs, outputs], plus a bias if there is one.
Rows times(const Rows& x, const Row& w, const Row& bias = {}) {
  const std::size_t outputs = w.size() / x.front().size();
  Rows y;
  for (const Row& row : x) {
    Row& result = y.emplace_back(bias.empty() ? Row(outputs, 0.0) : bias);
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t o = 0; o < outputs; ++o) result[o] += row[i] * w[i * outputs + o];
  }
  return y;
}

Row normalised(const Row& x, const Row& gain, const Row& offset) {
  const double n = static_cast<double>(x.size());
  const double mean = offset.empty() ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back((x[i] - mean) / std::sqrt(squares / n + 1e-5) * gain[i] + (offset.empty() ? 0 : offset[i]));
  return y;
}

class Reference {
public:
  Reference(const Transformer& shape, const Row& weights, std::uint64_t seed, std::uint64_t sample)
      : t_(shape), w_(weights), seed_(seed), sample_(sample) {}

  // Returns the mean loss of a sequence's tokens.
  double loss(const std::vector<std::uint32_t>& tokens) {
    const std::size_t length = tokens.size() - 1;
    const Row table = w_.take(t_.vocabulary * t_.hidden);
    const Row positions = w_.take(t_.position_rows() * t_.hidden);
    Rows x;
    const auto h = static_cast<std::size_t>(t_.hidden);
    for (std::size_t s = 0; s < length; ++s) {
      Row& row = x.emplace_back(table.begin() + static_cast<long>(tokens[s] * h),
                                table.begin() + static_cast<long>((tokens[s] + 1) * h));
      for (std::size_t j = 0; j < h && !positions.empty(); ++j)
        row[j] += positions[(s + static_cast<std::size_t>(t_.position_offset)) * h + j];
    }
    if (t_.embedding_norm) x = norm(x);
    if (t_.embedding_dropout.value_or(t_.dropout)) drop(x, 0);
    for (layer_ = 0; layer_ < t_.layers; ++layer_) x = layer(x);
    if (t_.final_norm) x = norm(x);
    const Row head = t_.tied_embeddings ? table : w_.take(t_.vocabulary * t_.hidden);
    double sum = 0;
    for (std::size_t s = 0; s < length; ++s) {
      double powers = 0, label = 0;
      for (std::size_t v = 0; v < head.size() / h; ++v) {
        const double logit =
            std::inner_product(x[s].begin(), x[s].end(), head.begin() + static_cast<long>(v * h), 0.0);
        powers += std::exp(logit);
        if (v == tokens[s + 1]) label = logit;
      }
      sum += std::log(powers) - label;
    }
    return sum / static_cast<double>(length);
  }
  std::size_t weights() const { return w_.taken(); }

  // Returns the dropout factor of an element of the sample: a tenth of the elements are dropped.
  double kept(int site, std::size_t element) const {
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    const std::uint32_t drawn =
        philox({low(element), low(element >> 32) ^ (static_cast<std::uint32_t>(site) << 8), low(sample_),
                static_cast<std::uint32_t>(RandomUse::dropout)},
               {low(seed_), low(seed_ >> 32)})[0];
    return drawn * 0x1p-32 < 0.1 ? 0 : 1 / 0.9;
  }

private:
  void drop(Rows& x, int site) const {
    for (std::size_t s = 0; s < x.size(); ++s)
      for (std::size_t j = 0; j < x[s].size(); ++j) x[s][j] *= kept(site, s * x[s].size() + j);
  }

  Rows norm(Rows x) {
    const Row gain = w_.take(t_.hidden);
    const Row offset = w_.take(t_.norm_biases.value_or(t_.biases) ? t_.hidden : 0);
    for (Row& row : x) row = normalised(row, gain, offset);
    return x;
  }

  // Adds y and its bias to the residual x; `number` is the index of this sum within the layer.
  void add(Rows& x, Rows y, const Row& bias, int number) const {
    for (Row& row : y)
      for (std::size_t j = 0; j < row.size(); ++j) row[j] += bias.empty() ? 0 : bias[j];
    if (t_.dropout) drop(y, 8 * (layer_ + 1) + number);
    for (std::size_t s = 0; s < x.size(); ++s)
      for (std::size_t j = 0; j < x[s].size(); ++j) x[s][j] += y[s][j];
  }

  Rows layer(const Rows& input) {
    Rows branch = attention(norm(input));
    if (t_.post_norms) branch = norm(branch);
    Rows x = input;
    add(x, branch, w_.take(t_.biases ? t_.hidden : 0), 0);
    branch = norm(t_.parallel_residual ? input : x);
    branch = t_.experts > 0 ? experts(branch) : feed_forward(branch);
    if (t_.post_norms) branch = norm(branch);
    add(x, branch, w_.take(t_.biases && t_.experts == 0 ? t_.hidden : 0), 1);
    return x;
  }

  // Applies equation 34 of RoFormer, with pairs (i, i + d / 2).
  static void turn(Row& head, double position) {
    const std::size_t half = head.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position * std::pow(10000, -static_cast<double>(i) / static_cast<double>(half));
      const double a = head[i], b = head[i + half];
      head[i] = a * std::cos(angle) - b * std::sin(angle);
      head[i + half] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  Rows attention(const Rows& x) {
    const double d = t_.head_dim > 0 ? t_.head_dim : t_.hidden / t_.heads;
    const double dv = t_.value_head_dim > 0 ? t_.value_head_dim : d;
    const double kv = t_.kv_heads > 0 ? t_.kv_heads : t_.heads;
    const Row wq = w_.take(t_.hidden * t_.heads * d), bq = w_.take(t_.qkv_biases ? t_.heads * d : 0);
    const Row wkv = w_.take(t_.hidden * kv * (d + dv)), bkv = w_.take(t_.qkv_biases ? kv * (d + dv) : 0);
    const Row query_gain = w_.take(t_.qk_norm ? d : 0), key_gain = w_.take(t_.qk_norm ? d : 0);
    const Row projection = w_.take(t_.heads * dv * t_.hidden);
    const Rows q = times(x, wq, bq), keys = times(x, wkv, bkv);
    const auto part = [](const Row& row, double first, double count) {
      return Row(row.begin() + static_cast<long>(first), row.begin() + static_cast<long>(first + count));
    };
    const auto prepared = [&](Row head, const Row& gain, std::size_t position) {
      if (t_.qk_norm) head = normalised(head, gain, {});
      if (t_.rotary) turn(head, static_cast<double>(position));
      return head;
    };
    const std::vector<int>& full = t_.full_attention_layers;
    const bool local = t_.window > 0 && std::find(full.begin(), full.end(), layer_) == full.end();
    Rows all(x.size());
    for (double h = 0; h < t_.heads; ++h) {
      const double g = std::floor(h / (t_.heads / kv));
      for (std::size_t s = 0; s < x.size(); ++s) {
        const Row query = prepared(part(q[s], h * d, d), query_gain, s);
        Row result(static_cast<std::size_t>(dv), 0.0);
        double powers = 0;
        for (std::size_t j = 0; j <= s; ++j) {
          if (local && static_cast<double>(s - j) >= t_.window) continue;
          const Row key = prepared(part(keys[j], g * (d + dv), d), key_gain, j);
          const double power =
              std::exp(std::inner_product(query.begin(), query.end(), key.begin(), 0.0) / std::sqrt(d));
          const Row value = part(keys[j], g * (d + dv) + d, dv);
          const std::size_t score = (static_cast<std::size_t>(h) * x.size() + s) * x.size() + j;
          const double share =
              t_.attention_dropout.value_or(t_.dropout) ? power * kept(8 * (layer_ + 1) + 4, score) : power;
          for (std::size_t i = 0; i < value.size(); ++i) result[i] += share * value[i];
          powers += power;
        }
        for (const double v : result) all[s].push_back(v / powers);
      }
    }
    return times(all, projection);
  }

  Row activated(const Row& gate, const Row& up) const {
    Row y;
    for (std::size_t i = 0; i < up.size(); ++i) {
      const double z = up[i];
      if (t_.gated)
        y.push_back(gate[i] / (1 + std::exp(-gate[i])) * z);
      else if (t_.relu)
        y.push_back(std::max(z, 0.0));
      else
        y.push_back(z / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (z + 0.044715 * z * z * z))));
    }
    return y;
  }

  Rows feed_forward(const Rows& x) {
    const double f = t_.feed_forward;
    const Row wg = w_.take(t_.gated ? t_.hidden * f : 0), wu = w_.take(t_.hidden * f);
    const Row bg = w_.take(t_.gated && t_.biases ? f : 0), bu = w_.take(t_.biases ? f : 0);
    const Rows up = times(x, wu, bu), gate = t_.gated ? times(x, wg, bg) : Rows(x.size());
    Rows y;
    for (std::size_t s = 0; s < x.size(); ++s) y.push_back(activated(gate[s], up[s]));
    return times(y, w_.take(f * t_.hidden));
  }

  // Computes the shared expert, which every token uses in addition to its routed experts.
  Rows shared_expert(const Rows& x) {
    const double f = t_.shared_expert;
    const Row wg = w_.take(t_.gated ? t_.hidden * f : 0), wu = w_.take(t_.hidden * f);
    const Rows up = times(x, wu), gate = t_.gated ? times(x, wg) : Rows(x.size());
    Rows y;
    for (std::size_t s = 0; s < x.size(); ++s) y.push_back(activated(gate[s], up[s]));
    return times(y, w_.take(f * t_.hidden));
  }

  Rows experts(const Rows& x) {
    const double f = t_.feed_forward, matrix = t_.hidden * f;
    const Row router = w_.take(t_.hidden * t_.experts), bias = w_.take(t_.router_bias ? t_.experts : 0);
    const Row wg = w_.take(t_.gated ? t_.experts * matrix : 0), wu = w_.take(t_.experts * matrix);
    const Row wd = w_.take(t_.experts * matrix);
    const Rows logits = times(x, router, bias);
    Rows y;
    for (std::size_t s = 0; s < x.size(); ++s) {
      std::vector<std::size_t> order(logits[s].size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return logits[s][a] > logits[s][b]; });
      order.resize(static_cast<std::size_t>(t_.experts_per_token));
      double powers = 0;
      for (const std::size_t e : order) powers += std::exp(logits[s][e]);
      Row& result = y.emplace_back(x[s].size(), 0.0);
      for (const std::size_t e : order) {
        const auto of = [&](const Row& all) {
          const auto from = all.begin() + static_cast<long>(static_cast<double>(e) * matrix);
          return all.empty() ? Row{} : Row(from, from + static_cast<long>(matrix));
        };
        const Row up = times({x[s]}, of(wu)).front();
        const Row gate = t_.gated ? times({x[s]}, of(wg)).front() : Row{};
        const Row z = times({activated(gate, up)}, of(wd)).front();
        for (std::size_t j = 0; j < z.size(); ++j) result[j] += std::exp(logits[s][e]) / powers * z[j];
      }
    }
    if (t_.shared_expert == 0) return y;
    const Rows shared = shared_expert(x);
    for (std::size_t s = 0; s < y.size(); ++s)
      for (std::size_t j = 0; j < y[s].size(); ++j) y[s][j] += shared[s][j];
    return y;
  }

  const Transformer& t_;
  Weights w_;
  std::uint64_t seed_, sample_;
  int layer_ = 0;
};

constexpr std::uint64_t kSamples[] = {3, 1, 4, 159};

double mean_loss(const Scenario& scenario, const Row& weights) {
  const auto& shape = std::get<Transformer>(scenario.model.shape);
  const TokenData data(scenario.run.seed, std::lround(shape.vocabulary));
  double sum = 0;
  for (const std::uint64_t sample : kSamples)
    sum += Reference(shape, weights, scenario.run.seed, sample)
               .loss(data.tokens(sample, std::lround(shape.sequence_length) + 1));
  return sum / static_cast<double>(std::size(kSamples));
}

// Returns the gradient of a network's only step, from one backward pass or from its two halves.
std::vector<float> gradient_of(Arithmetic& arithmetic, const Scenario& scenario, const std::vector<float>& w,
                               bool split, double* loss) {
  const LayerRange all{0, std::get<Transformer>(scenario.model.shape).layers + 1};
  NetworkPart part;
  part.held = {all};
  part.splits_backward = split;
  const auto network = make_network(scenario, part, 2, arithmetic);
  arithmetic.copy_to_device(0, w.data(), network->weights(all));
  int segments = 0;
  for (const Layer& layer : model_layers(scenario.model, pass_shape(scenario)))
    segments += static_cast<int>(layer.segments.size());
  for (const long step : {0L, 1L}) {  // the second step's gradient replaces the first one's
    network->set_batch(0, step, {std::begin(kSamples), std::end(kSamples)});
    for (const int m : {0, 1}) network->forward_segments(0, step, m, {0, segments});
    for (const int m : {0, 1}) {
      if (m == 1) network->recompute_segments(0, step, m, {0, segments});
      if (split)
        network->backward_input_segments(0, m, {0, segments});
      else
        network->backward_segments(0, step, m, {0, segments});
    }
    for (const int m : {1, 0})
      if (split) network->backward_weight_segments(0, step, m, {0, segments});
  }
  *loss = network->take_loss(0, 1);
  return to_host(arithmetic, network->gradients(all));
}

}  // namespace

TEST_CASE("losses and gradients of transformers against a reference and its finite differences") {
  constexpr const char* kModels[] = {
      "",  // GPT
      "layers=2 training.recompute=\"full\"",
      "tied_embeddings=false positions=7 position_offset=2",
      "rotary=true gated=true biases=false tied_embeddings=false kv_heads=2",  // Llama
      "rotary=true gated=true biases=false kv_heads=1 qk_norm=true head_dim=6 value_head_dim=4",
      "gated=true qk_norm=true norm_biases=false",
      "relu=true parallel_residual=true embedding_norm=true qkv_biases=false",
      "post_norms=true window=3 layers=2 full_attention_layers=[1] training.recompute=\"selective\"",
      "rotary=true gated=true biases=false experts=4 experts_per_token=2 router_bias=true",  // Mixtral
      "biases=false experts=2 experts_per_token=1",
      "biases=false experts=4 experts_per_token=2 strategy.capacity_factor=2",  // room for every token
      ("biases=false gated=true dropout=true experts=4 experts_per_token=2 shared_expert=6 "
       "shared_expert_gate=false"),
      "dropout=true layers=2",
      "attention_dropout=true rotary=true kv_heads=2 biases=false",
  };
  HostArithmetic host;
  for (std::size_t m = 0; m < std::size(kModels); ++m) {
    if (testing::kSanitized && m % 4 != 0) continue;
    const char* const model = kModels[m];
    CAPTURE(model);
    const Scenario scenario = tiny(model);
    const auto& shape = std::get<Transformer>(scenario.model.shape);
    const std::size_t parameters = parameters_of(scenario, {0, shape.layers + 1}, {});
    CHECK(static_cast<double>(parameters) == parameter_count(scenario.model));
    std::vector<float> w = normal(1, static_cast<long>(parameters));
    for (float& weight : w) weight *= 0.5F;
    Row weights(w.begin(), w.end());
    Reference whole(shape, weights, scenario.run.seed, 3);
    (void)whole.loss(TokenData(scenario.run.seed, 11).tokens(3, 6));
    CHECK(whole.weights() == parameters);

    double loss = 0, loss_split = 0;
    const std::vector<float> found = gradient_of(host, scenario, w, false, &loss);
    CHECK(loss == Approx(4 * mean_loss(scenario, weights)).epsilon(1e-5));
    // Checks every fifth weight, which covers some of each tensor.
    constexpr double kMove = 1e-5;
    constexpr std::size_t kStride = 5;
    const std::vector<float> found_split = gradient_of(host, scenario, w, true, &loss_split);
    CHECK(loss_split == loss);
    REQUIRE(found.size() == weights.size());
    std::vector<double> expected;
    std::vector<float> checked, checked_split;
    double most = 0;
    for (std::size_t i = 0; i < weights.size(); i += kStride) {
      const double before = weights[i];
      weights[i] = before + kMove;
      const double above = mean_loss(scenario, weights);
      weights[i] = before - kMove;
      expected.push_back((above - mean_loss(scenario, weights)) / (2 * kMove));
      most = std::max(most, std::abs(expected.back()));
      weights[i] = before;
      checked.push_back(found[i]);
      checked_split.push_back(found_split[i]);
    }
    check_close(checked, expected, 3e-5 * most);
    check_close(checked_split, expected, 3e-5 * most);
  }
}

TEST_CASE("what of transformers is not trained is told") {
  struct {
    const char* settings;
    const char* why;
  } const cases[] = {
      {"", ""},
      {"causal=false", "a task other than next-token prediction"},
      {"attention_sinks=true", "attention sinks"},
      {"logit_softcap=true", "soft-capping"},
      {"embedding_width=4", "an embedding of another width"},
      {"biases=false experts=4 experts_per_token=2 shared_expert=8", "a gated shared expert"},
      {"experts=4 experts_per_token=2", "experts with biases"},
      {"positions=4", "4 positions for sequences of 5 tokens"},
      {"dropout=true heads=4 hidden=16 cluster.nodes=4 strategy.tensor=2 strategy.context=2 "
       "strategy.context_kind=\"all-to-all\" training.sequence_length=4",
       "dropout of scores whose heads are split over tensor and context ranks"},
      {"rotary=true head_dim=3", "has rotary embeddings on heads of an odd width"},
      {"biases=false experts=3 experts_per_token=1", "10 rows of a micro-batch for 3 experts"},
      {"biases=false experts=4 experts_per_token=2 cluster.nodes=2 strategy.data=2 strategy.expert=2",
       "strategy.capacity_factor = 2, with room for every token"},
      {"biases=false experts=4 experts_per_token=2 strategy.capacity_factor=1.5",
       "strategy.capacity_factor is 1.5; allowed in real training: 2"},
      {"biases=false experts=4 experts_per_token=2 cluster.nodes=2 strategy.data=2 strategy.expert=2 "
       "strategy.expert_imbalance=0.5",
       "a real router spreads the rows over experts"},
      {"cluster.preset=\"hgx-h200\" cluster.node.devices=1 training.precision=\"bf16\"",
       "a transformer in bf16"},
      {"cluster.nodes=2 strategy.data=2 strategy.compression=\"fp16\"",
       "compressed gradients of a transformer"},
      {"cluster.nodes=6 strategy.data=3 strategy.pipeline=2 strategy.zero_stage=1 training.global_batch=6",
       "a tied embedding of 88 weights in 3 shards"},
      {"cluster.nodes=4 strategy.data=2 strategy.pipeline=2 strategy.gradients=\"parameter-server\"",
       "parameter servers with a tied embedding on the first and the last stage"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.settings);
    const Scenario scenario = tiny(c.settings);
    const std::string why = why_not_trained(scenario, *write_schedule(scenario).schedule, true);
    CAPTURE(why);
    if (*c.why == '\0')
      CHECK(why.empty());
    else
      CHECK(why.find(c.why) != std::string::npos);
  }
}

// Ranks have equal parts of the token order; in a ring, rank r has piece r from the front and piece r from
// the back.
TEST_CASE("tokens that ranks share out in a zigzag stand where their pieces do") {
  const TokenOrder natural, zigzag{3, 8};
  std::vector<long> positions;
  for (long number = 0; number < 24; ++number) {
    CHECK(natural.position(number) == number);
    CHECK(natural.number(number) == number);
    positions.push_back(zigzag.position(number));
    CHECK(zigzag.number(positions.back()) == number);
  }
  CHECK(positions == std::vector<long>{0, 1, 2, 21, 22, 23, 3, 4,  5,  18, 19, 20,
                                       6, 7, 8, 15, 16, 17, 9, 10, 11, 12, 13, 14});
  CHECK(zigzag.number(24) < 0);  // for a table with more positions than tokens
}

TEST_CASE("a tenth of all elements is dropped, and their mean stays") {
  const Scenario scenario = tiny("dropout=true");
  const Row none;
  const Reference reference(std::get<Transformer>(scenario.model.shape), none, scenario.run.seed, 7);
  double sum = 0;
  int dropped = 0;
  constexpr int kElements = 20000;
  for (std::size_t element = 0; element < kElements; ++element) {
    const double kept = reference.kept(9, element);
    sum += kept / kElements;
    dropped += kept == 0 ? 1 : 0;
  }
  // To four standard errors of a binomial distribution.
  CHECK(std::abs(dropped - 0.1 * kElements) < 4 * std::sqrt(0.1 * 0.9 * kElements));
  CHECK(std::abs(sum - 1) < 4 * std::sqrt(0.1 / 0.9 / kElements));
}

// In this chain, each token has two successors: the loss per token is ln 2 if they are known, and ln of the
// vocabulary size otherwise.
TEST_CASE("sequences of tokens are a Markov chain that depends on the seed alone") {
  const TokenData data(3, 50), same(3, 50), other(4, 50);
  std::vector<std::vector<std::uint32_t>> followers(50);
  for (std::uint64_t n = 0; n < 200; ++n) {
    const std::vector<std::uint32_t> tokens = data.tokens(n, 33);
    CHECK(tokens == same.tokens(n, 33));
    CHECK(tokens == data.tokens(n + TokenData::kSequences, 33));
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      REQUIRE(tokens[i] < 50);
      std::vector<std::uint32_t>& known = followers[tokens[i]];
      if (std::find(known.begin(), known.end(), tokens[i + 1]) == known.end()) known.push_back(tokens[i + 1]);
    }
  }
  for (const auto& known : followers) CHECK(known.size() <= TokenData::kSuccessors);
  CHECK(data.tokens(7, 33) != other.tokens(7, 33));
  CHECK(data.tokens(7, 33) != data.tokens(8, 33));
}
