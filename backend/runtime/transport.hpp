// Bytes from rank to rank of one run, over whatever joins them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rehearse {

// A part of what a stream waits for: a message on its way. Between two ranks, messages on one channel arrive
// in the order in which they are sent; a message of no bytes tells that no more will come.
struct Parcel {
  enum class Kind { send, receive, receive_add } kind = Kind::send;
  int peer = 0;     // the other rank, over all roles
  int channel = 0;  // one for each transfer of the schedule, and for each connection of a collective
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // receive_add: of fp32 numbers, which are added to those at `data`
  // Written by the transport:
  std::size_t moved = 0;
  bool done = false;
  bool over = false;  // a message of no bytes came instead
  bool begun = false;
  long handle = -1;
};

// Threads may call it at once for different parcels; a channel in one direction is used by one thread at a
// time. RunError, with the peer named, if a peer is gone or nothing moves for `patience_s`.
class Transport {
public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::string kind() const = 0;  // "TCP", "Open MPI 4.1.4"
  // Moves parcels on until at least one more of them is done. Several sends on one channel must stand in
  // their order; of each channel and direction only the first that is not done is moved.
  virtual void progress(const std::vector<Parcel*>& parcels) = 0;
  // Of all receives given, waits until one has begun to arrive and returns its index; it is then received as
  // usual.
  virtual std::size_t wait_any(const std::vector<Parcel*>& receives) = 0;
};

// Until all are done.
void carry(Transport& transport, const std::vector<Parcel*>& parcels);

// Channels below this one belong to the schedule.
inline constexpr int kControlChannel = 1 << 28;

}  // namespace rehearse
