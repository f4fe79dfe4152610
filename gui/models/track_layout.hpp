// Which lines stand under each other on the timeline, and where: runs, groups, ranks, their rows, counters.
#pragma once

#include "gui/models/run.hpp"
#include "gui/models/view_state.hpp"

namespace rehearse::gui {

// Ranks that stand together under one header.
struct RankGroup {
  GroupRef ref;
  std::vector<int> processes;  // ascending: those that are neither pinned nor left out by the filter
  int ranks = 0;               // that they stand for
};

struct Line {
  enum class Type : std::uint8_t {
    run,      // header
    path,     // the critical path of the run
    pinned,   // header of the ranks that stand first
    group,    // header of a node, stage or role; collapsed, the summary of its ranks
    process,  // a rank: its summary, thin if its rows follow
    row,
    counters,  // header of those of the whole run
    counter
  } type = Type::row;
  bool first_of_track = false;  // row: its label is the track's
  bool collapsed = false;       // run, group, process, counters: what would follow is left out
  bool summary = false;         // run: one of several, each as low as it takes to see all; a click expands it
  int number = -1;              // of the rows that are fitted to the height: its place among those of its run
  int run = 0;                  // Run::id
  int process = -1;
  int row = -1;      // row: of the timeline; process: its summary row, -1 if it has none
  int counter = -1;  // of Timeline::counters
  int y = 0, height = 0;
  std::shared_ptr<const RankGroup> group;  // of a group

  int bottom() const { return y + height; }
};

// Of ViewState::collapsed() in place of a process.
inline constexpr int kRunItself = -2, kRunCounters = -1;

struct LayoutOptions {
  std::string filter;  // what a rank's or track's name must hold, whatever the case
  Grouping grouping = Grouping::none;
  std::set<ViewState::ProcessRef> collapsed, expanded;
  std::set<GroupRef> collapsed_groups, expanded_groups;
  std::vector<ViewState::ProcessRef> pinned;
  bool counters = true;
  int row_height = 20;
  // Height that all runs should fit. What was neither collapsed nor expanded is shown so: a pipeline as a row
  // a stage, all else with its tracks if they fit, and several runs as summaries. 0: all is expanded.
  int room = 0;
  bool fit_rows = true;     // rows of stages and ranks are as high as the room lets them
  std::set<int> with_path;  // runs (Run::id) whose critical path has a line of its own
};

// Lines in order, one below the other from 0 on.
std::vector<Line> lay_out(const std::vector<std::shared_ptr<const Run>>& runs, const LayoutOptions& options);
int height_of(const std::vector<Line>& lines);
// The line at `y`, by binary search; -1 if there is none. first_line_at: the first that ends below `y`.
int line_at(const std::vector<Line>& lines, int y);
std::size_t first_line_at(const std::vector<Line>& lines, int y);
// The line that shows the row: its own, else that of its process or group; -1 if it is left out.
int line_of_row(const std::vector<Line>& lines, const Timeline& timeline, int run, int row);
// Rows that lie in lines [first, last]: for a collapsed rank or group all of its rows, likewise for an open
// one's header if nothing else is there. Summary rows are none. Ascending.
std::vector<std::pair<int, int>> rows_of_lines(const std::vector<Line>& lines, int first, int last,
                                               const std::vector<std::shared_ptr<const Run>>& runs);

// Rows that stand under the header at line `at`, whether they are shown or collapsed into it; a row's line is
// its own. Ascending.
std::vector<std::pair<int, int>> rows_under(const std::vector<Line>& lines, std::size_t at,
                                            const std::vector<std::shared_ptr<const Run>>& runs);

// What the grouping goes by, of a process of the run's timeline: "node2"; empty if it is not known.
const std::string& group_of(const Run& run, int process, Grouping grouping);
// Whatever the case, of ASCII letters.
bool holds(std::string_view text, std::string_view part);

}  // namespace rehearse::gui
