#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "simulator/life/scheduling/lists/readers.hpp"

namespace rehearse {
namespace {

constexpr std::string_view kOwnColumns[] = {"name",        "submit_s", "devices",  "duration_s", "steps",
                                            "step_time_s", "scenario", "priority", "user"};
constexpr double kMostDevices = 2'097'152;  // of a cluster

// A cell of the row by its column's name; empty if there is no such column.
struct Cell {
  std::string_view column;
  std::string text;
  Place place;
  bool given() const { return !text.empty(); }
};

Cell cell_of(const CsvRows& rows, std::string_view name) {
  const int column = rows.column(name);
  if (column < 0) return {name, "", rows.place()};
  return {name, rows.field(column), rows.place(column)};
}

double number_of(const Cell& cell, double least, bool above, double most, std::string_view allowed) {
  const auto value = finite_number_in(cell.text);
  if (!value || *value < least || (above && *value == least) || *value > most)
    throw InputError(cell.place,
                     fmt::format("{} is {}; allowed: {}", cell.column,
                                 cell.given() ? "\"" + printable(cell.text) + "\"" : "missing", allowed));
  return *value;
}

double positive_of(const Cell& cell) {
  return number_of(cell, 0, true, kLongest_s, "a number above 0, at most 1e10");
}

double whole_of(const Cell& cell, double most) {
  const double value = number_of(cell, 1, false, most, fmt::format("a whole number from 1 to {:.0f}", most));
  if (value != std::floor(value))
    throw InputError(cell.place, fmt::format("{} is {}; allowed: a whole number", cell.column, cell.text));
  return value;
}

void refuse_unknown_columns(const CsvRows& rows) {
  for (const std::string& name : rows.columns())
    if (std::find(std::begin(kOwnColumns), std::end(kOwnColumns), name) == std::end(kOwnColumns))
      throw InputError({rows.place().file, 1, 1}, fmt::format("column \"{}\" is unknown; allowed: {}",
                                                              printable(name), fmt::join(kOwnColumns, ", ")));
}

// The work of a job: exactly one of the three ways to say it.
void read_work(const CsvRows& rows, ListedJob& job) {
  const Cell duration = cell_of(rows, "duration_s"), steps = cell_of(rows, "steps"),
             step_time = cell_of(rows, "step_time_s"), scenario = cell_of(rows, "scenario");
  constexpr std::string_view kAllowed = "one of: duration_s; steps and step_time_s; steps and scenario";
  const int ways = duration.given() + step_time.given() + scenario.given();
  if (ways != 1)
    throw InputError(rows.place(),
                     fmt::format("job \"{}\" has {} of duration_s, step_time_s and scenario; allowed: {}",
                                 printable(job.name), ways == 0 ? "none" : "more than one", kAllowed));
  if (duration.given()) {
    if (steps.given())
      throw InputError(steps.place, fmt::format("steps are given beside duration_s; allowed: {}", kAllowed));
    job.duration_s = positive_of(duration);
    return;
  }
  job.steps = number_of(steps, 0, true, 1e15, "a number above 0, at most 1e15");
  if (step_time.given()) {
    job.step_time_s = positive_of(step_time);
    job.duration_s = checked_time_s(job.steps * job.step_time_s, 0, "steps x step_time_s",
                                    fmt::format("{} x {}", steps.text, step_time.text), steps.place);
  } else {
    const std::filesystem::path file = scenario.text;
    job.scenario = file.is_absolute()
                       ? scenario.text
                       : (std::filesystem::path(rows.place().file).parent_path() / file).string();
  }
}

}  // namespace

bool has_own_columns(const CsvRows& rows) {
  return rows.column("submit_s") >= 0 || rows.column("duration_s") >= 0 || rows.column("devices") >= 0;
}

void read_own_list(CsvRows& rows, JobList& list) {
  refuse_unknown_columns(rows);
  for (const char* needed : {"name", "submit_s", "devices"})
    if (rows.column(needed) < 0)
      throw InputError({list.path, 1, 1}, fmt::format("column {} is missing; allowed: {}", needed,
                                                      fmt::join(kOwnColumns, ", ")));
  while (rows.next()) {
    ListedJob job;
    job.line = rows.line();
    const Cell name = cell_of(rows, "name");
    if (!name.given()) throw InputError(name.place, "name is empty; allowed: a name, each once");
    job.name = name.text;
    job.submit_s = number_of(cell_of(rows, "submit_s"), 0, false, kLongest_s, "a number from 0 to 1e10");
    job.devices = static_cast<int>(whole_of(cell_of(rows, "devices"), kMostDevices));
    read_work(rows, job);
    if (const Cell priority = cell_of(rows, "priority"); priority.given())
      job.priority = number_of(priority, -1e9, false, 1e9, "a number from -1e9 to 1e9");
    job.user = cell_of(rows, "user").text;
    add_job(list, std::move(job), rows.place());
  }
}

}  // namespace rehearse
