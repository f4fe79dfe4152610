// Checks expert parallelism: a second mesh over the same ranks, what is sent over it, and over which ranks
// gradients are summed.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/layout/expert_loads.hpp"
#include "simulator/strategies/layout/placement.hpp"
#include "tests/catch.hpp"
#include "tests/strategies_axes.hpp"
#include "tests/topologies_cases.hpp"

namespace rehearse {
namespace {

using test::axes_mixture;
using test::axes_scenario;
using test::Degrees;
using test::flops_of_all_ranks;

Scenario expert_scenario(Degrees degrees, int expert, int expert_tensor, bool sequence = false,
                         int layers = 2) {
  Scenario s = axes_scenario(axes_mixture(layers), degrees);
  s.strategy.expert = expert;
  s.strategy.expert_tensor = expert_tensor;
  s.strategy.sequence_parallel = sequence;
  s.strategy.bucket_bytes = s.strategy.first_bucket_bytes = 1e9;
  return s;
}

double parameters_of(const Scenario& s, bool of_experts) {
  double sum = 0;
  for (const Layer& layer : model_layers(s.model, pass_shape(s)))
    for (const Segment& segment : layer.segments) {
      const bool expert = segment.kind == SegmentKind::expert_up || segment.kind == SegmentKind::expert_down;
      if (expert == of_experts) sum += segment.cost.parameters;
    }
  return sum;
}

TEST_CASE("tokens go to their experts and back in two all-to-alls each way") {
  struct Case {
    std::string name;
    Degrees degrees;
    int expert, expert_tensor;
    bool sequence;
    double capacity;
    double tokens;  // tokens that a rank sends, as a share of b s
    int members;
  };
  const std::vector<Case> cases = {
      {"over data", {4, 1, 1, 1}, 4, 1, false, 0, 1, 4},
      {"over half of data", {8, 1, 1, 1}, 4, 1, false, 0, 1, 4},
      {"with a capacity", {4, 1, 1, 1}, 2, 1, false, 1.25, 1.25, 2},
      {"over context", {1, 4, 1, 1}, 4, 1, false, 0, 1.0 / 4, 4},
      {"over tensor ranks with tokens of their own", {1, 1, 4, 1}, 4, 1, true, 0, 1.0 / 4, 4},
      {"over tensor ranks, which drop duplicates", {1, 1, 4, 1}, 4, 1, false, 0, 1.0 / 4, 4},
      {"folded: tensor x data", {4, 1, 2, 1}, 8, 1, true, 0, 1.0 / 2, 8},
      {"beside tensor inside experts", {4, 1, 2, 1}, 4, 2, true, 0, 1.0 / 2, 4},
      {"over context x data", {2, 2, 1, 1}, 4, 1, false, 0, 1.0 / 2, 4},
  };
  const double k = 2, h = 256, b = 2, sequence = 128;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Scenario s = expert_scenario(c.degrees, c.expert, c.expert_tensor, c.sequence);
    s.strategy.capacity_factor = c.capacity;
    const auto plan = write_schedule(s);
    REQUIRE_NOTHROW(check(*plan.schedule));
    std::map<Pass, int> calls;
    for (const Op& op : plan.schedule->programs.front().ops) {
      if (op.purpose != Purpose::experts || op.microbatch != 1) continue;
      ++calls[op.pass];
      CHECK(op.collective.kind == CollectiveKind::all_to_all);
      CHECK(group_size(plan.schedule->roles[0], op.collective.group) == c.members);
      // Each member receives an equal share of what the rank sends.
      CHECK(op.collective.bytes.base * c.members ==
            Approx(4 * k * b * sequence * c.tokens * h).epsilon(1e-12));
    }
    const std::map<Pass, int> expected = {{Pass::forward, 4}, {Pass::backward, 4}};  // for 2 layers
    CHECK(calls == expected);
  }
}

// Returns how many of `places` places hold at least one of the chosen experts, as a mean over all choices of
// `chosen` of `experts` experts; computed by enumeration. A token first chooses `most` of `groups` groups of
// neighbours, all with equal chances, then its experts from these.
double counted_places(int experts, int chosen, int places, int groups = 1, int most = 1) {
  double sum = 0, ways = 0;
  for (unsigned allowed = 0; allowed < 1u << groups; ++allowed) {
    if (std::popcount(allowed) != most) continue;
    for (unsigned choice = 0; choice < 1u << experts; ++choice) {
      if (std::popcount(choice) != chosen) continue;
      std::set<int> hit;
      bool possible = true;
      for (int e = 0; e < experts; ++e)
        if ((choice >> e & 1) != 0) {
          possible = possible && (allowed >> (e / (experts / groups)) & 1) != 0;
          hit.insert(e / (experts / places));
        }
      if (!possible) continue;
      ++ways;
      sum += static_cast<double>(hit.size());
    }
  }
  return sum / ways;
}

TEST_CASE("a row goes once to each rank or node that has any of a token's experts") {
  struct Case {
    ExpertDispatch dispatch;
    int devices;  // devices per node
    int places;   // places that receive one row each; 0: one row for each expert
  };
  // 8 ranks with 2 of 16 experts each.
  const std::vector<Case> cases = {{ExpertDispatch::experts, 1, 0}, {ExpertDispatch::ranks, 1, 8},
                                   {ExpertDispatch::ranks, 4, 8},   {ExpertDispatch::nodes, 1, 8},
                                   {ExpertDispatch::nodes, 4, 2},   {ExpertDispatch::nodes, 2, 4},
                                   {ExpertDispatch::nodes, 8, 8}};
  for (const int chosen : {1, 3, 4}) {
    const auto bytes_of = [&](const Case& c) {
      Scenario s = axes_scenario(axes_mixture(2, 16), {8, 1, 1, 1});
      std::get<Transformer>(s.model.shape).experts_per_token = chosen;
      s.strategy.expert = 8;
      s.strategy.expert_dispatch = c.dispatch;
      s.cluster = make_cluster(gpu_nodes(8 / c.devices, c.devices, c.devices));
      const auto plan = write_schedule(s);
      REQUIRE_NOTHROW(check(*plan.schedule));
      double sum = 0;
      for (const Op& op : plan.schedule->programs.front().ops)
        if (op.purpose == Purpose::experts) sum += op.collective.bytes.base;
      return sum;
    };
    const double all = bytes_of(cases.front());
    for (const Case& c : cases) {
      CAPTURE(chosen, static_cast<int>(c.dispatch), c.devices);
      const double share = c.places == 0 ? 1 : counted_places(16, chosen, c.places) / chosen;
      CHECK(bytes_of(c) == Approx(share * all).epsilon(1e-12));
    }
  }
}

TEST_CASE("node-limited routing sends a row to fewer ranks and nodes") {
  struct Case {
    const char* name;
    ExpertDispatch dispatch;
    int devices, places;  // devices per node; places that receive one row each
    int groups, most;     // expert_groups, groups_per_token
  };
  // 8 ranks with 2 of 16 experts each, 3 experts per token.
  const Case cases[] = {
      {"a group for each node", ExpertDispatch::nodes, 2, 4, 4, 2},
      {"a group for each rank", ExpertDispatch::ranks, 1, 8, 8, 3},
      {"several ranks in a group", ExpertDispatch::ranks, 1, 8, 2, 1},
      {"two groups on each node", ExpertDispatch::nodes, 2, 4, 8, 3},
      {"four groups on each node", ExpertDispatch::nodes, 4, 2, 8, 2},
      {"all groups chosen", ExpertDispatch::nodes, 2, 4, 4, 4},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto share_of = [&](ExpertDispatch dispatch) {
      Scenario s = axes_scenario(axes_mixture(2, 16), {8, 1, 1, 1});
      auto& t = std::get<Transformer>(s.model.shape);
      t.experts_per_token = 3;
      t.expert_groups = c.groups;
      t.groups_per_token = c.most;
      s.strategy.expert = 8;
      s.strategy.expert_dispatch = dispatch;
      s.cluster = make_cluster(gpu_nodes(8 / c.devices, c.devices, c.devices));
      double sum = 0;
      for (const Op& op : write_schedule(s).schedule->programs.front().ops)
        if (op.purpose == Purpose::experts) sum += op.collective.bytes.base;
      return sum;
    };
    CHECK(share_of(c.dispatch) / share_of(ExpertDispatch::experts) ==
          Approx(counted_places(16, 3, c.places, c.groups, c.most) / 3).epsilon(1e-12));
  }
}

TEST_CASE("experts are shared out, and the model's FLOPs stay the same") {
  const double alone = flops_of_all_ranks(axes_scenario(axes_mixture(2), {1, 1, 1, 1}));
  const double experts = parameters_of(axes_scenario(axes_mixture(2), {1, 1, 1, 1}), true);
  struct Case {
    Degrees degrees;
    int expert, expert_tensor;
    double share;  // share of the experts' parameters that a rank holds
  };
  const std::vector<Case> cases = {
      {{4, 1, 1, 1}, 2, 1, 1.0 / 2}, {{8, 1, 1, 1}, 8, 1, 1.0 / 8}, {{1, 1, 4, 1}, 2, 2, 1.0 / 4},
      {{2, 1, 4, 1}, 8, 1, 1.0 / 8}, {{1, 1, 8, 1}, 2, 2, 1.0 / 4}, {{2, 2, 2, 1}, 4, 2, 1.0 / 8},
      {{2, 1, 2, 1}, 1, 1, 1},       {{4, 1, 1, 1}, 2, 2, 1.0 / 4}, {{2, 1, 1, 2}, 2, 1, 1.0 / 2},
  };
  for (const Case& c : cases)
    for (const bool sequence : {false, true})
      for (const double capacity : {0.0, 1.5})
        for (const char* inner : {"tensor", "data", "context"}) {
          if (sequence && c.degrees.tensor == 1) continue;
          Scenario s = expert_scenario(c.degrees, c.expert, c.expert_tensor, sequence);
          s.strategy.capacity_factor = capacity;
          std::vector<std::string>& placement = s.strategy.placement;
          std::rotate(placement.begin(), std::find(placement.begin(), placement.end(), inner),
                      std::next(std::find(placement.begin(), placement.end(), inner)));
          CAPTURE(degrees_text(s.strategy), c.expert, c.expert_tensor, sequence, capacity, inner);
          REQUIRE_NOTHROW(check(*write_schedule(s).schedule));
          CHECK(flops_of_all_ranks(s) == Approx(c.degrees.data * alone).epsilon(1e-9));
          CHECK(parameters_of(s, true) == Approx(c.share * experts).epsilon(2e-3));  // output biases excepted
        }
}

TEST_CASE("gradients of experts are summed over those ranks that hold the same ones") {
  struct Case {
    Degrees degrees;
    int expert, expert_tensor;
    int copies;  // copies of an expert on ranks that share a batch or a sequence
  };
  for (const Case& c : {Case{{8, 1, 1, 1}, 4, 1, 2}, Case{{4, 1, 1, 1}, 4, 1, 1}, Case{{4, 2, 1, 1}, 2, 1, 4},
                        Case{{4, 1, 2, 1}, 4, 1, 2}, Case{{4, 1, 2, 1}, 2, 2, 2}}) {
    Scenario s = expert_scenario(c.degrees, c.expert, c.expert_tensor, c.degrees.tensor > 1);
    CAPTURE(degrees_text(s.strategy), c.expert, c.expert_tensor);
    const auto plan = write_schedule(s);
    std::map<int, double> bytes;  // by number of members
    for (const Op& op : plan.schedule->programs.front().ops)
      if (op.kind == OpKind::collective && op.pass == Pass::gradient_sync &&
          (op.action.kind == Action::Kind::none || op.action.kind == Action::Kind::sum_part))
        bytes[group_size(plan.schedule->roles[0], op.collective.group)] += op.collective.bytes.base;
    const int all = c.degrees.data * c.degrees.context;
    CHECK(bytes[all] == Approx(4 * parameters_of(s, false)));
    if (c.copies > 1) CHECK(bytes[c.copies] == Approx(4 * parameters_of(s, true)));
    CHECK(bytes.size() == (c.copies > 1 ? 2U : 1U));
  }
}

TEST_CASE("shards of experts lie on the ranks that hold the same ones") {
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    const std::string keys = "zero_stage = " + std::to_string(stage) + "\nexpert = 4\n";
    const Scenario s = read_scenario_text(
        "[model.transformer]\nlayers = 2\nhidden = 256\nheads = 8\nvocabulary = 1024\nsequence_length = 128\n"
        "experts = 8\nexperts_per_token = 2\n[training]\nglobal_batch = 16\nprecision = \"fp32\"\n[cluster]\n"
        "preset = \"dgx-a100\"\nnodes = 1\n[strategy]\n" +
            keys,
        "test.toml");
    const double dense = parameters_of(s, false), experts = parameters_of(s, true);
    const auto plan = write_schedule(s);
    REQUIRE_NOTHROW(check(*plan.schedule));
    std::map<TensorKind, double> held;
    for (const Tensor& tensor : plan.schedule->programs.front().tensors)
      held[tensor.kind] += tensor.bytes.base;
    // Dense parameters are sharded over 8 ranks, experts over 2; Adam has two moments in fp32.
    const double shared = 4 * (dense / 8 + experts / 2), whole = 4 * (dense + experts);
    CHECK(held[TensorKind::optimizer_state] == Approx(2 * shared));
    CHECK(held[TensorKind::gradient] == Approx(stage >= 2 ? shared : whole));
    CHECK(held[TensorKind::weight] == Approx(stage == 3 ? shared : whole));
  }
}

// Returns a scenario of one mixture of experts over 16 ranks, or nullopt where the keys are refused.
std::optional<Scenario> sixteen_ranks(const std::string& keys) {
  try {
    return read_scenario_text(
        "[model.transformer]\nlayers = 2\nhidden = 256\nheads = 8\nvocabulary = 1024\nsequence_length = 128\n"
        "experts = 8\nexperts_per_token = 2\n[training]\nglobal_batch = 16\nprecision = \"fp32\"\n[cluster]\n"
        "preset = \"dgx-a100\"\nnodes = 2\n[strategy]\n" +
            keys,
        "test.toml");
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// The ranks that hold the same experts as a rank sum their gradients in a schedule without shards. A shard
// group and the tensor ranks of its members hold a complete copy of the model: neighbours, because tensor is
// placed innermost.
TEST_CASE(
    "a hybrid group gathers no weights from outside, and shards experts over those of its ranks that hold "
    "them") {
  int tried = 0;
  for (const int tensor : {1, 2})
    for (const int context : {1, 2})
      for (const int expert : {2, 4, 8})
        for (const int expert_tensor : {1, 2})
          for (const int degree : {2, 4, 8, 16}) {
            const std::string degrees =
                fmt::format("tensor = {}\ncontext = {}\nexpert = {}\nexpert_tensor = {}\n", tensor, context,
                            expert, expert_tensor);
            CAPTURE(degrees, degree);
            const auto whole = sixteen_ranks(degrees);
            const auto hybrid =
                sixteen_ranks(degrees + fmt::format("fsdp = \"hybrid\"\nshard_degree = {}\n", degree));
            if (!whole || !hybrid) continue;
            ++tried;
            const auto without = write_schedule(*whole);
            std::vector<int> same_experts = {0};
            for (const Op& op : without.schedule->programs.front().ops)
              if (op.pass == Pass::gradient_sync && op.action.part == 1)
                same_experts = group_members(without.schedule->roles[0], op.collective.group, 0);
            const int replica = tensor * degree;
            const auto holders = static_cast<int>(std::count_if(same_experts.begin(), same_experts.end(),
                                                                [&](int rank) { return rank < replica; }));
            const auto plan = write_schedule(*hybrid);
            REQUIRE_NOTHROW(check(*plan.schedule));
            double held = 0;
            for (const Tensor& tensor_held : plan.schedule->programs.front().tensors)
              if (tensor_held.kind == TensorKind::weight) held += tensor_held.bytes.base;
            CHECK(held == Approx(4 * (parameters_of(*hybrid, false) / degree +
                                      parameters_of(*hybrid, true) / holders)));
            std::set<std::vector<int>> sums;  // groups of rank 0 over which gradients of experts are summed
            for (const Op& op : plan.schedule->programs.front().ops) {
              if (op.kind != OpKind::collective) continue;
              for (const int rank : {0, 15}) {
                const std::vector<int> members =
                    group_members(plan.schedule->roles[0], op.collective.group, rank);
                if (op.action.kind == Action::Kind::gather_weights)
                  for (const int member : members) CHECK(member / replica == rank / replica);
              }
              if (op.action.part == 1 && (op.action.kind == Action::Kind::scatter_gradients ||
                                          op.action.kind == Action::Kind::sum_part))
                sums.insert(group_members(plan.schedule->roles[0], op.collective.group, 0));
            }
            std::size_t summed = 1;
            for (const std::vector<int>& group : sums) summed *= group.size();
            CHECK(summed == same_experts.size());
          }
  CHECK(tried >= 30);
}

// 16 ranks, 128 experts over 8 of them, hybrid shards of 8: a group holds each expert once, so that a rank
// holds its 16 experts whole and an eighth of the rest. With Adam in bf16 a parameter has 2 (weight) + 2
// (gradient) + 12 (fp32 copy and two moments) bytes. Qwen 3 30B-A3B: 30.53 billion parameters, of which 48 x
// 128 x 3 x 2048 x 768 are experts'.
TEST_CASE("a rank of a hybrid group holds its experts whole") {
  const Scenario s = read_scenario_text(
      "[model]\npreset = \"qwen3-30b-a3b\"\n[training]\nglobal_batch = 16\nsequence_length = "
      "4096\n[cluster]\n"
      "preset = \"dgx-h100\"\nnodes = 2\n[strategy]\ndata = 16\nexpert = 8\nfsdp = \"hybrid\"\nshard_degree "
      "= 8\n",
      "test.toml");
  const auto plan = write_schedule(s);
  double held = 0;
  for (const Tensor& tensor : plan.schedule->programs.front().tensors)
    if (tensor.persistent() && tensor.kind != TensorKind::batch) held += tensor.bytes.base;
  const double experts = 48.0 * 128 * 3 * 2048 * 768, all = 30.532e9;
  CHECK(held == Approx(16 * (experts / 8 + (all - experts) / 8)).epsilon(1e-3));
}

TEST_CASE("unequal loads: their mean is 1, their spread as asked, and they follow from the seed") {
  for (const double imbalance : {0.1, 0.5, 1.0}) {
    const std::vector<double> loads = expert_loads(20000, 20000, imbalance, 7, 3);
    double sum = 0, squares = 0;
    for (const double load : loads) {
      CHECK(load > 0);
      sum += load;
      squares += (load - 1) * (load - 1);
    }
    CHECK(sum / 20000 == Approx(1));
    CHECK(std::sqrt(squares / 20000) == Approx(imbalance).epsilon(0.05));
  }
  CHECK(expert_loads(8, 4, 0.3, 1, 2) == expert_loads(8, 4, 0.3, 1, 2));
  CHECK(expert_loads(8, 4, 0.3, 1, 2) != expert_loads(8, 4, 0.3, 1, 3));
  CHECK(expert_loads(8, 4, 0.3, 1, 2) != expert_loads(8, 4, 0.3, 2, 2));
  // The load of a rank with several experts is their mean.
  const std::vector<double> each = expert_loads(8, 8, 0.3, 1, 2), pairs = expert_loads(8, 4, 0.3, 1, 2);
  for (std::size_t i = 0; i < 4; ++i) CHECK(pairs[i] == Approx((each[2 * i] + each[2 * i + 1]) / 2));
}

TEST_CASE("unequal loads send as many bytes and compute as much as equal ones, on other ranks") {
  struct Case {
    Degrees degrees;
    int expert;
  };
  for (const Case& c : {Case{{4, 1, 1, 1}, 4}, Case{{2, 1, 2, 2}, 4}}) {
    Scenario s = expert_scenario(c.degrees, c.expert, 1, c.degrees.tensor > 1);
    const auto equal = write_schedule(s);
    s.strategy.expert_imbalance = 0.5;
    const auto uneven = write_schedule(s);
    REQUIRE_NOTHROW(check(*uneven.schedule));
    const auto totals = [&](const Schedule& schedule) {
      double sent = 0, computed = 0;
      for (int rank = 0; rank < schedule.ranks(); ++rank)
        for (const Op& op : schedule.programs[schedule.program_of(0, rank)].ops) {
          if (op.kind == OpKind::compute)
            computed += op.share.at(schedule.roles[0], rank) * schedule.works[op.work].model_flops;
          if (op.purpose != Purpose::experts) continue;
          if (op.kind == OpKind::collective) sent += (c.expert - 1) * op.collective.bytes.base;
          for (const Message& message : op.messages)
            if (message.direction == Message::Direction::send)
              sent += message.bytes.at(schedule.roles[0], rank);
        }
      return std::pair(sent, computed);
    };
    const auto [sent, computed] = totals(*equal.schedule);
    const auto [sent_uneven, computed_uneven] = totals(*uneven.schedule);
    CHECK(computed_uneven == Approx(computed).epsilon(1e-9));
    // Ranks keep different shares for themselves, since a hot expert's own rows are not sent, but the total
    // is equal.
    CHECK(sent_uneven == Approx(sent).epsilon(1e-9));
  }
}

TEST_CASE("all-to-alls over several factors are one, whatever the order of routed rows") {
  const Placement b{Placement::Kind::sharded, Dim::batch}, s{Placement::Kind::sharded, Dim::sequence},
      e{Placement::Kind::sharded, Dim::experts}, r{};
  const std::vector<Change> out = changes({b, s}, {e, e}, {2, 4}, 64, true);
  REQUIRE(out.size() == 1);
  CHECK(out[0] == Change{Change::Kind::all_to_all, {0, 1}, 64, Dim::experts});
  const std::vector<Change> back = changes({e, e}, {b, s}, {2, 4}, 64, true);
  REQUIRE(back.size() == 1);
  CHECK(back[0].factors == std::vector<int>{0, 1});
  CHECK(back[0].elements == 64);
  // The outer of two shards can be gathered first only if the order does not matter.
  CHECK_THROWS_AS(changes({s, s}, {r, s}, {2, 2}, 64), std::invalid_argument);
  CHECK(changes({s, s}, {r, s}, {2, 2}, 64, true).size() == 1);
}

}  // namespace
}  // namespace rehearse
