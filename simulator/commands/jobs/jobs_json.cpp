// Writes the answer as JSON, job by job, because there may be many; and as CSV.
#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "simulator/commands/jobs/jobs_answer.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

Json job_json(const ListedJob& job, const JobOutcome& outcome) {
  Json json = {{"name", job.name},
               {"submit_s", job.submit_s},
               {"start_s", outcome.start_s},
               {"end_s", outcome.end_s},
               {"devices", job.devices}};
  json["step_time_s"] = job.step_time_s > 0 ? Json(job.step_time_s) : Json(nullptr);
  json["preemptions"] = outcome.preemptions;
  json["nodes"] = outcome.nodes;
  return json;
}

Json figures_json(const PolicyAnswer& one) {
  return {{"mean_completion_s", one.figures.mean_completion_s},
          {"median_completion_s", one.figures.median_completion_s},
          {"p99_completion_s", one.figures.p99_completion_s},
          {"mean_queueing_s", one.figures.mean_queueing_s},
          {"makespan_s", one.figures.makespan_s},
          {"utilization", one.figures.utilization},
          {"mean_slowdown", one.figures.mean_slowdown},
          {"fairness", one.figures.fairness},
          {"preemptions", one.figures.preemptions},
          {"decisions", one.result.decisions},
          {"most_active", one.result.most_active}};
}

}  // namespace

void write_jobs_json(const JobsAnswer& answer, std::ostream& out) {
  const Json head = {{"list", answer.list.path},
                     {"format", kListFormatNames[static_cast<std::size_t>(answer.list.format)]},
                     {"without_devices", answer.list.without_devices},
                     {"unfinished", answer.list.unfinished},
                     {"cluster", answer.cluster.name},
                     {"devices", answer.cluster.devices()},
                     {"placement", kPlacementNames[static_cast<std::size_t>(answer.run.placement)]}};
  std::string text = json_text(head, 2);
  text.resize(text.rfind('\n'));  // without the closing brace
  out << text << ",\n  \"policies\": [";
  for (const PolicyAnswer& one : answer.policies) {
    out << (&one == &answer.policies.front() ? "\n" : ",\n")
        << fmt::format("    {{\"policy\": \"{}\"", one.policy->name);
    const Json figures = figures_json(one);
    for (const auto& [key, value] : figures.items()) out << ",\n     \"" << key << "\": " << json_text(value);
    out << ",\n     \"jobs\": [";
    for (std::size_t j = 0; j < answer.list.jobs.size(); ++j)
      out << (j == 0 ? "\n      " : ",\n      ")
          << json_text(job_json(answer.list.jobs[j], one.result.outcomes[j]));
    out << "]}";
  }
  out << "]\n}\n";
}

void write_jobs_csv(const JobsAnswer& answer, std::ostream& out) {
  out << "policy,name,submit_s,start_s,end_s,devices,step_time_s,preemptions,held_s,nodes\n";
  for (const PolicyAnswer& one : answer.policies)
    for (std::size_t j = 0; j < answer.list.jobs.size(); ++j) {
      const ListedJob& job = answer.list.jobs[j];
      const JobOutcome& outcome = one.result.outcomes[j];
      out << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", one.policy->name, csv_field(job.name),
                         job.submit_s, outcome.start_s, outcome.end_s, job.devices,
                         job.step_time_s > 0 ? fmt::format("{}", job.step_time_s) : "", outcome.preemptions,
                         outcome.held_s, outcome.nodes);
    }
}

}  // namespace rehearse
