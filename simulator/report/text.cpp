// Writes the answer on one screen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "simulator/report/checkpoint_sentence.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/input_sentence.hpp"
#include "simulator/report/peak_tensors.hpp"
#include "simulator/report/remedies.hpp"
#include "simulator/report/report.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr int kBar = 36;  // characters of the longest bar

std::string schedule_title(const StrategyChoice& strategy) {
  const OrderEntry& entry = order_of(strategy.schedule);
  if (entry.most_chunks <= 2) return std::string(entry.title);
  return fmt::format("{} x {}", entry.title, strategy.virtual_stages);
}

std::string bar(double share_of_largest) {
  const int length = std::max(1, static_cast<int>(std::lround(kBar * share_of_largest)));
  std::string text;
  for (int i = 0; i < length; ++i) text += "█";
  return text + std::string(static_cast<std::size_t>(kBar - length), ' ');
}

// Omits values that would read "0.0 %".
bool is_shown(double seconds, const Metrics& m) {
  return seconds >= 0.0005 * m.step_time_s;
}

void write_breakdown(const Result& result, std::ostream& out) {
  const Metrics& m = result.metrics;
  std::vector<std::pair<std::string, double>> rows = {
      {"compute", m.breakdown.compute_s - m.breakdown.slowed_s},
      {kSlowedCompute, m.breakdown.slowed_s},
      {"pipeline bubble", m.breakdown.pipeline_bubble_s}};
  for (const auto& [purpose, seconds] : m.breakdown.exposed_s)
    rows.emplace_back("exposed " + waiting(purpose), seconds);
  rows.emplace_back("waiting for data", m.breakdown.data_stall_s);
  rows.emplace_back(kCheckpointStall, m.breakdown.checkpoint_s);
  // A processor runs its kernels itself: there, this is the work of the process between kernels.
  const bool on_processors = result.scenario.cluster->node().device.compute_capability == 0;
  rows.emplace_back(on_processors ? "outside of kernels" : "waiting for kernel launches",
                    m.breakdown.launches_s);
  rows.emplace_back(kProfiledWait, m.breakdown.process_s);
  rows.emplace_back("waiting for " + waited_for(result.scenario), m.breakdown.waiting_s());
  double largest = 0;
  std::size_t width = 0;
  for (const auto& [name, seconds] : rows) {
    largest = std::max(largest, seconds);
    if (is_shown(seconds, m)) width = std::max(width, name.size());
  }
  const TimeScale time(m.step_time_s);
  for (const auto& [name, seconds] : rows) {
    if (!is_shown(seconds, m)) continue;
    out << fmt::format("  {:<{}}   {}  {:>10}   {:>7}\n", name, width, bar(seconds / largest), time(seconds),
                       in_percent(seconds / m.step_time_s));
  }
}

std::string asynchrony_sentence(const Result& result) {
  const AsynchronyFigures& figures = *result.metrics.asynchrony;
  double slowest = figures.workers.front().samples_per_s, fastest = slowest;
  for (const AsynchronyFigures::Worker& worker : figures.workers) {
    slowest = std::min(slowest, worker.samples_per_s);
    fastest = std::max(fastest, worker.samples_per_s);
  }
  const std::string low = with_prefix(slowest), high = with_prefix(fastest);
  const std::string& unit = result.scenario.model.sample_unit;
  return fmt::format("Staleness: mean {:.1f}, at most {} updates; {} {}/s.", figures.mean_staleness(),
                     figures.most_staleness(),
                     figures.workers.size() == 1 ? "the worker trains " + low
                     : low == high               ? "each worker " + low
                                                 : "workers " + low + " to " + high,
                     unit);
}

}  // namespace

std::string spread_clause(const Metrics& metrics) {
  if (const std::optional<StepDistribution>& steps = metrics.distribution) {
    const TimeScale time(metrics.step_time_s);
    return fmt::format("the mean of {} steps, of which 90 % take {} to {}, the longest {}", steps->steps,
                       time(steps->low_s), time(steps->high_s), time(steps->most_s));
  }
  if (!metrics.asynchrony || !metrics.asynchrony->phases) return "";
  const AsynchronyFigures::StartingPhases& phases = *metrics.asynchrony->phases;
  const TimeScale time(metrics.step_time_s);
  const std::string least = time(phases.least_s), most = time(phases.most_s);
  return fmt::format("{} over {} starting phases of the workers",
                     least == most ? "the same" : least + " to " + most, phases.count);
}

std::string strategy_line(const Scenario& s, const Schedule& schedule) {
  const StrategyChoice& strategy = s.strategy;
  std::string text;
  const auto part = [&](const std::string& p) { text += (text.empty() ? "" : ", ") + p; };
  std::string degrees;
  for (const AxisEntry* axis : axes())
    if (axis->degree(strategy) > 1) degrees += (degrees.empty() ? "" : " x ") + axis->headline(strategy);
  part(degrees.empty() ? "data 1" : degrees);
  if (strategy.pipeline > 1) part(schedule_title(strategy));
  part(fmt::format("micro-batch {}", s.training.micro_batch));
  if (weight_copies(strategy) > 1 || strategy.offload.optimizer != OffloadTo::none) {
    const std::string chosen =
        strategy.all_reduce == Algorithm::automatic ? all_reduce_algorithms(schedule) : "";
    part(gradient_strategy(s)->headline(s) + (chosen.empty() ? "" : fmt::format(" ({})", chosen)));
  }
  if (!strategy.title.empty()) part("as " + strategy.title);
  part(std::string(name_of(s.training.precision)));
  return text;
}

void write_text(const Result& result, std::ostream& out) {
  const Scenario& s = result.scenario;
  const Metrics& m = result.metrics;
  const std::string what = fmt::format("{} on {}", s.model.title, s.cluster->title);
  const std::string how = strategy_line(s, *result.plan.schedule);
  out << what
      << (what.size() + how.size() + 4 <= kTextWidth ? std::string(kTextWidth - what.size() - how.size(), ' ')
                                                     : "\n")
      << how << "\n\n";

  out << "  step " << TimeScale(m.step_time_s)(m.step_time_s) << "      " << with_prefix(m.samples_per_s)
      << ' ' << s.model.sample_unit << "/s";
  if (m.tokens_per_s > 0) out << "      " << with_prefix(m.tokens_per_s) << " tokens/s";
  if (m.model_tflops_per_device > 0) {
    out << "      " << with_digits(m.model_tflops_per_device, 3) << " TFLOP/s per "
        << device_noun(s.cluster->node().device);
  }
  if (m.mfu > 0) out << "      MFU " << in_percent(m.mfu);
  out << '\n';
  if (const std::string spread = spread_clause(m); !spread.empty()) out << "  " << spread << '\n';
  out << '\n';

  write_breakdown(result, out);
  out << '\n';
  const std::string memory = memory_sentence(result);
  if (!m.memory.fits) out << wrapped(memory) << '\n';  // nothing else matters as much
  const std::string bottleneck = bottleneck_sentence(result),
                    remedies = remedies_sentence(result, bottleneck);
  out << wrapped(remedies.empty() ? bottleneck : bottleneck + " " + remedies) << '\n';
  const std::string path = critical_path_sentence(result);
  if (!path.empty()) out << wrapped(path) << '\n';
  std::string resources = m.memory.fits ? memory : "";
  // Unless the run was emulated, the links that were used are not the scenario's.
  const bool links_known = result.measured == nullptr || result.measured->executor == "emulated";
  if (links_known && !m.busiest_link.empty()) {
    resources += fmt::format("{}Busiest link: {}, {} used.", resources.empty() ? "" : "   ", m.busiest_link,
                             in_percent(m.busiest_utilization));
  }
  if (!resources.empty()) out << wrapped(resources) << '\n';
  if (m.host_memory) out << wrapped(host_memory_sentence(*m.host_memory)) << '\n';
  if (m.asynchrony) out << wrapped(asynchrony_sentence(result)) << '\n';
  for (const std::string& sentence : {input_sentence(result), checkpoint_sentence(result)})
    if (!sentence.empty()) out << wrapped(sentence) << '\n';
  if (result.measured == nullptr) {
    out << wrapped(cost_sentence(result)) << '\n';
    if (const std::string training = training_sentence(result); !training.empty())
      out << wrapped(training) << '\n';
    out << wrapped("Rests on: " + in_short(rests_on(s, result.plan)) + ".") << '\n';
  }
  if (result.uncertainty) out << wrapped(uncertainty_sentence(*result.uncertainty, m.step_time_s)) << '\n';
  for (const std::string& note : result.plan.notes) out << wrapped("Note: " + note) << '\n';
  if (result.tells_tensors) write_peak_tensors(result, out);
}

}  // namespace rehearse
