// Builds a draft from events, one after another.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "gui/models/timeline/event_kinds.hpp"
#include "gui/models/trace/trace_draft.hpp"
#include "gui/models/trace/trace_events.hpp"

namespace rehearse::gui {

// Limit on the text of all spans' arguments; beyond it, the details are discarded.
inline constexpr std::size_t kMostDetails = std::size_t{256} << 20;

class TraceBuilder {
public:
  explicit TraceBuilder(Draft& draft) : draft_(draft) {}
  // Adds an event. Returns why it cannot be used; null on success.
  const char* take(const Event& event);
  // Call after the last event: spans that never ended end with the trace.
  void finish() { end_open_spans(draft_); }
  // Returns a draft of the events so far, as if they were all.
  Draft so_far() const;
  // Call when `share` of the file has been read: discards the details early if their total is going to exceed
  // the limit.
  void forget_unless_few(double share);

private:
  void end_open_spans(Draft& draft) const;
  const char* span(const Event& event, bool open);
  const char* end_of_span(const Event& event);
  const char* asynchronous(const Event& event);
  const char* flow(const Event& event);
  const char* counter(const Event& event);
  const char* metadata(const Event& event);
  void instant(const Event& event);

  std::int64_t id_of(Token token, std::string* name);
  int process_of(Token pid);
  std::uint32_t track_of(Token pid, Token tid);
  std::uint32_t find_track(Token pid, Token tid);
  std::uint32_t asynchronous_track(const Event& event);
  void sample(int process, const std::string& name, std::string_view key, Time time, double value);
  void sort(const Event& event, Record& record);
  void sort_ours(const Event& event, Token kind_text, Record& record);
  void add_dependencies(Token list, Record& record);
  bool is_gpus(Token category);
  void keep_details(const Event& event, Record& record);
  void forget_details();

  struct KeyHash {
    std::size_t operator()(const std::pair<int, std::int64_t>& key) const {
      return static_cast<std::size_t>(key.second * 0x9E3779B97F4A7C15LL + key.first * 0x85EBCA6BLL);
    }
  };
  Draft& draft_;
  std::unordered_map<std::int64_t, int> processes_;
  std::unordered_map<std::pair<int, std::int64_t>, std::uint32_t, KeyHash> tracks_;
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> asynchronous_tracks_;
  std::map<std::tuple<int, std::string, std::string>, std::size_t> counters_;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> open_;        // indices of records, by track
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> open_async_;  // indices of records, by id
  struct Known {
    std::uint32_t category = 0;
    bool asked = false, profiled = false;
    Sorted sorted;
  };
  std::vector<Known> known_;  // by name
  struct LatestTrack {
    bool is_known = false;
    std::string pid, tid;  // tokens
    std::uint32_t track = 0;
  };
  std::array<LatestTrack, 64> latest_;  // by the last bytes of pid and tid
  struct {
    std::string text;
    bool gpu = false;
  } latest_category_;
  Time last_ = kNoTime;  // latest time of all events
};

}  // namespace rehearse::gui
