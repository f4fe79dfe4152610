#include "gui/models/tracks/track_layout.hpp"

#include <algorithm>

#include "gui/models/timeline/rank_kinds.hpp"

namespace rehearse::gui {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr int kRunHeader = 26, kGroupHeader = 22;

constexpr int kPathHeight = 24, kHighestSummary = 28, kLowestReadable = 12;
constexpr int kFewRanks = 6;  // with fewer ranks, the summaries alone would leave most of the room empty

// How a run is shown by default.
struct Show {
  bool tracks = true;          // else only the summaries of its ranks
  bool whole_counters = true;  // expand the counters of the run as a whole
  bool low = false;            // beside other runs: a summary of modest height
  int row_height = 20;         // of a collapsed rank or group
};

// A single rank, or several under one header (name).
struct Member {
  std::string_view name;
  bool grouped = false;
  std::vector<int> processes;
};

class TrackLayout {
public:
  TrackLayout(const LayoutOptions& options, std::vector<Line>& lines) : options_(options), lines_(lines) {}

  void header(Line::Type type, int run, int height, int process = -1, bool collapsed = false) {
    Line line;
    line.type = type;
    line.run = run;
    line.process = process;
    line.collapsed = collapsed;
    push(line, height);
  }

  void run(const Run& run, bool collapsed, bool summary) {
    header(Line::Type::run, run.id, kRunHeader, kRunItself, collapsed);
    lines_.back().summary = summary;
    fitted_ = 0;
  }

  void group(const Run& run, const Member& member, bool collapsed, const Show& show) {
    auto group = std::make_shared<RankGroup>();
    group->ref = {run.id, options_.grouping, std::string(member.name)};
    group->processes = member.processes;
    for (const int p : member.processes)
      group->ranks += std::max(1, run.timeline->processes[static_cast<std::size_t>(p)].members);
    Line line;
    line.type = Line::Type::group;
    line.run = run.id;
    line.process = member.processes.front();
    line.collapsed = collapsed;
    line.group = std::move(group);
    const bool fitted = collapsed && !show.tracks;
    if (fitted) line.number = fitted_++;
    push(std::move(line), !collapsed ? kGroupHeader
                          : fitted   ? show.row_height
                                     : std::max(kGroupHeader, options_.row_height));
  }

  // Whether the process or one of its tracks passes the filter.
  bool passes(const Timeline& timeline, int process) const {
    const Process& p = timeline.processes[static_cast<std::size_t>(process)];
    if (options_.filter.empty() || holds(p.name, options_.filter)) return true;
    for (int t = p.first_track; t < p.last_track; ++t)
      if (holds(timeline.tracks[static_cast<std::size_t>(t)].name, options_.filter)) return true;
    return false;
  }

  bool is_collapsed(const Run& run, int process, const Show& show) const {
    if (options_.collapsed.contains({run.id, process})) return true;
    return !show.tracks && !options_.expanded.contains({run.id, process});
  }

  void process(const Run& run, int number, const Show& show) {
    const Timeline& timeline = *run.timeline;
    const Process& p = timeline.processes[static_cast<std::size_t>(number)];
    Line line;
    line.type = Line::Type::process;
    line.run = run.id;
    line.process = number;
    line.row = p.summary_row;
    line.collapsed = is_collapsed(run, number, show);
    const bool fitted = line.collapsed && !show.tracks;
    if (fitted) line.number = fitted_++;
    push(line, fitted ? show.row_height : options_.row_height);
    if (line.collapsed) return;
    const bool whole = options_.filter.empty() || holds(p.name, options_.filter);
    for (int t = p.first_track; t < p.last_track; ++t) {
      const Track& track = timeline.tracks[static_cast<std::size_t>(t)];
      if (!whole && !holds(track.name, options_.filter)) continue;
      for (int r = track.first_row; r < track.last_row; ++r) {
        Line row;
        row.type = Line::Type::row;
        row.first_of_track = r == track.first_row;
        row.run = run.id;
        row.process = number;
        row.row = r;
        push(row, options_.row_height);
      }
    }
  }

  void counter(const Run& run, int number, int process) {
    Line line;
    line.type = Line::Type::counter;
    line.run = run.id;
    line.process = process;
    line.counter = number;
    push(line, counter_height());
  }
  int counter_height() const { return options_.row_height * 3 / 2; }

  // Returns the counters of each process, and at index processes.size() those of the run as a whole.
  static std::vector<std::vector<int>> counters_of(const Timeline& timeline) {
    std::vector<std::vector<int>> result(timeline.processes.size() + 1);
    for (std::size_t c = 0; c < timeline.counters.size(); ++c) {
      const int process = timeline.counters[c].process;
      result[process < 0 ? timeline.processes.size() : static_cast<std::size_t>(process)].push_back(
          static_cast<int>(c));
    }
    return result;
  }

  // Groups the processes, in the order of their first appearance.
  std::vector<Member> members_of(const Run& run, const std::vector<int>& processes) const {
    std::vector<Member> members;
    std::unordered_map<std::string_view, std::size_t> number;
    for (const int p : processes) {
      const std::string& name = group_of(run, p, options_.grouping);
      const bool alone =
          options_.grouping == Grouping::none || (options_.grouping == Grouping::kind && name.empty());
      const auto [it, is_new] = alone ? std::pair{number.end(), true} : number.emplace(name, members.size());
      if (is_new) members.push_back({name, !alone, {}});
      members[alone ? members.size() - 1 : it->second].processes.push_back(p);
    }
    return members;
  }

  // Returns the height of all tracks and the counters of their ranks, headers included.
  int height_of_tracks(const Run& run, const std::vector<Member>& members,
                       const std::vector<std::vector<int>>& counters) const {
    int height = kRunHeader;
    for (const Member& member : members) {
      if (member.grouped) height += kGroupHeader;
      if (member.grouped && options_.grouping == Grouping::kind) continue;  // collapsed by default
      for (const int number : member.processes) {
        const Process& process = run.timeline->processes[static_cast<std::size_t>(number)];
        height += options_.row_height;
        for (int t = process.first_track; t < process.last_track; ++t) {
          const Track& track = run.timeline->tracks[static_cast<std::size_t>(t)];
          height += options_.row_height * (track.last_row - track.first_row);
        }
        if (options_.counters)
          height += counter_height() * static_cast<int>(counters[static_cast<std::size_t>(number)].size());
      }
    }
    return height;
  }

private:
  void push(Line line, int height) {
    line.y = y_;
    line.height = height;
    y_ += height;
    lines_.push_back(std::move(line));
  }

  const LayoutOptions& options_;
  std::vector<Line>& lines_;
  int y_ = 0, fitted_ = 0;
};

// A run with its members that are neither pinned nor left out by the filter.
struct Part {
  const Run* run = nullptr;
  std::vector<Member> members;
  std::vector<std::vector<int>> counters;  // by process, then those of the run as a whole
  int tracks_height = 0;
};

// `alone`: no other run shares the room.
Show show_of(const Part& part, const LayoutOptions& options, bool alone, bool all_tracks_fit, int runs) {
  Show show;
  show.row_height = options.row_height;
  if (options.room <= 0) return show;
  const Run& run = *part.run;
  const bool pipeline = is_pipeline(*run.timeline);
  const bool has_counters = options.counters && !part.counters.back().empty();
  const bool has_path = options.with_path.contains(run.id);
  const int room = (alone ? options.room : options.room / runs) - (has_path ? kPathHeight : 0);
  const bool few = part.members.size() < kFewRanks;
  if (alone) {
    const int counters = has_counters ? kGroupHeader : 0;
    show.tracks = !pipeline && (few || part.tracks_height + counters <= room);
    const auto whole = static_cast<int>(part.counters.back().size()) * options.row_height * 3 / 2;
    show.whole_counters = !pipeline && part.tracks_height + counters + whole <= room;
  } else {
    show.low = true;
    show.tracks = !pipeline && all_tracks_fit;
    show.whole_counters = false;
  }
  if (show.tracks || !options.fit_rows) return show;
  const int rows = std::max(1, static_cast<int>(part.members.size()));
  const int left = room - kRunHeader - (has_counters && !show.low ? kGroupHeader : 0);
  const int lowest = alone ? 2 : 1;
  const int fitted = left / rows;
  show.row_height = fitted < lowest ? std::min(kLowestReadable, options.row_height)
                                    : std::min(fitted, std::max(kHighestSummary, options.row_height));
  return show;
}

}  // namespace

bool holds(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

const std::string& group_of(const Run& run, int number, Grouping grouping) {
  static const std::string kNone;
  const auto place = static_cast<std::size_t>(number);
  const Process& process = run.timeline->processes[place];
  switch (grouping) {
    case Grouping::node:
      return place < run.nodes.size() ? run.nodes[place] : kNone;
    case Grouping::stage:
      return process.stage;
    case Grouping::role:
      return process.role;
    case Grouping::kind:
      return process.kind;
    case Grouping::none:
      break;
  }
  return kNone;
}

std::vector<Line> lay_out(const std::vector<std::shared_ptr<const Run>>& runs, const LayoutOptions& options) {
  std::vector<Line> lines;
  TrackLayout layout(options, lines);
  const auto with_counters = [&](const Run& run, int process, const std::vector<std::vector<int>>& counters,
                                 const Show& show) {
    layout.process(run, process, show);
    if (!options.counters || layout.is_collapsed(run, process, show)) return;
    for (const int c : counters[static_cast<std::size_t>(process)]) layout.counter(run, c, process);
  };

  bool any_pinned = false;
  Show all;
  all.row_height = options.row_height;
  for (const auto& [id, process] : options.pinned)
    for (const auto& run : runs) {
      if (run->id != id || process < 0 || process >= static_cast<int>(run->timeline->processes.size()))
        continue;
      if (!any_pinned) layout.header(Line::Type::pinned, 0, kGroupHeader);
      any_pinned = true;
      with_counters(*run, process, TrackLayout::counters_of(*run->timeline), all);
    }

  const std::set<ViewState::ProcessRef> pinned(options.pinned.begin(), options.pinned.end());
  std::vector<Part> parts;
  int tracks = 0;
  for (const auto& run : runs) {
    std::vector<int> shown;
    for (int p = 0; p < static_cast<int>(run->timeline->processes.size()); ++p)
      if (!pinned.contains({run->id, p}) && layout.passes(*run->timeline, p)) shown.push_back(p);
    Part part{run.get(), layout.members_of(*run, shown), TrackLayout::counters_of(*run->timeline), 0};
    part.tracks_height = layout.height_of_tracks(*run, part.members, part.counters);
    tracks += part.tracks_height;
    parts.push_back(std::move(part));
  }
  for (const Part& part : parts) {
    const Run& run = *part.run;
    const bool closed = options.collapsed.contains({run.id, kRunItself});
    const bool alone = parts.size() == 1 || options.expanded.contains({run.id, kRunItself});
    const Show show = show_of(part, options, alone, tracks <= options.room, static_cast<int>(parts.size()));
    layout.run(run, closed, show.low && !closed);
    if (options.with_path.contains(run.id)) layout.header(Line::Type::path, run.id, kPathHeight);
    if (closed) continue;
    for (const Member& member : part.members) {
      if (member.grouped) {
        const GroupRef ref{run.id, options.grouping, std::string(member.name)};
        // Ranks with similar behavior are folded until the user expands them.
        const bool by_itself = options.room > 0 && (options.grouping == Grouping::kind || !show.tracks) &&
                               !options.expanded_groups.contains(ref);
        const bool folded = by_itself || options.collapsed_groups.contains(ref);
        layout.group(run, member, folded, show);
        if (folded) continue;
      }
      Show of_member = show;
      if (member.grouped && options.grouping == Grouping::kind && options.room > 0) of_member.tracks = false;
      for (const int p : member.processes) with_counters(run, p, part.counters, of_member);
    }
    if (!options.counters || part.counters.back().empty() || show.low) continue;
    std::vector<int> whole;
    for (const int c : part.counters.back())
      if (options.filter.empty() ||
          holds(run.timeline->counters[static_cast<std::size_t>(c)].name, options.filter))
        whole.push_back(c);
    if (whole.empty()) continue;
    const ViewState::ProcessRef ref{run.id, kRunCounters};
    const bool shut =
        options.collapsed.contains(ref) || (!show.whole_counters && !options.expanded.contains(ref));
    layout.header(Line::Type::counters, run.id, kGroupHeader, kRunCounters, shut);
    if (!shut)
      for (const int c : whole) layout.counter(run, c, -1);
  }
  return lines;
}

int height_of(const std::vector<Line>& lines) {
  return lines.empty() ? 0 : lines.back().bottom();
}

std::size_t first_line_at(const std::vector<Line>& lines, int y) {
  return static_cast<std::size_t>(
      std::partition_point(lines.begin(), lines.end(), [&](const Line& line) { return line.bottom() <= y; }) -
      lines.begin());
}

int line_at(const std::vector<Line>& lines, int y) {
  const std::size_t at = first_line_at(lines, y);
  return y < 0 || at == lines.size() ? -1 : static_cast<int>(at);
}

int line_of_row(const std::vector<Line>& lines, const Timeline& timeline, int run, int row) {
  const int process = timeline.rows[static_cast<std::size_t>(row)].process;
  int header = -1;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.run != run) continue;
    if (line.type == Line::Type::group && line.collapsed &&
        std::binary_search(line.group->processes.begin(), line.group->processes.end(), process))
      return static_cast<int>(i);
    if (line.process != process) continue;
    if (line.type == Line::Type::row && line.row == row) return static_cast<int>(i);
    if (line.type == Line::Type::process) header = static_cast<int>(i);
  }
  return header;
}

std::vector<std::pair<int, int>> rows_of_lines(const std::vector<Line>& lines, int first, int last,
                                               const std::vector<std::shared_ptr<const Run>>& runs) {
  std::vector<std::pair<int, int>> rows;
  const auto add_process = [&](const Run& run, int number) {
    const Timeline& timeline = *run.timeline;
    const Process& process = timeline.processes[static_cast<std::size_t>(number)];
    for (int t = process.first_track; t < process.last_track; ++t) {
      const Track& track = timeline.tracks[static_cast<std::size_t>(t)];
      for (int r = track.first_row; r < track.last_row; ++r) rows.emplace_back(run.id, r);
    }
  };
  // Adds all rows under a header.
  const auto add_all = [&](const Line& line) {
    for (const auto& run : runs) {
      if (run->id != line.run) continue;
      if (line.type == Line::Type::process) add_process(*run, line.process);
      if (line.type == Line::Type::group)
        for (const int process : line.group->processes) add_process(*run, process);
    }
  };
  for (int i = std::max(0, first); i <= last && i < static_cast<int>(lines.size()); ++i) {
    const Line& line = lines[static_cast<std::size_t>(i)];
    if (line.type == Line::Type::row) rows.emplace_back(line.run, line.row);
    if (line.collapsed) add_all(line);
  }
  if (rows.empty())
    for (int i = std::max(0, first); i <= last && i < static_cast<int>(lines.size()); ++i)
      add_all(lines[static_cast<std::size_t>(i)]);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::vector<std::pair<int, int>> rows_under(const std::vector<Line>& lines, std::size_t at,
                                            const std::vector<std::shared_ptr<const Run>>& runs) {
  const Line& line = lines[at];
  const auto rank = [](Line::Type type) {
    switch (type) {
      case Line::Type::run:
      case Line::Type::pinned:
        return 0;
      case Line::Type::group:
      case Line::Type::counters:
        return 1;
      case Line::Type::process:
        return 2;
      default:
        return 3;
    }
  };
  if (line.collapsed && line.type == Line::Type::run) {
    std::vector<std::pair<int, int>> rows;
    for (const auto& run : runs)
      for (std::size_t r = 0; run->id == line.run && r < run->timeline->rows.size(); ++r)
        if (run->timeline->rows[r].track >= 0) rows.emplace_back(run->id, static_cast<int>(r));
    return rows;
  }
  std::size_t end = at + 1;
  while (end < lines.size() && rank(lines[end].type) > rank(line.type)) ++end;
  const bool itself = line.collapsed || line.type == Line::Type::row;
  if (!itself && end == at + 1) return {};
  return rows_of_lines(lines, static_cast<int>(itself ? at : at + 1), static_cast<int>(end) - 1, runs);
}

}  // namespace rehearse::gui
