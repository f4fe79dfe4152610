// Declares the shared memory of a communicator's members, which are separate processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace stand_in {

constexpr int kMostMembers = 16;
constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes that a member publishes or sends at a time

// Is placed in shared memory, which the system initializes to zero.
struct SharedState {
  std::atomic<int> here, gone;
  char device[kMostMembers][128];                             // each member's GPU, unique across nodes
  std::atomic<long> shown[kMostMembers], read[kMostMembers];  // number of chunks of collectives
  struct Mailbox {
    std::atomic<long> sent, taken;  // number of chunks of messages
  } mail[kMostMembers][kMostMembers];
};

class SharedMemory {
public:
  SharedMemory(const std::string& name, int members);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  SharedState& state() const { return *state_; }
  std::byte* shown_by(int member) const;
  std::byte* mail(int from, int to) const;
  void unlink() const;  // removes the name; call it once all members have mapped the memory

private:
  std::string name_;
  int members_;
  std::size_t bytes_ = 0;
  SharedState* state_ = nullptr;
};

// Waits until `reached` returns true; returns false if `stopped` is set first.
bool wait_until(const std::function<bool()>& reached, const std::atomic<bool>& stopped);

}  // namespace stand_in
