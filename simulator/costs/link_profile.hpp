// What messages of every size took on a network, as `rehearse-run calibrate` measures it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "simulator/schedule/op.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// A fitted number and how far it scatters; low and high are the value itself where nothing is known.
struct Spread {
  double value = 0, low = 0, high = 0;
};

// Messages from `from_bytes` on, up to the next range: latency_s + bytes / bandwidth.
struct SizeRange {
  double from_bytes = 0;
  Spread latency_s;
  Spread bandwidth;   // bytes/s of payload; 0: `efficiency` is given instead
  Spread efficiency;  // share of the link's bandwidth that payload gets
  double error = 0;   // median of |fitted / measured - 1|
};

// In a node or between nodes.
enum class Reach { in_node, between_nodes };
inline constexpr std::array<std::string_view, 2> kReachNames = {"in-node", "between-nodes"};

// Messages between two ranks, or (ranks > 0) those of the steps of a collective of so many: 2(n-1) steps of a
// ring all-reduce with messages of S/n, n-1 of the others.
struct LinkCurve {
  Reach reach = Reach::between_nodes;
  int ranks = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<SizeRange> ranges;  // ascending, the first from 0

  const SizeRange& range_of(double bytes) const;
};

struct LinkProfile {
  std::string title, date, hardware, versions, command;
  Basis basis = Basis::measured;
  std::vector<LinkCurve> curves;

  // Null if there is none.
  const LinkCurve* messages(Reach reach) const;
  // Of the number of ranks nearest to `ranks` in proportion, the larger of two; messages() if there is none.
  const LinkCurve* collective(CollectiveKind kind, Reach reach, int ranks) const;
};

// Shape of the file: README.md, "Calibrating". Throws InputError.
LinkProfile read_link_profile(Section& root);
LinkProfile read_link_profile_file(const std::string& path);

}  // namespace rehearse
