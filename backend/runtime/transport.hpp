// Bytes from rank to rank of one run, over whatever joins them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/precision.hpp"
#include "simulator/schedule/collective.hpp"

namespace rehearse {

// A message on its way, seen from one of its ends. Between two ranks, messages on one channel arrive in the
// order in which they are sent; a message of no bytes tells that no more will come.
struct Parcel {
  // receive_combine: numbers, which are combined with those at `data` (combine_numbers.hpp).
  enum class Kind { send, receive, receive_combine } kind = Kind::send;
  int peer = 0;     // the other rank, over all roles
  int channel = 0;  // one for each transfer of the schedule, and for each connection of a collective
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Precision type = Precision::fp32;                              // receive_combine: fp32, or fp16 in pairs
  Collective::Reduction reduction = Collective::Reduction::sum;  // receive_combine
  // At both ends or at none: nothing is sent before the receiver waits for it, and the send is done when all
  // has arrived at the receiver's machine. Else as much is sent as fits on the way.
  bool rendezvous = false;
  // A send that is done when all has arrived at the receiver's machine, though it may go before the receiver
  // waits for it.
  bool until_arrived = false;

  // Written by the transport:
  bool done = false;
  bool cleared = false;  // rendezvous: the receiver waits for it
  bool over = false;     // received: a message of no bytes came instead
  std::uint64_t header = 0;
  std::size_t moved = 0;  // of the header and the bytes
  std::size_t taken = 0;  // receive_combine: bytes of `moved` that wait for the rest of four
  std::byte rest[4] = {};
  long handle = -1;
};

// A way from one rank to another, for messages of one kind.
struct Channel {
  int from = 0, to = 0;
  int number = 0;
  bool operator==(const Channel&) const = default;
};

// Threads may call it at once for different parcels; of a channel, each direction is used by one thread at a
// time. RunError, with the peer named, if a peer is gone or does not move on for longer than the transport's
// patience.
class Transport {
public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::string kind() const = 0;  // "TCP", "Open MPI 4.1.4"

  // Makes ready what begins or ends at this rank; all ranks call it once, with the same channels in mind.
  virtual void open(const std::vector<Channel>& channels) = 0;
  // Moves parcels on until at least one more of them is done, in their order where two share a channel and a
  // direction. Returns at once if all are done.
  virtual void progress(const std::vector<Parcel*>& parcels) = 0;
  // Waits until one of these receives, of different channels, begins to arrive, and returns its index.
  // Nothing of it is taken yet.
  virtual std::size_t wait_any(const std::vector<Parcel*>& receives) = 0;
  // Whether all_reduce() can be called: the library that joins the ranks has one of its own.
  virtual bool reduces() const { return false; }
  // Combines so many fp32 numbers in place over `ranks`, this one among them; all of them call it in the same
  // order for calls of one `number`, which no two calls under way share.
  virtual void all_reduce(const std::vector<int>& ranks, int number, Collective::Reduction reduction,
                          float* buffer, std::int64_t elements);
  // Ends all waiting, now and from now on, with an error; for when another thread has failed.
  virtual void abort() = 0;
};

// A parcel before it that is not done has the same channel and direction: this one has to wait.
bool behind_another(const std::vector<Parcel*>& parcels, std::size_t i);

// Moves parcels until all are done.
void carry(Transport& transport, const std::vector<Parcel*>& parcels);

// Channels for what ranks tell each other besides the schedule: between rank 0 and each other one, both ways,
// open from the start.
inline constexpr int kControlChannel = -1;

}  // namespace rehearse
