// Exchanges texts, values and clock readings between ranks before and after a run, by way of rank 0.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Returns the texts of all ranks, by rank, at rank 0, and an empty list at the others.
std::vector<std::string> gather(Transport& transport, const std::string& own);
// Returns rank 0's text at every rank.
std::string broadcast(Transport& transport, const std::string& text);
// Returns when all ranks have called it.
void barrier(Transport& transport);

// Sends `value` to `peer` on the control channel, or receives it from there. T is copied byte by byte.
template <class T>
void carry_value(Transport& transport, Parcel::Kind kind, int peer, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  Parcel parcel;
  parcel.kind = kind;
  parcel.peer = peer;
  parcel.channel = kControlChannel;
  parcel.data = reinterpret_cast<std::byte*>(&value);
  parcel.bytes = sizeof value;
  carry(transport, {&parcel});
}

// A reading of this rank's clock against that of rank 0. Ranks on one machine (and in one time namespace)
// share its clock. For other machines the offset is estimated from round trips with rank 0, of which the
// fastest counts: the other side's time is assumed to be the middle of the round trip (Cristian,
// "Probabilistic clock synchronization", 1989). All ranks of one machine use the fastest round trip of any of
// them.
struct ClockReading {
  double own_s = 0;     // this machine's monotonic clock
  double offset_s = 0;  // added to it, gives the time of rank 0
  double error_s = 0;   // upper bound: half of the fastest round trip; 0 on one machine
};
ClockReading read_clock(Transport& transport);
double monotonic_s();

// Converts this rank's times to rank 0's clock, given readings from before and after a run.
class CommonClock {
public:
  CommonClock(const ClockReading& before, const ClockReading& after) : before_(before), after_(after) {}
  double operator()(double own_s) const;
  double error_s() const;

private:
  ClockReading before_, after_;
};

}  // namespace rehearse
