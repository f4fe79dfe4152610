// Declares the interface for the messages and collectives whose times ranks measure: over their transport, or
// over NCCL.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/costs/link_profile.hpp"

namespace rehearse {

// Two ranks that send messages, or several ranks that call a collective.
struct LinkGroup {
  Reach reach = Reach::in_node;
  std::vector<int> ranks;  // rank 0 first
  bool collective = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

// Carries transfers between ranks for measurements. All ranks construct it with the same arguments. Throws
// RunError if a peer is gone or the device fails.
class LinkCarrier {
public:
  virtual ~LinkCarrier() = default;
  virtual std::string name() const = 0;                // "TCP", "NCCL 2.28.9"
  virtual std::string hardware() const { return ""; }  // in addition to the machine's: "NVIDIA H100"
  virtual std::vector<std::string> notes() const { return {}; }  // on the meaning of the times
  virtual bool carries(CollectiveKind) const { return true; }
  virtual double most_buffer_bytes() const = 0;  // the largest buffer of a collective at a rank

  // Connects the ranks of these groups. All ranks call it once.
  virtual void open(const std::vector<LinkGroup>& groups) = 0;
  // Returns the time of one transfer of `bytes`, defined like Collective::bytes, in seconds; for a message,
  // half of a round trip. All ranks of the group with index `group` call it at the same time. The value at
  // rank 0 counts.
  virtual double time_s(std::size_t group, std::size_t bytes) = 0;
};

}  // namespace rehearse
