// What NCCL chooses for the collectives of a communicator, which it tells profiler plugins: this program is
// one itself.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/schedule/op.hpp"

namespace rehearse {

struct NcclChoice {
  std::string algorithm, protocol;  // as NCCL calls them: "RING", "LL128"
  int channels = 0;                 // at most
  auto operator<=>(const NcclChoice&) const = default;
};

// Of one communicator. NCCL's threads write it.
class NcclChoices {
public:
  void add(const std::string& function, std::size_t bytes, const NcclChoice& choice);
  // How often each was chosen for collectives of this kind and size: bytes of a buffer, or where members have
  // parts, of a part. Nothing for kinds that are made of messages.
  std::map<NcclChoice, long> of(CollectiveKind kind, std::size_t bytes) const;

private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::size_t>, std::map<NcclChoice, long>> calls_;
};

// Before NCCL starts: makes this program its profiler plugin. Returns why that cannot be; empty: it is.
std::string become_nccl_profiler();

// The communicator that is created next, by whatever thread of NCCL's, tells these. They stay where they are
// until the process ends.
NcclChoices& listen_to_next_communicator();

}  // namespace rehearse
