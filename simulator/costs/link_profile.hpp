// Describes the measured times of messages of every size on a network, which `rehearse-run calibrate` writes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "simulator/schedule/op.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// A fitted number and its range of scatter; low and high equal the value if the scatter is unknown.
struct Spread {
  double value = 0, low = 0, high = 0;
};

// Messages of at least `from_bytes`, up to the next range: they take latency_s + bytes / bandwidth.
struct SizeRange {
  double from_bytes = 0;
  Spread latency_s;
  Spread bandwidth;   // bytes/s of payload; 0: `efficiency` is given instead
  Spread efficiency;  // share of the link's bandwidth that payload gets
  double error = 0;   // median of |fitted / measured - 1|
};

// Whether both ends of a message are in the same node.
enum class Reach { in_node, between_nodes };
inline constexpr std::array<std::string_view, 2> kReachNames = {"in-node", "between-nodes"};

// The measured times of messages between two ranks or, with `ranks` > 0, of the messages in the steps of a
// collective over that many ranks: 2(n-1) steps of a ring all-reduce with messages of S/n, n-1 steps of the
// other collectives.
struct LinkCurve {
  Reach reach = Reach::between_nodes;
  int ranks = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<SizeRange> ranges;  // ascending; the first starts at 0

  const SizeRange& range_of(double bytes) const;
};

struct LinkProfile {
  std::string title, date, hardware, versions, command;
  Basis basis = Basis::measured;
  std::vector<LinkCurve> curves;

  // Returns null if there is no such curve.
  const LinkCurve* messages(Reach reach) const;
  // Returns the curve whose number of ranks is nearest to `ranks` in proportion, preferring the larger one if
  // two are equally near; messages() if the profile has no curve of this kind and reach.
  const LinkCurve* collective(CollectiveKind kind, Reach reach, int ranks) const;
};

// Parses a link profile, whose format is described in backend/README.md, "Calibrating". Throws InputError if
// it is invalid.
LinkProfile read_link_profile(Section& root);
LinkProfile read_link_profile_file(const std::string& path);

}  // namespace rehearse
