#include "gui/models/memory/memory_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "simulator/report/rank_names.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse::gui {

namespace {

int part_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::weight:
      return 0;
    case TensorKind::gradient:
      return 1;
    case TensorKind::optimizer_state:
      return 2;
    case TensorKind::activation:
    case TensorKind::activation_gradient:
    case TensorKind::batch:
      return 3;
    case TensorKind::buffer:
      break;
  }
  return 4;
}

void from_figures(const MemoryUse& use, RunMemory& memory) {
  StageMemory stage;
  stage.name = use.fullest.empty() ? "fullest device" : use.fullest;
  stage.parts = {use.weights, use.gradients, use.optimizer, use.activations, use.buffers};
  stage.total = use.total;
  memory.stages = {stage};
  memory.capacity = use.capacity;
}

void from_trace(const Judged& judged, RunMemory& memory) {
  const Trace& trace = judged.step;
  memory.capacity = judged.run.scenario.cluster->node().device.memory_bytes.value;
  std::map<int, std::size_t> stage_of;  // by program
  const std::vector<MemoryPeak> peaks = memory_peaks(trace, 0);
  for (const MemoryPeak& peak : peaks) {
    const RankClass& who = trace.classes[peak.rank_class];
    const Schedule& schedule = *trace.run.jobs[who.job].phases.front().schedule;
    const auto [it, fresh] = stage_of.try_emplace(who.phase_program, memory.stages.size());
    if (fresh) memory.stages.emplace_back();
    StageMemory& stage = memory.stages[it->second];
    if (!fresh && peak.total <= stage.total) continue;
    const std::string& program = schedule.programs[who.phase_program].name;
    stage.name = program.empty() ? schedule.roles[who.role].name : program;
    stage.rank = class_name(trace, peak.rank_class);
    stage.rank_class = peak.rank_class;
    stage.server =
        peak.server && judged.run.plan.endpoints[schedule.first_rank(who.role) + who.ranks.front()] >=
                           judged.run.scenario.cluster->devices();
    stage.parts = by_part(peak.by_kind);
    stage.total = peak.total;
    stage.peaks = {{peak.rank_class, peak.step}};
    for (const MemoryPeak& other : peaks)
      if (other.rank_class == peak.beside) stage.peaks.emplace_back(other.rank_class, other.step);
  }
}

}  // namespace

BytesByPart by_part(const BytesByKind& kinds) {
  BytesByPart parts{};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    parts[part_of(static_cast<TensorKind>(kind))] += kinds[kind];
  return parts;
}

std::string memory_text(double bytes) {
  constexpr double kKi = 1024;
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= kKi && unit + 1 < kUnits.size()) {
    bytes /= kKi;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

RunMemory memory_of(const Run& run) {
  RunMemory memory;
  memory.run = run.id;
  memory.name = run.name;
  if (run.judged)
    from_trace(*run.judged, memory);
  else if (run.figures.memory.total > 0)
    from_figures(run.figures.memory, memory);
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    const StageMemory& stage = memory.stages[s];
    if (!stage.server && (memory.fullest < 0 || stage.total > memory.stages[memory.fullest].total))
      memory.fullest = static_cast<int>(s);
  }
  if (memory.fullest < 0) {
    memory.sentence = "its memory use is unknown";
    return memory;
  }
  const StageMemory& fullest = memory.stages[memory.fullest];
  memory.fits = memory.capacity <= 0 || fullest.total <= memory.capacity;
  memory.sentence = memory_text(fullest.total);
  if (memory.capacity > 0) memory.sentence += " of " + memory_text(memory.capacity);
  if (memory.stages.size() > 1 || !run.judged)
    memory.sentence = fmt::format("{} is the fullest: {}", fullest.name, memory.sentence);
  if (!memory.fits) memory.sentence = "does not fit: " + memory.sentence;
  return memory;
}

std::size_t MemorySeries::at(Time when) const {
  const auto after = std::upper_bound(time.begin(), time.end(), when) - time.begin();
  return after == 0 ? time.size() : static_cast<std::size_t>(after - 1);
}

MemorySeries memory_over_time(const Run& run, int rank_class) {
  MemorySeries series;
  if (!run.judged || !run.timeline || rank_class < 0) return series;
  const Trace& trace = run.judged->run.trace;
  if (rank_class >= static_cast<int>(trace.classes.size())) return series;
  const auto [first, last] = rows_of_class(trace, rank_class);
  int steps = 0;
  for (std::size_t row = first; row < last; ++row) steps = std::max(steps, trace.spans.step[row] + 1);
  BytesByPart now{};
  const auto add = [&](double seconds) {
    const Time time = static_cast<Time>(std::llround(seconds * 1e9)) - run.timeline->origin;
    if (series.time.empty() || series.time.back() != time) {
      series.time.push_back(time);
      for (std::vector<double>& part : series.parts) part.push_back(0);
    }
    double total = 0;
    for (std::size_t p = 0; p < now.size(); ++p) total += series.parts[p].back() = now[p];
    series.most = std::max(series.most, total);
  };
  std::vector<MemoryChange> changes;
  for (int step = 0; step < steps; ++step) {
    const MemoryTimeline timeline = memory_timeline(trace, rank_class, step);
    if (step == 0) now = by_part(timeline.persistent);
    changes.insert(changes.end(), timeline.changes.begin(), timeline.changes.end());
  }
  // Training steps can overlap slightly; sort releases first here too.
  std::stable_sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return a.time_s != b.time_s ? a.time_s < b.time_s : a.bytes < b.bytes;
  });
  add(0);
  for (const MemoryChange& change : changes) {
    double& part = now[part_of(change.kind)];
    part = std::max(0.0, part + change.bytes);
    add(change.time_s);
  }
  return series;
}

}  // namespace rehearse::gui
