#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "simulator/commands/validate/validation.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

const Efficiency* efficiency_of(const Validation& v, std::size_t row) {
  for (const Efficiency& e : v.whole.efficiencies)
    if (e.row == row) return &e;
  return nullptr;
}

// Returns null if the row's memory was not measured.
const MemoryRow* memory_of(const Validation& v, const ValidatedRow& row) {
  for (const MemoryRow& memory : v.memory)
    if (memory.id == row.measurement->id) return &memory;
  return nullptr;
}

// Returns notes separated by "; ".
std::string note_of(const ValidatedRow& row) {
  const std::string& note = row.measurement->note;
  return note + (note.empty() || row.found.empty() ? "" : "; ") + row.found;
}

std::size_t right_ones(const Validation& v) {
  return static_cast<std::size_t>(
      std::count_if(v.comparisons.begin(), v.comparisons.end(), [](const Comparison& c) { return c.right; }));
}

void write_rows(const Validation& v, std::ostream& out) {
  std::size_t width = 2;
  for (const ValidatedRow& row : v.rows) width = std::max(width, row.measurement->id.size());
  const bool scaling = !v.whole.efficiencies.empty();
  out << fmt::format("{}\n\n  {:<{}}  {:>10}  {:>10}  {:>9}{}{}\n", v.table->name, "row", width, "measured",
                     "predicted", "error", v.whole.coverage ? "     90 % interval     " : "",
                     scaling ? "   efficiency measured  predicted" : "");
  const auto time = [&](double seconds) {
    return v.of_operations() ? fmt::format("{:.1f} us", 1e6 * seconds) : fmt::format("{:.4f} s", seconds);
  };
  for (std::size_t i = 0; i < v.rows.size(); ++i) {
    const ValidatedRow& row = v.rows[i];
    const bool measured = row.measured_step_s > 0;
    std::string line = fmt::format("  {:<{}}  {:>10}  {:>10}  {:>9}", row.measurement->id, width,
                                   measured ? time(row.measured_step_s) : "-", time(row.predicted_step_s),
                                   measured ? signed_percent(row.error()) : "-");
    if (row.uncertainty)
      line += fmt::format("  {:>9} to {:>9}{}", time(row.uncertainty->low_s), time(row.uncertainty->high_s),
                          !measured || row.inside() ? " " : "!");
    if (const Efficiency* e = efficiency_of(v, i))
      line += fmt::format("  {:>20}  {:>9}", in_percent(e->measured), in_percent(e->predicted));
    out << line << '\n';
  }
}

std::string in_points(double share) {
  return fmt::format("{:.1f} points", 100 * share);
}

void write_groups(const Validation& v, std::ostream& out) {
  if (v.groups.empty()) return;
  std::size_t width = 5;
  for (const TableSummary& group : v.groups) width = std::max(width, group.group.size());
  out << fmt::format("\n  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}{}  {}\n", "group", width, "rows",
                     "mean error", "absolute", "median", "worst",
                     v.whole.coverage ? fmt::format("  {:>8}  {:>7}", "inside", "width") : "",
                     "efficiencies: off by");
  for (const TableSummary& group : v.groups) {
    const ErrorSummary& e = group.errors;
    if (e.rows == 0) {
      out << fmt::format("  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}", group.group, width, 0, "-", "-", "-",
                         "-");
    } else {
      out << fmt::format("  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}", group.group, width, e.rows,
                         signed_percent(e.mean), in_percent(e.mean_absolute), in_percent(e.median_absolute),
                         signed_percent(e.worst));
    }
    if (group.coverage)
      out << fmt::format("  {:>8}  {:>7}", in_percent(group.coverage->share()),
                         in_percent(group.coverage->median_width));
    if (!group.efficiencies.empty())
      out << fmt::format("  {:>12}: {}", group.efficiencies.size(),
                         in_points(mean_difference(group.efficiencies)));
    out << '\n';
  }
}

void add_summary(nlohmann::ordered_json& json, const TableSummary& summary) {
  if (summary.errors.rows > 0) {
    json["mean_error"] = summary.errors.mean;
    json["mean_absolute_error"] = summary.errors.mean_absolute;
    json["median_absolute_error"] = summary.errors.median_absolute;
    json["worst_error"] = summary.errors.worst;
  }
  if (!summary.efficiencies.empty())
    json["efficiency"] = {{"rows", summary.efficiencies.size()},
                          {"mean_absolute_difference", mean_difference(summary.efficiencies)}};
  if (summary.coverage)
    json["intervals"] = {{"rows", summary.coverage->rows},
                         {"inside", summary.coverage->inside},
                         {"median_width", summary.coverage->median_width}};
}

}  // namespace

void write_text(const Validation& v, std::ostream& out) {
  write_rows(v, out);
  write_groups(v, out);
  if (!v.memory.empty()) write_text(v.memory, out);
  const ErrorSummary& e = v.whole.errors;
  out << '\n';
  if (e.rows > 0)
    out << fmt::format("  {}: mean error {}, mean of absolute errors {}, median {}, worst {}\n",
                       counted(static_cast<double>(e.rows), "row"), signed_percent(e.mean),
                       in_percent(e.mean_absolute), in_percent(e.median_absolute), signed_percent(e.worst));
  if (const std::optional<Coverage>& coverage = v.whole.coverage)
    out << fmt::format(
        "  Intervals: {} of {} measurements inside ({}), median width {}; ! marks those outside\n",
        coverage->inside, coverage->rows, in_percent(coverage->share()), in_percent(coverage->median_width));
  if (!v.whole.efficiencies.empty())
    out << fmt::format("  Scaling efficiencies of {}: predictions are off by {} on average\n",
                       counted(static_cast<double>(v.whole.efficiencies.size()), "row"),
                       in_points(mean_difference(v.whole.efficiencies)));
  if (!v.comparisons.empty()) {
    out << fmt::format("  Order: {} of {} comparisons right, of rows measured more than 5 % apart\n",
                       right_ones(v), v.comparisons.size());
    constexpr std::size_t kTold = 10;
    std::size_t wrong = 0;
    for (const Comparison& c : v.comparisons)
      if (!c.right && ++wrong <= kTold)
        out << fmt::format("    wrong: {} is faster than {}\n", v.rows[c.faster].measurement->id,
                           v.rows[c.slower].measurement->id);
    if (wrong > kTold) out << fmt::format("    and {} more (--format json lists all)\n", wrong - kTold);
  }
  std::vector<std::string> told;  // rows share most of their sources and notes
  const auto tell = [&](const char* label, const std::string& text) {
    if (text.empty() || std::find(told.begin(), told.end(), text) != told.end()) return;
    told.push_back(text);
    out << fmt::format("  {}: {}\n", label, text);
  };
  for (const ValidatedRow& row : v.rows) tell("Source", row.measurement->source);
  for (const ValidatedRow& row : v.rows) {
    const std::string note = note_of(row);
    for (std::size_t at = 0; at < note.size();) {
      const std::size_t end = std::min(note.find("; ", at), note.size());
      tell("Note", note.substr(at, end - at));
      at = end + 2;
    }
  }
}

void write_csv(const std::vector<Validation>& all, std::ostream& out) {
  out << "table,id,measured_step_s,predicted_step_s,error,source,note,group,devices,measured_samples_per_s,"
         "predicted_samples_per_s,measured_efficiency,predicted_efficiency";
  const bool intervals =
      std::any_of(all.begin(), all.end(), [](const Validation& v) { return v.whole.coverage.has_value(); });
  const bool memory =
      std::any_of(all.begin(), all.end(), [](const Validation& v) { return !v.memory.empty(); });
  out << (intervals ? ",predicted_low_s,predicted_high_s" : "") << (memory ? memory_csv_columns() : "")
      << '\n';
  const auto number = [](double value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  for (const Validation& v : all) {
    for (std::size_t i = 0; i < v.rows.size(); ++i) {
      const ValidatedRow& row = v.rows[i];
      const Observation& o = v.observations[i];
      const Efficiency* e = efficiency_of(v, i);
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(v.table->name),
                         csv_field(row.measurement->id), number(row.measured_step_s), row.predicted_step_s,
                         row.measured_step_s > 0 ? fmt::format("{}", row.error()) : "",
                         csv_field(row.measurement->source), csv_field(note_of(row)), csv_field(o.group),
                         row.devices, number(o.measured_per_s), number(o.predicted_per_s),
                         e ? number(e->measured) : "", e ? number(e->predicted) : "");
      if (row.uncertainty)
        out << fmt::format(",{},{}", row.uncertainty->low_s, row.uncertainty->high_s);
      else if (intervals && memory)
        out << ",,";
      if (memory) out << memory_csv(memory_of(v, row));
      out << '\n';
    }
  }
}

nlohmann::ordered_json to_json(const std::vector<Validation>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Validation& v : all) {
    nlohmann::ordered_json table;
    table["table"] = v.table->name;
    add_summary(table, v.whole);
    if (!v.memory.empty()) table["memory"] = to_json(summarize(v.memory));
    for (const TableSummary& summary : v.groups) {
      nlohmann::ordered_json group = {{"group", summary.group}, {"rows", summary.errors.rows}};
      add_summary(group, summary);
      table["groups"].push_back(std::move(group));
    }
    if (!v.comparisons.empty()) {
      nlohmann::ordered_json order = {{"comparisons", v.comparisons.size()}, {"right", right_ones(v)}};
      order["wrong"] = nlohmann::ordered_json::array();
      for (const Comparison& c : v.comparisons)
        if (!c.right)
          order["wrong"].push_back(
              {{"faster", v.rows[c.faster].measurement->id}, {"slower", v.rows[c.slower].measurement->id}});
      table["order"] = std::move(order);
    }
    for (std::size_t i = 0; i < v.rows.size(); ++i) {
      const ValidatedRow& row = v.rows[i];
      nlohmann::ordered_json told = {{"id", row.measurement->id}};
      if (!row.measurement->group.empty()) told["group"] = row.measurement->group;
      if (!v.kernels && row.devices > 0) told["devices"] = row.devices;
      const char* what = v.of_operations() ? "time_s" : "step_s";
      if (row.measured_step_s > 0) told[fmt::format("measured_{}", what)] = row.measured_step_s;
      told[fmt::format("predicted_{}", what)] = row.predicted_step_s;
      if (row.measured_step_s > 0) told["error"] = row.error();
      if (row.uncertainty) {
        told["interval_s"] = {row.uncertainty->low_s, row.uncertainty->high_s};
        if (row.measured_step_s > 0) told["inside"] = row.inside();
        told["uncertainty"] = to_json(*row.uncertainty);
      }
      if (const Efficiency* e = efficiency_of(v, i))
        told["efficiency"] = {{"measured", e->measured},
                              {"predicted", e->predicted},
                              {"base", v.rows[e->base].measurement->id}};
      if (const MemoryRow* memory = memory_of(v, row)) told["memory"] = to_json(*memory);
      told["source"] = row.measurement->source;
      told["note"] = note_of(row);
      table["rows"].push_back(std::move(told));
    }
    json.push_back(std::move(table));
  }
  return json;
}

}  // namespace rehearse
