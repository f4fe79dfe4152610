// Writes who ran where, when, in the Chrome Trace Event format: a chart that Perfetto opens.
#include <fmt/format.h>

#include <string>

#include "simulator/commands/jobs/jobs_answer.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/packed_output.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void write_jobs_trace(const JobsAnswer& answer, const std::string& path) {
  PackedOutput text(path);
  text.print("{{\"traceEvents\": [");
  const char* between = "\n";
  const auto add = [&](const Json& event) {
    text.print("{}{}", between, json_text(event));
    between = ",\n";
  };
  int pid = 0;
  for (const PolicyAnswer& one : answer.policies) {
    ++pid;
    add({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", one.policy->name}}}});
    for (int node = 0; node < answer.run.nodes; ++node)
      add({{"ph", "M"},
           {"name", "thread_name"},
           {"pid", pid},
           {"tid", node},
           {"args", {{"name", fmt::format("node{}", node)}}}});
    for (const JobSpan& span : one.result.spans)
      add({{"ph", "X"},
           {"name", answer.list.jobs[static_cast<std::size_t>(span.job)].name},
           {"pid", pid},
           {"tid", span.node},
           {"ts", 1e6 * span.start_s},
           {"dur", 1e6 * (span.end_s - span.start_s)},
           {"args", {{"devices", span.devices}, {"job", span.job}}}});
  }
  text.print("\n]}}\n");
  text.close();
}

}  // namespace rehearse
