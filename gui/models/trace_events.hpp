// The events of a batch, their fields as they stand in the file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gui/models/json_events.hpp"
#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// A field's JSON: a number, a string with its quotes, an array or an object. Empty: not there.
using Token = std::string_view;
struct Argument {
  std::string_view key;
  Token value;
};
struct Event {
  char phase = 0;  // 0: none
  bool binds_enclosing = false;
  Token name, category, pid, tid, time, duration, id, scope;
  std::span<const Argument> arguments;
  Token arguments_text;  // with its brackets
};

// Parses batches with simdjson. What `take` answers is why the event cannot be used; null: it was.
class EventParser {
public:
  using Take = std::function<const char*(const Event&)>;
  EventParser();
  ~EventParser();
  void parse(EventBatch& batch, const Take& take, const EventScanner::Fail& fail);

private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// ----- tokens
std::string text_of(Token token);              // a string's text, unescaped; of others as they stand
std::string_view bare(Token token);            // a string without its quotes, escapes as they stand
std::optional<double> number_of(Token token);  // also of a string that holds one; finite
std::optional<std::int64_t> integer_of(Token token);
// Microseconds as nanoseconds, to the last digit; nothing if it is no number or further than 95 years.
std::optional<Time> nanoseconds_of(Token token);
// The value of a key among a few; empty if it is not there.
Token argument(const Event& event, std::string_view key);

}  // namespace rehearse::gui
