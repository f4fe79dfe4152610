// Chooses the traffic shaping that enforces a link's rate, and the TCP settings that keep out effects that
// the simulator does not model.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse {

// Links above this bandwidth are not built: the total throughput of one machine is of this order (8 hosts in
// a ring on 2 cores, unlimited: 8 x 10 Gbit/s).
inline constexpr double kMostEmulatedBandwidth = 20e9 / 8;  // bytes/s

// The shaper is htb with one class: it sends a complete segment as soon as it has no debt, so its bucket can
// be smaller than a segment. tbf splits segments that are longer than its bucket into packets, which is
// expensive, and with a bucket that holds a segment, short messages arrive early: with segments of 15 and 16
// KiB, 256 KiB take 0.95 of their time at 400 Mbit/s and 0.88 at 1000 (htb: 0.99 and 0.97 to 0.98). Rings of
// 8 hosts at 500 Mbit/s show no difference (tbf 1.02 to 1.05, htb 1.04 to 1.09).

// Returns the size of the bucket in bytes. A message that finds it full arrives early by that amount, so the
// first bucket on a route is small. The delay of a timer is lost if the bucket is full by then, so the next
// buckets, which cannot be full while a message passes at their rate, are larger.
long bucket_bytes(double bandwidth, bool out_of_host);

// Packets shorter than this, a power of two, overtake the others: acknowledgements, and the signals with
// which ranks request messages. Behind a queue of data they would make the throughput of both directions
// depend on each other, which no simulated link does: when a host's cable was slower than its neighbours', a
// ring through it took 1.22 times as long.
inline constexpr int kShortPacketBytes = 128;

// Returns the bytes of the largest segment that a host hands to the network at once (generic segmentation
// offload). The last segment of a message arrives at once instead of gradually: small segments are exact,
// large ones save processor time.
int segment_bytes(double bandwidth);

// Returns how many segments of 1448 bytes one connection may have in transit: enough to bridge delays of the
// processor, few enough that queues stay short and connections share a link equally. Nothing is ever lost.
int window_segments(double bandwidth, double round_trip_s);
inline constexpr int kSegmentBytes = 1448;      // payload of a packet of 1514 bytes on the wire
inline constexpr int kFrameOverheadBytes = 14;  // the shaper counts only a frame's header in addition
inline constexpr long kQueueBytes = 64L << 20;  // of a link's queue: room for all windows together

// Returns names below /proc/sys/net and their values, which are set in every namespace.
const std::vector<std::pair<std::string, std::string>>& network_settings();

}  // namespace rehearse
