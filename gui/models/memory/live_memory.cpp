#include "gui/models/memory/live_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "simulator/report/format.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse::gui {

namespace {

QString text(const std::string& utf8) {
  return QString::fromStdString(utf8);
}

MomentTensors tensors_of(const Trace& trace, const std::vector<MemoryMoment>& moments) {
  MomentTensors result;
  if (moments.empty()) return result;
  const MemoryMoment& own = moments.front();
  result.into_step_s = own.time_s;
  if (own.op >= 0) result.op = own.program->ops[static_cast<std::size_t>(own.op)].name;
  result.largest = largest_rows(trace, moments);
  return result;
}

Cell moment_cell(double seconds, const std::string& op, const rehearse::TimeScale& scale, const char* without,
                 double sorted) {
  if (op.empty()) return {without, sorted};
  return {text(scale(seconds)), seconds, Tone::none, text(fmt::format("{}: {}", scale(seconds), op))};
}

}  // namespace

LiveMemory::LiveMemory(const Run& run, const StageMemory& stage)
    : judged_(run.judged), rank_class_(stage.rank_class) {
  if (!judged_ || !run.timeline || rank_class_ < 0) return;
  origin_ = run.timeline->origin;
  const Trace& trace = judged_->run.trace;
  if (rank_class_ >= static_cast<int>(trace.classes.size())) return;
  const auto [first, last] = rows_of_class(trace, rank_class_);
  int steps = 0;
  for (std::size_t row = first; row < last; ++row) steps = std::max(steps, trace.spans.step[row] + 1);
  for (int number = 0; number < steps; ++number) {
    Step step{live_tensors(trace, rank_class_, number), {}};
    if (step.live.program == nullptr) continue;
    step.timeline = memory_timeline(step.live);
    steps_.push_back(std::move(step));
  }
  std::vector<MemoryMoment> moments;
  for (const auto& [rank_class, number] : stage.peaks)
    moments.push_back(peak_moment(judged_->step, rank_class, number));
  peak_ = tensors_of(judged_->step, moments);
  peak_.peak = true;
}

Time LiveMemory::time_of(double seconds) const {
  return static_cast<Time>(std::llround(seconds * 1e9)) - origin_;
}

MomentTensors LiveMemory::at(Time when) const {
  if (steps_.empty()) return {};
  const auto next = std::upper_bound(steps_.begin(), steps_.end(), when, [this](Time time, const Step& step) {
    return time < time_of(step.live.begin_s);
  });
  const Step& step = next == steps_.begin() ? *next : *std::prev(next);
  const std::vector<MemoryChange>& all = step.timeline.changes;
  const auto after = std::upper_bound(
      all.begin(), all.end(), when,
      [this](Time time, const MemoryChange& change) { return time < time_of(change.time_s); });
  MemoryMoment moment = moment_after(step.live, step.timeline, static_cast<std::size_t>(after - all.begin()));
  moment.rank_class = rank_class_;
  moment.time_s = static_cast<double>(when + origin_) * 1e-9 - step.live.begin_s;
  return tensors_of(judged_->run.trace, {moment});
}

TableData tensor_table(const MomentTensors& moment) {
  TableData table;
  table.columns = {{"Tensor", "", false},
                   {"Size", "", true},
                   {"Share", "Share of all tensors at this moment", true},
                   {"Layers", "", false},
                   {"Micro-batches", "", false},
                   {"Born", "Time into the step at which the first op that writes it begins", true},
                   {"in", "The first op that writes it", false},
                   {"Freed", "Time into the step at which the last op that uses it ends", true},
                   {"after", "The last op that uses it", false},
                   {"Kind", "", false}};
  double latest_s = 0;
  for (const TensorRow& row : moment.largest.rows) latest_s = std::max({latest_s, row.born_s, row.freed_s});
  const rehearse::TimeScale scale(latest_s);
  const auto size_cells = [&](double bytes) {
    const double share = moment.largest.bytes > 0 ? bytes / moment.largest.bytes : 0;
    return std::array<Cell, 2>{Cell{text(memory_text(bytes)), bytes}, Cell{text(in_percent(share)), share}};
  };
  for (const TensorRow& row : moment.largest.rows) {
    const auto [size, share] = size_cells(row.bytes);
    const bool always = row.born_in.empty() && row.freed_in.empty();
    table.rows.push_back({text_cell(text(title_of(row))), size, share,
                          text_cell(text(ranges_text(row.layers))),
                          text_cell(text(ranges_text(row.microbatches))),
                          moment_cell(row.born_s, row.born_in, scale, always ? "always" : "before", -1),
                          text_cell(text(row.born_in)),
                          moment_cell(row.freed_s, row.freed_in, scale, always ? "" : "kept", 1e300),
                          text_cell(text(row.freed_in)), text_cell(text(kind_text(row.kind)))});
  }
  if (moment.largest.others > 0) {
    const auto [size, share] = size_cells(moment.largest.others_bytes);
    std::vector<Cell> cells(table.columns.size());
    cells[0] = text_cell(text(counted(moment.largest.others, "other")));
    cells[1] = size;
    cells[2] = share;
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string moment_text(const MomentTensors& moment) {
  const rehearse::TimeScale scale(std::abs(moment.into_step_s));
  std::string text = fmt::format("{}: {}, {} into the step", moment.peak ? "Peak" : "At the cursor",
                                 memory_text(moment.largest.bytes), scale(moment.into_step_s));
  if (!moment.op.empty()) text += fmt::format(", in \"{}\"", moment.op);
  return text;
}

}  // namespace rehearse::gui
