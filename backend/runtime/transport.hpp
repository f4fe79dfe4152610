// Declares the interface that moves bytes between the ranks of one run, over any kind of connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/precision.hpp"
#include "simulator/schedule/collective.hpp"

namespace rehearse {

// A message in transit, seen from one of its ends. Between two ranks, messages on one channel arrive in the
// order in which they are sent. A message of zero bytes announces that no more will come.
struct Parcel {
  // receive_combine: the message has numbers, which are combined with those at `data` (combine_numbers.hpp).
  enum class Kind { send, receive, receive_combine } kind = Kind::send;
  int peer = 0;     // the other rank, over all roles
  int channel = 0;  // one for each transfer of the schedule, and one for each connection of a collective
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Precision type = Precision::fp32;                              // receive_combine: fp32, or fp16 in pairs
  Collective::Reduction reduction = Collective::Reduction::sum;  // receive_combine
  // Set at both ends or at neither. If set, nothing is sent before the receiver waits for it, and the send is
  // done when everything has arrived at the receiver's machine. Otherwise as much is sent as the buffers on
  // the way can hold.
  bool rendezvous = false;
  // A send that is done when everything has arrived at the receiver's machine, though it may start before the
  // receiver waits for it.
  bool until_arrived = false;

  // Written by the transport:
  bool done = false;
  bool cleared = false;  // rendezvous: the receiver is waiting for it
  bool over = false;     // received: a message of zero bytes came instead
  std::uint64_t header = 0;
  std::size_t moved = 0;  // bytes of the header and the data so far
  std::size_t taken = 0;  // receive_combine: bytes of `moved` that wait for the rest of their group of four
  std::byte rest[4] = {};
  long handle = -1;
};

// A one-way connection between two ranks, for messages of one kind.
struct Channel {
  int from = 0, to = 0;
  int number = 0;
  bool operator==(const Channel&) const = default;
};

// Several threads may call a transport at once for different parcels, but only one thread at a time uses each
// direction of a channel. Throws RunError, which names the peer, if a peer is gone or makes no progress for
// longer than the transport's patience.
class Transport {
public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::string kind() const = 0;  // "TCP", "Open MPI 4.1.4"

  // Prepares the channels that begin or end at this rank. All ranks call it once, with the same channels.
  virtual void open(const std::vector<Channel>& channels) = 0;
  // Advances the parcels until at least one more of them is done; parcels that share a channel and a
  // direction advance in their order. Returns at once if all are done.
  virtual void progress(const std::vector<Parcel*>& parcels) = 0;
  // Waits until one of these receives, which use different channels, begins to arrive, and returns its index.
  // Takes none of its data yet.
  virtual std::size_t wait_any(const std::vector<Parcel*>& receives) = 0;
  // Returns whether all_reduce() can be called, because the library that connects the ranks has an
  // all-reduce.
  virtual bool reduces() const { return false; }
  // Combines `elements` fp32 numbers in place over `ranks`, which include this rank. All of them call it in
  // the same order for calls of one `number`; no two calls in progress share a number.
  virtual void all_reduce(const std::vector<int>& ranks, int number, Collective::Reduction reduction,
                          float* buffer, std::int64_t elements);
  // Makes all current and future waits end with an error, because another thread has failed.
  virtual void abort() = 0;
};

// Returns whether an earlier parcel with the same channel and direction is not done, so that parcel i has to
// wait.
bool behind_another(const std::vector<Parcel*>& parcels, std::size_t i);

// Advances the parcels until all are done.
void carry(Transport& transport, const std::vector<Parcel*>& parcels);

// The channels for what ranks exchange outside of the schedule: between rank 0 and every other rank, in both
// directions, open from the start.
inline constexpr int kControlChannel = -1;

}  // namespace rehearse
