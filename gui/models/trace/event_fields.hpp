// Splits an event into its fields in one pass over its text, if the text is plain JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rehearse::gui {

// A part of a text. 32 bits are enough for a batch of events.
struct Slice {
  std::uint32_t at = 0, bytes = 0;
  std::string_view in(const char* text) const { return {text + at, bytes}; }
};

// The arguments of events that timelines are made of: those of Rehearse's traces, then of profilers'.
enum class KnownArgument : std::uint8_t {
  other,
  op,
  kind,
  step,
  microbatch,
  bytes,
  flops,
  members,
  algorithm,
  critical,
  ready,
  deps,
  action,
  purpose,
  elements,
  dtype,
  group_size,
  sequence_number,
  forward_thread
};
KnownArgument known_argument(std::string_view key);

struct ArgumentSlices {
  Slice key, value;  // the key without its quotes
  KnownArgument known = KnownArgument::other;
};

// The fields of an event that a timeline is made of.
struct EventFields {
  enum Field : std::uint8_t { name, category, pid, tid, time, duration, id, scope, kFields };
  std::array<Slice, kFields> tokens{};  // empty: absent
  Slice arguments_text;
  std::uint32_t first_argument = 0, arguments = 0;  // in the batch's list
  char phase = 0;                                   // 0: none
  bool binds_enclosing = false;
  bool known = false;  // false: the event has not been split
};

// A growing list whose storage outlives clear(), which is faster than a vector's.
struct ArgumentList {
  std::vector<ArgumentSlices> room;
  std::size_t count = 0;
  ArgumentSlices& append() {
    if (count == room.size()) room.resize(2 * count + 64);
    return room[count++];
  }
};

// The text must be followed by a zero and kReadAhead readable bytes.
inline constexpr std::size_t kReadAhead = 16;
// Splits the event whose '{' is at `at` into empty `fields`; slices count from `text`. Returns the position
// after the event, or null if its text ends early, or is not JSON or nested deeply: the caller must then look
// more closely.
const char* split_event(const char* at, const char* text, EventFields& fields, ArgumentList& arguments);

}  // namespace rehearse::gui
