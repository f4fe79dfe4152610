// Prints the policies side by side, on one screen.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "models/text/printable.hpp"
#include "simulator/commands/jobs/jobs_answer.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/wrap.hpp"

namespace rehearse {
namespace {

struct FigureRow {
  const char* name;
  std::function<std::string(const PolicyAnswer&)> cell;
};

const FigureRow kFigureRows[] = {
    {"mean completion", [](const PolicyAnswer& one) { return duration(one.figures.mean_completion_s); }},
    {"median completion", [](const PolicyAnswer& one) { return duration(one.figures.median_completion_s); }},
    {"99 % complete within", [](const PolicyAnswer& one) { return duration(one.figures.p99_completion_s); }},
    {"mean queueing", [](const PolicyAnswer& one) { return duration(one.figures.mean_queueing_s); }},
    {"makespan", [](const PolicyAnswer& one) { return duration(one.figures.makespan_s); }},
    {"utilization", [](const PolicyAnswer& one) { return in_percent(one.figures.utilization); }},
    {"mean slowdown",
     [](const PolicyAnswer& one) { return fmt::format("{:.2f}", one.figures.mean_slowdown); }},
    {"fairness (Jain)", [](const PolicyAnswer& one) { return fmt::format("{:.2f}", one.figures.fairness); }},
    {"preemptions", [](const PolicyAnswer& one) { return fmt::format("{}", one.figures.preemptions); }},
};

// Says under which policy jobs complete soonest, and that none differs where none does.
std::string comparison(const JobsAnswer& answer) {
  const auto [best, worst] = std::minmax_element(
      answer.policies.begin(), answer.policies.end(),
      [](const auto& a, const auto& b) { return a.figures.mean_completion_s < b.figures.mean_completion_s; });
  const double least_s = best->figures.mean_completion_s, most_s = worst->figures.mean_completion_s;
  if (most_s <= least_s * (1 + 1e-6))
    return "All policies complete jobs equally soon: none waits for another.";
  return fmt::format("Jobs complete soonest, on average, under {}: {}. Under {} they take {} longer.",
                     best->policy->name, best->policy->help, worst->policy->name, duration(most_s - least_s));
}

void write_left_out(const JobList& list, std::ostream& out) {
  if (list.without_devices > 0)
    out << fmt::format("  Left out: {} without devices.\n",
                       counted(static_cast<double>(list.without_devices), "job"));
  if (list.unfinished > 0)
    out << fmt::format("  Left out: {} without a start or an end.\n",
                       counted(static_cast<double>(list.unfinished), "job"));
}

}  // namespace

void write_jobs_text(const JobsAnswer& answer, std::ostream& out) {
  const auto jobs = static_cast<double>(answer.list.jobs.size());
  int largest = 0;
  for (const ListedJob& job : answer.list.jobs) largest = std::max(largest, job.devices);
  out << fmt::format(
      "{} of {}{} on {}\n", counted(jobs, "job"), printable(answer.list.path),
      answer.list.format == ListFormat::own
          ? ""
          : fmt::format(" ({})", kListFormatNames[static_cast<std::size_t>(answer.list.format)]),
      answer.cluster.title.empty() ? answer.cluster.name : answer.cluster.title);
  out << fmt::format("submitted within {}; the largest asks for {}; placement {}\n\n",
                     duration(answer.list.jobs.back().submit_s - answer.list.jobs.front().submit_s),
                     counted(largest, device_noun(answer.cluster.node().device)),
                     kPlacementNames[static_cast<std::size_t>(answer.run.placement)]);
  out << fmt::format("  {:<20}", "");
  for (const PolicyAnswer& one : answer.policies) out << fmt::format("  {:>12}", one.policy->name);
  out << '\n';
  for (const FigureRow& row : kFigureRows) {
    out << fmt::format("  {:<20}", row.name);
    for (const PolicyAnswer& one : answer.policies) out << fmt::format("  {:>12}", row.cell(one));
    out << '\n';
  }
  out << '\n';
  if (answer.policies.size() > 1) out << wrapped(comparison(answer));
  write_left_out(answer.list, out);
}

}  // namespace rehearse
