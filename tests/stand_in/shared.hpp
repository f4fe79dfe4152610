// What the members of a communicator share: memory of all their processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

namespace stand_in {

constexpr int kMostMembers = 16;
constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes that a member shows or sends at a time

// Lives in shared memory, zeroed by the system.
struct SharedState {
  std::atomic<int> here, gone;
  char device[kMostMembers][128];                             // of each member, anywhere
  std::atomic<long> shown[kMostMembers], read[kMostMembers];  // chunks of collectives
  struct Mailbox {
    std::atomic<long> sent, taken;  // chunks of messages
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
  void unlink() const;  // once all members have it

private:
  std::string name_;
  int members_;
  std::size_t bytes_ = 0;
  SharedState* state_ = nullptr;
};

// Waits until `reached`; false if `stopped` comes first.
bool wait_until(const std::function<bool()>& reached, const std::atomic<bool>& stopped);

}  // namespace stand_in
