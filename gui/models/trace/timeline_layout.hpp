// Turns a draft into a timeline: sorts records, packs them into rows, adds waits and summaries, and binds
// arrows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/models/trace/trace_draft.hpp"
#include "gui/models/trace/trace_file.hpp"

namespace rehearse::gui {

// Consumes the draft except the messages about what was left out. `progress` goes from `from` to 1.
Timeline laid_out(Draft& draft, Progress& progress, double from);

// ----- parts of the layout
// Settings for the summary row of a process; names are indices of strings.
struct SummaryRules {
  bool profiled = false;        // written by a profiler: processes without GPU rows count what the host does
  bool by_pass = false;         // divide computing by pass and micro-batch
  bool has_gpus = false;        // anywhere in the trace: then the host does not compute
  std::vector<char> gpu_track;  // by track of the timeline
  std::vector<std::uint32_t> exposed;  // name of exposed communication, by name of the transfer
  std::uint32_t compute = 0, host = 0, data = 0, checkpoint = 0, copy = 0, other = 0, waiting = 0, bubble = 0;
  std::uint32_t idle = 0, pipeline_idle = 0;              // nothing recorded
  std::array<std::uint32_t, kPassNames.size()> passes{};  // computing, by pass
};
// Lasts until the next one begins.
struct SummarySpan {
  Time begin = 0;
  std::uint32_t name = 0;
  Kind kind = Kind::other;
  Pass pass = Pass::none;
  std::int32_t microbatch = -1;
  bool critical = false;
  bool continues(const SummarySpan& before) const {
    return name == before.name && pass == before.pass && microbatch == before.microbatch &&
           critical == before.critical;
  }
};
struct Summary {
  std::vector<SummarySpan> spans;
  Time end = 0;  // of the last span
};
// Summarizes a process whose rows [first_row, last_row) are complete. `pipeline`: gaps are bubbles.
Summary summary_of(const Timeline& timeline, int first_row, int last_row, const SummaryRules& rules,
                   bool pipeline);
// Names exposed communication after the transfer: "exposed all-reduce".
std::string exposed_name(std::string_view name);

// Binds the ends of arrows to spans. `track_of` maps tracks of the draft to those of the timeline; -1: none.
void bind_flows(Timeline& timeline, std::vector<Draft::FlowEnd>& ends, const std::vector<int>& track_of,
                std::map<std::string, std::uint64_t>& left_out);
// Sorts `flows` and fills flows_to.
void index_flows(Timeline& timeline);

}  // namespace rehearse::gui
