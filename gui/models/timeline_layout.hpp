// Makes a timeline of a draft: sorts, packs into rows, adds what is waited for and the summaries, binds
// arrows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/models/trace_draft.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

// Leaves of the draft only what is left to tell. `progress` goes from `from` to 1.
Timeline laid_out(Draft& draft, Progress& progress, double from);

// ----- parts of it
// How the summary row of a process calls what it tells: numbers of strings.
struct SummaryRules {
  bool profiled = false;               // another program's: without rows of a GPU what the host does counts
  bool by_pass = false;                // computing is told by pass and micro-batch
  bool has_gpus = false;               // in the whole trace: then the host does not compute
  std::vector<char> gpu_track;         // by track of the timeline
  std::vector<std::uint32_t> exposed;  // by name: exposed communication of this name
  std::uint32_t compute = 0, host = 0, data = 0, checkpoint = 0, copy = 0, other = 0, waiting = 0, bubble = 0;
  std::uint32_t idle = 0, pipeline_idle = 0;              // nothing at all
  std::array<std::uint32_t, kPassNames.size()> passes{};  // computing, by pass
};
// Each lasts until the next begins.
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
  Time end = 0;  // of the last
};
// Of a process whose rows, [first_row, last_row), are laid out. `pipeline`: gaps are bubbles.
Summary summary_of(const Timeline& timeline, int first_row, int last_row, const SummaryRules& rules,
                   bool pipeline);
// How exposed communication of this name is called: "exposed all-reduce".
std::string exposed_name(std::string_view name);

// Binds the ends of arrows to spans. `track_of`: tracks of the timeline by those of the draft, -1: none.
void bind_flows(Timeline& timeline, std::vector<Draft::FlowEnd>& ends, const std::vector<int>& track_of,
                std::map<std::string, std::uint64_t>& left_out);
// Fills flows_to.
void index_flows(Timeline& timeline);

}  // namespace rehearse::gui
