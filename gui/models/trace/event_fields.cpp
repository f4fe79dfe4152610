#include "gui/models/trace/event_fields.hpp"

#include <bit>
#include <cstring>

#include "gui/models/trace/utf8.hpp"

namespace rehearse::gui {
namespace {

constexpr int kDeepest = 32;

// Compares texts of the same length, which the compiler knows.
template <std::size_t kSize>
bool same(std::string_view key, const char (&text)[kSize]) {
  return std::memcmp(key.data(), text, kSize - 1) == 0;
}

// The functions after_...() return the position after what they read; null: it is not plain JSON.

constexpr std::uint64_t eight(unsigned char byte) {
  return 0x0101010101010101U * byte;
}
// Returns eight bytes, the first one in the lowest bits on any machine.
std::uint64_t load(const char* at) {
  std::uint64_t bytes = 0;
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(&bytes, at, sizeof(bytes));
  else
    for (int i = 0; i < 8; ++i) bytes |= std::uint64_t{static_cast<unsigned char>(at[i])} << 8 * i;
  return bytes;
}
// Sets the high bit of each byte that equals `c`. This is exact for the lowest such byte if all bytes below
// it are ASCII.
std::uint64_t equal(std::uint64_t bytes, unsigned char c) {
  return (bytes ^ eight(c)) - eight(1);
}
// Returns the first byte at or after `at` for which `marks`, a function of eight bytes, sets the high bit.
template <typename Marks>
const char* first_marked(const char* at, Marks marks) {
  for (;; at += 8)
    if (const std::uint64_t found = marks(load(at)) & eight(0x80); found != 0)
      return at + std::countr_zero(found) / 8;
}

// Finds a quote, a backslash, a control character or a byte that is not ASCII.
const char* end_of_plain_text(const char* at) {
  return first_marked(at, [](std::uint64_t bytes) {
    return equal(bytes, '"') | equal(bytes, '\\') | (bytes - eight(' ')) | bytes;
  });
}

// Finds what cannot be in a number or a literal: white space, quotes, commas, colons, brackets.
const char* end_of_word(const char* at) {
  return first_marked(at, [](std::uint64_t bytes) {
    const std::uint64_t brackets = (bytes | eight(0x20)) + eight(0x80 - '{');
    return equal(bytes, ',') | equal(bytes, ':') | brackets | (bytes - eight('"' + 1)) | bytes;
  });
}

const char* after_space(const char* at) {
  while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
  return at;
}

// Reads the rest of a string from a byte that end_of_plain_text() has found.
const char* after_odd_text(const char* at) {
  for (;; at = end_of_plain_text(at)) {
    if (*at == '"') return at + 1;
    if (*at == '\\') {
      const auto escaped = static_cast<unsigned char>(at[1]);
      if (escaped < ' ') return nullptr;
      at += escaped < 0x80 ? 2 : 1;
    } else {
      if (static_cast<unsigned char>(*at) < ' ') return nullptr;
      const std::size_t length = utf8_length({at, 4}, 0);
      if (length == 0) return nullptr;
      at += length;
    }
  }
}

inline const char* after_string(const char* at) {
  at = end_of_plain_text(at + 1);
  return *at == '"' ? at + 1 : after_odd_text(at);
}

bool begins_word(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == 't' || c == 'f' || c == 'n';
}

const char* after_value(const char* at, int depth);

// Reads an object. Calls member(key, value) for each member: `key` is its text without quotes, `value` the
// position of its value. member() reads the value and returns the position after it.
template <typename Member>
const char* after_members(const char* at, Member member) {
  at = after_space(at + 1);
  if (*at == '}') return at + 1;
  for (;; at = after_space(at + 1)) {
    if (*at != '"') return nullptr;
    const char* const key = at;
    at = after_string(at);
    if (at == nullptr) return nullptr;
    const char* const key_end = at;
    at = after_space(at);
    if (*at != ':') return nullptr;
    at = member(std::string_view(key + 1, static_cast<std::size_t>(key_end - key) - 2), after_space(at + 1));
    if (at == nullptr) return nullptr;
    at = after_space(at);
    if (*at == '}') return at + 1;
    if (*at != ',') return nullptr;
  }
}

const char* after_elements(const char* at, int depth) {
  at = after_space(at + 1);
  if (*at == ']') return at + 1;
  for (;; at = after_space(at + 1)) {
    at = after_value(at, depth);
    if (at == nullptr) return nullptr;
    at = after_space(at);
    if (*at == ']') return at + 1;
    if (*at != ',') return nullptr;
  }
}

const char* after_value(const char* at, int depth) {
  if (*at == '"') return after_string(at);
  if (begins_word(*at)) return end_of_word(at);
  if (depth == 0) return nullptr;
  if (*at == '[') return after_elements(at, depth - 1);
  if (*at != '{') return nullptr;
  return after_members(
      at, [depth](std::string_view, const char* value) { return after_value(value, depth - 1); });
}

class Splitter {
public:
  Splitter(const char* text, EventFields& fields, ArgumentList& arguments)
      : text_(text), fields_(fields), arguments_(arguments) {}

  const char* event(const char* at) {
    return after_members(at, [this](std::string_view key, const char* value) { return field(key, value); });
  }

private:
  Slice slice(const char* from, const char* to) const {
    return {static_cast<std::uint32_t>(from - text_), static_cast<std::uint32_t>(to - from)};
  }

  const char* field(std::string_view key, const char* value) {
    if (key.size() == 4 && same(key, "args") && *value == '{') return arguments(value);
    const char* const end = after_value(value, kDeepest);
    if (end == nullptr) return nullptr;
    const auto is = [&](EventFields::Field which) { fields_.tokens[which] = slice(value, end); };
    switch (key.size()) {
      case 2:
        if (same(key, "ts"))
          is(EventFields::time);
        else if (same(key, "id"))
          is(EventFields::id);
        else if (same(key, "ph") && end - value == 3 && *value == '"')
          fields_.phase = value[1];
        else if (same(key, "bp"))
          fields_.binds_enclosing = end - value == 3 && value[0] == '"' && value[1] == 'e';
        break;
      case 3:
        if (same(key, "dur"))
          is(EventFields::duration);
        else if (same(key, "pid"))
          is(EventFields::pid);
        else if (same(key, "tid"))
          is(EventFields::tid);
        else if (same(key, "cat"))
          is(EventFields::category);
        else if (same(key, "id2"))
          is(EventFields::id);
        break;
      case 4:
        if (same(key, "name")) is(EventFields::name);
        break;
      case 5:
        if (same(key, "scope")) is(EventFields::scope);
        break;
      default:
        break;
    }
    return end;
  }

  const char* arguments(const char* at) {
    fields_.first_argument = static_cast<std::uint32_t>(arguments_.count);
    const char* const end = after_members(at, [this](std::string_view key, const char* value) {
      const char* const value_end = after_value(value, kDeepest);
      if (value_end != nullptr)
        arguments_.append() = {slice(key.data(), key.data() + key.size()), slice(value, value_end),
                               known_argument(key)};
      return value_end;
    });
    if (end == nullptr) return nullptr;
    fields_.arguments = static_cast<std::uint32_t>(arguments_.count) - fields_.first_argument;
    fields_.arguments_text = slice(at, end);
    return end;
  }

  const char* text_;
  EventFields& fields_;
  ArgumentList& arguments_;
};

}  // namespace

KnownArgument known_argument(std::string_view key) {
  using enum KnownArgument;
  switch (key.size()) {
    case 2:
      return same(key, "op") ? op : other;
    case 4:
      return same(key, "kind") ? kind : same(key, "step") ? step : same(key, "deps") ? deps : other;
    case 5:
      return same(key, "bytes") || same(key, "Bytes") ? bytes
             : same(key, "flops")                     ? flops
             : same(key, "dtype")                     ? dtype
                                                      : other;
    case 6:
      return same(key, "action") ? action : other;
    case 7:
      return same(key, "members") ? members : same(key, "purpose") ? purpose : other;
    case 8:
      return same(key, "ready_us") ? ready : same(key, "critical") ? critical : other;
    case 9:
      return same(key, "algorithm") ? algorithm : other;
    case 10:
      return same(key, "microbatch") ? microbatch : same(key, "Group size") ? group_size : other;
    case 13:
      return same(key, "In msg nelems") ? elements : same(key, "Fwd thread id") ? forward_thread : other;
    case 15:
      return same(key, "Sequence number") ? sequence_number : other;
    default:
      return other;
  }
}

const char* split_event(const char* at, const char* text, EventFields& fields, ArgumentList& arguments) {
  const std::size_t before = arguments.count;
  const char* const end = Splitter(text, fields, arguments).event(at);
  fields.known = end != nullptr;
  if (end == nullptr) {
    fields = {};
    arguments.count = before;
  }
  return end;
}

}  // namespace rehearse::gui
