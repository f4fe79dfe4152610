// What ranks tell each other before and after a run, by way of rank 0.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Every rank's text, by rank, at rank 0; nothing at the others.
std::vector<std::string> gather(Transport& transport, const std::string& own);
// Rank 0's text.
std::string broadcast(Transport& transport, const std::string& text);
// Returns when all ranks have called it.
void barrier(Transport& transport);

// Sends `value` to `peer` on the control channel, or receives it from there; T is copied byte by byte.
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

// Ranks on one machine (and in one namespace of time) share its clock. Of others the clock is told from round
// trips with rank 0, of which the fastest counts: the other's time lies in the middle of it (Cristian,
// "Probabilistic clock synchronization", 1989); of the ranks of one machine all take the fastest.
struct ClockReading {
  double own_s = 0;     // this machine's monotonic clock
  double offset_s = 0;  // to add to it for the time of rank 0
  double error_s = 0;   // at most: half of the fastest round trip; 0 on one machine
};
ClockReading read_clock(Transport& transport);
double monotonic_s();

// From readings before and after a run: this rank's times on rank 0's clock.
class CommonClock {
public:
  CommonClock(const ClockReading& before, const ClockReading& after) : before_(before), after_(after) {}
  double operator()(double own_s) const;
  double error_s() const;

private:
  ClockReading before_, after_;
};

}  // namespace rehearse
