// Parses the events of a batch; the fields keep the raw text of the file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gui/models/timeline/timeline.hpp"
#include "gui/models/trace/json_events.hpp"

namespace rehearse::gui {

// The JSON text of a field: a number, a string with its quotes, an array or an object. Empty: absent.
using Token = std::string_view;
struct Argument {
  std::string_view key;
  Token value;
  KnownArgument known = KnownArgument::other;
};
struct Event {
  char phase = 0;  // 0: none
  bool binds_enclosing = false;
  Token name, category, pid, tid, time, duration, id, scope;
  std::span<const Argument> arguments;
  Token arguments_text;  // with its brackets
};

// Parses batches, with simdjson where events are not plain JSON. `take` returns why it cannot use the event;
// null on success.
class EventParser {
public:
  using Take = std::function<const char*(const Event&)>;
  EventParser();
  ~EventParser();
  void parse(const EventBatch& batch, const Take& take, const EventScanner::Fail& fail);

private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// ----- tokens
std::string text_of(Token token);              // the unescaped text of a string; other tokens unchanged
std::string_view bare(Token token);            // a string without quotes but with its escapes
std::optional<double> number_of(Token token);  // also accepts a string with a number; finite
std::optional<std::int64_t> integer_of(Token token);
// Converts microseconds to nanoseconds, rounded to the nearest. Returns nullopt if the token is not a number
// or exceeds 95 years.
std::optional<Time> nanoseconds_of(Token token);
// Return the value of an argument; empty if it is absent.
Token argument(const Event& event, std::string_view key);
Token argument(const Event& event, KnownArgument known);

}  // namespace rehearse::gui
