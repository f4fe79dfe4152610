// Times of messages and collectives over their sizes, as a link profile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/calibrate/fit_ranges.hpp"
#include "backend/calibrate/measure_compute.hpp"

namespace rehearse {

// What is timed: messages, or a collective of any kind.
struct LinkTrial {
  Reach reach = Reach::in_node;
  int ranks = 0;  // 0: a message between two ranks
  CollectiveKind kind = CollectiveKind::all_reduce;
  // Seconds of one transfer of `bytes` (as in Collective::bytes), measured by this rank; the others keep in
  // step by what the function sends them.
  std::function<double(double bytes)> time_s;
  std::vector<int> members = {};               // the ranks that take part
  double most_message_bytes = 64 * 1048576.0;  // of a step
  // Of messages whose links are known: the payload that they can carry (bytes/s), and what they delay one.
  double link_payload_bandwidth = 0, link_latency_s = 0;
};

struct MeasuredLink {
  LinkCurve curve;
  std::vector<SizedSample> samples;  // by the bytes of a message of a step; of one step
  std::vector<SizedSample> whole;    // the same by Collective::bytes; of all steps
};

// From 64 bytes to 64 MiB in steps of sqrt(2), in `most_s` seconds; sizes above 64 KiB are left out where
// one run would take more than its share. Then fit_ranges(). The times of collectives are divided by their
// steps, as ring_cost() counts them. Along chains (broadcast, reduce) one message goes up to 256 KiB; larger
// buffers go in pieces of at most 512 KiB, of which k are at the end of n ranks after k + n - 2 steps.
MeasuredLink measure_link(const LinkTrial& trial, double most_s, const Progress& progress);

}  // namespace rehearse
