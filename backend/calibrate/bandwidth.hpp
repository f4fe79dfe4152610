// Computes the bandwidths of messages and collectives, as nccl-tests defines and prints them.
#pragma once

#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"

namespace rehearse {

// The result of an operation in place on fp32 numbers, or of a message of bytes.
struct Bandwidth {
  double bytes = 0;  // the larger of a rank's data before and after
  double count = 0;  // elements as passed to the operation
  Sample time;
  double algorithm = 0,
         bus = 0;  // bytes/s; bus: comparable to the links' rate for any number of ranks
};
std::vector<Bandwidth> bandwidths(const MeasuredLink& link);

// Returns the ratio of bus to algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md); 1 for messages (0 ranks).
double bus_factor(CollectiveKind kind, int ranks);

// Returns a human-readable table: a heading and a line for each size.
std::string bandwidth_text(const MeasuredLink& link);
// Returns lines with the columns kBandwidthColumns. `algorithm` and `protocol` are those that were forced, or
// empty.
std::string bandwidth_csv(const MeasuredLink& link, const std::string& algorithm,
                          const std::string& protocol);
inline constexpr const char* kBandwidthColumns =
    "kind,where,ranks,algorithm,protocol,bytes,count,type,redop,time_us,low_us,high_us,algbw_gb_per_s,"
    "busbw_gb_per_s\n";

}  // namespace rehearse
