#include "gui/models/trace/trace_builder.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "simulator/trace/kernel_span.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostCounters = 4096;

std::int32_t small_integer(Token token, std::int32_t otherwise) {
  const auto value = integer_of(token);
  return value && *value >= 0 && *value <= std::numeric_limits<std::int32_t>::max()
             ? static_cast<std::int32_t>(*value)
             : otherwise;
}

float size_of(Token token) {
  const auto value = number_of(token);
  return value && *value >= 0 ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2);
  return a * 0xFF51AFD7ED558CCDULL ^ a >> 32;
}

bool is_known(char phase) {
  return std::string_view("XBEMCstfbneSTpFiIRPNODvVcaA(),=").find(phase) != std::string_view::npos;
}

}  // namespace

const char* TraceBuilder::take(const Event& event) {
  switch (event.phase) {
    case 'X':
      return span(event, false);
    case 'B':
      return span(event, true);
    case 'E':
      return end_of_span(event);
    case 'M':
      return metadata(event);
    case 'C':
      return counter(event);
    case 's':
    case 't':
    case 'f':
      return flow(event);
    case 'b':
    case 'e':
    case 'S':
    case 'F':
      return asynchronous(event);
    case 'n':  // an instant within an asynchronous span
    case 'T':
    case 'p':
      return nullptr;
    case 'i':
    case 'I':
    case 'R':
      instant(event);
      return nullptr;
    case 0:
      return "no phase (ph)";
    default:
      break;
  }
  if (!is_known(event.phase)) return "an unknown phase (ph)";
  ++draft_.left_out["events of objects, samples and memory dumps (N, O, D, P, v) are not shown"];
  return nullptr;
}

// Returns a pid or tid: a number, or a unique number for a text.
std::int64_t TraceBuilder::id_of(Token token, std::string* name) {
  constexpr std::int64_t kTexts = std::int64_t{1} << 40;
  if (token.empty()) return 0;
  if (const auto number = integer_of(token)) return *number;
  const std::uint32_t text = draft_.strings.number_of(bare(token));
  if (name != nullptr) *name = draft_.strings.texts[text];
  return kTexts + text;
}

int TraceBuilder::process_of(Token pid) {
  std::string name;
  const std::int64_t id = id_of(pid, &name);
  const auto [it, is_new] = processes_.try_emplace(id, static_cast<int>(draft_.processes.size()));
  if (is_new) draft_.processes.push_back({.pid = id, .name = name});
  return it->second;
}

// Programs write the events of one track after another, or those of a few by turns.
std::uint32_t TraceBuilder::track_of(Token pid, Token tid) {
  const auto byte = [](Token token) { return token.empty() ? 0U : static_cast<unsigned char>(token.back()); };
  LatestTrack& latest = latest_[(byte(pid) * 5 + byte(tid)) % latest_.size()];
  if (latest.is_known && latest.pid == pid && latest.tid == tid) return latest.track;
  latest = {true, std::string(pid), std::string(tid), find_track(pid, tid)};
  return latest.track;
}

std::uint32_t TraceBuilder::find_track(Token pid, Token tid) {
  const int process = process_of(pid);
  std::string name;
  const std::int64_t id = id_of(tid, &name);
  const auto [it, is_new] =
      tracks_.try_emplace({process, id}, static_cast<std::uint32_t>(draft_.tracks.size()));
  if (is_new) draft_.tracks.push_back({process, id, name, false, 0, false, false});
  return it->second;
}

void TraceBuilder::forget_unless_few(double share) {
  constexpr std::size_t kSample = std::size_t{16} << 20;
  constexpr double kSurely = 1.2;  // margin, because the rest of the file can have fewer details
  if (draft_.details_kept && draft_.details.size() > kSample &&
      static_cast<double>(draft_.details.size()) > kSurely * share * static_cast<double>(kMostDetails))
    forget_details();
}

void TraceBuilder::forget_details() {
  draft_.details_kept = false;
  draft_.details.clear();
}

void TraceBuilder::keep_details(const Event& event, Record& record) {
  const Token text = event.arguments_text;
  if (!draft_.details_kept || text.size() <= 2 || text.size() > Blocks<char>::kBlock) return;
  if (draft_.details.size() + text.size() > kMostDetails) {
    forget_details();
    return;
  }
  std::size_t place = 0;
  std::copy(text.begin(), text.end(), draft_.details.append(text.size(), place));
  record.first_detail = static_cast<std::uint32_t>(place);
  record.detail_bytes = static_cast<std::uint32_t>(text.size());
}

void TraceBuilder::sort_ours(const Event& event, Token kind_text, Record& record) {
  draft_.ours = true;
  const std::string_view category = bare(event.category);
  const std::string_view bare_kind = bare(kind_text);
  const Sorted sorted =
      sorted_op(category, bare_kind, bare_kind == "host" ? bare(argument(event, KnownArgument::action)) : "");
  record.kind = sorted.kind;
  record.pass = sorted.pass;
  record.waits = sorted.kind == Kind::communication;
  if (record.waits) {
    const std::optional<Purpose> purpose = purpose_named(bare(argument(event, KnownArgument::purpose)));
    record.pipeline = purpose && traits_of(*purpose).late_side_is_a_bubble;
    if (draft_.purposes.size() <= record.name) draft_.purposes.resize(2 * record.name + 1);
    draft_.purposes[record.name] = purpose;
  }
  record.first_dependency = static_cast<std::uint32_t>(draft_.dependencies.size());
  using enum KnownArgument;
  for (const auto& [key, value, known] : event.arguments) switch (known) {
      case op:
        record.op = small_integer(value, -1);
        break;
      case step:
        record.step = small_integer(value, -1);
        break;
      case microbatch:
        record.microbatch = small_integer(value, -1);
        break;
      case bytes:
        if (key == "bytes") record.bytes = size_of(value);
        break;
      case flops:
        record.flops = size_of(value);
        break;
      case members:
        record.members = small_integer(value, 0);
        break;
      case algorithm:
        record.algorithm = draft_.strings.number_of(bare(value));
        break;
      case critical:
        record.critical = value == "true";
        break;
      case ready:
        record.ready = nanoseconds_of(value).value_or(kNoTime);
        break;
      case deps:
        add_dependencies(value, record);
        break;
      default:
        break;
    }
}

void TraceBuilder::add_dependencies(Token list, Record& record) {
  if (list.size() <= 2) return;
  const char* at = list.data() + 1;
  const char* const end = list.data() + list.size();
  while (at < end && record.dependencies < std::numeric_limits<std::uint16_t>::max()) {
    std::int32_t op = 0;
    const auto [next, error] = std::from_chars(at, end, op);
    if (error == std::errc()) {
      draft_.dependencies.push_back(op);
      ++record.dependencies;
    }
    at = next + 1;
  }
}

// Classifies a span by category and name; caches the result per name.
void TraceBuilder::sort(const Event& event, Record& record) {
  const Token kind = argument(event, KnownArgument::kind);
  if (!kind.empty() && !argument(event, KnownArgument::op).empty()) {
    sort_ours(event, kind, record);
    return;
  }
  if (bare(kind) == kKernelCategory) {  // the op that launched the kernel already counts its time
    record.kind = Kind::annotation;
    return;
  }
  const std::uint32_t category = draft_.strings.number_of(bare(event.category));
  if (known_.size() <= record.name) known_.resize(2 * record.name + 1);
  Known& known = known_[record.name];
  if (!known.asked || known.category != category) {
    const auto sorted = sorted_profiled(draft_.strings.texts[category], draft_.strings.texts[record.name]);
    known = {category, true, sorted.has_value(), sorted.value_or(Sorted{})};
  }
  record.kind = known.sorted.kind;
  record.pass = known.sorted.pass;
  draft_.profiled = draft_.profiled || known.profiled;
  double elements = -1;
  int bytes_each = 0;
  // recorded: autograd recorded the op for the backward pass; of_another_thread: the backward pass runs it
  bool recorded = false, of_another_thread = false;
  for (const auto& [key, value, argument] : event.arguments) switch (argument) {
      case KnownArgument::bytes:
        record.bytes = size_of(value);
        break;
      case KnownArgument::elements:
        elements = number_of(value).value_or(-1);
        break;
      case KnownArgument::dtype:
        bytes_each = bytes_of_type(bare(value));
        break;
      case KnownArgument::group_size:
        record.members = small_integer(value, 0);
        break;
      case KnownArgument::sequence_number:
        recorded = integer_of(value).value_or(-1) >= 0;
        break;
      case KnownArgument::forward_thread:
        of_another_thread = integer_of(value).value_or(0) != 0;
        break;
      case KnownArgument::step:
        if (record.step < 0) record.step = small_integer(value, -1);
        break;
      default:
        break;
    }
  if (recorded && !of_another_thread && record.kind == Kind::host && record.pass == Pass::none)
    record.pass = Pass::forward;
  if (std::isnan(record.bytes) && elements >= 0 && bytes_each > 0)
    record.bytes = static_cast<float>(elements * bytes_each);
  constexpr std::string_view kStep = "ProfilerStep#";
  if (const std::string_view name = bare(event.name); name.substr(0, kStep.size()) == kStep) {
    record.step = small_integer(name.substr(kStep.size()), -1);
    if (!is_on_gpu(bare(event.category))) draft_.steps.push_back({record.begin, record.end, record.step});
  }
}

// Like is_on_gpu(); remembers the last answer.
bool TraceBuilder::is_gpus(Token category) {
  if (category != latest_category_.text)
    latest_category_ = {std::string(category), is_on_gpu(bare(category))};
  return latest_category_.gpu;
}

const char* TraceBuilder::span(const Event& event, bool open) {
  const auto begin = nanoseconds_of(event.time);
  if (!begin) return event.time.empty() ? "no time (ts)" : "a time (ts) that is not a number of microseconds";
  Record record;
  record.ready = kNoTime;
  record.begin = record.end = *begin;
  if (!open) {
    const auto duration = nanoseconds_of(event.duration);
    if (!duration)
      return event.duration.empty() ? "no duration (dur)" : "a duration (dur) that is not a number";
    if (*duration < 0) return "a negative duration (dur)";
    record.end += *duration;
  }
  last_ = std::max(last_, record.end);
  record.name = draft_.strings.number_of(bare(event.name));
  record.track = track_of(event.pid, event.tid);
  sort(event, record);
  const bool of_ours = record.kind == Kind::annotation && bare(event.category) == kKernelCategory;
  if (!of_ours && !draft_.tracks[record.track].gpu && is_gpus(event.category))
    draft_.tracks[record.track].gpu = true;
  keep_details(event, record);
  if (open) {
    record.end = kNoTime;
    open_[record.track].push_back(draft_.records.size());
  }
  draft_.records.push_back(record);
  return nullptr;
}

const char* TraceBuilder::end_of_span(const Event& event) {
  const auto end = nanoseconds_of(event.time);
  if (!end) return "no time (ts)";
  auto& open = open_[track_of(event.pid, event.tid)];
  if (open.empty()) return "an end (E) without a beginning (B)";
  Record& record = draft_.records[open.back()];
  open.pop_back();
  record.end = std::max(*end, record.begin);
  last_ = std::max(last_, record.end);
  return nullptr;
}

// Returns a separate track beside the process's threads, named after the category or name of its events.
std::uint32_t TraceBuilder::asynchronous_track(const Event& event) {
  const int process = process_of(event.pid);
  const std::string_view raw = bare(event.category.size() > 2 ? event.category : event.name);
  const std::uint32_t name = draft_.strings.number_of(raw);
  const auto [it, is_new] =
      asynchronous_tracks_.try_emplace({process, name}, static_cast<std::uint32_t>(draft_.tracks.size()));
  if (is_new) {
    constexpr std::int64_t kFirst = std::int64_t{1} << 48;
    draft_.tracks.push_back(
        {process, kFirst + name, draft_.strings.texts[name], true, kFirst + name, false, true});
  }
  return it->second;
}

const char* TraceBuilder::asynchronous(const Event& event) {
  const auto time = nanoseconds_of(event.time);
  if (!time) return "no time (ts)";
  if (event.id.empty()) return "no id";
  const std::uint32_t track = asynchronous_track(event);
  std::uint64_t key = std::hash<std::string_view>{}(bare(event.id));
  key = mixed(key, draft_.strings.number_of(bare(event.category)));
  key = mixed(key, static_cast<std::uint64_t>(draft_.tracks[track].process));
  key = mixed(key, std::hash<std::string_view>{}(bare(event.scope)));
  auto& open = open_async_[key];
  last_ = std::max(last_, *time);
  if (event.phase == 'b' || event.phase == 'S') {
    Record record;
    record.ready = kNoTime;
    record.begin = *time;
    record.end = kNoTime;
    record.name = draft_.strings.number_of(bare(event.name));
    record.track = track;
    sort(event, record);
    keep_details(event, record);
    open.push_back(draft_.records.size());
    draft_.records.push_back(record);
    return nullptr;
  }
  if (open.empty()) return "an end of an asynchronous span without a beginning";
  Record& record = draft_.records[open.back()];
  open.pop_back();
  record.end = std::max(*time, record.begin);
  return nullptr;
}

const char* TraceBuilder::flow(const Event& event) {
  const auto time = nanoseconds_of(event.time);
  if (!time) return "no time (ts)";
  if (event.id.empty()) return "no id";
  std::uint64_t key = std::hash<std::string_view>{}(bare(event.id));
  key = mixed(key, draft_.strings.number_of(bare(event.category)));
  key = mixed(key, draft_.strings.number_of(bare(event.name)));
  draft_.flow_ends.push_back(
      {key, *time, track_of(event.pid, event.tid), event.phase, event.binds_enclosing});
  return nullptr;
}

void TraceBuilder::sample(int process, const std::string& name, std::string_view key, Time time,
                          double value) {
  std::tuple<int, std::string, std::string> which{process, name, key};
  auto it = counters_.find(which);
  if (it == counters_.end()) {
    if (draft_.counters.size() >= kMostCounters) {
      ++draft_.left_out["values of counters beyond the first 4,096 counters are not shown"];
      return;
    }
    draft_.counters.push_back({name, std::string(key), process, {}});
    it = counters_.emplace(std::move(which), draft_.counters.size() - 1).first;
  }
  draft_.counters[it->second].samples.emplace_back(time, value);
}

const char* TraceBuilder::counter(const Event& event) {
  const auto time = nanoseconds_of(event.time);
  if (!time) return "no time (ts)";
  const int process = process_of(event.pid);
  std::string name = text_of(event.name);
  if (!event.id.empty()) name += " " + text_of(event.id);
  for (const auto& [key, value, known] : event.arguments)
    if (const auto number = number_of(value)) sample(process, name, key, *time, *number);
  return nullptr;
}

// Ignores instants, except ranges marked by name and the allocator's, which become a counter.
void TraceBuilder::instant(const Event& event) {
  const auto time = nanoseconds_of(event.time);
  if (!time) return;
  if (bare(event.name) == "[memory]") {
    const auto device = integer_of(argument(event, "Device Type"));
    const Token number = argument(event, "Device Id");
    const auto allocated = number_of(argument(event, "Total Allocated"));
    if (!allocated) return;
    const bool gpu = device.value_or(0) != 0;
    const std::string name = gpu ? "memory of GPU " + text_of(number) : "memory of the host";
    sample(process_of(event.pid), name, "bytes", *time, *allocated);
    return;
  }
  if (bare(event.category).find("annotation") == std::string_view::npos) return;
  Event span_of_no_length = event;
  span_of_no_length.duration = "0";
  span(span_of_no_length, false);
}

const char* TraceBuilder::metadata(const Event& event) {
  const std::string_view what = bare(event.name);
  const bool of_process = what.substr(0, 8) == "process_";
  if (!of_process && what.substr(0, 7) != "thread_") return nullptr;
  if (event.pid.empty()) return "no pid";
  if (of_process) {
    Draft::Process& process = draft_.processes[process_of(event.pid)];
    if (what == "process_name") {
      process.name = text_of(argument(event, "name"));
      process.role = text_of(argument(event, "role"));
      process.ranks = std::max(1, small_integer(argument(event, "ranks"), 1));
      process.stage = small_integer(argument(event, "stage"), -1);
    }
    if (what == "process_labels") process.labels = text_of(argument(event, "labels"));
    if (what == "process_sort_index") {
      const auto index = integer_of(argument(event, "sort_index"));
      process.is_sorted = index.has_value();
      process.sort_index = index.value_or(0);
    }
    return nullptr;
  }
  Draft::Track& track = draft_.tracks[track_of(event.pid, event.tid)];
  if (what == "thread_name") track.name = text_of(argument(event, "name"));
  if (what == "thread_sort_index") {
    const auto index = integer_of(argument(event, "sort_index"));
    track.is_sorted = index.has_value();
    track.sort_index = index.value_or(0);
  }
  return nullptr;
}

void TraceBuilder::end_open_spans(Draft& draft) const {
  std::uint64_t never_ended = 0;
  const auto end = [&](const auto& open) {
    for (const auto& [key, records] : open) {
      for (const std::size_t each : records)
        draft.records[each].end = std::max(last_, draft.records[each].begin);
      never_ended += records.size();
    }
  };
  end(open_);
  end(open_async_);
  if (never_ended > 0)
    draft.left_out["spans never end and are extended to the end of the trace"] += never_ended;
}

Draft TraceBuilder::so_far() const {
  Draft draft = draft_;
  end_open_spans(draft);
  return draft;
}

}  // namespace rehearse::gui
