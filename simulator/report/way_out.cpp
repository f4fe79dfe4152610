// Each piece of advice is checked against the models of compute and memory: advice that would not help, or
// would not fit into memory, is omitted.
#include "simulator/report/way_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/report/format.hpp"
#include "simulator/report/pipeline_estimate.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/model_cut.hpp"

namespace rehearse {
namespace {

constexpr double kWorthTrying = 0.98;  // of the time it takes now; a smaller gain is not worth mentioning

// Formats a number as a scenario file does.
std::string value(double number) {
  return fmt::format("{}", number);
}

// Returns the seconds of one sample, forward and backward, on one device, in passes of this shape.
double compute_s_per_sample(const Scenario& scenario, const Plan& plan, const PassShape& shape) {
  double seconds = 0;
  for (const Layer& layer : layers_in_parts(scenario, shape, plan.stage_layers))
    seconds += layer_time_s(merged(layer), scenario.cluster->node().device, shape.precision);
  return seconds / shape.micro_batch;
}
double compute_s_per_sample(const Result& result, const PassShape& shape) {
  return compute_s_per_sample(result.scenario, result.plan, shape);
}

bool has_room_for(const Result& result, double more_bytes) {
  const MemoryUse& use = result.metrics.memory;
  return use.capacity <= 0 || use.total + more_bytes <= use.capacity;
}

bool uses_most(const Result& result, LinkPlace::Kind kind) {
  return !result.metrics.busiest_link.empty() && result.metrics.busiest_place.kind == kind;
}

bool can_halve(double micro_batch) {
  return micro_batch >= 2 && std::fmod(micro_batch, 2) == 0;
}

bool larger_batch_fits(const Result& result) {
  const StrategyChoice& strategy = result.scenario.strategy;
  const bool keeps_all = strategy.pipeline > 1 && order_of(strategy.schedule).retains_all;
  return has_room_for(result, keeps_all ? result.metrics.memory.activations : 0);
}

// Returns "3 of 11", for example.
std::string idle_of_all(const Scenario& scenario, PipelineSchedule schedule, int microbatches, int chunks) {
  const Slots slots = slots_of(schedule, scenario.strategy.pipeline, microbatches, chunks);
  return fmt::format("{} of {}", slots.idle, slots.all);
}

// More model chunks per stage make slots, and thus the bubble, shorter; each chunk adds one more transfer.
WayOut more_chunks(const Result& result) {
  const Scenario& s = result.scenario;
  const StrategyChoice& strategy = s.strategy;
  const OrderEntry& entry = order_of(strategy.schedule);
  if (is_profiled(s.model) || !strategy.stage_layers.empty() || entry.splits_backward) return {};
  const int now = strategy.virtual_stages, then = 2 * now;
  const PipelineSchedule schedule = now == 1 ? PipelineSchedule::interleaved : strategy.schedule;
  const PipelineEstimate before = estimate_pipeline(s, strategy.schedule, now);
  const PipelineEstimate after = estimate_pipeline(s, schedule, then);
  if (!after.possible || !has_room_for(result, after.fullest_bytes - before.fullest_bytes)) return {};
  const auto& exposed = result.metrics.breakdown.exposed_s;
  const auto transfers = exposed.find(Purpose::pipeline);
  const double more_s = transfers == exposed.end() ? 0 : transfers->second;  // twice as many
  if (after.compute_s + more_s >= kWorthTrying * before.compute_s) return {};
  WayOut way{
      fmt::format("{} virtual stages would leave {}", then, idle_of_all(s, schedule, s.microbatches, then)),
      {fmt::format("strategy.virtual_stages={}", then)}};
  if (now == 1) way.sets.insert(way.sets.begin(), "strategy.schedule=interleaved");
  return way;
}

// ZB-H1 retains as many activations as ZB-V, which leaves a smaller bubble at the cost of one more transfer
// in each direction.
WayOut back_and_forth(const Result& result) {
  const Scenario& s = result.scenario;
  if (s.strategy.schedule != PipelineSchedule::zb_h1 || is_profiled(s.model) ||
      !s.strategy.stage_layers.empty())
    return {};
  const PipelineEstimate before = estimate_pipeline(s, s.strategy.schedule, 1);
  const PipelineEstimate after = estimate_pipeline(s, PipelineSchedule::zb_v, 2);
  if (!after.possible || !has_room_for(result, after.fullest_bytes - before.fullest_bytes) ||
      after.compute_s >= kWorthTrying * before.compute_s)
    return {};
  return {"ZB-V would leave " + idle_of_all(s, PipelineSchedule::zb_v, s.microbatches, 2),
          {"strategy.schedule=zb-v"}};
}

WayOut less_gradient_sync(const Result& result) {
  const Scenario& s = result.scenario;
  const LinkPlace& busiest = result.metrics.busiest_place;
  if (const WayOut own = gradient_strategy(s)->less_communication(s, busiest);
      !own.why.empty() && has_room_for(result, own.more_bytes))
    return own;
  if (!s.strategy.overlap)
    return {"nothing of it overlaps with the backward pass", {"strategy.overlap=true"}};
  const double oversubscription = s.cluster->fabric().oversubscription;
  if (oversubscription > 1 && s.cluster->fabric().kind == Fabric::Kind::leaf_spine &&
      uses_most(result, LinkPlace::Kind::fabric)) {
    return {fmt::format("leaf switches have {} times as much bandwidth below as above",
                        with_digits(oversubscription, 2)),
            {"cluster.oversubscription=1"}};
  }
  if (!larger_batch_fits(result)) return {};
  return {"twice the global batch would need it half as often per sample",
          {"training.global_batch=" + value(2 * s.training.global_batch)}};
}

WayOut less_pipeline_transfer(const Result& result) {
  const Scenario& s = result.scenario;
  if (s.strategy.blocking_p2p) return {"transfers hold up computation", {"strategy.blocking_p2p=false"}};
  if (!uses_most(result, LinkPlace::Kind::network_card)) return {};
  return {"network cards twice as fast would halve it",
          {"cluster.nic_gbps=" + value(2 * s.cluster->node().nic_bandwidth * 8 / 1e9)}};
}

// `now_s`: current seconds of computing a sample.
WayOut fewer_layers_recomputed(const Result& result, double now_s) {
  Scenario changed = result.scenario;
  const int before = changed.training.recompute_layers;
  const int layers = changed.training.recompute_layers = fewest_recompute_layers(result);
  if (layers == 0 || (before > 0 && layers >= before)) return {};
  if (compute_s_per_sample(changed, result.plan, pass_shape(changed)) >= kWorthTrying * now_s) return {};
  return {fmt::format("there is enough memory to recompute no more than {}{}", counted(layers, "layer"),
                      changed.strategy.pipeline > 1 ? " of each stage" : ""),
          {fmt::format("training.recompute_layers={}", layers)}};
}

}  // namespace

std::string told(const WayOut& way, const std::string& gain) {
  std::string text = way.why.empty() ? "" : "; " + way.why;
  if (way.sets.empty()) return text;
  text += " (try";
  for (const std::string& set : way.sets) text += " --set " + set;
  if (!gain.empty()) text += ": " + gain;
  if (!way.or_else.empty()) text += ", or " + way.or_else;
  return text + ")";
}

WayOut less_bubble(const Result& result) {
  const Scenario& s = result.scenario;
  const int p = s.strategy.pipeline, m = s.microbatches, v = s.strategy.virtual_stages;
  const PipelineSchedule schedule = s.strategy.schedule;
  if (const WayOut way = more_chunks(result); !way.why.empty()) return way;
  if (const WayOut way = back_and_forth(result); !way.why.empty()) return way;
  if (!is_profiled(s.model) && can_halve(s.training.micro_batch)) {
    const auto step_s = [&](const PassShape& shape, int microbatches) {
      const Slots slots = slots_of(schedule, p, microbatches, v);
      return slots.all / (slots.all - slots.idle) * microbatches * shape.micro_batch *
             compute_s_per_sample(result, shape);
    };
    PassShape half = pass_shape(s);
    const double now_s = step_s(half, m);
    half.micro_batch /= 2;
    if (step_s(half, 2 * m) < kWorthTrying * now_s) {
      return {"micro-batches of half the size would leave " + idle_of_all(s, schedule, 2 * m, v),
              {"training.micro_batch=" + value(half.micro_batch)}};
    }
  }
  if (!larger_batch_fits(result)) return {};
  if (order_of(schedule).splits_backward)  // halves of unequal length make a bubble that this does not shrink
    return {"twice the global batch would halve its share",
            {"training.global_batch=" + value(2 * s.training.global_batch)}};
  return {"twice the global batch would leave " + idle_of_all(s, schedule, 2 * m, v),
          {"training.global_batch=" + value(2 * s.training.global_batch)}};
}

WayOut less_communication(const Result& result, Purpose purpose) {
  if (purpose == Purpose::gradient_sync) return less_gradient_sync(result);
  if (purpose == Purpose::weights) {
    const WayOut own = gradient_strategy(result.scenario)->less_gathering(result.scenario);
    return has_room_for(result, own.more_bytes) ? own : WayOut{};
  }
  if (purpose == Purpose::pipeline) return less_pipeline_transfer(result);
  for (const AxisEntry* axis : axes())
    if (axis->purpose == purpose)
      return axis->less_communication(result.scenario, result.metrics.busiest_place);
  return {};
}

WayOut less_compute(const Result& result) {
  const Scenario& s = result.scenario;
  if (is_profiled(s.model)) return {};
  const PassShape now = pass_shape(s);
  const double now_s = compute_s_per_sample(result, now);
  const auto gain = [&](const PassShape& shape) { return now_s / compute_s_per_sample(result, shape); };
  if (now.precision == Precision::fp32 || now.precision == Precision::tf32) {
    PassShape best = now;
    for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::tf32}) {
      if (s.cluster->node().device.peak_flops[static_cast<std::size_t>(precision)].value <= 0) continue;
      PassShape shape = now;
      shape.precision = precision;
      if (s.training.attention_reason != AttentionReason::given)
        shape.attention =
            default_attention(s.model, s.cluster->node().device, precision, s.framework).kernels;
      if (gain(shape) > gain(best)) best = shape;
    }
    if (gain(best) * kWorthTrying > 1) {
      return {
          fmt::format("{} computes {} times as fast", name_of(best.precision), with_digits(gain(best), 2)),
          {fmt::format("training.precision={}", name_of(best.precision))}};
    }
  }
  const bool fused = now.attention != AttentionKernels::unfused;
  for (const Recompute recompute : {Recompute::none, Recompute::selective}) {
    if (recompute >= now.recompute) continue;
    if (recompute == Recompute::none && s.training.recompute_layers > 0) continue;  // --set cannot unset it
    if (recompute == Recompute::selective && fused) continue;  // nothing would be recomputed
    PassShape shape = now;
    shape.recompute = recompute;
    Scenario changed = s;
    changed.training.recompute = recompute;
    if (gain(shape) * kWorthTrying > 1 && would_fit(result, changed)) {
      return {fmt::format("there is enough memory to recompute {}",
                          recompute == Recompute::none ? "nothing" : "less"),
              {fmt::format("training.recompute={}", kRecomputeNames[static_cast<std::size_t>(recompute)])}};
    }
  }
  if (now.recompute >= Recompute::operators || (now.recompute == Recompute::selective && !fused))
    if (const WayOut way = fewer_layers_recomputed(result, now_s); !way.why.empty()) return way;
  // In a pipeline, larger micro-batches are fewer and leave a larger bubble.
  PassShape twice = now;
  twice.micro_batch *= 2;
  if (s.strategy.pipeline == 1 && gain(twice) * kWorthTrying > 1 &&
      has_room_for(result, result.metrics.memory.activations)) {
    WayOut way{"larger products run closer to the peak",
               {"training.micro_batch=" + value(twice.micro_batch)}};
    if (s.microbatches % 2 != 0) {
      way.sets.insert(way.sets.begin(), "training.global_batch=" + value(2 * s.training.global_batch));
    }
    return way;
  }
  return {};
}

WayOut less_waiting(const Result& result) {
  const Scenario& s = result.scenario;
  const std::shared_ptr<const GradientStrategy> strategy = gradient_strategy(s);
  const LinkPlace& busiest = result.metrics.busiest_place;
  if (strategy->waited_for(s) == WaitedFor::servers) return strategy->less_waiting(s, busiest);
  for (const int endpoint : result.plan.endpoints) {
    const double factor = s.cluster->device_factor(endpoint);
    if (factor < 1) {
      return {
          fmt::format("{} runs at {} of its speed", s.cluster->endpoint_name(endpoint), in_percent(factor)),
          {"cluster.slow=[]"}};
    }
  }
  for (const AxisEntry* axis : axes())
    if (axis->less_waiting)
      if (const WayOut way = axis->less_waiting(s); !way.sets.empty()) return way;
  return s.strategy.data > 1 ? strategy->less_waiting(s, busiest) : WayOut{};
}

}  // namespace rehearse
