// Makes a timeline of a draft: sorts, packs into rows, adds what is waited for and the summaries, binds
// arrows.
#pragma once

#include "gui/models/trace_draft.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

// Leaves only what the draft holds of counts behind. `progress` goes from `from` to 1.
Timeline laid_out(Draft& draft, Progress& progress, double from);

// ----- parts of it
// Spans of the summary row of a process whose other rows, [first_row, last_row), are laid out.
struct SummarySpan {
  Time begin = 0, end = 0;
  Kind kind = Kind::other;
  std::string_view name;
};
struct SummaryRules {
  bool profiled = false;             // another program's: without `gpu_rows` what the host does counts
  bool has_gpus = false;             // in the whole trace: then the host does not compute
  bool pipeline = false;             // gaps are bubbles
  std::vector<char> gpu_track;       // by track of the timeline
  std::vector<std::string> exposed;  // by name: how exposed communication is called
};
std::vector<SummarySpan> summary_of(const Timeline& timeline, int first_row, int last_row,
                                    const SummaryRules& rules);
// How exposed communication of this name is called: "exposed all-reduce".
std::string exposed_name(std::string_view name, Draft::Moves moves);

// Binds the ends of arrows to spans. `track_of`: tracks of the timeline by those of the draft, -1: none.
void bind_flows(Timeline& timeline, std::vector<Draft::FlowEnd>& ends, const std::vector<int>& track_of,
                std::map<std::string, std::uint64_t>& left_out);
// Fills flows_to.
void index_flows(Timeline& timeline);

}  // namespace rehearse::gui
