#include "gui/models/track_layout.hpp"

#include <algorithm>

namespace rehearse::gui {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr int kRunHeader = 26, kGroupHeader = 22;

class Layout {
public:
  Layout(const LayoutOptions& options, std::vector<Line>& lines) : options_(options), lines_(lines) {}

  void header(Line::Type type, int run, int height, int process = -1, bool collapsed = false) {
    Line line;
    line.type = type;
    line.run = run;
    line.process = process;
    line.collapsed = collapsed;
    push(line, height);
  }

  void group(const Run& run, std::string_view name, const std::vector<int>& processes, bool collapsed) {
    auto group = std::make_shared<RankGroup>();
    group->ref = {run.id, options_.grouping, std::string(name)};
    group->processes = processes;
    for (const int p : processes)
      group->ranks += std::max(1, run.timeline->processes[static_cast<std::size_t>(p)].members);
    Line line;
    line.type = Line::Type::group;
    line.run = run.id;
    line.process = processes.front();
    line.collapsed = collapsed;
    line.group = std::move(group);
    push(std::move(line), collapsed ? std::max(kGroupHeader, options_.row_height) : kGroupHeader);
  }

  // Whether the process, or a track of it, passes the filter.
  bool passes(const Timeline& timeline, int process) const {
    const Process& p = timeline.processes[static_cast<std::size_t>(process)];
    if (options_.filter.empty() || holds(p.name, options_.filter)) return true;
    for (int t = p.first_track; t < p.last_track; ++t)
      if (holds(timeline.tracks[static_cast<std::size_t>(t)].name, options_.filter)) return true;
    return false;
  }

  void process(const Run& run, int number) {
    const Timeline& timeline = *run.timeline;
    const Process& p = timeline.processes[static_cast<std::size_t>(number)];
    Line line;
    line.type = Line::Type::process;
    line.run = run.id;
    line.process = number;
    line.row = p.summary_row;
    line.collapsed = options_.collapsed.contains({run.id, number});
    push(line, options_.row_height);
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
    push(line, options_.row_height * 3 / 2);
  }

  // Of each process, and at [processes] of the whole run.
  static std::vector<std::vector<int>> counters_of(const Timeline& timeline) {
    std::vector<std::vector<int>> result(timeline.processes.size() + 1);
    for (std::size_t c = 0; c < timeline.counters.size(); ++c) {
      const int process = timeline.counters[c].process;
      result[process < 0 ? timeline.processes.size() : static_cast<std::size_t>(process)].push_back(
          static_cast<int>(c));
    }
    return result;
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
  int y_ = 0;
};

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
    case Grouping::none:
      break;
  }
  return kNone;
}

std::vector<Line> lay_out(const std::vector<std::shared_ptr<const Run>>& runs, const LayoutOptions& options) {
  std::vector<Line> lines;
  Layout layout(options, lines);
  const auto with_counters = [&](const Run& run, int process, const std::vector<std::vector<int>>& counters) {
    layout.process(run, process);
    if (!options.counters || options.collapsed.contains({run.id, process})) return;
    for (const int c : counters[static_cast<std::size_t>(process)]) layout.counter(run, c, process);
  };

  bool any_pinned = false;
  for (const auto& [id, process] : options.pinned)
    for (const auto& run : runs) {
      if (run->id != id || process < 0 || process >= static_cast<int>(run->timeline->processes.size()))
        continue;
      if (!any_pinned) layout.header(Line::Type::pinned, 0, kGroupHeader);
      any_pinned = true;
      with_counters(*run, process, Layout::counters_of(*run->timeline));
    }

  const std::set<ViewState::ProcessRef> pinned(options.pinned.begin(), options.pinned.end());
  for (const auto& run : runs) {
    const Timeline& timeline = *run->timeline;
    const bool closed = options.collapsed.contains({run->id, kRunItself});
    layout.header(Line::Type::run, run->id, kRunHeader, kRunItself, closed);
    if (closed) continue;
    std::vector<int> shown;
    for (int p = 0; p < static_cast<int>(timeline.processes.size()); ++p)
      if (!pinned.contains({run->id, p}) && layout.passes(timeline, p)) shown.push_back(p);
    const auto group = [&](int p) -> const std::string& { return group_of(*run, p, options.grouping); };
    // Groups in the order in which they come, each together.
    std::vector<std::pair<std::string_view, std::vector<int>>> groups;
    std::unordered_map<std::string_view, std::size_t> number;
    for (const int p : shown) {
      const auto [it, is_new] = number.emplace(group(p), groups.size());
      if (is_new) groups.push_back({group(p), {}});
      groups[it->second].second.push_back(p);
    }
    const auto counters = Layout::counters_of(timeline);
    for (const auto& [name, processes] : groups) {
      if (options.grouping != Grouping::none) {
        const bool folded = options.collapsed_groups.contains({run->id, options.grouping, std::string(name)});
        layout.group(*run, name, processes, folded);
        if (folded) continue;
      }
      for (const int p : processes) with_counters(*run, p, counters);
    }
    if (!options.counters || counters.back().empty()) continue;
    std::vector<int> whole;
    for (const int c : counters.back())
      if (options.filter.empty() ||
          holds(timeline.counters[static_cast<std::size_t>(c)].name, options.filter))
        whole.push_back(c);
    if (whole.empty()) continue;
    const bool shut = options.collapsed.contains({run->id, kRunCounters});
    layout.header(Line::Type::counters, run->id, kGroupHeader, kRunCounters, shut);
    if (!shut)
      for (const int c : whole) layout.counter(*run, c, -1);
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
  // All that stands under a header.
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
