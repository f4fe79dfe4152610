#include "gui/models/trace/timeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "gui/models/timeline/rank_kinds.hpp"
#include "gui/models/trace/row_packing.hpp"
#include "gui/models/work/parallel.hpp"

namespace rehearse::gui {
namespace {

template <typename F>
void for_each_column(SpanColumns& spans, F&& f) {
  f(spans.begin), f(spans.end), f(spans.name), f(spans.kind), f(spans.pass), f(spans.microbatch);
  f(spans.step), f(spans.op), f(spans.algorithm), f(spans.members), f(spans.bytes), f(spans.flops);
  f(spans.ready), f(spans.critical);
}

void write(SpanColumns& spans, std::size_t at, const Record& record) {
  spans.begin[at] = record.begin;
  spans.end[at] = record.end;
  spans.name[at] = record.name;
  spans.kind[at] = record.kind;
  spans.pass[at] = record.pass;
  spans.microbatch[at] = record.microbatch;
  spans.step[at] = record.step;
  spans.op[at] = record.op;
  spans.algorithm[at] = record.algorithm;
  spans.members[at] = record.members;
  spans.bytes[at] = record.bytes;
  spans.flops[at] = record.flops;
  spans.ready[at] = record.ready;
}

class Layout {
public:
  Layout(Draft& draft, Progress& progress, double from) : draft_(draft), progress_(progress), from_(from) {}

  Timeline run() {
    threads_ = threads_for(draft_.records.size());
    relate_times();
    name_what_is_made_up();
    {
      const Order order = ordered(draft_);
      check(0.2);
      arrange(order);
      packed_.resize(draft_.tracks.size());
      in_parallel(draft_.tracks.size(), threads_, [&](std::size_t t) {
        packed_[t] = packed(draft_, order.of_track(t));
        check(0.3);
      });
    }
    place_rows();
    check(0.4);
    fill();
    draft_.records.clear();
    draft_.details.clear();
    std::vector<std::int32_t>().swap(draft_.dependencies);
    check(0.7);
    summaries();
    check(0.9);
    timeline_.strings = std::move(draft_.strings.texts);
    take_counters();
    bind_flows(timeline_, draft_.flow_ends, track_of_, draft_.left_out);
    pass_by_launch();
    find_kinds(timeline_);
    return std::move(timeline_);
  }

private:
  // A row of a track, with the positions where its spans, dependencies and details begin.
  struct Place {
    PackedRow row;
    std::size_t span = 0, dependency = 0, detail = 0;
    std::vector<std::size_t> critical;  // spans on the critical path
  };

  void check(double share) {
    if (progress_.cancelled) throw Cancelled();
    progress_.share = from_ + share * (1 - from_);
  }

  void relate_times() {
    Time first = std::numeric_limits<Time>::max(), last = std::numeric_limits<Time>::min();
    const std::size_t count = draft_.records.size();
    for (std::size_t i = 0; i < count; ++i) {
      first = std::min(first, draft_.records[i].begin);
      last = std::max(last, draft_.records[i].end);
    }
    if (count == 0)
      for (const Draft::Counter& counter : draft_.counters)
        for (const auto& [time, value] : counter.samples) {
          first = std::min(first, time);
          last = std::max(last, time);
        }
    for (const Draft::Track& track : draft_.tracks) rules_.has_gpus = rules_.has_gpus || track.gpu;
    communicates_.resize(draft_.strings.texts.size());
    for (std::size_t i = 0; i < count; ++i) {
      Record& record = draft_.records[i];
      record.begin -= first;
      record.end -= first;
      record.ready = record.ready == kNoTime ? -1 : std::max<Time>(0, record.ready - first);
      if (record.kind != Kind::communication) continue;
      // If there are GPUs, the host only launches collectives.
      if (rules_.has_gpus && !record.waits && !draft_.tracks[record.track].gpu)
        record.kind = Kind::host;
      else
        communicates_[record.name] = 1;
    }
    for (Draft::FlowEnd& end : draft_.flow_ends) end.time -= first;
    for (Draft::Step& step : draft_.steps) {
      step.begin -= first;
      step.end -= first;
    }
    std::sort(draft_.steps.begin(), draft_.steps.end(),
              [](const Draft::Step& a, const Draft::Step& b) { return a.begin < b.begin; });
    timeline_.origin = first;
    timeline_.end = last - first;
  }

  std::uint32_t own_string(const std::string& text) {
    const auto [it, is_new] =
        own_strings_.try_emplace(text, static_cast<std::uint32_t>(draft_.strings.texts.size()));
    if (is_new) draft_.strings.texts.push_back(text);
    return it->second;
  }

  void name_what_is_made_up() {
    rules_.profiled = draft_.profiled && !draft_.ours;
    rules_.by_pass = draft_.ours;
    rules_.compute = own_string("compute");
    for (std::size_t pass = 0; pass < kPassNames.size(); ++pass)
      rules_.passes[pass] = pass == 0 ? rules_.compute : own_string(std::string(kPassNames[pass]));
    rules_.passes[static_cast<std::size_t>(Pass::weights)] = own_string("weight gradients");
    rules_.host = own_string("host");
    rules_.data = own_string("data");
    rules_.checkpoint = own_string("checkpoint");
    rules_.copy = own_string("copy");
    rules_.other = own_string("other");
    rules_.waiting = own_string("waiting for a peer");
    rules_.bubble = own_string("waiting for the pipeline");
    rules_.idle = own_string("idle");
    rules_.pipeline_idle = own_string("pipeline bubble");
    rules_.exposed.resize(communicates_.size());
    for (std::size_t name = 0; name < communicates_.size(); ++name) {
      if (communicates_[name] == 0) continue;
      const auto purpose = name < draft_.purposes.size() ? draft_.purposes[name] : std::nullopt;
      rules_.exposed[name] =
          own_string(purpose ? "exposed " + waiting(*purpose) : exposed_name(draft_.strings.texts[name]));
    }
  }

  // Adds the processes and tracks that have spans, in display order.
  void arrange(const Order& order) {
    std::vector<std::vector<int>> tracks_of(draft_.processes.size());
    for (std::size_t t = 0; t < draft_.tracks.size(); ++t)
      if (!order.of_track(t).empty()) tracks_of[draft_.tracks[t].process].push_back(static_cast<int>(t));
    std::vector<int> processes;
    for (std::size_t p = 0; p < draft_.processes.size(); ++p)
      if (!tracks_of[p].empty()) processes.push_back(static_cast<int>(p));
    const auto by_process = [&](int p) {
      const Draft::Process& process = draft_.processes[p];
      return std::tie(process.sort_index, process.pid);
    };
    std::stable_sort(processes.begin(), processes.end(),
                     [&](int a, int b) { return by_process(a) < by_process(b); });
    const auto by_track = [&](int t) {
      const Draft::Track& track = draft_.tracks[t];
      return std::tie(track.asynchronous, track.sort_index, track.tid);
    };
    process_of_.assign(draft_.processes.size(), -1);
    for (const int p : processes) {
      process_of_[p] = static_cast<int>(timeline_.processes.size());
      std::stable_sort(tracks_of[p].begin(), tracks_of[p].end(),
                       [&](int a, int b) { return by_track(a) < by_track(b); });
      add_process(draft_.processes[p], tracks_of[p]);
    }
  }

  void add_process(const Draft::Process& from, const std::vector<int>& tracks) {
    Process process;
    process.name = from.name.empty() ? fmt::format("process {}", from.pid) : from.name;
    process.pid = from.pid;
    process.sort_index = from.sort_index;
    if (from.stage >= 0) process.stage = fmt::format("stage {}", from.stage);
    process.members = from.ranks;
    process.role = from.role;
    process.first_track = static_cast<int>(timeline_.tracks.size());
    for (const int t : tracks) {
      const Draft::Track& track = draft_.tracks[t];
      tracks_.push_back(t);
      rules_.gpu_track.push_back(track.gpu ? 1 : 0);
      timeline_.tracks.push_back({track.name, process_of_[track.process], track.tid, 0, 0});
      std::string& name = timeline_.tracks.back().name;
      if (name.empty()) name = fmt::format("{} {}", track.gpu ? "stream" : "thread", track.tid);
    }
    process.last_track = static_cast<int>(timeline_.tracks.size());
    timeline_.processes.push_back(std::move(process));
  }

  void place_rows() {
    track_of_.assign(draft_.tracks.size(), -1);
    std::size_t spans = 0, dependencies = 0, details = 0;
    std::uint64_t too_deep = 0;
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      track_of_[tracks_[i]] = static_cast<int>(i);
      PackedTrack& from = packed_[tracks_[i]];
      Track& track = timeline_.tracks[i];
      track.first_row = static_cast<int>(timeline_.rows.size());
      too_deep += from.too_deep;
      for (PackedRow& row : from.rows) {
        const std::size_t count = row.records.size() + row.waits;
        timeline_.rows.push_back({track.process, static_cast<int>(i), static_cast<SpanId>(spans),
                                  static_cast<SpanId>(spans + count)});
        places_.push_back({{}, spans, dependencies, details, {}});
        spans += count;
        dependencies += row.dependencies;
        details += row.detail_bytes;
        places_.back().row = std::move(row);
      }
      track.last_row = static_cast<int>(timeline_.rows.size());
    }
    packed_.clear();
    if (too_deep > 0)
      draft_.left_out["spans are nested more than 32 levels deep and are not shown"] += too_deep;
    // Reserves room for the summaries, which come last; untouched pages take no memory.
    const std::size_t room = spans + spans / 2 + 64;
    in_parallel(14, threads_, [&](std::size_t wanted) {
      std::size_t column = 0;
      for_each_column(timeline_.spans, [&](auto& each) {
        if (column++ != wanted) return;
        reserve_large(each, room);
        each.resize(spans);
      });
    });
    if (!draft_.dependencies.empty()) {
      reserve_large(timeline_.first_dependency, room);
      timeline_.first_dependency.resize(spans);
      timeline_.dependencies.resize(dependencies);
    }
    if (details > 0) {
      reserve_large(timeline_.first_detail, room);
      timeline_.first_detail.resize(spans);
      timeline_.details.resize(details);
    }
  }

  void fill() {
    in_parallel(places_.size(), threads_, [&](std::size_t i) {
      fill_row(places_[i]);
      check(0.5);
    });
    for (const Place& place : places_)
      for (const std::size_t span : place.critical) timeline_.spans.critical[span] = true;
    places_.clear();
  }

  void fill_row(Place& place) {
    SpanColumns& spans = timeline_.spans;
    std::size_t at = place.span;
    const auto extras = [&](const Record& record) {
      if (!timeline_.first_dependency.empty()) {
        timeline_.first_dependency[at] = static_cast<std::uint32_t>(place.dependency);
        std::copy_n(draft_.dependencies.begin() + record.first_dependency, record.dependencies,
                    timeline_.dependencies.begin() + static_cast<std::ptrdiff_t>(place.dependency));
        place.dependency += record.dependencies;
      }
      if (!timeline_.first_detail.empty()) {
        timeline_.first_detail[at] = place.detail;
        if (record.detail_bytes == 0) return;
        std::copy_n(&draft_.details[record.first_detail], record.detail_bytes,
                    timeline_.details.begin() + static_cast<std::ptrdiff_t>(place.detail));
        place.detail += record.detail_bytes;
      }
    };
    Time before = 0;  // end of the previous span in this row
    for (const std::uint32_t number : place.row.records) {
      const Record& record = draft_.records[number];
      const Time since = waits_since(record, before);
      if (since < record.begin) {
        Record wait;
        wait.begin = since;
        wait.end = record.begin;
        wait.name = record.pipeline ? rules_.bubble : rules_.waiting;
        wait.kind = record.pipeline ? Kind::bubble : Kind::waiting;
        wait.microbatch = record.microbatch;
        wait.step = record.step;
        wait.op = record.op;
        extras(wait);
        write(spans, at++, wait);
      }
      extras(record);
      if (record.critical) place.critical.push_back(at);
      write(spans, at++, record);
      before = record.end;
    }
    std::vector<std::uint32_t>().swap(place.row.records);
  }

  // Appends the summary rows after all others.
  void summaries() {
    int stages = 0;
    for (const Process& process : timeline_.processes) stages += process.stage.empty() ? 0 : 1;
    std::vector<Summary> all(timeline_.processes.size());
    in_parallel(all.size(), threads_, [&](std::size_t p) {
      const Process& process = timeline_.processes[p];
      const int first = timeline_.tracks[process.first_track].first_row;
      const int last = timeline_.tracks[process.last_track - 1].last_row;
      all[p] = summary_of(timeline_, first, last, rules_, stages > 1 && !process.stage.empty());
      check(0.8);
    });
    std::size_t count = timeline_.spans.size();
    std::vector<std::size_t> first(all.size());
    for (std::size_t p = 0; p < all.size(); ++p) {
      first[p] = count;
      if (all[p].spans.empty()) continue;
      Process& process = timeline_.processes[p];
      process.device = !rules_.has_gpus;
      for (int track = process.first_track; track < process.last_track; ++track)
        process.device = process.device || rules_.gpu_track[track] != 0;
      process.summary_row = static_cast<int>(timeline_.rows.size());
      const std::size_t end = count + all[p].spans.size();
      timeline_.rows.push_back(
          {static_cast<int>(p), -1, static_cast<SpanId>(count), static_cast<SpanId>(end)});
      count = end;
    }
    for_each_column(timeline_.spans, [&](auto& column) {
      if (column.capacity() < count) reserve_large(column, count);
      column.resize(count);
    });
    if (!timeline_.first_dependency.empty())
      timeline_.first_dependency.resize(count + 1, static_cast<std::uint32_t>(timeline_.dependencies.size()));
    if (!timeline_.first_detail.empty()) timeline_.first_detail.resize(count + 1, timeline_.details.size());
    in_parallel(all.size(), threads_, [&](std::size_t p) {
      const auto& spans = all[p].spans;
      Record record;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        record.begin = spans[i].begin;
        record.end = i + 1 < spans.size() ? spans[i + 1].begin : all[p].end;
        record.name = spans[i].name;
        record.kind = spans[i].kind;
        record.pass = spans[i].pass;
        record.microbatch = spans[i].microbatch;
        write(timeline_.spans, first[p] + i, record);
      }
    });
    // Sequential, because vector<bool> packs bits into shared bytes
    for (std::size_t p = 0; p < all.size(); ++p)
      for (std::size_t i = 0; i < all[p].spans.size(); ++i)
        if (all[p].spans[i].critical) timeline_.spans.critical[first[p] + i] = true;
  }

  void take_counters() {
    std::map<std::pair<int, std::string>, int> series;  // number of series per name
    for (const Draft::Counter& counter : draft_.counters) ++series[{counter.process, counter.name}];
    for (Draft::Counter& from : draft_.counters) {
      Counter counter;
      const bool alone = series[{from.process, from.name}] == 1;
      counter.name = alone ? from.name : from.name + "." + from.key;
      if (alone) counter.unit = from.key;
      counter.process = process_of_[from.process];
      std::stable_sort(from.samples.begin(), from.samples.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [time, value] : from.samples) {
        const Time at = time - timeline_.origin;
        if (!counter.time.empty() && counter.time.back() == at) {
          counter.value.back() = value;
          continue;
        }
        counter.time.push_back(at);
        counter.value.push_back(value);
      }
      timeline_.counters.push_back(std::move(counter));
    }
  }

  // Assigns each kernel to the pass and step in which it was launched.
  void pass_by_launch() {
    SpanColumns& spans = timeline_.spans;
    if (!rules_.has_gpus) return;
    for (const Flow& flow : timeline_.flows) {
      if (spans.kind[flow.from] != Kind::host) continue;
      if (spans.kind[flow.to] == Kind::host || spans.kind[flow.to] == Kind::annotation) continue;
      if (spans.pass[flow.to] == Pass::none && spans.kind[flow.to] == Kind::compute)
        spans.pass[flow.to] = spans.pass[flow.from];
      if (spans.step[flow.to] < 0) spans.step[flow.to] = spans.step[flow.from];
    }
  }

  Draft& draft_;
  Progress& progress_;
  double from_;
  std::size_t threads_ = 1;
  Timeline timeline_;
  SummaryRules rules_;
  std::vector<char> communicates_;          // by name
  std::vector<int> tracks_;                 // tracks of the draft, by track of the timeline
  std::vector<int> track_of_, process_of_;  // index in the timeline, by index in the draft; -1: none
  std::vector<PackedTrack> packed_;         // by track of the draft
  std::vector<Place> places_;               // by row
  std::map<std::string, std::uint32_t> own_strings_;
};

}  // namespace

Timeline laid_out(Draft& draft, Progress& progress, double from) {
  return Layout(draft, progress, from).run();
}

}  // namespace rehearse::gui
