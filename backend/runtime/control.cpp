#include "backend/runtime/control.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

void send(Transport& transport, int to, const std::string& text) {
  std::string framed(sizeof(std::uint64_t), '\0');
  const std::uint64_t size = text.size();
  std::memcpy(framed.data(), &size, sizeof size);
  Parcel head{Parcel::Kind::send, to, kControlChannel, reinterpret_cast<std::byte*>(framed.data()),
              framed.size()};
  carry(transport, {&head});
  if (text.empty()) return;
  std::string copy = text;
  Parcel body{Parcel::Kind::send, to, kControlChannel, reinterpret_cast<std::byte*>(copy.data()),
              copy.size()};
  carry(transport, {&body});
}

std::string receive(Transport& transport, int from) {
  std::uint64_t size = 0;
  Parcel head{Parcel::Kind::receive, from, kControlChannel, reinterpret_cast<std::byte*>(&size), sizeof size};
  carry(transport, {&head});
  std::string text(size, '\0');
  if (text.empty()) return text;
  Parcel body{Parcel::Kind::receive, from, kControlChannel, reinterpret_cast<std::byte*>(text.data()),
              text.size()};
  carry(transport, {&body});
  return text;
}

// Returns a name that differs between clocks, made of the machine and the time namespace; empty if it cannot
// be determined.
std::string clock_name() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  char space[64] = {};
  if (!id.empty() && readlink("/proc/self/ns/time", space, sizeof space - 1) > 0) id += space;
  return id;
}

template <class T>
std::string packed(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T unpacked(const std::string& text) {
  T value{};
  if (text.size() != sizeof value) throw RunError("the ranks' exchange of clock times is incomplete");
  std::memcpy(&value, text.data(), sizeof value);
  return value;
}

// Gives all ranks that share a clock the reading with the smallest error.
void share_reading(Transport& transport, const std::vector<std::string>& clocks, ClockReading& reading) {
  const std::vector<std::string> all = gather(transport, packed(reading));
  if (transport.rank() != 0) {
    const auto best = unpacked<ClockReading>(receive(transport, 0));
    reading.offset_s = best.offset_s;
    reading.error_s = best.error_s;
    return;
  }
  for (int r = 1; r < transport.ranks(); ++r) {
    auto best = unpacked<ClockReading>(all[r]);
    for (int other = 1; other < transport.ranks(); ++other) {
      const auto known = unpacked<ClockReading>(all[other]);
      if (!clocks[r].empty() && clocks[other] == clocks[r] && known.error_s < best.error_s) best = known;
    }
    send(transport, r, packed(best));
  }
}

}  // namespace

void Transport::all_reduce(const std::vector<int>&, int, Collective::Reduction, float*, std::int64_t) {
  throw RunError(fmt::format("{} has no built-in all-reduce", kind()));
}

bool behind_another(const std::vector<Parcel*>& parcels, std::size_t i) {
  const Parcel& p = *parcels[i];
  const bool sends = p.kind == Parcel::Kind::send;
  return std::any_of(parcels.begin(), parcels.begin() + static_cast<std::ptrdiff_t>(i), [&](const Parcel* q) {
    return !q->done && q->peer == p.peer && q->channel == p.channel &&
           (q->kind == Parcel::Kind::send) == sends;
  });
}

void carry(Transport& transport, const std::vector<Parcel*>& parcels) {
  while (!std::all_of(parcels.begin(), parcels.end(), [](const Parcel* p) { return p->done; }))
    transport.progress(parcels);
}

std::vector<std::string> gather(Transport& transport, const std::string& own) {
  if (transport.rank() != 0) {
    send(transport, 0, own);
    return {};
  }
  std::vector<std::string> all{own};
  for (int r = 1; r < transport.ranks(); ++r) all.push_back(receive(transport, r));
  return all;
}

std::string broadcast(Transport& transport, const std::string& text) {
  if (transport.rank() != 0) return receive(transport, 0);
  for (int r = 1; r < transport.ranks(); ++r) send(transport, r, text);
  return text;
}

void barrier(Transport& transport) {
  gather(transport, "");
  broadcast(transport, "");
}

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ClockReading read_clock(Transport& transport) {
  constexpr int kRounds = 30;
  const std::vector<std::string> clocks = gather(transport, clock_name());
  ClockReading reading;
  if (transport.rank() == 0) {
    for (int r = 1; r < transport.ranks(); ++r) {
      const bool same = !clocks[0].empty() && clocks[r] == clocks[0];
      send(transport, r, same ? "same" : "other");
      for (int i = 0; !same && i < kRounds; ++i) {
        receive(transport, r);
        send(transport, r, packed(monotonic_s()));
      }
    }
  } else if (receive(transport, 0) != "same") {
    reading.error_s = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRounds; ++i) {
      const double sent_s = monotonic_s();
      send(transport, 0, "?");
      const double there_s = unpacked<double>(receive(transport, 0)), back_s = monotonic_s();
      if ((back_s - sent_s) / 2 >= reading.error_s) continue;
      reading.error_s = (back_s - sent_s) / 2;
      reading.offset_s = there_s - (sent_s + back_s) / 2;
    }
  }
  share_reading(transport, clocks, reading);
  reading.own_s = monotonic_s();
  return reading;
}

double CommonClock::operator()(double own_s) const {
  const double span_s = after_.own_s - before_.own_s;
  const double share = span_s > 0 ? std::clamp((own_s - before_.own_s) / span_s, 0.0, 1.0) : 0;
  return own_s + before_.offset_s + share * (after_.offset_s - before_.offset_s);
}

double CommonClock::error_s() const {
  return std::max(before_.error_s, after_.error_s);
}

}  // namespace rehearse
