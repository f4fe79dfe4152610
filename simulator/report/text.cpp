// The answer on one screen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "simulator/report/format.hpp"
#include "simulator/report/report.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kWidth = 110;
constexpr int kBar = 36;  // characters of the longest bar

std::string strategy_line(const Scenario& s) {
  const StrategyChoice& strategy = s.strategy;
  std::string text;
  const auto part = [&](const std::string& p) { text += (text.empty() ? "" : ", ") + p; };
  if (strategy.data > 1 && strategy.pipeline > 1) {
    part(fmt::format("data {} x pipeline {}", strategy.data, strategy.pipeline));
  } else if (strategy.pipeline > 1) {
    part(fmt::format("pipeline {}", strategy.pipeline));
  } else {
    part(fmt::format("data {}", strategy.data));
  }
  if (strategy.pipeline > 1) part(strategy.schedule == PipelineSchedule::gpipe ? "GPipe" : "1F1B");
  part(fmt::format("micro-batch {}", s.training.micro_batch));
  if (strategy.data > 1) {
    if (strategy.gradients == GradientSync::parameter_server) {
      part(counted(strategy.parameter_server.servers, "parameter server"));
    } else {
      part(fmt::format("{} all-reduce", kAlgorithmNames[static_cast<std::size_t>(strategy.all_reduce)]));
    }
  }
  part(std::string(name_of(s.training.precision)));
  return text;
}

// Breaks at spaces; further lines are indented.
std::string wrapped(const std::string& text) {
  std::string out = "  ";
  std::size_t column = 2;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::size_t length = space - at;
    if (column > 2 && column + 1 + length > kWidth) {
      out += "\n  ";
      column = 2;
    } else if (column > 2) {
      out += ' ';
      ++column;
    }
    out.append(text, at, length);
    column += length;
    at = space + 1;
  }
  return out;
}

std::string bar(double share_of_largest) {
  const int length = std::max(1, static_cast<int>(std::lround(kBar * share_of_largest)));
  std::string text;
  for (int i = 0; i < length; ++i) text += "█";
  return text + std::string(static_cast<std::size_t>(kBar - length), ' ');
}

void write_breakdown(const Metrics& m, std::ostream& out) {
  std::vector<std::pair<std::string, double>> rows = {{"compute", m.breakdown.compute_s},
                                                      {"pipeline bubble", m.breakdown.pipeline_bubble_s}};
  for (const auto& [name, seconds] : m.breakdown.exposed_by_pass_s)
    rows.emplace_back("exposed " + name, seconds);
  rows.emplace_back("waiting for data", m.breakdown.data_stall_s);
  rows.emplace_back("waiting for others", m.breakdown.other_s);
  double largest = 0;
  for (const auto& row : rows) largest = std::max(largest, row.second);
  const TimeScale time(m.step_time_s);
  for (const auto& [name, seconds] : rows) {
    if (seconds < 0.0005 * m.step_time_s) continue;  // would read 0.0 %
    out << fmt::format("  {:<29} {}  {:>10}   {:>6}\n", name, bar(seconds / largest), time(seconds),
                       in_percent(seconds / m.step_time_s));
  }
}

std::string memory_and_link(const Result& result) {
  const Metrics& m = result.metrics;
  std::string text;
  if (m.memory.total > 0) {
    const auto& programs = result.plan.schedule->programs;
    const bool alike =
        std::count_if(programs.begin(), programs.end(), [](const Program& p) { return p.role == 0; }) == 1;
    text = fmt::format("Memory: {}{} of {} GiB{}.",
                       alike ? "" : m.memory.fullest + " is the fullest: ", in_gibibytes(m.memory.total),
                       in_gibibytes(m.memory.capacity), alike ? " on every device" : "");
  }
  if (!m.busiest_link.empty()) {
    text += fmt::format("{}Busiest link: {}, {} used.", text.empty() ? "" : "   ", m.busiest_link,
                        in_percent(m.busiest_utilization));
  }
  return text;
}

std::string rests_on_line(const RestsOn& rests) {
  std::string text;
  const auto part = [&](const std::vector<std::string>& items, const std::string& how) {
    if (items.empty()) return;
    text += fmt::format("{}{} {} (", text.empty() ? "" : "; ", items.size(), how);
    for (std::size_t i = 0; i < items.size(); ++i) {
      text += (i == 0 ? "" : ", ") + items[i].substr(0, items[i].find(':'));  // the source stands in the JSON
    }
    text += ")";
  };
  part(rests.measured, "measured");
  part(rests.published, "published");
  part(rests.guessed, rests.guessed.size() == 1 ? "guess" : "guesses");
  return "Rests on: " + text + ".";
}

}  // namespace

void write_text(const Result& result, std::ostream& out) {
  const Scenario& s = result.scenario;
  const Metrics& m = result.metrics;
  const std::string what = fmt::format("{} on {}", s.model.title, s.cluster->title);
  const std::string how = strategy_line(s);
  out << what
      << (what.size() + how.size() + 4 <= kWidth ? std::string(kWidth - what.size() - how.size(), ' ') : "\n")
      << how << "\n\n";

  out << "  step " << TimeScale(m.step_time_s)(m.step_time_s) << "      " << with_prefix(m.samples_per_s)
      << ' ' << s.model.sample_unit << "/s";
  if (m.tokens_per_s > m.samples_per_s) out << "      " << with_prefix(m.tokens_per_s) << " tokens/s";
  if (m.model_tflops_per_device > 0) {
    out << "      " << with_digits(m.model_tflops_per_device, 3) << " TFLOP/s per device";
  }
  if (m.mfu > 0) out << "      MFU " << in_percent(m.mfu);
  out << "\n\n";

  write_breakdown(m, out);
  out << '\n' << wrapped(bottleneck_sentence(result)) << '\n';
  const std::string resources = memory_and_link(result);
  if (!resources.empty()) out << wrapped(resources) << '\n';
  out << wrapped(rests_on_line(rests_on(s, result.plan))) << '\n';
  for (const std::string& note : result.plan.notes) out << wrapped("Note: " + note) << '\n';
}

}  // namespace rehearse
