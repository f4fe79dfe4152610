// Declares the readers of the formats of job lists, each of which appends jobs in the order of the file.
#pragma once

#include "simulator/life/scheduling/job_list.hpp"
#include "simulator/life/scheduling/lists/csv_rows.hpp"
#include "simulator/report/text_stream.hpp"

namespace rehearse {

// A list of ours. Columns: name, submit_s, devices; and one of duration_s, steps and step_time_s, or steps
// and scenario; if wanted, priority and user.
bool has_own_columns(const CsvRows& rows);
void read_own_list(CsvRows& rows, JobList& list);

// A recorded trace in CSV, recognised by its columns: a row of the table in recorded_lists.cpp.
bool has_recorded_columns(const CsvRows& rows);
void read_recorded_list(CsvRows& rows, JobList& list);
std::string recorded_columns();  // of all formats, for errors

// Philly's cluster_job_log, a JSON array. A job's attempts are replayed as one, as long as all together.
void read_philly_list(TextStream& text, JobList& list);

// Throws InputError if there are too many jobs.
void add_job(JobList& list, ListedJob job, const Place& place);
// Refuses times that are too long.
double checked_time_s(double seconds, double least_s, std::string_view column, const std::string& found,
                      const Place& place);

}  // namespace rehearse
