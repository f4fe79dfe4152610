// How a link's rate is made to hold, and how TCP is kept from anything that the simulator does not know.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse {

// Links above this are not built: what one machine carries in all is of this order (8 hosts in a ring on 2
// cores, nothing limited: 8 x 10 Gbit/s).
inline constexpr double kMostEmulatedBandwidth = 20e9 / 8;  // bytes/s

// The shaper is htb with one class: it lets a whole segment go as soon as it owes nothing, so its bucket may
// be smaller than a segment. tbf cuts segments that are longer than its bucket into packets, which is dear,
// and with a bucket that holds one short messages come early: with segments of 15 and 16 KiB, 256 KiB take
// 0.95 of their time at 400 Mbit/s and 0.88 at 1000 (htb: 0.99 and 0.97 to 0.98). Rings of 8 hosts at 500
// Mbit/s do not tell the two apart (tbf 1.02 to 1.05, htb 1.04 to 1.09).

// Bytes of the bucket. A message that finds it full arrives that much early, so the first bucket on its way
// is small; but what a timer comes late by is lost if the bucket is full by then, so the next ones, which
// cannot be full while a message passes at their rate, are larger.
long bucket_bytes(double bandwidth, bool out_of_host);

// Packets shorter than this, a power of two, pass the others: acknowledgements and the words with which ranks
// call for messages. Behind a queue of data the other way they would make what both ways carry depend on each
// other, as no simulated link does: where a host's cable is slower than its neighbours', a ring through it
// took 1.22 times as long.
inline constexpr int kShortPacketBytes = 128;

// Bytes of the largest segment that a host gives to the network in one piece (generic segmentation offload).
// A message's last segment arrives at once instead of in its time: small is exact, large spares processor
// time.
int segment_bytes(double bandwidth);

// How many segments of 1448 bytes may be on their way in one connection: enough to bear delays of the
// processor, few enough that queues stay short and connections share a link equally. Nothing is ever lost.
int window_segments(double bandwidth, double round_trip_s);
inline constexpr int kSegmentBytes = 1448;      // payload of a packet of 1514 bytes on the wire
inline constexpr int kFrameOverheadBytes = 14;  // the shaper counts a frame's header and nothing else
inline constexpr long kQueueBytes = 64L << 20;  // of a link's queue: all windows together

// Names below /proc/sys/net and values, set in every namespace.
const std::vector<std::pair<std::string, std::string>>& network_settings();

}  // namespace rehearse
