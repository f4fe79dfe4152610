#include "simulator/commands/validate/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rehearse {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

ErrorSummary summarize(const std::vector<double>& errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  const auto n = static_cast<double>(errors.size());
  std::vector<double> absolute;
  for (const double error : errors) {
    summary.mean += error / n;
    summary.mean_absolute += std::abs(error) / n;
    if (std::abs(error) > std::abs(summary.worst)) summary.worst = error;
    absolute.push_back(std::abs(error));
  }
  summary.median_absolute = median(std::move(absolute));
  return summary;
}

std::vector<Efficiency> scaling_efficiencies(const std::vector<Observation>& rows) {
  std::map<std::string, std::size_t> bases;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].scaling.empty()) continue;
    const auto [base, added] = bases.emplace(rows[i].scaling, i);
    if (!added && rows[i].devices < rows[base->second].devices) base->second = i;
  }
  const auto share = [](double per_s, const Observation& row, double base_per_s, const Observation& base) {
    return per_s / row.devices / (base_per_s / base.devices);
  };
  std::vector<Efficiency> efficiencies;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Observation& row = rows[i];
    if (row.scaling.empty()) continue;
    const std::size_t b = bases.at(row.scaling);
    const Observation& base = rows[b];
    if (row.devices <= base.devices) continue;
    const bool both = row.measured_per_s > 0 && base.measured_per_s > 0;
    if (!both && row.measured_efficiency <= 0) continue;
    efficiencies.push_back({i, b,
                            row.measured_efficiency > 0
                                ? row.measured_efficiency
                                : share(row.measured_per_s, row, base.measured_per_s, base),
                            share(row.predicted_per_s, row, base.predicted_per_s, base)});
  }
  return efficiencies;
}

std::vector<Comparison> compared_orders(const std::vector<Observation>& rows, double threshold) {
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].comparison.empty() || rows[i].measured_per_s <= 0) continue;
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      if (rows[j].comparison != rows[i].comparison || rows[j].measured_per_s <= 0) continue;
      const bool first = rows[i].measured_per_s > rows[j].measured_per_s;
      const std::size_t faster = first ? i : j, slower = first ? j : i;
      if (rows[faster].measured_per_s <= (1 + threshold) * rows[slower].measured_per_s) continue;
      comparisons.push_back({faster, slower, rows[faster].predicted_per_s > rows[slower].predicted_per_s});
    }
  }
  return comparisons;
}

double mean_difference(const std::vector<Efficiency>& efficiencies) {
  double sum = 0;
  for (const Efficiency& e : efficiencies) sum += std::abs(e.difference());
  return efficiencies.empty() ? 0 : sum / static_cast<double>(efficiencies.size());
}

}  // namespace rehearse
