// What carries the messages and collectives that ranks time between them: their transport, or NCCL.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/costs/link_profile.hpp"

namespace rehearse {

// Two ranks that send messages, or ranks that call a collective.
struct LinkGroup {
  Reach reach = Reach::in_node;
  std::vector<int> ranks;  // rank 0 first
  bool collective = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

// All ranks make one alike. RunError if a peer is gone or the device fails.
class LinkCarrier {
public:
  virtual ~LinkCarrier() = default;
  virtual std::string name() const = 0;                          // "TCP", "NCCL 2.28.9"
  virtual std::string hardware() const { return ""; }            // beside the machine's: "NVIDIA H100"
  virtual std::vector<std::string> notes() const { return {}; }  // on what the times mean
  virtual bool carries(CollectiveKind) const { return true; }
  virtual double most_buffer_bytes() const = 0;  // that a collective may take at a rank

  // Connects the ranks of these groups; all ranks call it once.
  virtual void open(const std::vector<LinkGroup>& groups) = 0;
  // Seconds of one transfer of `bytes`, as in Collective::bytes; of a message half of a round trip. The ranks
  // of group number `group` call it at the same time. What it says at rank 0 counts.
  virtual double time_s(std::size_t group, std::size_t bytes) = 0;
};

}  // namespace rehearse
