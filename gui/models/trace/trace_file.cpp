#include "gui/models/trace/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "gui/models/trace/timeline_layout.hpp"
#include "gui/models/trace/trace_builder.hpp"
#include "models/text/error.hpp"
#include "simulator/report/json_reader.hpp"

namespace rehearse::gui {
namespace {

constexpr double kReading = 0.8;   // share of the work
constexpr std::size_t kAhead = 4;  // batches waiting to be parsed

// Passes batches from the reading thread to the parsing one, and used batches back.
class BatchQueue {
public:
  // Returns false once stopped.
  bool put(EventBatch&& batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return full_.size() < kAhead || stopped_; });
    if (stopped_) return false;
    full_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  // Returns false at the end.
  bool get(EventBatch& batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !full_.empty() || stopped_; });
    if (full_.empty()) return false;
    batch = std::move(full_.front());
    full_.pop_front();
    changed_.notify_all();
    return true;
  }
  EventBatch empty() {
    const std::lock_guard lock(mutex_);
    if (empty_.empty()) return {};
    EventBatch batch = std::move(empty_.back());
    empty_.pop_back();
    return batch;
  }
  void give_back(EventBatch&& batch) {
    const std::lock_guard lock(mutex_);
    empty_.push_back(std::move(batch));
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<EventBatch> full_;
  std::vector<EventBatch> empty_;
  bool stopped_ = false;
};

// Collects what could not be read: for each reason, the first position and the number of occurrences.
class BadPlaces {
public:
  void add(const BadPlace& place) {
    const std::lock_guard lock(mutex_);
    auto [it, is_new] = by_reason_.try_emplace(place.why, Reason{place, 0});
    if (it->second.first.byte > place.byte) it->second.first = place;
    ++it->second.count;
  }
  std::vector<std::string> told() const {
    std::vector<const Reason*> reasons;
    for (const auto& [why, reason] : by_reason_) reasons.push_back(&reason);
    std::sort(reasons.begin(), reasons.end(),
              [](const Reason* a, const Reason* b) { return a->first.byte < b->first.byte; });
    std::vector<std::string> sentences;
    for (const Reason* reason : reasons) {
      const BadPlace& place = reason->first;
      std::string text = place.event > 0 ? "event " + with_commas(place.event) + " at byte " : "byte ";
      text += with_commas(place.byte) + ": " + place.why;
      if (reason->count > 1)
        text += fmt::format("; {} more like {}", with_commas(reason->count - 1),
                            reason->count == 2 ? "it" : "these");
      sentences.push_back(text);
    }
    return sentences;
  }
  static std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
      text.insert(static_cast<std::size_t>(at), ",");
    return text;
  }

private:
  struct Reason {
    BadPlace first;
    std::uint64_t count = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Reason> by_reason_;
};

// Stores otherData of Rehearse's traces, and of other traces all members beside the events.
void keep_others(Timeline& timeline, const std::vector<std::pair<std::string, std::string>>& others) {
  std::string text;
  for (const auto& [key, json] : others) {
    if (key == "otherData") {
      timeline.other_data = json;
    } else if (key != "displayTimeUnit") {
      text += (text.empty() ? "{\"" : ",\"") + key + "\":" + json;
    }
  }
  if (!text.empty()) timeline.metadata = text + "}";
}

// Names a profiler's processes, which are all called "python", by rank and device.
void name_profiled(Timeline& timeline, const Draft& draft) {
  const RankOfProfile rank = rank_of(timeline);
  for (Process& process : timeline.processes) {
    const auto from = std::find_if(draft.processes.begin(), draft.processes.end(),
                                   [&](const Draft::Process& p) { return p.pid == process.pid; });
    const std::string& labels = from->labels;
    if (labels == "CPU")
      process.name = "host";
    else if (process.pid == -1)
      process.name = "profiler";
    else if (!labels.empty())
      process.name = labels;  // e.g. "GPU 0"
    if (rank.rank >= 0) process.name = fmt::format("rank {}, {}", rank.rank, process.name);
  }
}

// Lays out the draft; the progress goes from `from` to 1.
Timeline timeline_of(Draft& draft, Progress& progress, double from) {
  Timeline timeline = laid_out(draft, progress, from);
  if (draft.ours)
    timeline.writer = Timeline::Writer::rehearse;
  else if (draft.profiled)
    timeline.writer = Timeline::Writer::pytorch;
  return timeline;
}

Timeline read(TraceSource& source, const std::string& name, Progress& progress,
              const TakeBeginning& take_beginning) {
  constexpr double kShort = 0.5;  // the beginning is not worth showing if it is so much of the file
  bool takes_beginning = take_beginning != nullptr;
  Draft draft;
  TraceBuilder builder(draft);
  BadPlaces bad;
  const EventScanner::Fail fail = [&](const BadPlace& place) { bad.add(place); };
  EventScanner scanner(source, fail);
  BatchQueue queue;
  std::exception_ptr failed;
  {
    std::jthread reading([&] {
      try {
        for (EventBatch batch = queue.empty(); scanner.next(batch) && queue.put(std::move(batch));)
          batch = queue.empty();
      } catch (...) {
        failed = std::current_exception();
      }
      queue.stop();
    });
    struct StopAtEnd {
      BatchQueue& queue;
      ~StopAtEnd() { queue.stop(); }
    } stop_at_end{queue};
    EventParser parser;
    const EventParser::Take take = [&](const Event& event) { return builder.take(event); };
    for (EventBatch batch; queue.get(batch); queue.give_back(std::move(batch))) {
      parser.parse(batch, take, fail);
      builder.forget_unless_few(batch.share);
      progress.share = kReading * batch.share;
      if (progress.cancelled) throw Cancelled();
      if (takes_beginning && draft.records.size() >= kFirstSpans) {
        takes_beginning = false;
        if (batch.share > kShort) continue;
        Draft beginning = builder.so_far();
        Progress not_shown;
        take_beginning(timeline_of(beginning, not_shown, 0));
      }
    }
  }
  if (failed) std::rethrow_exception(failed);
  builder.finish();
  const std::vector<std::string> problems = bad.told();
  const bool has_samples =
      std::any_of(draft.counters.begin(), draft.counters.end(),
                  [](const Draft::Counter& counter) { return !counter.samples.empty(); });
  if (!scanner.is_json()) throw InputError({name}, "is not JSON: a trace begins with { or [");
  if (draft.records.size() == 0 && !has_samples)
    throw InputError({name},
                     "has no event with a time; a trace stores its events in the list \"traceEvents\"" +
                         (problems.empty() ? std::string() : " (" + problems.front() + ")"));

  Timeline timeline = timeline_of(draft, progress, kReading);
  timeline.problems = problems;
  keep_others(timeline, scanner.others());
  for (const auto& [what, count] : draft.left_out)
    timeline.problems.push_back(BadPlaces::with_commas(count) + " " + what);
  if (!draft.details_kept)
    timeline.problems.emplace_back(
        "the arguments of the events exceed 256 MB and are not shown in the details");
  if (timeline.writer == Timeline::Writer::pytorch) name_profiled(timeline, draft);
  progress.share = 1;
  return timeline;
}

}  // namespace

Timeline read_timeline(const std::string& path, Progress& progress, const TakeBeginning& take_beginning) {
  const auto source = open_trace(path);
  return read(*source, path, progress, take_beginning);
}

Timeline parse_timeline(std::string_view text, const std::string& name) {
  const auto source = text_source(text);
  Progress progress;
  return read(*source, name, progress, {});
}

RankOfProfile rank_of(const Timeline& timeline) {
  RankOfProfile rank;
  const auto json = json_object_in(timeline.metadata);
  if (!json.contains("distributedInfo")) return rank;
  const auto& info = json["distributedInfo"];
  const auto integer = [&](const char* key) {
    return info.is_object() && info.contains(key) && info[key].is_number_integer() ? info[key].get<int>()
                                                                                   : -1;
  };
  return {integer("rank"), integer("world_size")};
}

}  // namespace rehearse::gui
