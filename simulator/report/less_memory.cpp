// Each change is tried: the schedule is written again, and the bytes of its fullest device are counted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "models/text/error.hpp"
#include "simulator/costs/host.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/way_out.hpp"
#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/worker_memory.hpp"

namespace rehearse {
namespace {

// A change of the scenario, and how to describe it.
struct Remedy {
  std::string why;
  std::vector<std::string> sets;
  Scenario scenario;
};

// Returns the bytes of the fullest device; nullopt if the scenario cannot be planned.
std::optional<double> needed(const Scenario& scenario) {
  try {
    return worker_bytes_of(scenario);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const RunError&) {
    return std::nullopt;
  }
}

// The same for a result's own scenario, whose schedule is known; that of a few micro-batches needs as much.
std::optional<double> needed(const Result& result) {
  return peak_worker_bytes(*result.plan.schedule);
}

// Returns more of the same devices behind one switch: what a device holds does not depend on the network.
std::shared_ptr<const Cluster> with_nodes(const Cluster& cluster, int nodes) {
  ClusterParts parts;
  parts.name = cluster.name;
  parts.node = cluster.node();
  parts.fabric.kind = Fabric::Kind::single_switch;
  parts.nodes = nodes;
  parts.server_nodes = cluster.server_nodes();
  return make_cluster(parts);
}

// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022: it does not send
// more.
std::vector<Remedy> sharing_tokens(const Scenario& s) {
  const int ranks = s.strategy.tensor;
  if (ranks == 1 || s.strategy.sequence_parallel || !std::holds_alternative<Transformer>(s.model.shape) ||
      std::fmod(tokens_per_sample(s.model, s.training.sequence_length),
                ranks * (s.strategy.context > 1 ? 2 * s.strategy.context : 1)) != 0)
    return {};
  Remedy remedy{fmt::format("{} tensor ranks can split the tokens where they do not split products", ranks),
                {"strategy.sequence_parallel=true"},
                s};
  remedy.scenario.strategy.sequence_parallel = true;
  return {remedy};
}

std::vector<Remedy> fusing_loss(const Scenario& s) {
  const auto* t = std::get_if<Transformer>(&s.model.shape);
  if (t == nullptr || t->vocabulary <= 0 || s.training.fused_loss) return {};
  Remedy remedy{"a fused loss overwrites the logits", {"training.fused_loss=true"}, s};
  remedy.scenario.training.fused_loss = true;
  return {remedy};
}

std::vector<Remedy> recomputing(const Scenario& s) {
  std::vector<Remedy> remedies;
  if (is_profiled(s.model)) return remedies;
  Remedy more{"more layers can be recomputed", {}, s};
  const int most = s.training.recompute_layers > 0 ? most_recompute_layers(s, cut_model(s).stage_layers) : 0;
  for (int& layers = more.scenario.training.recompute_layers; layers < most;) {
    ++layers;
    more.sets = {fmt::format("training.recompute_layers={}", layers)};
    remedies.push_back(more);
  }
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    if (recompute <= s.training.recompute) continue;
    const bool scores = std::holds_alternative<Transformer>(s.model.shape) &&
                        s.training.attention == AttentionKernels::unfused;
    if (recompute == Recompute::selective && !scores) continue;
    Remedy remedy{
        "activations can be recomputed instead of stored",
        {fmt::format("training.recompute={}", kRecomputeNames[static_cast<std::size_t>(recompute)])},
        s};
    remedy.scenario.training.recompute = recompute;
    if (most > 0) {
      remedy.scenario.training.recompute_layers = most;
      remedy.sets.push_back(fmt::format("training.recompute_layers={}", most));
    }
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

// Returns the fewest layers of each stage that can be recomputed so that the scenario fits; 0 if that takes
// all of them.
int fewest_recomputed(const Scenario& s, const std::function<bool(const Scenario&)>& fits) {
  const auto layers = static_cast<int>(model_layers(s.model, pass_shape(s)).size());
  if (most_recompute_layers(s, {layers}) == 0) return 0;
  Scenario changed = s;
  changed.training.recompute_layers = 1;
  const int all = most_recompute_layers(s, cut_model(changed).stage_layers);
  const auto fits_with = [&](int some) {
    changed.training.recompute_layers = some;
    return fits(changed);
  };
  int too_few = 0, enough = all;
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (fits_with(middle) ? enough : too_few) = middle;
  }
  return enough < all ? enough : 0;
}

std::vector<Remedy> smaller_microbatches(const Scenario& s) {
  std::vector<Remedy> remedies;
  if (is_profiled(s.model)) return remedies;
  Scenario smaller = s;
  for (auto size = static_cast<std::int64_t>(s.training.micro_batch); size % 2 == 0;) {
    size /= 2;
    smaller.training.micro_batch = static_cast<double>(size);
    smaller.microbatches *= 2;
    if (smaller.microbatches > kMaxMicrobatches) break;
    remedies.push_back({"smaller micro-batches store fewer activations",
                        {fmt::format("training.micro_batch={}", size)},
                        smaller});
  }
  return remedies;
}

std::vector<Remedy> sharding(const Scenario& s) {
  static constexpr std::array kShared = {"the optimizer's state", "optimizer state and gradients",
                                         "optimizer state, gradients and weights"};
  std::vector<Remedy> remedies;
  if (s.strategy.data == 1) return remedies;
  for (int stage = 1; stage <= 3; ++stage) {
    Remedy remedy{fmt::format("{} ranks can shard {}", s.strategy.data, kShared[stage - 1]),
                  {fmt::format("strategy.zero_stage={}", stage)},
                  s};
    remedy.scenario.strategy.gradient_strategy = gradient_strategy(s)->sharded(stage);
    if (remedy.scenario.strategy.gradient_strategy) remedies.push_back(std::move(remedy));
  }
  return remedies;
}

// Stores what ranks shard, or what a single rank has, in host memory, if the cluster says how fast that is.
std::vector<Remedy> offloading(const Scenario& s) {
  static constexpr std::array kKept = {"optimizer state and gradients",
                                       "optimizer state, gradients and weights"};
  std::vector<Remedy> remedies;
  if (!missing_host_key(s.cluster->node(), false).empty()) return remedies;
  for (int stage = 2; stage <= 3; ++stage) {
    Remedy remedy{fmt::format("{} can be stored in host memory", kKept[static_cast<std::size_t>(stage) - 2]),
                  {fmt::format("strategy.zero_stage={}", stage)},
                  s};
    StrategyChoice& strategy = remedy.scenario.strategy;
    const std::shared_ptr<const GradientStrategy> now = gradient_strategy(s);
    strategy.gradient_strategy = now->sharded(stage);
    if (stage == 2 && !strategy.gradient_strategy && now->sharded(3)) {  // already sharded at this stage
      if (strategy.offload.optimizer != OffloadTo::none) continue;
      strategy.gradient_strategy = now;
      remedy.sets.clear();
    }
    if (!strategy.gradient_strategy) continue;
    const auto keep = [&](OffloadTo& what, const char* key) {
      if (what != OffloadTo::none) return;
      what = OffloadTo::cpu;
      remedy.sets.push_back(fmt::format("strategy.{}=cpu", key));
    };
    keep(strategy.offload.optimizer, "offload");
    if (stage == 3) keep(strategy.offload.parameters, "offload_parameters");
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

std::vector<Remedy> plainer_schedules(const Scenario& s) {
  if (order_of(s.strategy.schedule).fewest_stages < 2 || is_profiled(s.model) ||
      !s.strategy.stage_layers.empty())
    return {};
  const bool chunks = s.strategy.virtual_stages > 1;
  Remedy remedy{fmt::format("1F1B{} stores fewer activations", chunks ? " without virtual stages" : ""),
                {"strategy.schedule=1f1b"},
                s};
  remedy.scenario.strategy.schedule = PipelineSchedule::one_f_one_b;
  remedy.scenario.strategy.virtual_stages = 1;
  if (chunks) remedy.sets.emplace_back("strategy.virtual_stages=1");
  return {remedy};
}

// Without data parallelism, this takes more devices, which run the same micro-batches; with it, each pipeline
// runs more of them.
std::vector<Remedy> more_stages(const Scenario& s) {
  std::vector<Remedy> remedies;
  if (is_profiled(s.model) || !s.strategy.stage_layers.empty()) return remedies;
  Remedy remedy{"", {}, s};
  StrategyChoice& strategy = remedy.scenario.strategy;
  for (int times = 2; times <= 64; times *= 2) {
    strategy.pipeline *= 2;
    if (strategy.data % 2 == 0) {
      strategy.data /= 2;
      remedy.scenario.microbatches *= 2;
      if (remedy.scenario.microbatches > kMaxMicrobatches) break;
    } else {
      remedy.scenario.cluster = with_nodes(*remedy.scenario.cluster, 2 * remedy.scenario.cluster->nodes());
    }
    remedy.why = times == 2 ? std::string("twice as many stages hold half of the model each")
                            : fmt::format("{} times as many stages hold less of the model each", times);
    remedy.sets = {fmt::format("strategy.pipeline={}", strategy.pipeline),
                   fmt::format("strategy.data={}", strategy.data)};
    if (remedy.scenario.cluster->nodes() != s.cluster->nodes())
      remedy.sets.push_back(fmt::format("cluster.nodes={}", remedy.scenario.cluster->nodes()));
    remedies.push_back(remedy);
  }
  return remedies;
}

}  // namespace

WayOut less_memory(const Result& result) {
  using Kind = std::vector<Remedy> (*)(const Scenario&);
  // Ordered from changes that cost little time to those that cost much time, or devices.
  static constexpr std::array<Kind, 8> kKinds = {sharing_tokens,       recomputing, fusing_loss,
                                                 smaller_microbatches, sharding,    plainer_schedules,
                                                 offloading,           more_stages};
  const MemoryUse& use = result.metrics.memory;
  const std::optional<double> now = needed(result);
  if (!now || use.capacity <= 0) return {};
  // Bytes that the order of programs does not show, and those of a server on the device.
  const double besides = std::max(0.0, use.total - *now);
  const auto fits = [&](double bytes) { return bytes + besides <= use.capacity; };
  const auto scenario_fits = [&](const Scenario& s) {
    const std::optional<double> bytes = needed(s);
    return bytes && fits(*bytes);
  };

  for (const Kind kind : kKinds)
    for (Remedy& remedy : kind(result.scenario)) {
      const std::optional<double> bytes = needed(remedy.scenario);
      if (!bytes || !fits(*bytes)) continue;
      if (kind == recomputing && remedy.scenario.training.recompute_layers == 0)
        if (const int layers = fewest_recomputed(remedy.scenario, scenario_fits); layers > 0)
          remedy.sets.push_back(fmt::format("training.recompute_layers={}", layers));
      return {remedy.why, remedy.sets};
    }

  // No single change suffices: applies, kind after kind, the change of each kind that needs least.
  WayOut all;
  Scenario scenario = result.scenario;
  double least = *now;
  for (const Kind kind : kKinds) {
    const double before = least;
    std::optional<Remedy> best;
    for (Remedy& remedy : kind(scenario)) {
      const std::optional<double> bytes = needed(remedy.scenario);
      if (!bytes || *bytes >= least || *bytes > 0.99 * before) continue;
      least = *bytes;
      best = std::move(remedy);
      if (fits(least)) break;
    }
    if (!best) continue;
    all.why += (all.why.empty() ? "" : ", and ") + best->why;
    all.sets.insert(all.sets.end(), best->sets.begin(), best->sets.end());
    scenario = best->scenario;
    if (fits(least)) return all;
  }
  if (!all.why.empty()) all.why += fmt::format(", which still needs {} GiB", in_gibibytes(least + besides));
  return all;
}

bool would_fit(const Result& result, const Scenario& changed) {
  const MemoryUse& use = result.metrics.memory;
  if (use.capacity <= 0) return true;
  const std::optional<double> now = needed(result), then = needed(changed);
  return now && then && *then + std::max(0.0, use.total - *now) <= use.capacity;
}

int fewest_recompute_layers(const Result& result) {
  return fewest_recomputed(result.scenario, [&](const Scenario& s) { return would_fit(result, s); });
}

}  // namespace rehearse
