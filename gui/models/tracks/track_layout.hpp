// Lays out the lines of the timeline: runs, groups, ranks, their rows, counters.
#pragma once

#include "gui/models/runs/run.hpp"
#include "gui/models/runs/view_state.hpp"

namespace rehearse::gui {

// Ranks under one header.
struct RankGroup {
  GroupRef ref;
  std::vector<int> processes;  // ascending; without pinned ranks and those that the filter leaves out
  int ranks = 0;               // number of ranks they represent
};

struct Line {
  enum class Type : std::uint8_t {
    run,      // header of a run
    path,     // critical path of the run
    pinned,   // header of the pinned ranks
    group,    // header of a node, stage or role; if collapsed, the summary of its ranks
    process,  // a rank: its summary, thin if its rows follow
    row,
    counters,  // header of the counters of the run as a whole
    counter
  } type = Type::row;
  bool first_of_track = false;  // row: its label is that of the track
  bool collapsed = false;       // run, group, process, counters: the lines below are hidden
  bool summary = false;         // run: shown with minimal height beside other runs; a click expands it
  int number = -1;  // for lines whose height is fitted to the room: their index within the run; else -1
  int run = 0;      // Run::id
  int process = -1;
  int row = -1;      // row: index in the timeline; process: its summary row, -1 if it has none
  int counter = -1;  // index into Timeline::counters
  int y = 0, height = 0;
  std::shared_ptr<const RankGroup> group;  // of a group's line

  int bottom() const { return y + height; }
};

// Used in ViewState::collapsed() instead of a process.
inline constexpr int kRunItself = -2, kRunCounters = -1;

struct LayoutOptions {
  std::string filter;  // text that a rank's or track's name must contain; case is ignored
  Grouping grouping = Grouping::none;
  std::set<ViewState::ProcessRef> collapsed, expanded;
  std::set<GroupRef> collapsed_groups, expanded_groups;
  std::vector<ViewState::ProcessRef> pinned;
  bool counters = true;
  int row_height = 20;
  // Height that all runs should fit into. Determines what is shown if the user neither collapsed nor expanded
  // it: a pipeline with one row per stage, other runs with their tracks if these fit, several runs as
  // summaries. 0: expand everything.
  int room = 0;
  bool fit_rows = true;     // adapt the height of the rows of stages and ranks to the room
  std::set<int> with_path;  // runs (Run::id) whose critical path gets a line
};

// Returns the lines from top to bottom, beginning at y = 0.
std::vector<Line> lay_out(const std::vector<std::shared_ptr<const Run>>& runs, const LayoutOptions& options);
int height_of(const std::vector<Line>& lines);
// Both use binary search. line_at() returns the line at `y`, or -1; first_line_at() the first line that
// ends below `y`.
int line_at(const std::vector<Line>& lines, int y);
std::size_t first_line_at(const std::vector<Line>& lines, int y);
// Returns the line that shows the row: its own, or that of its process or group; -1 if it is left out.
int line_of_row(const std::vector<Line>& lines, const Timeline& timeline, int run, int row);
// Returns the rows in lines [first, last], ascending, without summary rows. A collapsed rank or group
// contributes all its rows; so does an expanded one's header if the range has no other rows.
std::vector<std::pair<int, int>> rows_of_lines(const std::vector<Line>& lines, int first, int last,
                                               const std::vector<std::shared_ptr<const Run>>& runs);

// Returns the rows under the header at line `at`, shown or collapsed, ascending. For the line of a row,
// returns that row.
std::vector<std::pair<int, int>> rows_under(const std::vector<Line>& lines, std::size_t at,
                                            const std::vector<std::shared_ptr<const Run>>& runs);

// Returns the group of process `number` in the run's timeline: "node2"; empty if it is not known.
const std::string& group_of(const Run& run, int number, Grouping grouping);
// Whether `text` contains `part`; ignores the case of ASCII letters.
bool holds(std::string_view text, std::string_view part);

}  // namespace rehearse::gui
