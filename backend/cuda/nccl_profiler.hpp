// Records what NCCL chooses for the collectives of a communicator. NCCL reports that to profiler plugins, and
// this program acts as one.
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
  std::string algorithm, protocol;  // in NCCL's spelling: "RING", "LL128"
  int channels = 0;                 // the maximum
  auto operator<=>(const NcclChoice&) const = default;
};

// The choices of one communicator, which NCCL's threads add.
class NcclChoices {
public:
  void add(const std::string& function, std::size_t bytes, const NcclChoice& choice);
  // Returns how often each choice was made for collectives of this kind and size. `bytes` is the size of the
  // buffer or, if members have parts, of a part. Returns nothing for kinds that consist of messages.
  std::map<NcclChoice, long> of(CollectiveKind kind, std::size_t bytes) const;

private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::size_t>, std::map<NcclChoice, long>> calls_;
};

// Makes this program NCCL's profiler plugin. Must be called before NCCL starts. Returns the reason if that is
// impossible, else an empty text.
std::string become_nccl_profiler();

// Returns the choices of the communicator that is created next, by any of NCCL's threads. They live until the
// process ends.
NcclChoices& listen_to_next_communicator();

}  // namespace rehearse
