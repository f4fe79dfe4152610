// Splits a stream of trace JSON into batches of complete events while holding only a window of it in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/models/trace/event_fields.hpp"
#include "gui/models/trace/trace_source.hpp"

namespace rehearse::gui {

// Consecutive elements of `traceEvents`, in the order of the file.
struct EventBatch {
  std::vector<char> text;             // "{...},{...}"
  std::vector<std::uint32_t> starts;  // offsets of the events in `text`
  std::vector<EventFields> fields;    // of each event
  ArgumentList arguments;             // of all events
  std::uint64_t first_number = 0;     // number of the first event, counted from 1
  std::uint64_t at = 0;               // stream offset of the first event
  double share = 0;                   // share of the stream that has been read
  // Returns the text of event `i`.
  std::string_view event(std::size_t i) const;
  void clear();
};

// A position that could not be parsed. `event` is the event's number; 0: outside the events.
struct BadPlace {
  std::uint64_t event = 0, byte = 0;
  std::string why;
};

class EventScanner {
public:
  using Fail = std::function<void(BadPlace)>;
  // Both arguments must outlive the scanner. Each error loses one event; scanning resumes at the next
  // recognizable one.
  EventScanner(TraceSource& source, Fail fail);
  // Reads the next batch; returns false at the end.
  bool next(EventBatch& batch);
  bool is_json() const { return state_ != State::no_json; }
  // The members besides traceEvents: pairs of key and JSON text.
  std::vector<std::pair<std::string, std::string>>& others() { return others_; }

private:
  enum class State { start, keys, events, lost, done, no_json };
  bool fill();
  int peek();  // -1 at the end
  int peek_after_space();
  void begin();
  void key_and_value();
  bool string_text(std::string& text);
  bool value_text(std::string& text);
  bool gather(EventBatch& batch);
  bool one_event(EventBatch& batch, std::size_t& first);
  void find_again();
  void broken(std::uint64_t event, const char* why) { fail_({event, base_ + pos_, why}); }

  TraceSource& source_;
  Fail fail_;
  State state_ = State::start;
  bool bare_ = false;         // the document is only an array of events
  std::vector<char> window_;  // the part of the stream in memory
  std::size_t pos_ = 0, filled_ = 0;
  std::uint64_t base_ = 0;    // stream offset of the window
  bool ended_ = false;        // the source is exhausted
  std::uint64_t number_ = 0;  // events so far
  std::vector<std::pair<std::string, std::string>> others_;
  std::size_t others_bytes_ = 0;
  bool others_too_large_ = false;
};

}  // namespace rehearse::gui
