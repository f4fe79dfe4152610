// Reads job traces that were recorded, in CSV. All differences between them stand in one table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "simulator/life/scheduling/lists/readers.hpp"
#include "simulator/life/scheduling/lists/recorded_time.hpp"

namespace rehearse {
namespace {

// Where a trace has what; "": it has no such column.
struct RecordedColumns {
  ListFormat format;
  const char* telling;  // a column that no other format has beside the following ones
  const char* name;
  const char* submit;
  const char* start;  // with `end`, instead of `duration`
  const char* end;
  const char* duration;  // s
  const char* devices;
  double device_unit = 1;      // that one device counts: 1000 thousandths, 100 %
  const char* instances = "";  // each of which has as many devices
  const char* user = "";
  const char* priority = "";  // column whose value `first` goes before others
  const char* first = "";
  bool rows_add_up = false;  // a job is all rows of its name
};

// The columns of the first row that a file has all of. Sources: README of S-Lab-System-Group/HeliosData and
// of InternLM/AcmeTrace; alibaba/clusterdata: cluster-trace-gpu-v2020/data/pai_task_table.header (put before
// the table, which comes without), cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv,
// cluster-trace-v2026-spot-gpu/README.md. gpu-v2020 has no time of submission: jobs are submitted when they
// started.
constexpr RecordedColumns kRecorded[] = {
    {ListFormat::acme, "gpu_time", "job_id", "submit_time", "start_time", "end_time", "", "gpu_num", 1, "",
     "user", "", "", false},
    {ListFormat::helios, "vc", "job_id", "submit_time", "", "", "duration", "gpu_num", 1, "", "user", "", "",
     false},
    {ListFormat::alibaba_2020, "gpu_type", "job_name", "start_time", "start_time", "end_time", "", "plan_gpu",
     100, "inst_num", "", "", "", true},
    {ListFormat::alibaba_2023, "gpu_milli", "name", "creation_time", "scheduled_time", "deletion_time", "",
     "num_gpu", 1, "", "", "qos", "LS", false},
    {ListFormat::alibaba_2026, "gpu_model", "job_name", "submit_time", "", "", "duration", "gpu_request", 1,
     "worker_num", "organization", "job_type", "HP", false},
};
std::vector<std::string> columns_of(const RecordedColumns& recorded) {
  std::vector<std::string> names;
  for (const char* name : {recorded.name, recorded.submit, recorded.start, recorded.end, recorded.duration,
                           recorded.devices, recorded.instances})
    if (*name != '\0' && std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  names.emplace_back(recorded.telling);
  return names;
}

const RecordedColumns* find_recorded(const CsvRows& rows) {
  for (const RecordedColumns& recorded : kRecorded) {
    const std::vector<std::string> names = columns_of(recorded);
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& name) { return rows.column(name) >= 0; }))
      return &recorded;
  }
  return nullptr;
}

// Traces leave cells empty, or say "None" or "nan", where something never happened.
bool is_missing(const std::string& cell) {
  return cell.empty() || cell == "None" || cell == "nan" || cell == "NaT";
}

class RecordedRow {
public:
  RecordedRow(const CsvRows& rows, const RecordedColumns& recorded) : rows_(rows), recorded_(recorded) {}

  std::string text(const char* column) const {
    return *column == '\0' ? std::string() : rows_.field(rows_.column(column));
  }
  std::optional<double> time_s(const char* column) const {
    const int at = rows_.column(column);
    if (*column == '\0' || is_missing(rows_.field(at))) return std::nullopt;
    const auto time = recorded_time_s(rows_.field(at));
    if (!time)
      throw InputError(rows_.place(at),
                       fmt::format("{} is \"{}\"; allowed: seconds, or a time like 2020-06-09 18:41:01",
                                   column, printable(rows_.field(at))));
    return checked_time_s(*time, -kLongest_s, column, rows_.field(at), rows_.place(at));
  }
  double count(const char* column, double fallback) const {
    if (*column == '\0') return fallback;
    const int at = rows_.column(column);
    if (is_missing(rows_.field(at))) return 0;
    const auto value = finite_number_in(rows_.field(at));
    if (!value || *value < 0 || *value > 1e9)
      throw InputError(rows_.place(at), fmt::format("{} is \"{}\"; allowed: a number from 0 to 1e9", column,
                                                    printable(rows_.field(at))));
    return *value;
  }
  // Parts of a device are counted as one: a device runs one job.
  int devices() const {
    const double each = std::ceil(count(recorded_.devices, 0) / recorded_.device_unit);
    return static_cast<int>(std::min(each * count(recorded_.instances, 1), 1e9));
  }
  std::optional<double> duration_s() const {
    if (*recorded_.duration != '\0') return time_s(recorded_.duration);
    const auto start = time_s(recorded_.start), end = time_s(recorded_.end);
    if (!start || !end) return std::nullopt;
    return *end - *start;
  }

private:
  const CsvRows& rows_;
  const RecordedColumns& recorded_;
};

}  // namespace

bool has_recorded_columns(const CsvRows& rows) {
  return find_recorded(rows) != nullptr;
}

std::string recorded_columns() {
  std::string text;
  for (const RecordedColumns& recorded : kRecorded)
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ",
                        kListFormatNames[static_cast<std::size_t>(recorded.format)],
                        fmt::join(columns_of(recorded), ", "));
  return text;
}

void read_recorded_list(CsvRows& rows, JobList& list) {
  const RecordedColumns& recorded = *find_recorded(rows);
  list.format = recorded.format;
  std::unordered_map<std::string, std::size_t> by_name;
  while (rows.next()) {
    const RecordedRow row(rows, recorded);
    ListedJob job;
    job.line = rows.line();
    job.name = row.text(recorded.name);
    job.devices = row.devices();
    if (job.devices == 0) {
      ++list.without_devices;
      continue;
    }
    const auto submit = row.time_s(recorded.submit), duration = row.duration_s();
    if (!submit || !duration) {
      ++list.unfinished;
      continue;
    }
    if (*duration < 0)
      throw InputError(rows.place(), fmt::format("job \"{}\" ends {} s before it starts; allowed: not before",
                                                 printable(job.name), -*duration));
    job.submit_s = *submit;
    job.duration_s = *duration;
    job.user = row.text(recorded.user);
    if (*recorded.priority != '\0') job.priority = row.text(recorded.priority) == recorded.first ? 1 : 0;
    if (recorded.rows_add_up) {
      const auto [known, is_new] = by_name.emplace(job.name, list.jobs.size());
      if (!is_new) {
        ListedJob& whole = list.jobs[known->second];
        const double end_s = std::max(whole.submit_s + whole.duration_s, job.submit_s + job.duration_s);
        whole.submit_s = std::min(whole.submit_s, job.submit_s);
        whole.duration_s = end_s - whole.submit_s;
        whole.devices = std::min(whole.devices, 1'000'000'000 - job.devices) + job.devices;
        continue;
      }
    }
    add_job(list, std::move(job), rows.place());
  }
}

}  // namespace rehearse
