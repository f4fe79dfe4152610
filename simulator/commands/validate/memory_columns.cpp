#include "simulator/commands/validate/memory_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "simulator/costs/reserved.hpp"
#include "simulator/report/format.hpp"
#include "simulator/trace/memory_timeline.hpp"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

// One of the figures that memory is judged by.
struct MemoryFigure {
  const char* name;
  const char* title;
  double MeasuredMemory::*measured;
  double PredictedMemory::*predicted;
};
constexpr std::array<MemoryFigure, 3> kMemoryFigures = {
    {{"peak", "peak", &MeasuredMemory::peak_bytes, &PredictedMemory::peak_bytes},
     {"static", "static", &MeasuredMemory::static_bytes, &PredictedMemory::static_bytes},
     {"reserved", "reserved", &MeasuredMemory::reserved_bytes, &PredictedMemory::reserved_bytes}}};

double error_of(const MemoryRow& row, const MemoryFigure& figure) {
  return row.predicted.*figure.predicted / row.measured.*figure.measured - 1;
}

bool is_inside(const MemoryRow& row) {
  return row.predicted.reserved_low_bytes <= row.measured.reserved_bytes &&
         row.measured.reserved_bytes <= row.predicted.reserved_high_bytes;
}

// Returns the stage's number of a program named "stage 3"; 0 without a pipeline.
int stage_of(const std::string& program) {
  constexpr std::string_view kStage = "stage ";
  return program.starts_with(kStage) ? std::stoi(program.substr(kStage.size())) : 0;
}

std::string gib(double bytes) {
  return fmt::format("{:.2f}", bytes / 1073741824.0);
}

}  // namespace

PredictedMemory predicted_memory(const Prediction& prediction, MeasuredMemory::Of stage) {
  const Trace& trace = prediction.trace;
  const int wanted = stage == MeasuredMemory::Of::first ? 0 : prediction.scenario.strategy.pipeline - 1;
  PredictedMemory memory;
  for (const MemoryPeak& peak : memory_peaks(trace, 0)) {
    if (peak.server) continue;
    const Schedule& schedule = *trace.run.jobs[0].phases.front().schedule;
    const Program& program = schedule.programs[static_cast<std::size_t>(
        trace.classes[static_cast<std::size_t>(peak.rank_class)].phase_program)];
    if (stage != MeasuredMemory::Of::fullest && stage_of(program.name) != wanted) continue;
    if (peak.total <= memory.peak_bytes) continue;
    memory.peak_bytes = peak.total;
    memory.static_bytes = peak.update;
  }
  const ReservedBytes outside = reserved_bytes(*prediction.plan.schedule, prediction.plan.endpoints,
                                               *prediction.scenario.cluster, prediction.scenario.framework);
  memory.peak_bytes += outside.workspaces;
  memory.static_bytes += outside.workspaces;
  const Schedule& schedule = *prediction.plan.schedule;
  const MemoryUse& use = prediction.metrics.memory;
  const double recorded = recorded_bytes(schedule, prediction.scenario.framework);
  const bool waits = prediction.scenario.strategy.pipeline > 1;
  const AllocatorBytes allocator = allocator_bytes(memory.peak_bytes, recorded, waits, use.capacity);
  memory.reserved_bytes = allocator.expected;
  memory.reserved_low_bytes = allocator.low;
  memory.reserved_high_bytes = allocator.high;
  memory.out_of_memory = use.capacity > 0 && needed_bytes(use.total, outside) > use.capacity;
  return memory;
}

MemorySummary summarize(const std::vector<MemoryRow>& rows) {
  MemorySummary summary;
  std::array<ErrorSummary*, 3> into = {&summary.peak, &summary.static_, &summary.reserved};
  for (std::size_t c = 0; c < kMemoryFigures.size(); ++c) {
    std::vector<double> errors;
    for (const MemoryRow& row : rows)
      if (row.measured.*kMemoryFigures[c].measured > 0) errors.push_back(error_of(row, kMemoryFigures[c]));
    *into[c] = summarize(errors);
  }
  for (const MemoryRow& row : rows) {
    if (row.measured.reserved_bytes > 0 && is_inside(row)) ++summary.reserved_inside;
    if (!row.measured.out_of_memory) continue;
    ++summary.judged;
    if (row.predicted.out_of_memory && !*row.measured.out_of_memory) ++summary.wrongly_overflow;
    if (!row.predicted.out_of_memory && *row.measured.out_of_memory) ++summary.wrongly_fit;
  }
  return summary;
}

void write_text(const std::vector<MemoryRow>& rows, std::ostream& out) {
  const MemorySummary summary = summarize(rows);
  const std::array<const ErrorSummary*, 3> of = {&summary.peak, &summary.static_, &summary.reserved};
  std::size_t width = 2;
  for (const MemoryRow& row : rows) width = std::max(width, row.id.size());
  std::string head = fmt::format("  {:<{}}", "row", width);
  for (std::size_t c = 0; c < kMemoryFigures.size(); ++c)
    if (of[c]->rows > 0)
      head += fmt::format("  {:>9}  {:>9}  {:>8}", kMemoryFigures[c].title, "predicted", "error");
  if (summary.reserved.rows > 0) head += "       interval     ";
  if (summary.judged > 0) head += "  fits  predicted";
  out << "\n  Memory, GiB\n" << head << '\n';
  for (const MemoryRow& row : rows) {
    std::string line = fmt::format("  {:<{}}", row.id, width);
    for (std::size_t c = 0; c < kMemoryFigures.size(); ++c) {
      if (of[c]->rows == 0) continue;
      const double measured = row.measured.*kMemoryFigures[c].measured;
      line += fmt::format("  {:>9}  {:>9}  {:>8}", measured > 0 ? gib(measured) : "-",
                          gib(row.predicted.*kMemoryFigures[c].predicted),
                          measured > 0 ? signed_percent(error_of(row, kMemoryFigures[c])) : "-");
    }
    if (summary.reserved.rows > 0)
      line += fmt::format("  {:>7} to {:>7}{}", gib(row.predicted.reserved_low_bytes),
                          gib(row.predicted.reserved_high_bytes),
                          row.measured.reserved_bytes <= 0 || is_inside(row) ? " " : "!");
    if (summary.judged > 0)
      line += fmt::format("  {:>4}  {:>9}",
                          row.measured.out_of_memory ? (*row.measured.out_of_memory ? "no" : "yes") : "-",
                          row.predicted.out_of_memory ? "no" : "yes");
    out << line << '\n';
  }
  out << '\n';
  for (std::size_t c = 0; c < kMemoryFigures.size(); ++c)
    if (of[c]->rows > 0)
      out << fmt::format(
          "  {} memory of {}: mean error {}, mean of absolute errors {}, median {}, worst {}\n",
          c == 0   ? "Peak"
          : c == 1 ? "Static"
                   : "Reserved",
          counted(static_cast<double>(of[c]->rows), "row"), signed_percent(of[c]->mean),
          in_percent(of[c]->mean_absolute), in_percent(of[c]->median_absolute), signed_percent(of[c]->worst));
  if (summary.reserved.rows > 0)
    out << fmt::format(
        "  Reserved memory: {} of {} measurements inside their intervals; ! marks those outside\n",
        summary.reserved_inside, summary.reserved.rows);
  if (summary.judged > 0)
    out << fmt::format(
        "  Out of memory or not: {} of {} said right; {} said to fit that did not, {} not to fit that did\n",
        summary.right(), summary.judged, summary.wrongly_fit, summary.wrongly_overflow);
}

ordered_json to_json(const MemoryRow& row) {
  ordered_json json = ordered_json::object();
  for (const MemoryFigure& figure : kMemoryFigures) {
    const double measured = row.measured.*figure.measured;
    ordered_json& one = json[fmt::format("{}_bytes", figure.name)];
    if (measured > 0) one["measured"] = measured;
    one["predicted"] = row.predicted.*figure.predicted;
    if (measured > 0) one["error"] = error_of(row, figure);
  }
  ordered_json& reserved = json["reserved_bytes"];
  reserved["interval"] = {row.predicted.reserved_low_bytes, row.predicted.reserved_high_bytes};
  if (row.measured.reserved_bytes > 0) reserved["inside"] = is_inside(row);
  if (row.measured.out_of_memory) json["out_of_memory"]["measured"] = *row.measured.out_of_memory;
  json["out_of_memory"]["predicted"] = row.predicted.out_of_memory;
  return json;
}

ordered_json to_json(const MemorySummary& summary) {
  ordered_json json = ordered_json::object();
  const auto add = [&](const char* name, const ErrorSummary& errors) {
    if (errors.rows == 0) return;
    json[name] = {{"rows", errors.rows},
                  {"mean_error", errors.mean},
                  {"mean_absolute_error", errors.mean_absolute},
                  {"median_absolute_error", errors.median_absolute},
                  {"worst_error", errors.worst}};
  };
  add("peak", summary.peak);
  add("static", summary.static_);
  add("reserved", summary.reserved);
  if (summary.reserved.rows > 0) json["reserved"]["inside"] = summary.reserved_inside;
  if (summary.judged > 0)
    json["out_of_memory"] = {{"rows", summary.judged},
                             {"right", summary.right()},
                             {"said_to_fit", summary.wrongly_fit},
                             {"said_not_to_fit", summary.wrongly_overflow}};
  return json;
}

std::string memory_csv_columns() {
  return ",measured_peak_bytes,predicted_peak_bytes,measured_static_bytes,predicted_static_bytes,"
         "measured_reserved_bytes,predicted_reserved_bytes,predicted_reserved_low_bytes,"
         "predicted_reserved_high_bytes,measured_out_of_memory,predicted_out_of_memory";
}

std::string memory_csv(const MemoryRow* row) {
  if (row == nullptr) return ",,,,,,,,,,";
  const auto number = [](double value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  const MeasuredMemory& m = row->measured;
  const PredictedMemory& p = row->predicted;
  return fmt::format(",{},{},{},{},{},{},{},{},{},{}", number(m.peak_bytes), number(p.peak_bytes),
                     number(m.static_bytes), number(p.static_bytes), number(m.reserved_bytes),
                     number(p.reserved_bytes), number(p.reserved_low_bytes), number(p.reserved_high_bytes),
                     m.out_of_memory ? truth(*m.out_of_memory) : "", truth(p.out_of_memory));
}

}  // namespace rehearse
