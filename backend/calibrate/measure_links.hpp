// Measures the times of messages and collectives over their sizes, for a link profile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/calibrate/fit_ranges.hpp"
#include "backend/calibrate/measure_compute.hpp"

namespace rehearse {

// A series of measurements of messages, or of a collective of any kind.
struct LinkTrial {
  Reach reach = Reach::in_node;
  int ranks = 0;  // 0: a message between two ranks
  CollectiveKind kind = CollectiveKind::all_reduce;
  // Returns the seconds of one transfer of `bytes` (as in Collective::bytes), measured by this rank. The
  // function also sends the other ranks what they need to keep in step.
  std::function<double(double bytes)> time_s;
  std::vector<int> members = {};               // the ranks that take part
  double most_message_bytes = 64 * 1048576.0;  // of a step of a collective
  // For messages whose links are known: their payload bandwidth (bytes/s) and their latency.
  double link_payload_bandwidth = 0, link_latency_s = 0;
};

struct MeasuredLink {
  LinkCurve curve;
  std::vector<SizedSample> samples;  // of one step, by the bytes of its message
  std::vector<SizedSample> whole;    // of all steps, by Collective::bytes
};

// Measures from 64 bytes to 64 MiB in steps of sqrt(2), within `most_s` seconds, and calls fit_ranges().
// Skips sizes above 64 KiB if a single run would take more than its share. Divides the times of collectives
// by their steps, as ring_cost() counts them. Along chains (broadcast, reduce), buffers of up to 256 KiB are
// one message; larger ones are split into pieces of at most 512 KiB, k of which reach the end of n ranks
// after k + n - 2 steps.
MeasuredLink measure_link(const LinkTrial& trial, double most_s, const Progress& progress);

}  // namespace rehearse
