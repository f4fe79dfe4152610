// Runs every kind of segment on small real tensors, complete and on the shards according to an axis' table:
// outputs and gradients must agree with the table's placements, so a wrong row fails.
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/placement.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_scenarios.hpp"

namespace rehearse {
namespace {

using enum Dim;

const std::map<Dim, int> kSize = {{batch, 1},      {sequence, 4}, {keys, 4},   {hidden, 6},
                                  {kv_heads, 2},   {queries, 2},  {head, 2},   {inner, 4},
                                  {vocabulary, 8}, {experts, 2},  {routed, 4}, {latent, 4}};

// A tensor in row-major order, with named dimensions.
struct Tensor {
  std::vector<Dim> dims;
  std::vector<int> sizes;
  std::vector<double> data;

  explicit Tensor(std::vector<Dim> names = {}) : dims(std::move(names)) {
    std::size_t all = 1;
    for (const Dim dim : dims) {
      sizes.push_back(kSize.at(dim));
      all *= static_cast<std::size_t>(sizes.back());
    }
    data.assign(all, 0);
  }
  int size(Dim dim) const {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == dim) return sizes[i];
    return 1;
  }
  Dims set() const {
    Dims all;
    for (const Dim dim : dims) all = all.with(dim);
    return all;
  }
  double& at(const std::vector<int>& index) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) place = place * sizes[i] + index[i];
    return data[place];
  }
  double at(const std::vector<int>& index) const { return const_cast<Tensor*>(this)->at(index); }
};

// Returns the dimension of a tensor that is split by a shard along `dim`: routed rows replace batch and
// sequence.
Dim cut_dim(const Tensor& t, Dim dim) {
  for (const Dim own : t.dims)
    if (own == dim) return dim;
  for (const Dim own : t.dims)
    if (own == routed && (dim == sequence || dim == batch)) return routed;
  return keys;  // attention reads the sequence as keys
}

// Calls `each` with the index of every element.
void for_each_index(const std::vector<int>& sizes, const std::function<void(const std::vector<int>&)>& each) {
  std::vector<int> index(sizes.size(), 0);
  const long all = std::accumulate(sizes.begin(), sizes.end(), 1L, std::multiplies<>());
  for (long n = 0; n < all; ++n) {
    long rest = n;
    for (std::size_t i = sizes.size(); i > 0; --i) {
      index[i - 1] = static_cast<int>(rest % sizes[i - 1]);
      rest /= sizes[i - 1];
    }
    each(index);
  }
}

Tensor shard(const Tensor& whole, Dim dim, int rank, int ranks) {
  const Dim cut = cut_dim(whole, dim);
  Tensor part = whole;
  std::size_t place = 0;
  for (std::size_t i = 0; i < whole.dims.size(); ++i)
    if (whole.dims[i] == cut) {
      place = i;
      part.sizes[i] /= ranks;
    }
  part.data.assign(whole.data.size() / static_cast<std::size_t>(ranks), 0);
  for_each_index(part.sizes, [&](const std::vector<int>& index) {
    std::vector<int> from = index;
    from[place] += rank * part.sizes[place];
    part.at(index) = whole.at(from);
  });
  return part;
}

std::mt19937 random_numbers(3);
double random_number() {
  return std::uniform_real_distribution<double>(-1, 1)(random_numbers);
}

// Returns each rank's part of a complete tensor in a placement.
std::vector<Tensor> spread(const Tensor& whole, const Placement& placement, int ranks) {
  std::vector<Tensor> parts(static_cast<std::size_t>(ranks), whole);
  if (placement.kind == Placement::Kind::sharded)
    for (int r = 0; r < ranks; ++r) parts[r] = shard(whole, placement.dim, r, ranks);
  if (placement.kind == Placement::Kind::partial)
    for (std::size_t i = 0; i < whole.data.size(); ++i) {
      double left = whole.data[i];
      for (int r = 1; r < ranks; ++r) left -= parts[r].data[i] = random_number();
      parts[0].data[i] = left;
    }
  return parts;
}

// Returns the largest difference between the ranks' parts and a complete tensor in a placement.
double distance(const Tensor& whole, const std::vector<Tensor>& parts, const Placement& placement,
                bool maximum) {
  double most = 0;
  const int ranks = static_cast<int>(parts.size());
  for (int r = 0; r < ranks; ++r) {
    Tensor expected =
        placement.kind == Placement::Kind::sharded ? shard(whole, placement.dim, r, ranks) : whole;
    if (parts[r].data.size() != expected.data.size()) return 1e9;
    for (std::size_t i = 0; i < expected.data.size(); ++i) {
      double found = parts[r].data[i];
      if (placement.kind == Placement::Kind::partial)
        for (int other = 0; other < ranks; ++other)
          if (other != r)
            found = maximum ? std::max(found, parts[other].data[i]) : found + parts[other].data[i];
      most = std::max(most, std::abs(found - expected.data[i]));
    }
  }
  return most;
}

// The position of a rank's shard: its first element along the dimension by which the work is split.
struct Where {
  Dim dim = batch;
  int first = 0;
  int of(Dim asked) const { return asked == dim ? first : 0; }
};

using Function = std::function<std::vector<Tensor>(const Where&, const std::vector<Tensor>&,
                                                   const std::vector<Tensor>&)>;  // inputs, weights

// Sums over the last `contracted` dimensions of x and the first ones of w.
Tensor contract(const Tensor& x, const Tensor& w, std::size_t contracted) {
  Tensor y;
  y.data.clear();
  const std::size_t kept = x.dims.size() - contracted;
  long inner_size = 1, columns = 1, rows = 1;
  for (std::size_t i = 0; i < contracted; ++i) inner_size *= w.sizes[i];
  for (std::size_t i = 0; i < kept; ++i) {
    y.dims.push_back(x.dims[i]);
    y.sizes.push_back(x.sizes[i]);
    rows *= x.sizes[i];
  }
  for (std::size_t i = contracted; i < w.dims.size(); ++i) {
    y.dims.push_back(w.dims[i]);
    y.sizes.push_back(w.sizes[i]);
    columns *= w.sizes[i];
  }
  for (long r = 0; r < rows; ++r)
    for (long c = 0; c < columns; ++c) {
      double sum = 0;
      for (long k = 0; k < inner_size; ++k) sum += x.data[r * inner_size + k] * w.data[k * columns + c];
      y.data.push_back(sum);
    }
  return y;
}

Tensor normalised(Tensor x, const Tensor& gain) {
  const std::size_t width = gain.data.size();
  for (std::size_t row = 0; row < x.data.size(); row += width) {
    double squares = 0.1;
    for (std::size_t i = 0; i < width; ++i) squares += x.data[row + i] * x.data[row + i];
    for (std::size_t i = 0; i < width; ++i) x.data[row + i] *= gain.data[i] / std::sqrt(squares);
  }
  return x;
}

Tensor activated(Tensor x, const Tensor* bias) {
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    if (bias) x.data[i] += bias->data[i % bias->data.size()];
    x.data[i] = x.data[i] * std::tanh(x.data[i]);
  }
  return x;
}

Tensor plus(Tensor x, const Tensor& y) {
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] += y.data[i % y.data.size()];
  return x;
}

// Returns the experts' products: [e, c, k] x [e, k, n] for each expert e.
Tensor of_experts(const Tensor& x, const Tensor& w) {
  Tensor y({experts, x.dims[1], w.dims[2]});
  y.sizes = {x.sizes[0], x.sizes[1], w.sizes[2]};
  y.data.assign(static_cast<std::size_t>(y.sizes[0] * y.sizes[1] * y.sizes[2]), 0);
  for_each_index(y.sizes, [&](const std::vector<int>& i) {
    for (int k = 0; k < w.sizes[1]; ++k) y.at(i) += x.at({i[0], i[1], k}) * w.at({i[0], k, i[2]});
  });
  return y;
}

// Computes causal attention whose keys are also the values; a query's last key is its own. There is one sink
// per head.
Tensor attended(const Where& where, const Tensor& q, const Tensor& kv, const Tensor& sinks) {
  Tensor out = q;
  std::fill(out.data.begin(), out.data.end(), 0);
  const int d = q.size(head);
  for_each_index({q.sizes[0], q.sizes[1], q.sizes[2], q.sizes[3]}, [&](const std::vector<int>& i) {
    std::vector<double> shares;
    double sum = std::exp(sinks.at({i[2], i[3]}));
    for (int j = 0; j <= i[1] + where.of(sequence); ++j) {
      double score = 0;
      for (int k = 0; k < d; ++k) score += q.at({i[0], i[1], i[2], i[3], k}) * kv.at({i[0], j, i[2], k});
      shares.push_back(std::exp(score));
      sum += shares.back();
    }
    for (std::size_t j = 0; j < shares.size(); ++j)
      for (int k = 0; k < d; ++k)
        out.at({i[0], i[1], i[2], i[3], k}) += shares[j] / sum * kv.at({i[0], static_cast<int>(j), i[2], k});
  });
  return out;
}

// Returns a token's label, which also serves as the token itself; any fixed function of its position would
// do.
int label(int token) {
  return (5 * token + 3) % kSize.at(vocabulary);
}

struct Case {
  SegmentKind kind;
  std::vector<std::vector<Dim>> inputs, weights, outputs;
  Function run;
  int differentiable = 0;  // index of the first input that has a gradient
};

const std::vector<Dim> kTokens = {batch, sequence, hidden},
                       kQueries = {batch, sequence, kv_heads, queries, head},
                       kKeys = {batch, sequence, kv_heads, head}, kRead = {batch, keys, kv_heads, head},
                       kRows = {experts, routed, hidden}, kGates = {batch, sequence, experts},
                       kLogits = {batch, sequence, vocabulary}, kRow = {batch, sequence};

std::vector<Case> cases() {
  using K = SegmentKind;
  using Ts = std::vector<Tensor>;
  const auto product = [](std::size_t contracted) {
    return [=](const Where&, const Ts& x, const Ts& w) { return Ts{contract(x[0], w[0], contracted)}; };
  };
  const auto norm = [](const Where&, const Ts& x, const Ts& w) { return Ts{normalised(x[0], w[0])}; };
  return {
      {K::embedding,
       {kRow},
       {{vocabulary, hidden}},
       {kTokens},
       [](const Where& where, const Ts& x, const Ts& w) {
         Tensor y(kTokens);
         y.sizes[1] = x[0].sizes[1];
         y.data.assign(static_cast<std::size_t>(y.sizes[1] * y.sizes[2]), 0);
         for_each_index(y.sizes, [&](const std::vector<int>& i) {
           const int row = static_cast<int>(x[0].at({i[0], i[1]})) - where.of(vocabulary);
           if (row >= 0 && row < w[0].sizes[0]) y.at(i) = w[0].at({row, i[2]});
         });
         return Ts{y};
       },
       1},
      {K::position,
       {kTokens},
       {{keys, hidden}},
       {kTokens},
       [](const Where& where, const Ts& x, const Ts& w) {
         Tensor y = x[0];
         for_each_index(y.sizes, [&](const std::vector<int>& i) {
           y.at(i) += w[0].at({i[1] + where.of(sequence), i[2]});
         });
         return Ts{y};
       }},
      {K::norm, {kTokens}, {{hidden}}, {kTokens}, norm},
      {K::dense, {kTokens}, {{hidden, latent}}, {{batch, sequence, latent}}, product(1)},
      {K::pooler,
       {kTokens},
       {{hidden, latent}},
       {{batch, latent}},
       [](const Where&, const Ts& x, const Ts& w) {
         Tensor first({batch, hidden});
         for (int h = 0; h < first.sizes[1]; ++h) first.at({0, h}) = x[0].at({0, 0, h});
         return Ts{contract(first, w[0], 1)};
       }},
      {K::query, {kTokens}, {{hidden, kv_heads, queries, head}}, {kQueries}, product(1)},
      {K::query_norm, {kQueries}, {{head}}, {kQueries}, norm},
      {K::key_value, {kTokens}, {{hidden, kv_heads, head}}, {kKeys}, product(1)},
      {K::key_norm, {kKeys}, {{head}}, {kKeys}, norm},
      {K::latent,
       {kTokens},
       {{hidden, latent}, {latent}},
       {{batch, sequence, latent}},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{normalised(contract(x[0], w[0], 1), w[1])}; }},
      {K::latent_up,
       {{batch, sequence, latent}},
       {{latent, kv_heads, queries, head}},
       {kQueries},
       product(1)},
      {K::attention,
       {kQueries, kRead},
       {{kv_heads, queries}},
       {kQueries},
       [](const Where& where, const Ts& x, const Ts& w) { return Ts{attended(where, x[0], x[1], w[0])}; }},
      {K::projection, {kQueries}, {{kv_heads, queries, head, hidden}}, {kTokens}, product(3)},
      {K::residual,
       {kTokens, kTokens},
       {{hidden}},
       {kTokens},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{plus(plus(x[0], w[0]), x[1])}; }},
      {K::up,
       {kTokens},
       {{hidden, inner}, {inner}},
       {{batch, sequence, inner}},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{activated(contract(x[0], w[0], 1), &w[1])}; }},
      {K::down, {{batch, sequence, inner}}, {{inner, hidden}}, {kTokens}, product(1)},
      {K::router,
       {kTokens},
       {{hidden, experts}},
       {kGates},
       [](const Where&, const Ts& x, const Ts& w) {
         Tensor gates = contract(x[0], w[0], 1);
         for (std::size_t row = 0; row < gates.data.size(); row += 2) {
           const double a = std::exp(gates.data[row]), b = std::exp(gates.data[row + 1]);
           gates.data[row] = a / (a + b);
           gates.data[row + 1] = b / (a + b);
         }
         return Ts{gates};
       }},
      // Every expert receives every token.
      {K::dispatch,
       {kTokens, kGates},
       {},
       {kRows},
       [](const Where&, const Ts& x, const Ts&) {
         Tensor rows(kRows);
         rows.sizes[1] = x[0].sizes[1];
         rows.data.assign(static_cast<std::size_t>(rows.sizes[0] * rows.sizes[1] * rows.sizes[2]), 0);
         for_each_index(rows.sizes, [&](const std::vector<int>& i) {
           rows.at(i) = x[0].at({0, i[1], i[2]});
         });
         return Ts{rows};
       }},
      {K::expert_up,
       {kRows},
       {{experts, hidden, inner}},
       {{experts, routed, inner}},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{activated(of_experts(x[0], w[0]), nullptr)}; }},
      {K::expert_down,
       {{experts, routed, inner}},
       {{experts, inner, hidden}},
       {kRows},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{of_experts(x[0], w[0])}; }},
      {K::combine,
       {kRows, kGates},
       {},
       {kTokens},
       [](const Where&, const Ts& x, const Ts&) {
         Tensor y(kTokens);
         y.sizes[1] = x[0].sizes[1];
         y.data.assign(static_cast<std::size_t>(y.sizes[1] * y.sizes[2]), 0);
         for_each_index(y.sizes, [&](const std::vector<int>& i) {
           for (int e = 0; e < x[0].sizes[0]; ++e)
             y.at(i) += x[1].at({0, i[1], e}) * x[0].at({e, i[1], i[2]});
         });
         return Ts{y};
       }},
      {K::logits,
       {kTokens},
       {{hidden, vocabulary}, {vocabulary}},
       {kLogits},
       [](const Where&, const Ts& x, const Ts& w) { return Ts{plus(contract(x[0], w[0], 1), w[1])}; }},
      {K::maximum,
       {kLogits},
       {},
       {kRow},
       [](const Where&, const Ts& x, const Ts&) {
         Tensor most(kRow);
         const int width = x[0].size(vocabulary);
         for (int s = 0; s < most.sizes[1]; ++s)
           most.at({0, s}) =
               *std::max_element(x[0].data.begin() + s * width, x[0].data.begin() + (s + 1) * width);
         return Ts{most};
       },
       1},
      {K::sums,
       {kLogits, kRow},
       {},
       {kRow, kRow},
       [](const Where& where, const Ts& x, const Ts&) {
         Tensor sums(kRow), asked(kRow);
         for_each_index(x[0].sizes, [&](const std::vector<int>& i) {
           sums.at({0, i[1]}) += std::exp(x[0].at(i) - x[1].at({0, i[1]}));
           if (i[2] + where.of(vocabulary) == label(i[1])) asked.at({0, i[1]}) = x[0].at(i);
         });
         return Ts{sums, asked};
       }},
      {K::loss,
       {kRow, kRow},
       {},
       {{batch}},
       [](const Where&, const Ts& x, const Ts&) {
         Tensor mean({batch});
         for (int s = 0; s < x[0].sizes[1]; ++s)
           mean.data[0] += (std::log(4 + std::abs(x[0].at({0, s}))) - x[1].at({0, s})) / kSize.at(sequence);
         return Ts{mean};
       }},
  };
}

double inner_product(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (std::size_t t = 0; t < a.size(); ++t)
    sum += std::inner_product(a[t].data.begin(), a[t].data.end(), b[t].data.begin(), 0.0);
  return sum;
}

// Returns the gradient of <outputs, g> with respect to one tensor, by central differences.
Tensor gradient(const Case& c, const Where& where, std::vector<Tensor> x, std::vector<Tensor> w,
                const std::vector<Tensor>& g, bool of_weight, std::size_t number) {
  constexpr double kStep = 1e-5;
  Tensor& varied = of_weight ? w[number] : x[number];
  Tensor result = varied;
  for (std::size_t i = 0; i < varied.data.size(); ++i) {
    const double value = varied.data[i];
    varied.data[i] = value + kStep;
    const double above = inner_product(c.run(where, x, w), g);
    varied.data[i] = value - kStep;
    result.data[i] = (above - inner_product(c.run(where, x, w), g)) / (2 * kStep);
    varied.data[i] = value;
  }
  return result;
}

// Returns the largest difference between outputs and gradients on `ranks` ranks and the unsharded ones. Empty
// placements mean a bug in the test.
double worst_distance(const Case& c, const AxisTable& table, int ranks) {
  // The algebra knows the sequence of keys as the sequence from which the keys were made.
  Layer layer;
  Segment segment;
  segment.kind = c.kind;
  segment.cost.parameters = 1;
  const auto value = [&](const std::vector<Dim>& dims) {
    Dims set = Tensor(dims).set();
    if (set.has(keys)) set = set.without(keys).with(sequence);
    layer.values.push_back({set, 1});
    return static_cast<int>(layer.values.size()) - 1;
  };
  std::vector<Tensor> x, w, g;
  const auto random_tensor = [&](const std::vector<Dim>& dims) {
    Tensor t(dims);
    for (double& number : t.data) number = random_number();
    return t;
  };
  for (const auto& dims : c.inputs) {
    segment.inputs.push_back(value(dims));
    x.push_back(random_tensor(dims));
  }
  if (c.kind == SegmentKind::embedding)
    for (std::size_t s = 0; s < x[0].data.size(); ++s) x[0].data[s] = static_cast<double>((3 * s + 1) % 8);
  for (const auto& dims : c.weights) w.push_back(random_tensor(dims));
  for (const auto& dims : c.outputs) {
    segment.outputs.push_back(value(dims));
    g.push_back(random_tensor(dims));
  }
  const auto input = [&](std::size_t i) { return input_use(layer, segment, static_cast<int>(i), table); };
  const auto output = [&](std::size_t o) { return output_use(layer, segment, static_cast<int>(o), table); };
  // A weight without the split dimension is replicated; with several weights, each by its own dimensions.
  const auto weight = [&](std::size_t i) {
    Use use = parameter_use(layer, segment, table);
    if (use.as.kind == Placement::Kind::sharded && !w[i].set().has(use.as.dim))
      use = {{}, {Placement::Kind::partial}};
    return use;
  };

  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<Tensor>> local_x(n), local_w(n), local_g(n), local_y(n);
  std::vector<Where> where(n);
  const auto hand_out = [&](const Tensor& whole, const Placement& placement,
                            std::vector<std::vector<Tensor>>& to) {
    const std::vector<Tensor> parts = spread(whole, placement, ranks);
    for (std::size_t r = 0; r < n; ++r) to[r].push_back(parts[r]);
  };
  for (std::size_t i = 0; i < x.size(); ++i) hand_out(x[i], input(i).as, local_x);
  for (std::size_t i = 0; i < w.size(); ++i) hand_out(w[i], weight(i).as, local_w);
  for (std::size_t o = 0; o < g.size(); ++o) hand_out(g[o], output(o).gradient, local_g);
  const Split& split = table.of(c.kind);
  for (int r = 0; r < ranks; ++r)
    if (split.kind == Split::Kind::by) where[r] = {split.dim, r * kSize.at(split.dim) / ranks};

  double worst = 0;
  const std::vector<Tensor> y = c.run({}, x, w);
  for (std::size_t r = 0; r < n; ++r) local_y[r] = c.run(where[r], local_x[r], local_w[r]);
  const auto compare = [&](const Tensor& whole, const Placement& placement, const auto& part) {
    std::vector<Tensor> parts;
    for (std::size_t r = 0; r < n; ++r) parts.push_back(part(r));
    worst = std::max(worst, distance(whole, parts, placement, c.kind == SegmentKind::maximum));
  };
  for (std::size_t o = 0; o < y.size(); ++o)
    compare(y[o], output(o).as, [&](std::size_t r) { return local_y[r][o]; });
  if (c.kind == SegmentKind::maximum) return worst;
  for (std::size_t i = static_cast<std::size_t>(c.differentiable); i < x.size(); ++i) {
    if (c.kind == SegmentKind::sums && i == 1) continue;  // the maximum has no gradient
    compare(gradient(c, {}, x, w, g, false, i), input(i).gradient, [&](std::size_t r) {
      return gradient(c, where[r], local_x[r], local_w[r], local_g[r], false, i);
    });
  }
  for (std::size_t i = 0; i < w.size(); ++i)
    compare(gradient(c, {}, x, w, g, true, i), weight(i).gradient, [&](std::size_t r) {
      return gradient(c, where[r], local_x[r], local_w[r], local_g[r], true, i);
    });
  return worst;
}

std::vector<std::pair<std::string, AxisTable>> tables() {
  std::vector<std::pair<std::string, AxisTable>> all;
  for (const bool sequence : {false, true}) {
    Model model = test::small_gpt(2);
    std::get<Transformer>(model.shape).kv_heads = 2;
    Scenario s = test::scenario(model, 1, 1, 1);
    s.strategy.tensor = 4;
    s.strategy.sequence_parallel = sequence;
    for (const Factor& factor : factors_of(s))
      all.emplace_back(std::string(factor.axis) + (sequence ? ", sequence" : "") +
                           (factor.stride == 1 ? ", queries of shared heads" : ", heads"),
                       factor.table);
  }
  return all;
}

TEST_CASE("on the shards of an axis every kind of segment gives what it gives whole") {
  for (const auto& [name, table] : tables())
    for (const Case& c : cases()) {
      CAPTURE(name, kSegmentNames[static_cast<std::size_t>(c.kind)]);
      CHECK(worst_distance(c, table, 2) < 1e-7);
    }
}

TEST_CASE("wrong rows are found") {
  const auto by = [](Dim dim) { return Split{Split::Kind::by, dim}; };
  struct Wrong {
    SegmentKind kind;
    Split row;
  };
  // A norm's mean square over a shard of the hidden dimension; products whose input is sharded by a dimension
  // by which their weights are not; partial sums that pass an activation function, or to which all ranks add
  // the same value.
  for (const Wrong& wrong :
       {Wrong{SegmentKind::norm, by(hidden)}, Wrong{SegmentKind::up, {Split::Kind::through}},
        Wrong{SegmentKind::residual, {Split::Kind::through}}, Wrong{SegmentKind::attention, by(head)}}) {
    const auto all = cases();
    const auto c =
        std::find_if(all.begin(), all.end(), [&](const Case& one) { return one.kind == wrong.kind; });
    CAPTURE(kSegmentNames[static_cast<std::size_t>(wrong.kind)]);
    AxisTable table;
    table.rows({wrong.kind}, wrong.row);
    CHECK(worst_distance(*c, table, 2) > 1e-3);
  }
  // A value added to partial sums counts once for each rank.
  Case with_bias = cases().front();
  for (const Case& c : cases())
    if (c.kind == SegmentKind::down) with_bias = c;
  with_bias.weights.push_back({hidden});
  with_bias.run = [](const Where&, const std::vector<Tensor>& x, const std::vector<Tensor>& w) {
    return std::vector<Tensor>{plus(contract(x[0], w[0], 1), w[1])};
  };
  CHECK(worst_distance(with_bias, tables().front().second, 2) > 1e-3);
}

}  // namespace
}  // namespace rehearse
