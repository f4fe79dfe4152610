#include "gui/models/timeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostRows = 32;  // of a track
constexpr Time kRounding = 1;          // neighbours may overlap by so much

// Numbers of records by track and, within, by time, the longest first.
struct Order {
  std::vector<std::uint32_t> records;
  std::vector<std::size_t> first;  // of track t: [t], [t + 1]
};

Order ordered(const Draft& draft) {
  Order order;
  const std::size_t count = draft.records.size();
  order.first.assign(draft.tracks.size() + 1, 0);
  for (std::size_t i = 0; i < count; ++i) ++order.first[draft.records[i].track + 1];
  std::partial_sum(order.first.begin(), order.first.end(), order.first.begin());
  order.records.resize(count);
  std::vector<std::size_t> next(order.first.begin(), order.first.end() - 1);
  for (std::size_t i = 0; i < count; ++i)
    order.records[next[draft.records[i].track]++] = static_cast<std::uint32_t>(i);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Record& first = draft.records[a];
    const Record& second = draft.records[b];
    return std::tie(first.begin, second.end) < std::tie(second.begin, first.end);
  };
  for (std::size_t t = 0; t < draft.tracks.size(); ++t) {
    const auto from = order.records.begin() + static_cast<std::ptrdiff_t>(order.first[t]);
    const auto to = order.records.begin() + static_cast<std::ptrdiff_t>(order.first[t + 1]);
    if (!std::is_sorted(from, to, earlier)) std::stable_sort(from, to, earlier);
  }
  return order;
}

// The records of a track in rows: below what encloses it, else in the first row that is free. What is not
// told of a span nested in another is taken over from that.
std::vector<std::vector<std::uint32_t>> packed(Draft& draft, std::span<const std::uint32_t> records,
                                               std::uint64_t& too_deep) {
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<const Record*> last;  // of each row
  for (const std::uint32_t number : records) {
    Record& record = draft.records[number];
    std::size_t row = 0;
    const Record* around = nullptr;
    for (std::size_t r = last.size(); r-- > 0;) {
      if (last[r]->end <= record.begin + kRounding || last[r]->end + kRounding < record.end) continue;
      around = last[r];
      row = r + 1;
      break;
    }
    while (row < last.size() && last[row]->end > record.begin + kRounding) ++row;
    if (around != nullptr && draft.profiled) {
      if (record.pass == Pass::none) record.pass = around->pass;
      if (record.step < 0) record.step = around->step;
    }
    if (row >= kMostRows) {
      ++too_deep;
      continue;
    }
    if (row == rows.size()) {
      rows.emplace_back();
      last.push_back(nullptr);
    }
    if (last[row] != nullptr && last[row]->end > record.begin) {
      record.begin = last[row]->end;
      record.end = std::max(record.end, record.begin);
    }
    rows[row].push_back(number);
    last[row] = &record;
  }
  return rows;
}

// "(64 ranks)", "(rank 5)", "(ranks 0-3, 8)" at the end of a name.
int members_of(const std::string& name) {
  const std::size_t open = name.rfind('(');
  if (open == std::string::npos) return 1;
  const std::string inside = name.substr(open + 1);
  int count = 0, used = 0;
  if (std::sscanf(inside.c_str(), "%d ranks%n", &count, &used) == 1 && used > 0) return std::max(1, count);
  if (inside.rfind("ranks ", 0) != 0) return 1;
  int first = 0, last = 0;
  for (const char* at = inside.c_str() + 6; std::sscanf(at, "%d%n", &first, &used) == 1;) {
    at += used;
    last = first;
    if (*at == '-' && std::sscanf(at + 1, "%d%n", &last, &used) == 1) at += 1 + used;
    if (last < first || last - first > 10'000'000) break;
    count += last - first + 1;
    if (*at == ',') ++at;
  }
  return std::max(1, count);
}

// "stage 3" of "job: stage 3, data 0-63 (64 ranks)"; empty if there is none.
std::string stage_of(const std::string& name) {
  const std::size_t at = name.find("stage ");
  if (at == std::string::npos || (at > 0 && name[at - 1] != ' ')) return {};
  const std::size_t end = name.find_first_not_of("0123456789", at + 6);
  return end == at + 6 ? std::string() : name.substr(at, end == std::string::npos ? end : end - at);
}

std::string role_of(const std::string& name) {
  if (!stage_of(name).empty()) return "worker";
  std::size_t begin = name.find(": ");
  begin = begin == std::string::npos || begin > name.find(',') ? 0 : begin + 2;
  const std::string first = name.substr(begin, name.find_first_of(", (", begin) - begin);
  return first;
}

class Layout {
public:
  Layout(Draft& draft, Progress& progress, double from) : draft_(draft), progress_(progress), from_(from) {}

  Timeline run() {
    relate_times();
    const Order order = ordered(draft_);
    check(0.3);
    prepare(order);
    for (const int p : order_of_processes(order)) process(p, order);
    finish_strings();
    take_counters();
    draft_.records = Records();
    bind_flows(timeline_, draft_.flow_ends, track_of_, draft_.left_out);
    pass_by_launch();
    return std::move(timeline_);
  }

private:
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
    for (std::size_t i = 0; i < count; ++i) {
      Record& record = draft_.records[i];
      record.begin -= first;
      record.end -= first;
      record.ready = record.ready == kNoTime ? -1 : std::max<Time>(0, record.ready - first);
    }
    for (Draft::FlowEnd& end : draft_.flow_ends) end.time -= first;
    timeline_.origin = first;
    timeline_.end = last - first;
  }

  void prepare(const Order& order) {
    track_of_.assign(draft_.tracks.size(), -1);
    for (const Draft::Track& track : draft_.tracks) has_gpus_ = has_gpus_ || track.gpu;
    std::size_t waits = 0;
    const std::size_t count = draft_.records.size();
    for (std::size_t i = 0; i < count; ++i) {
      Record& record = draft_.records[i];
      if (record.waits && record.ready >= 0 && record.ready < record.begin) ++waits;
      // Collectives are only launched by the processor where there are GPUs.
      if (has_gpus_ && !record.waits && record.kind == Kind::communication &&
          !draft_.tracks[record.track].gpu)
        record.kind = Kind::host;
    }
    SpanColumns& spans = timeline_.spans;
    const std::size_t expected = order.records.size() + waits + order.records.size() / 4;
    for_each_column(spans, [&](auto& column) { column.reserve(expected); });
    if (!draft_.dependencies.empty()) {
      timeline_.first_dependency.reserve(expected + 1);
      timeline_.dependencies.reserve(draft_.dependencies.size());
    }
    for (const auto* text : {"waiting for a peer", "waiting for the pipeline"})
      (text[12] == 'a' ? peer_ : pipeline_) = own_string(text);
    rules_.profiled = draft_.profiled && !draft_.ours;
    rules_.has_gpus = has_gpus_;
    rules_.exposed.resize(draft_.strings.texts.size());
    std::vector<char> communicates(draft_.strings.texts.size());
    for (std::size_t i = 0; i < count; ++i)
      if (draft_.records[i].kind == Kind::communication) communicates[draft_.records[i].name] = 1;
    for (std::size_t i = 0; i < communicates.size(); ++i)
      if (communicates[i] != 0)
        rules_.exposed[i] = exposed_name(draft_.strings.texts[i],
                                         i < draft_.moves.size() ? draft_.moves[i] : Draft::Moves::not_told);
  }

  template <typename F>
  static void for_each_column(SpanColumns& spans, F&& f) {
    f(spans.begin), f(spans.end), f(spans.name), f(spans.kind), f(spans.pass), f(spans.microbatch);
    f(spans.step), f(spans.op), f(spans.algorithm), f(spans.members), f(spans.bytes), f(spans.flops);
    f(spans.ready), f(spans.critical);
  }

  std::uint32_t own_string(std::string_view text) {
    const auto [it, is_new] =
        own_strings_.try_emplace(std::string(text), static_cast<std::uint32_t>(draft_.strings.texts.size()));
    if (is_new) draft_.strings.texts.emplace_back(text);
    return it->second;
  }

  std::vector<int> order_of_processes(const Order& order) {
    std::vector<char> has_spans(draft_.processes.size());
    for (std::size_t t = 0; t < draft_.tracks.size(); ++t)
      if (order.first[t] < order.first[t + 1]) has_spans[draft_.tracks[t].process] = 1;
    std::vector<int> processes;
    for (std::size_t p = 0; p < draft_.processes.size(); ++p)
      if (has_spans[p] != 0) processes.push_back(static_cast<int>(p));
    std::stable_sort(processes.begin(), processes.end(), [&](int a, int b) {
      const Draft::Process& first = draft_.processes[a];
      const Draft::Process& second = draft_.processes[b];
      return std::tie(first.sort_index, first.pid) < std::tie(second.sort_index, second.pid);
    });
    process_of_.assign(draft_.processes.size(), -1);
    for (std::size_t i = 0; i < processes.size(); ++i) {
      process_of_[processes[i]] = static_cast<int>(i);
      if (!stage_of(draft_.processes[processes[i]].name).empty()) ++stages_;
    }
    return processes;
  }

  void process(int number, const Order& order) {
    const Draft::Process& from = draft_.processes[number];
    Process process;
    process.name = from.name.empty() ? fmt::format("process {}", from.pid) : from.name;
    if (!from.labels.empty() && draft_.profiled) process.name += " (" + from.labels + ")";
    process.pid = from.pid;
    process.sort_index = from.sort_index;
    process.stage = stage_of(from.name);
    if (draft_.ours) {
      process.members = members_of(from.name);
      process.role = role_of(from.name);
    }
    std::vector<int> tracks;
    for (std::size_t t = 0; t < draft_.tracks.size(); ++t)
      if (draft_.tracks[t].process == number && order.first[t] < order.first[t + 1])
        tracks.push_back(static_cast<int>(t));
    std::stable_sort(tracks.begin(), tracks.end(), [&](int a, int b) {
      const Draft::Track& first = draft_.tracks[a];
      const Draft::Track& second = draft_.tracks[b];
      return std::tie(first.asynchronous, first.sort_index, first.tid) <
             std::tie(second.asynchronous, second.sort_index, second.tid);
    });
    const int index = static_cast<int>(timeline_.processes.size());
    process.first_track = static_cast<int>(timeline_.tracks.size());
    const int first_row = static_cast<int>(timeline_.rows.size());
    for (const int t : tracks) track(t, index, order);
    process.last_track = static_cast<int>(timeline_.tracks.size());
    process.summary_row = summary(index, first_row, !process.stage.empty() && stages_ > 1);
    timeline_.processes.push_back(std::move(process));
  }

  void track(int number, int process, const Order& order) {
    const Draft::Track& from = draft_.tracks[number];
    Track track{from.name, process, from.tid, static_cast<int>(timeline_.rows.size()), 0};
    if (track.name.empty()) track.name = fmt::format("{} {}", from.gpu ? "stream" : "thread", from.tid);
    const int index = static_cast<int>(timeline_.tracks.size());
    track_of_[number] = index;
    const std::span<const std::uint32_t> records(order.records.data() + order.first[number],
                                                 order.first[number + 1] - order.first[number]);
    std::uint64_t too_deep = 0;
    for (const auto& row : packed(draft_, records, too_deep)) {
      const auto first = static_cast<SpanId>(timeline_.spans.size());
      Time before = 0;  // end of the last in this row
      for (const std::uint32_t each : row) {
        const Record& record = draft_.records[each];
        if (record.waits && record.ready >= 0) {
          const Time since = std::max(record.ready, before);
          if (since < record.begin) add_wait(record, since);
        }
        add(record);
        before = record.end;
      }
      timeline_.rows.push_back({process, index, first, static_cast<SpanId>(timeline_.spans.size())});
      done_ += row.size();
      check(0.3 + 0.6 * static_cast<double>(done_) / static_cast<double>(order.records.size()));
    }
    if (too_deep > 0) draft_.left_out["spans are nested more than 32 deep and not shown"] += too_deep;
    track.last_row = static_cast<int>(timeline_.rows.size());
    rules_.gpu_track.push_back(from.gpu ? 1 : 0);
    timeline_.tracks.push_back(std::move(track));
  }

  void add(const Record& record) {
    SpanColumns& spans = timeline_.spans;
    add_extras(&record);
    spans.begin.push_back(record.begin);
    spans.end.push_back(record.end);
    spans.name.push_back(record.name);
    spans.kind.push_back(record.kind);
    spans.pass.push_back(record.pass);
    spans.microbatch.push_back(record.microbatch);
    spans.step.push_back(record.step);
    spans.op.push_back(record.op);
    spans.algorithm.push_back(record.algorithm);
    spans.members.push_back(record.members);
    spans.bytes.push_back(record.bytes);
    spans.flops.push_back(record.flops);
    spans.ready.push_back(record.ready);
    spans.critical.push_back(record.critical);
  }

  void add_wait(const Record& record, Time since) {
    Record wait;
    wait.begin = since;
    wait.end = record.begin;
    wait.name = record.pipeline ? pipeline_ : peer_;
    wait.kind = record.pipeline ? Kind::bubble : Kind::waiting;
    wait.microbatch = record.microbatch;
    wait.step = record.step;
    wait.op = record.op;
    add_made_up(wait);
  }

  void add_made_up(Record& record) {
    record.dependencies = 0;
    record.detail_bytes = 0;
    record.ready = -1;
    add(record);
  }

  void add_extras(const Record* record) {
    if (!draft_.dependencies.empty()) {
      timeline_.first_dependency.push_back(static_cast<std::uint32_t>(timeline_.dependencies.size()));
      const auto from = draft_.dependencies.begin() + record->first_dependency;
      timeline_.dependencies.insert(timeline_.dependencies.end(), from, from + record->dependencies);
    }
    if (draft_.details_kept && !draft_.details.empty()) {
      timeline_.first_detail.push_back(timeline_.details.size());
      timeline_.details.append(draft_.details, record->first_detail, record->detail_bytes);
    }
  }

  int summary(int process, int first_row, bool pipeline) {
    rules_.pipeline = pipeline;
    const auto spans = summary_of(timeline_, first_row, static_cast<int>(timeline_.rows.size()), rules_);
    if (spans.empty()) return -1;
    const auto first = static_cast<SpanId>(timeline_.spans.size());
    for (const SummarySpan& span : spans) {
      Record record;
      record.begin = span.begin;
      record.end = span.end;
      record.kind = span.kind;
      record.name = own_string(span.name);
      add_made_up(record);
    }
    timeline_.rows.push_back({process, -1, first, static_cast<SpanId>(timeline_.spans.size())});
    return static_cast<int>(timeline_.rows.size()) - 1;
  }

  void finish_strings() {
    if (!timeline_.first_dependency.empty())
      timeline_.first_dependency.push_back(static_cast<std::uint32_t>(timeline_.dependencies.size()));
    if (!timeline_.first_detail.empty()) timeline_.first_detail.push_back(timeline_.details.size());
    std::vector<std::int32_t>().swap(draft_.dependencies);
    std::string().swap(draft_.details);
    timeline_.strings = std::move(draft_.strings.texts);
  }

  void take_counters() {
    std::map<std::pair<int, std::string>, int> series;  // of a name
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

  // A kernel belongs to the pass and the step in which it was launched.
  void pass_by_launch() {
    SpanColumns& spans = timeline_.spans;
    if (!has_gpus_) return;
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
  Timeline timeline_;
  SummaryRules rules_;
  std::vector<int> track_of_, process_of_;
  std::map<std::string, std::uint32_t> own_strings_;
  std::uint32_t peer_ = 0, pipeline_ = 0;
  bool has_gpus_ = false;
  int stages_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

Timeline laid_out(Draft& draft, Progress& progress, double from) {
  return Layout(draft, progress, from).run();
}

}  // namespace rehearse::gui
