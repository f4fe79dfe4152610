// Describes the jobs that people send to a cluster, as a list read from a file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {

struct ListedJob {
  std::string name;
  double submit_s = 0;     // from the list's origin of time
  int devices = 1;         // a gang: all of them, or the job waits
  double duration_s = 0;   // alone, on its devices; 0 until it is known, if the job has a scenario
  double step_time_s = 0;  // 0: unknown
  double steps = 0;        // with step_time_s or a scenario
  double priority = 0;     // greater: earlier
  std::string user;
  std::string scenario;  // file whose step the predictor simulates; relative to the list
  int line = 0;          // in the list, for errors; 0: the format has no lines
};

enum class ListFormat { own, philly, helios, acme, alibaba_2020, alibaba_2023, alibaba_2026 };
inline constexpr std::array<std::string_view, 7> kListFormatNames = {
    "jobs", "Philly", "Helios", "Acme", "Alibaba gpu-v2020", "Alibaba gpu-v2023", "Alibaba v2026-spot-gpu"};

struct JobList {
  std::string path;
  ListFormat format = ListFormat::own;
  std::vector<ListedJob> jobs;  // by time of submission; jobs of the same time in the order of the file
  // Jobs of a recorded trace that cannot be replayed and are left out: without devices, without a start or an
  // end.
  std::int64_t without_devices = 0, unfinished = 0;
};

inline constexpr std::size_t kMostJobs = 10'000'000;
inline constexpr double kLongest_s = 1e10;  // of times: three centuries

// Reads a list, gzipped or not, whose format its columns or keys tell. Streams the file: memory grows with
// the jobs alone. Throws InputError.
JobList read_job_list(const std::string& path);

}  // namespace rehearse
