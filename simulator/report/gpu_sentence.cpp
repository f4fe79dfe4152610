#include "simulator/report/gpu_sentence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "simulator/report/format.hpp"

namespace rehearse {
namespace {

struct FigureRange {
  double sum = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  int count = 0;

  void add(const SampledFigure& figure) {
    if (std::isnan(figure.mean)) return;
    sum += figure.mean;
    least = std::min(least, figure.least);
    most = std::max(most, figure.most);
    ++count;
  }
  double mean() const { return sum / count; }
};

std::string whole(double value) {
  return with_digits(value, 1);
}

std::string clock_text(const FigureRange& mhz) {
  if (mhz.count == 0) return "unknown";
  if (whole(mhz.least) == whole(mhz.most)) return whole(mhz.most) + " MHz (SM) in all steps";
  return fmt::format("{} to {} MHz (SM), {} on average", whole(mhz.least), whole(mhz.most),
                     whole(mhz.mean()));
}

std::string throttle_text(const std::map<std::string, int>& steps_by_reason, int steps) {
  if (steps_by_reason.empty()) return "not throttled";
  std::string text;
  for (const auto& [reason, count] : steps_by_reason)
    text += text.empty() ? fmt::format("throttled by {} in {} of {} steps", reason, count, steps)
                         : fmt::format(", by {} in {}", reason, count);
  return text;
}

std::string bytes_text(double bytes) {
  constexpr double kKibi = 1024, kMebi = 1024 * kKibi, kGibi = 1024 * kMebi;
  if (bytes >= kGibi) return with_digits(bytes / kGibi, 3) + " GiB";
  if (bytes >= kMebi) return with_digits(bytes / kMebi, 3) + " MiB";
  return with_digits(bytes / kKibi, 3) + " KiB";
}

}  // namespace

std::string gpu_clocks_sentence(const Measurement& measurement) {
  std::size_t end = 0;
  for (const GpuRecord& rank : measurement.gpu_ranks) end = std::max(end, rank.steps.size());
  FigureRange clock, power, temperature;
  std::map<std::string, int> steps_by_reason;
  bool reasons_known = false;
  int steps = 0;
  for (auto number = static_cast<std::size_t>(measurement.warmup_steps); number < end; ++number, ++steps) {
    std::set<std::string> reasons;
    for (const GpuRecord& rank : measurement.gpu_ranks) {
      if (number >= rank.steps.size()) continue;
      const GpuStep& step = rank.steps[number];
      clock.add(step.sm_clock_mhz);
      power.add(step.power_w);
      temperature.add(step.temperature_c);
      if (!step.throttled_by) continue;
      reasons_known = true;
      reasons.insert(step.throttled_by->begin(), step.throttled_by->end());
    }
    for (const std::string& reason : reasons) ++steps_by_reason[reason];
  }
  if (clock.count + power.count + temperature.count == 0 && !reasons_known) return "";
  std::string text = "GPU clocks: " + clock_text(clock), means;
  if (power.count > 0) means = whole(power.mean()) + " W";
  if (temperature.count > 0) means += (means.empty() ? "" : ", ") + whole(temperature.mean()) + " C";
  if (!means.empty()) text += "; " + means + " on average";
  if (reasons_known) text += "; " + throttle_text(steps_by_reason, steps);
  return text + ".";
}

std::string gpu_energy_sentence(const Measurement& measurement) {
  const auto warmup = static_cast<std::size_t>(measurement.warmup_steps);
  std::size_t end = std::numeric_limits<std::size_t>::max();
  bool by_power = false;
  for (const GpuRecord& rank : measurement.gpu_ranks) {
    end = std::min(end, rank.steps.size());
    by_power = by_power || rank.energy_basis == EnergyBasis::power;
  }
  if (measurement.gpu_ranks.empty() || end <= warmup) return "";
  double sum_j = 0;
  std::set<std::string> counted;  // each GPU counts once, no matter how many ranks share it
  for (const GpuRecord& rank : measurement.gpu_ranks)
    if (counted.insert(rank.uuid).second)
      for (std::size_t step = warmup; step < end; ++step) sum_j += rank.steps[step].energy_j;
  if (std::isnan(sum_j)) return "";
  return fmt::format("GPU energy: {} J a step, of {} GPU{}, {}.",
                     with_digits(sum_j / static_cast<double>(end - warmup), 3), counted.size(),
                     counted.size() == 1 ? "" : "s",
                     by_power ? "from power and time" : "by the GPUs' counters");
}

std::string gpu_memory_sentence(double allocated_bytes, double predicted_bytes) {
  return fmt::format("GPU memory: {} allocated at most, {} predicted (error {}).",
                     bytes_text(allocated_bytes), bytes_text(predicted_bytes),
                     signed_percent(predicted_bytes / allocated_bytes - 1));
}

}  // namespace rehearse
