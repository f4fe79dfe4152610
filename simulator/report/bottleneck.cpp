// One sentence: what costs most, by which figures, and a way out where there is one.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/report/format.hpp"
#include "simulator/report/report.hpp"

namespace rehearse {
namespace {

constexpr double kWorthNaming = 0.05;  // a loss below a twentieth of the step is not the bottleneck

std::string link_load(const Result& result) {
  const Metrics& m = result.metrics;
  if (m.busiest_link.empty()) return "";
  const double busy_s = m.busiest_utilization * m.step_time_s;
  return fmt::format(" Link {} carries data for {} of the step's {}.", m.busiest_link,
                     TimeScale(m.step_time_s)(busy_s), TimeScale(m.step_time_s)(m.step_time_s));
}

std::string memory_overflow(const Result& result) {
  const MemoryUse& use = result.metrics.memory;
  std::string way_out = "more stages or devices that split the model";
  if (use.activations > 0.5 * use.total) {
    way_out = result.scenario.training.micro_batch > 1                ? "a smaller training.micro_batch"
              : result.scenario.training.recompute != Recompute::full ? "try --set training.recompute=full"
                                                                      : "more stages";
  }
  const auto& programs = result.plan.schedule->programs;
  const bool alike =
      std::count_if(programs.begin(), programs.end(), [](const Program& p) { return p.role == 0; }) == 1;
  return fmt::format("memory. {} needs {} of {} GiB and does not fit; {}.",
                     alike ? "Every device" : use.fullest, in_gibibytes(use.total),
                     in_gibibytes(use.capacity), way_out);
}

std::string bubble(const Result& result) {
  const Scenario& s = result.scenario;
  const double p = s.strategy.pipeline, m = s.microbatches;
  const double share = result.metrics.breakdown.pipeline_bubble_s / result.metrics.step_time_s;
  std::string text =
      fmt::format("the pipeline bubble, {} of the step. {} and {} leave {} of {} slots idle",
                  in_percent(share), counted(p, "stage"), counted(m, "micro-batch"), p - 1, m + p - 1);
  const double theory = (p - 1) / (m + p - 1);
  // Equal stages leave exactly the slots' share; what is well above comes from the wait for the slowest
  // stage.
  if (share > 1.25 * theory) text += ", and stages of unequal length add to it";
  const double half = s.training.micro_batch / 2;
  if (s.training.micro_batch >= 2 && half == static_cast<double>(static_cast<long>(half))) {
    return text +
           fmt::format(
               "; micro-batches of half the size would leave {} of {} (try --set training.micro_batch={}).",
               p - 1, 2 * m + p - 1, half);
  }
  return text +
         fmt::format("; twice the global batch would leave {} of {} (try --set training.global_batch={}).",
                     p - 1, 2 * m + p - 1, 2 * s.training.global_batch);
}

std::string gradient_sync(const Result& result, double seconds) {
  const Scenario& s = result.scenario;
  const StrategyChoice& strategy = s.strategy;
  std::string text = fmt::format("gradient sync, {} of the step is spent waiting for it.{}",
                                 in_percent(seconds / result.metrics.step_time_s), link_load(result));
  if (!strategy.overlap) return text + " Try --set strategy.overlap=true.";
  if (strategy.gradients == GradientSync::parameter_server) {
    return text +
           fmt::format(" More servers share the load (try --set strategy.parameter_server.servers={}).",
                       2 * strategy.parameter_server.servers);
  }
  if (s.cluster->fabric().oversubscription > 1) {
    return text + fmt::format(" The fabric is oversubscribed {} to 1.",
                              with_digits(s.cluster->fabric().oversubscription, 3));
  }
  return text + fmt::format(" A larger batch hides more of it (try --set training.global_batch={}).",
                            2 * s.training.global_batch);
}

std::string exposed(const Result& result, const std::string& name, double seconds) {
  if (name == "gradient sync") return gradient_sync(result, seconds);
  std::string text = fmt::format("{}, {} of the step is spent waiting for it.{}", name,
                                 in_percent(seconds / result.metrics.step_time_s), link_load(result));
  if (name == "pipeline transfer" && result.scenario.strategy.blocking_p2p) {
    text += " The transfers block computation (try --set strategy.blocking_p2p=false).";
  }
  return text;
}

std::string compute(const Result& result) {
  const Metrics& m = result.metrics;
  std::string text =
      fmt::format("compute, {} of the step", in_percent(m.breakdown.compute_s / m.step_time_s));
  if (m.hfu > 0 && m.breakdown.compute_s > 0) {
    const double reached = m.hfu * m.step_time_s / m.breakdown.compute_s;
    text += fmt::format("; while it computes, a device reaches {} of its dense {} peak", in_percent(reached),
                        name_of(result.scenario.training.precision));
  }
  return text + ".";
}

std::string waiting(const Result& result, double seconds) {
  const Cluster& cluster = *result.scenario.cluster;
  std::string text = fmt::format("waiting for other ranks, {} of the step.",
                                 in_percent(seconds / result.metrics.step_time_s));
  for (const int endpoint : result.plan.endpoints) {
    const double factor = cluster.device_factor(endpoint);
    if (factor < 1) {
      return text +
             fmt::format(" {} runs at {} of its speed.", cluster.endpoint_name(endpoint), in_percent(factor));
    }
  }
  return text;
}

}  // namespace

std::string bottleneck_sentence(const Result& result) {
  const Metrics& m = result.metrics;
  std::string text;
  if (!m.memory.fits) {
    text = memory_overflow(result);
  } else {
    // The largest loss; the first of equals.
    double worst = kWorthNaming * m.step_time_s;
    text = compute(result);
    if (m.breakdown.pipeline_bubble_s > worst) {
      worst = m.breakdown.pipeline_bubble_s;
      text = bubble(result);
    }
    for (const auto& [name, seconds] : m.breakdown.exposed_by_pass_s) {
      if (seconds > worst) {
        worst = seconds;
        text = exposed(result, name, seconds);
      }
    }
    if (m.breakdown.data_stall_s > worst) {
      worst = m.breakdown.data_stall_s;
      text = fmt::format("loading data, {} of the step is spent waiting for a batch.",
                         in_percent(worst / m.step_time_s));
    }
    if (m.breakdown.other_s > worst) text = waiting(result, m.breakdown.other_s);
  }
  return "Bottleneck: " + text;
}

}  // namespace rehearse
