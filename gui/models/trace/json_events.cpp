#include "gui/models/trace/json_events.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace rehearse::gui {
namespace {

constexpr std::size_t kWindow = 1 << 20;
constexpr std::size_t kBehind = kReadAhead + 1;  // bytes behind the text, see split_event()
constexpr std::size_t kLongestEvent = 16 << 20;
constexpr std::size_t kMostOthers = 64 << 20;  // bytes outside the events

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// The characters at which the scanner stops, outside and inside strings.
struct Tables {
  std::array<bool, 256> outside{}, inside{};
  constexpr Tables() {
    for (const char c : {'"', '{', '}', '[', ']'}) outside[static_cast<unsigned char>(c)] = true;
    for (const char c : {'"', '\\', '\n'}) inside[static_cast<unsigned char>(c)] = true;
  }
};
constexpr Tables kTables;

enum class Ending { whole, partial, broken };
struct Scanned {
  Ending ending = Ending::partial;
  const char* end = nullptr;  // whole: just after the event; broken: where the error was detected
  const char* why = "";
  bool next_begins = false;  // broken: the '{' at `end` begins another event
};

// Returns the last non-space character before `at`.
char before(const char* at, const char* first) {
  do --at;
  while (at > first && is_space(*at));
  return *at;
}

// Scans one object from its '{'. To detect a missing quote or bracket near its position, it requires that
// strings do not span lines and that an object follows a colon or, in an array, a comma or '['.
Scanned scan_event(const char* const first, const char* const end) {
  std::uint64_t arrays = 0;  // one bit per open bracket, the innermost in the lowest bit: 1 for '['
  int depth = 1;
  for (const char* at = first + 1;; ++at) {
    while (at < end && !kTables.outside[static_cast<unsigned char>(*at)]) ++at;
    if (at == end) return {};
    switch (*at) {
      case '"':
        for (++at;; ++at) {
          while (at < end && !kTables.inside[static_cast<unsigned char>(*at)]) ++at;
          if (at == end) return {};
          if (*at == '"') break;
          if (*at == '\n') return {Ending::broken, at, "a string without its closing quote"};
          if (++at == end) return {};  // skips the escaped character
        }
        break;
      case '{': {
        const char last = before(at, first);
        if (last != ':' && ((arrays & 1) == 0 || (last != ',' && last != '[')))
          return {Ending::broken, at, "no closing bracket", last == ','};
        [[fallthrough]];
      }
      case '[':
        if (++depth > 60) return {Ending::broken, at, "nested too deeply"};
        arrays = arrays << 1 | (*at == '[' ? 1 : 0);
        break;
      default:  // '}' and ']'
        if ((*at == ']') != ((arrays & 1) != 0)) return {Ending::broken, at, "brackets that do not match"};
        arrays >>= 1;
        if (--depth == 0) return {Ending::whole, at + 1};
    }
  }
}

}  // namespace

std::string_view EventBatch::event(std::size_t i) const {
  const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
  std::string_view text_of{text.data() + starts[i], end - starts[i]};
  while (!text_of.empty() && (is_space(text_of.back()) || text_of.back() == ',')) text_of.remove_suffix(1);
  return text_of;
}

void EventBatch::clear() {
  starts.clear();
  fields.clear();
  arguments.count = 0;
}

EventScanner::EventScanner(TraceSource& source, Fail fail)
    : source_(source), fail_(std::move(fail)), window_(kWindow) {}

// Makes room and reads more. Discards the text before `pos_`.
bool EventScanner::fill() {
  if (ended_) return false;
  if (pos_ > 0) {
    std::memmove(window_.data(), window_.data() + pos_, filled_ - pos_);
    base_ += pos_;
    filled_ -= pos_;
    pos_ = 0;
  }
  if (filled_ + kBehind == window_.size()) window_.resize(2 * window_.size());
  const std::size_t wanted = window_.size() - kBehind - filled_;
  const std::size_t got = source_.read(window_.data() + filled_, wanted);
  filled_ += got;
  window_[filled_] = '\0';
  ended_ = got < wanted;
  return got > 0;
}

int EventScanner::peek() {
  return pos_ < filled_ || fill() ? static_cast<unsigned char>(window_[pos_]) : -1;
}

int EventScanner::peek_after_space() {
  int c = peek();
  while (c >= 0 && is_space(static_cast<char>(c))) {
    ++pos_;
    c = peek();
  }
  return c;
}

void EventScanner::begin() {
  if (peek() == 0xEF) {  // byte order mark
    for (const int c : {0xEF, 0xBB, 0xBF})
      if (peek() == c) ++pos_;
  }
  const int c = peek_after_space();
  bare_ = c == '[';
  state_ = bare_ ? State::events : c == '{' ? State::keys : State::no_json;
  ++pos_;
}

bool EventScanner::string_text(std::string& text) {
  for (bool escaped = false;; ++pos_) {
    const int c = peek();
    if (c < 0) return false;
    text += static_cast<char>(c);
    if (!escaped && c == '"' && text.size() > 1) break;
    escaped = !escaped && c == '\\';
  }
  ++pos_;
  return true;
}

// Reads any JSON value; a scalar ends before a comma, a bracket or a space.
bool EventScanner::value_text(std::string& text) {
  int depth = 0;
  std::string string;
  do {
    const int c = peek_after_space();
    if (c < 0) return false;
    if (others_bytes_ + text.size() > kMostOthers) {  // skip the rest without storing it
      others_bytes_ = kMostOthers;
      text.assign(1, ' ');
      others_too_large_ = true;
    }
    if (c == '"') {
      string.clear();
      if (!string_text(string)) return false;
      text += string;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return !text.empty();
      --depth;
    }
    if (c == ',' && depth == 0) return !text.empty();
    text += static_cast<char>(c);
    ++pos_;
    if (depth == 0 && c != '}' && c != ']') {  // number, true, false, null
      for (int next = peek(); next >= 0 && std::strchr(",]} \n\r\t", next) == nullptr; next = peek()) {
        text += static_cast<char>(next);
        ++pos_;
      }
    }
  } while (depth > 0);
  return true;
}

void EventScanner::key_and_value() {
  int c = peek_after_space();
  while (c == ',') {
    ++pos_;
    c = peek_after_space();
  }
  if (c == '}') {
    state_ = State::done;
    return;
  }
  std::string key, value;
  if (c == '"' && string_text(key) && peek_after_space() == ':') {
    ++pos_;
    key = key.substr(1, key.size() - 2);
    c = peek_after_space();
    if (key == "traceEvents" && c == '[') {
      ++pos_;
      state_ = State::events;
      return;
    }
    if (value_text(value)) {
      if (std::exchange(others_too_large_, false)) {
        broken(0, "the data outside the list of events is larger than 64 MB");
        return;
      }
      others_bytes_ += value.size();
      others_.emplace_back(std::move(key), std::move(value));
      return;
    }
  }
  broken(0,
         peek() < 0 ? "the file ends before its last bracket" : "the text after the events cannot be parsed");
  state_ = State::done;
}

// Skips to where another event seems to begin: at a '{' that is first in its line or follows "},". Also stops
// at a ']' that is first in its line.
void EventScanner::find_again() {
  while (true) {
    for (std::size_t i = pos_; i < filled_; ++i) {
      const char c = window_[i];
      if (c != '{' && c != ']') continue;
      std::size_t back = i;
      bool comma = false, line = false;
      while (back > pos_ && (is_space(window_[back - 1]) || (window_[back - 1] == ',' && !comma))) {
        --back;
        comma = comma || window_[back] == ',';
        line = line || (window_[back] == '\n' && !comma);
      }
      const bool after_object = comma && back > pos_ && window_[back - 1] == '}';
      if (line || (c == '{' && after_object)) {
        pos_ = i;
        state_ = State::events;
        return;
      }
    }
    constexpr std::size_t kKept = 64;  // the separator can continue in the next window
    pos_ = std::max(pos_, filled_ - std::min(filled_, kKept));
    if (!fill()) break;
  }
  pos_ = filled_;
  state_ = State::done;
}

// Scans the element at `pos_`. Returns false if more input is needed, if the event is broken, or if the batch
// must end here.
bool EventScanner::one_event(EventBatch& batch, std::size_t& first) {
  const char* const begin = window_.data() + pos_;
  if (batch.starts.empty()) first = pos_;
  batch.fields.emplace_back();
  const char* const split = split_event(begin, window_.data() + first, batch.fields.back(), batch.arguments);
  const Scanned event =
      split != nullptr ? Scanned{Ending::whole, split} : scan_event(begin, window_.data() + filled_);
  if (event.ending == Ending::whole) {
    if (batch.starts.empty()) {
      batch.at = base_ + pos_;
      batch.first_number = number_ + 1;
    }
    batch.starts.push_back(static_cast<std::uint32_t>(pos_ - first));
    ++number_;
    pos_ = static_cast<std::size_t>(event.end - window_.data());
    return true;
  }
  batch.fields.pop_back();
  if (event.ending == Ending::partial && !ended_ && filled_ - pos_ < kLongestEvent) return false;
  ++number_;
  const bool at_end = event.ending == Ending::partial && ended_;
  broken(number_, event.ending == Ending::broken ? event.why
                  : at_end                       ? "the file ends inside the event"
                                                 : "the event is longer than 16 MB");
  if (event.next_begins) {
    pos_ = static_cast<std::size_t>(event.end - window_.data());
  } else {
    ++pos_;
    state_ = State::lost;
  }
  return false;
}

bool EventScanner::gather(EventBatch& batch) {
  std::size_t first = 0, last = 0;  // the batch's range in the window
  while (state_ == State::events) {
    while (pos_ < filled_ && (is_space(window_[pos_]) || window_[pos_] == ',')) ++pos_;
    if (pos_ == filled_) {
      if (!batch.starts.empty() || fill()) {
        if (batch.starts.empty()) continue;
        break;
      }
      if (!bare_) broken(0, "the file ends inside the list of events");
      state_ = State::done;
      break;
    }
    const char c = window_[pos_];
    if (c == '{') {
      const std::uint64_t before = number_;
      if (one_event(batch, first)) {
        last = pos_;
        continue;
      }
      if (number_ == before && batch.starts.empty() && fill()) continue;  // read the rest of the event
      if (number_ == before && batch.starts.empty()) continue;            // reports the truncated event
      break;
    }
    if (!batch.starts.empty()) break;  // what follows belongs to no batch or to the next
    if (c == ']') {
      ++pos_;
      state_ = bare_ ? State::done : State::keys;
      break;
    }
    broken(++number_, "not an object");
    std::string ignored;
    if (c == '}' || c == ':') {
      ++pos_;
    } else if (!value_text(ignored)) {
      state_ = State::lost;
    }
  }
  if (batch.starts.empty()) return false;
  batch.text.assign(window_.data() + first, window_.data() + last);
  batch.share = source_.share();
  return true;
}

bool EventScanner::next(EventBatch& batch) {
  batch.clear();
  while (true) {
    switch (state_) {
      case State::start:
        begin();
        break;
      case State::keys:
        key_and_value();
        break;
      case State::lost:
        find_again();
        break;
      case State::events:
        if (gather(batch)) return true;
        break;
      case State::done:
      case State::no_json:
        if (!source_.problem().empty()) fail_({0, base_ + pos_, source_.problem()});
        return false;
    }
  }
}

}  // namespace rehearse::gui
