#include "simulator/life/scheduling/job_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "models/text/printable.hpp"
#include "simulator/life/scheduling/lists/readers.hpp"

namespace rehearse {
namespace {

// Names are unique in lists of ours. Recorded traces may use one again (Slurm's requeued jobs).
void refuse_repeated_names(const JobList& list) {
  std::unordered_map<std::string_view, int> lines;
  for (const ListedJob& job : list.jobs) {
    const auto [known, is_new] = lines.emplace(job.name, job.line);
    if (!is_new)
      throw InputError({list.path, job.line, 1},
                       fmt::format("name \"{}\" is that of line {}, too; allowed: each once",
                                   printable(job.name), known->second));
  }
}

// Times count from the first submission in recorded traces, whose times are dates.
void sort_by_submission(JobList& list) {
  std::stable_sort(list.jobs.begin(), list.jobs.end(),
                   [](const ListedJob& a, const ListedJob& b) { return a.submit_s < b.submit_s; });
  if (list.format == ListFormat::own) return;
  const double origin_s = list.jobs.front().submit_s;
  for (ListedJob& job : list.jobs) job.submit_s -= origin_s;
}

}  // namespace

void add_job(JobList& list, ListedJob job, const Place& place) {
  if (list.jobs.size() >= kMostJobs)
    throw InputError(place, fmt::format("the list has more than {} jobs; allowed: fewer", kMostJobs));
  list.jobs.push_back(std::move(job));
}

double checked_time_s(double seconds, double least_s, std::string_view column, const std::string& found,
                      const Place& place) {
  if (!(seconds >= least_s && seconds <= kLongest_s))
    throw InputError(place, fmt::format("{} is \"{}\"; allowed: at most 1e10 s", column, printable(found)));
  return seconds;
}

JobList read_job_list(const std::string& path) {
  JobList list;
  list.path = path;
  TextStream text(path, "job list");
  while (text.peek() == ' ' || text.peek() == '\n' || text.peek() == '\r' || text.peek() == '\t') text.get();
  if (text.peek() == '[' || text.peek() == '{') {
    read_philly_list(text, list);
  } else {
    CsvRows rows(text);
    if (has_recorded_columns(rows)) {
      read_recorded_list(rows, list);
    } else if (has_own_columns(rows)) {
      read_own_list(rows, list);
      refuse_repeated_names(list);
    } else {
      throw InputError(
          {path, 1, 1},
          fmt::format("the columns are those of no known format: {}; allowed: name, submit_s, devices and "
                      "duration_s, or those of {}, or Philly's JSON",
                      printable(fmt::format("{}", fmt::join(rows.columns(), ", "))), recorded_columns()));
    }
  }
  if (list.jobs.empty())
    throw InputError({path}, list.without_devices + list.unfinished > 0
                                 ? "no job of the list has both devices and an end; allowed: at least one job"
                                 : "the list has no jobs; allowed: at least one");
  sort_by_submission(list);
  return list;
}

}  // namespace rehearse
