// Bandwidths of messages and collectives, as nccl-tests defines and prints them.
#pragma once

#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"

namespace rehearse {

// Of an operation in place on fp32 numbers; of a message on bytes.
struct Bandwidth {
  double bytes = 0;  // the larger of what a rank has before it and after
  double count = 0;  // elements as they are passed to the operation
  Sample time;
  double algorithm = 0,
         bus = 0;  // bytes/s; bus: comparable to the links' own rate, whatever the number of ranks
};
std::vector<Bandwidth> bandwidths(const MeasuredLink& link);

// Of bus to algorithm bandwidth: nccl-tests, doc/PERFORMANCE.md. 1 of messages (ranks 0).
double bus_factor(CollectiveKind kind, int ranks);

// A table for people: a heading and a line for each size.
std::string bandwidth_text(const MeasuredLink& link);
// Lines as kBandwidthColumns names them. `algorithm`, `protocol`: that were forced, or empty.
std::string bandwidth_csv(const MeasuredLink& link, const std::string& algorithm,
                          const std::string& protocol);
inline constexpr const char* kBandwidthColumns =
    "kind,where,ranks,algorithm,protocol,bytes,count,type,redop,time_us,low_us,high_us,algbw_gb_per_s,"
    "busbw_gb_per_s\n";

}  // namespace rehearse
