// Writes one sentence: what costs most, with figures, and advice where there is any.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "simulator/costs/reserved.hpp"
#include "simulator/report/checkpoint_sentence.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/input_sentence.hpp"
#include "simulator/report/pipeline_estimate.hpp"
#include "simulator/report/report.hpp"
#include "simulator/report/way_out.hpp"

namespace rehearse {
namespace {

constexpr double kWorthNaming = 0.05;  // a loss below a twentieth of the step is not the bottleneck
constexpr double kMostOfIt = 0.5;

// A sentence about a loss, and the advice against it.
struct Loss {
  std::string text;
  WayOut way_out;
};

std::string of_the_step(const Result& result, double seconds) {
  return fmt::format("{} of the step", in_percent(seconds / result.metrics.step_time_s));
}

std::string link_load(const Result& result) {
  const Metrics& m = result.metrics;
  // Unless the run was emulated, the links that a measured run used are not the scenario's.
  const bool links_known = result.measured == nullptr || result.measured->executor == "emulated";
  if (m.busiest_link.empty() || !links_known) return "";
  const TimeScale time(m.step_time_s);
  return fmt::format("; {} carries data for {} of the step's {}", m.busiest_link,
                     time(m.busiest_utilization * m.step_time_s), time(m.step_time_s));
}

Loss bubble(const Result& result) {
  const Scenario& s = result.scenario;
  const int p = s.strategy.pipeline, m = s.microbatches, v = s.strategy.virtual_stages;
  const Slots slots = slots_of(s.strategy.schedule, p, m, v);
  const double seconds = result.metrics.breakdown.pipeline_bubble_s;
  std::string text = fmt::format(
      "the pipeline bubble, {}. {}{} and {} leave {}", of_the_step(result, seconds), counted(p, "stage"),
      v > 1 ? fmt::format(" of {} chunks", v) : "", counted(m, "micro-batch"), idle_slots(slots));
  // Equal stages leave exactly the slots' share idle. A much larger bubble comes from waiting for the slowest
  // stage or, if backward passes are split, from halves that take different times.
  if (seconds > 1.25 * slots.idle / slots.all * result.metrics.step_time_s) {
    text += slots.are_passes ? ", and passes of unequal length add to it"
                             : ", and stages of unequal length add to it";
  }
  return {text, less_bubble(result)};
}

// Returns whether the transfer is between a device, its host and the drives, which crosses no link of the
// cluster.
bool is_of_host(Purpose purpose) {
  return purpose == Purpose::host_copy || purpose == Purpose::host_update || purpose == Purpose::nvme;
}

Loss exposed(const Result& result, Purpose purpose, double seconds) {
  return {fmt::format("exposed {}, {}{}", waiting(purpose), of_the_step(result, seconds),
                      is_of_host(purpose) ? "" : link_load(result)),
          less_communication(result, purpose)};
}

Loss compute(const Result& result) {
  const Metrics& m = result.metrics;
  std::string text = "compute, " + of_the_step(result, m.breakdown.compute_s);
  if (m.hfu > 0 && m.breakdown.compute_s > 0) {
    const double reached = m.hfu * m.step_time_s / m.breakdown.compute_s;
    text += fmt::format("; while it computes, a {} reaches {} of its dense {} peak",
                        device_noun(result.scenario.cluster->node().device), in_percent(reached),
                        name_of(result.scenario.training.precision));
  }
  return {text, less_compute(result)};
}

// Returns the loss due to [[cluster.slow]], if it matters: of a single part that causes most of it, or of all
// parts.
std::optional<Loss> slow_parts(const Result& result) {
  const double step_s = result.metrics.step_time_s;
  if (result.slow.empty()) return std::nullopt;
  const auto saved_s = [&](const SlowCost& cost) { return step_s - cost.step_time_s; };
  const SlowCost* cost = &result.slow.front();
  const double all_s = saved_s(*cost);
  if (all_s <= kWorthNaming * step_s) return std::nullopt;
  const auto most = std::min_element(result.slow.begin() + 1, result.slow.end(),
                                     [&](const auto& a, const auto& b) { return saved_s(a) > saved_s(b); });
  if (most != result.slow.end() && saved_s(*most) >= kMostOfIt * all_s) cost = &*most;
  const std::vector<SlowPart>& parts = result.scenario.cluster->slow_parts;
  const auto part = [&](int number) -> const SlowPart& { return parts[static_cast<std::size_t>(number)]; };
  const SlowPart& slowest = part(*std::min_element(
      cost->parts.begin(), cost->parts.end(), [&](int a, int b) { return part(a).factor < part(b).factor; }));
  const TimeScale time(step_s);
  const bool one = cost->parts.size() == 1;
  const std::string name = (slowest.device < 0 ? "link " : "") + slowest.name;
  const std::string what = one ? fmt::format("{}, slowed to {:.4g} %", name, 100 * slowest.factor)
                               : fmt::format("{} slowed parts, the slowest {} at {:.4g} %",
                                             cost->parts.size(), name, 100 * slowest.factor);
  return Loss{fmt::format("{}: at full speed the step would take {} instead of {}", what,
                          time(cost->step_time_s), time(step_s)),
              cost->parts.size() == parts.size() ? WayOut{"", {"cluster.slow=[]"}} : WayOut{}};
}

Loss launches(const Result& result, double seconds) {
  if (result.scenario.cluster->node().device.compute_capability == 0)
    return {"work of the processes outside of kernels, " + of_the_step(result, seconds), {}};
  return {"kernel launches: the process of each GPU issues kernels more slowly than the device runs them, " +
              of_the_step(result, seconds),
          {"", {"training.cuda_graphs=true"}, 0, "a larger training.micro_batch"}};
}

// Returns the losses worth naming, the largest first; equal ones keep their order. Computation is always the
// last one.
std::vector<Loss> losses(const Result& result) {
  if (const std::optional<Loss> slow = slow_parts(result)) return {*slow};
  const Breakdown& b = result.metrics.breakdown;
  std::vector<std::pair<double, std::function<Loss(double)>>> found;
  const auto add = [&](double seconds, std::function<Loss(double)> told_as) {
    if (seconds > kWorthNaming * result.metrics.step_time_s) found.emplace_back(seconds, std::move(told_as));
  };
  add(b.pipeline_bubble_s, [&](double) { return bubble(result); });
  for (const auto& [purpose, seconds] : b.exposed_s)
    add(seconds, [&result, purpose = purpose](double s) { return exposed(result, purpose, s); });
  add(b.data_stall_s, [&](double s) {
    return Loss{"loading data: ranks wait for a batch for " + of_the_step(result, s), more_input(result)};
  });
  add(b.checkpoint_s, [&](double s) {
    return Loss{"checkpoints: training waits until they are copied or written, " + of_the_step(result, s),
                cheaper_checkpoints(result)};
  });
  add(b.launches_s, [&](double s) { return launches(result, s); });
  add(b.process_s, [&](double s) {
    return Loss{"waiting for the process: as profiled, devices idle within passes and the update for " +
                    of_the_step(result, s) + ", beside kernel launches",
                {}};
  });
  add(b.waiting_s(), [&](double s) {
    return Loss{fmt::format("waiting for {}, {}", waited_for(result.scenario), of_the_step(result, s)),
                less_waiting(result)};
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& z) { return a.first > z.first; });
  std::vector<Loss> losses;
  for (const auto& [seconds, told_as] : found) losses.push_back(told_as(seconds));
  losses.push_back(compute(result));
  return losses;
}

// Advice that was tried is told only if it helps.
std::string told_in_sentence(const Result& result, const WayOut& way, AdviceTold advice) {
  if (way.sets.empty()) return told(way);
  if (advice == AdviceTold::apart) return "";
  if (!result.remedies) return told(way);
  const TriedRemedy* remedy = remedy_with(*result.remedies, way.sets);
  return remedy ? told(way, in_percent(remedy->gain) + " less time per sample") : "";
}

}  // namespace

std::string bottleneck_sentence(const Result& result, AdviceTold advice) {
  const Loss worst = losses(result).front();
  return "Bottleneck: " + worst.text + told_in_sentence(result, worst.way_out, advice) + ".";
}

std::vector<Advice> advice_of(const Result& result) {
  std::vector<Advice> all;
  const auto add = [&](const Advice& advice) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const Advice& other) { return other.sets == advice.sets; });
    if (!advice.sets.empty() && !known) all.push_back(advice);
  };
  if (const MemoryUse& use = result.metrics.memory; use.capacity > 0 && !use.fits) {
    add(less_memory(result));
    return all;
  }
  for (const Loss& loss : losses(result)) add(loss.way_out);
  return all;
}

std::string waited_for(const Scenario& scenario) {
  const WaitedFor whom = gradient_strategy(scenario)->waited_for(scenario);
  return std::string(kWaitedForNames[static_cast<std::size_t>(whom)]);
}

namespace {

bool stages_alike(const Result& result) {
  const auto& programs = result.plan.schedule->programs;
  return std::count_if(programs.begin(), programs.end(), [](const Program& p) { return p.role == 0; }) == 1;
}

std::string used_of_capacity(const MemoryUse& use) {
  return fmt::format("{} of {} GiB", in_gibibytes(use.total), in_gibibytes(use.capacity));
}

// Returns a warning if the tensors, together with what CUDA and the libraries reserve, leave less than
// kMemoryMargin of the device's memory free; otherwise "".
std::string reserved_clause(const Result& result) {
  const MemoryUse& use = result.metrics.memory;
  const ReservedBytes reserved = reserved_bytes(*result.plan.schedule, result.plan.endpoints,
                                                *result.scenario.cluster, result.scenario.framework);
  if (use.total + reserved.total() <= (1 - kMemoryMargin) * use.capacity) return "";
  return fmt::format(
      "; the allocator, CUDA, NCCL and cuBLAS take {} to {} GiB in addition, so it may not fit",
      in_gibibytes(reserved.total()), in_gibibytes(needed_bytes(use.total, reserved) - use.total));
}

}  // namespace

std::string overflow_clause(const Result& result, AdviceTold advice) {
  const MemoryUse& use = result.metrics.memory;
  std::string parts;
  const auto part = [&](const char* name, double bytes) {
    if (bytes < 0.01 * use.total) return;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, in_gibibytes(bytes));
  };
  part("weights", use.weights);
  part("gradients", use.gradients);
  part("optimizer", use.optimizer);
  part("activations", use.activations);
  part("buffers", use.buffers);
  const std::string who =
      stages_alike(result) ? "every " + device_noun(result.scenario.cluster->node().device) : use.fullest;
  return fmt::format("{} needs {} ({}){}", who, used_of_capacity(use), parts,
                     advice == AdviceTold::in_sentence ? told(less_memory(result)) : "");
}

std::string host_memory_sentence(const HostMemoryUse& host) {
  std::string text = "Host memory: ";
  if (host.capacity <= 0)
    text += fmt::format("{} GiB on {}", in_gibibytes(host.total), host.fullest);
  else if (host.fits)
    text += fmt::format("{} of {} GiB on {}", in_gibibytes(host.total), in_gibibytes(host.capacity),
                        host.fullest);
  else
    text += fmt::format("does not fit, {} needs {} of {} GiB", host.fullest, in_gibibytes(host.total),
                        in_gibibytes(host.capacity));
  if (host.nvme > 0) text += fmt::format("; {} GiB on NVMe", in_gibibytes(host.nvme));
  return text + ".";
}

std::string memory_sentence(const Result& result, AdviceTold advice) {
  const MemoryUse& use = result.metrics.memory;
  if (use.total <= 0) return "";
  if (use.capacity <= 0) return fmt::format("Memory: {} GiB.", in_gibibytes(use.total));
  if (!use.fits) return fmt::format("Does not fit: {}.", overflow_clause(result, advice));
  const std::string close = reserved_clause(result);
  if (!stages_alike(result))
    return fmt::format("Memory: {} is the fullest: {}{}.", use.fullest, used_of_capacity(use), close);
  return fmt::format("Memory: {} on every {}{}.", used_of_capacity(use),
                     device_noun(result.scenario.cluster->node().device), close);
}

}  // namespace rehearse
