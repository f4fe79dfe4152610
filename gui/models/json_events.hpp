// Splits a stream of trace JSON into batches of whole events, without keeping more than a window of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/models/trace_source.hpp"

namespace rehearse::gui {

// Elements of `traceEvents` as they stand one after another in the file.
struct EventBatch {
  std::vector<char> text;             // "[{...},{...}]" and kPadding bytes
  std::vector<std::uint32_t> starts;  // of events in `text`
  std::uint64_t first_number = 0;     // of the first event, from 1 on
  std::uint64_t at = 0;               // byte of the stream where the first event begins
  double share = 0;                   // of the stream that has been read
  static constexpr std::size_t kPadding = 64;
  std::string_view json() const { return {text.data(), text.size() - kPadding}; }
  // From the start of event `i` up to the next.
  std::string_view event(std::size_t i) const;
};

// A place that could not be read. `event`: its number; 0: outside of the events.
struct BadPlace {
  std::uint64_t event = 0, byte = 0;
  std::string why;
};

class EventScanner {
public:
  using Fail = std::function<void(BadPlace)>;
  // Both must outlive it. Of each bad place one event is lost: reading goes on at the next that can be told.
  EventScanner(TraceSource& source, Fail fail);
  // The next batch; false at the end.
  bool next(EventBatch& batch);
  bool is_json() const { return state_ != State::no_json; }
  // What stands beside traceEvents: keys and JSON texts.
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
  bool bare_ = false;         // an array of events, nothing around it
  std::vector<char> window_;  // of the stream
  std::size_t pos_ = 0, filled_ = 0;
  std::uint64_t base_ = 0;    // byte of the stream where the window begins
  bool ended_ = false;        // the source has no more
  std::uint64_t number_ = 0;  // of events so far
  std::vector<std::pair<std::string, std::string>> others_;
  std::size_t others_bytes_ = 0;
  bool others_too_large_ = false;
};

}  // namespace rehearse::gui
