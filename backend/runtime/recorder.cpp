#include "backend/runtime/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "models/text/error.hpp"
#include "simulator/report/gpu_record_json.hpp"
#include "simulator/trace/sides.hpp"

namespace rehearse {
namespace {

template <class T>
void put(std::string& text, const std::vector<T>& values) {
  const std::uint64_t size = values.size();
  text.append(reinterpret_cast<const char*>(&size), sizeof size);
  text.append(reinterpret_cast<const char*>(values.data()), size * sizeof(T));
}

class Reader {
public:
  explicit Reader(const std::string& text) : text_(text) {}
  template <class T>
  std::vector<T> take() {
    std::uint64_t size = 0;
    copy(&size, sizeof size);
    if (size > text_.size() / sizeof(T)) throw RunError("a rank's report is broken");
    std::vector<T> values(size);
    copy(values.data(), size * sizeof(T));
    return values;
  }

private:
  void copy(void* to, std::size_t bytes) {
    if (bytes > text_.size() - at_) throw RunError("a rank's report is incomplete");
    if (bytes > 0) std::memcpy(to, text_.data() + at_, bytes);
    at_ += bytes;
  }
  const std::string& text_;
  std::size_t at_ = 0;
};

class Recorder {
public:
  Recorder(Trace& trace, const Cluster& cluster, const std::vector<int>& endpoints, const Wiring& wiring)
      : trace_(trace), cluster_(cluster), endpoints_(endpoints), wiring_(wiring) {}

  // Counts the messages that `rank` sent in an op.
  void count(int rank, int op_number, const Op& op) {
    if (op.kind == OpKind::exchange) {
      for (const ExchangePart& part : wiring_.exchange(rank, op_number))
        if (part.send && op.messages[part.message].peer.kind != Peer::Kind::sender)
          send(rank, part.peer, static_cast<double>(part.bytes));
    } else if (op.kind == OpKind::collective) {
      const auto collective = wiring_.collective(rank, op_number);
      if (!collective) return;
      const int self = collective->member_of(rank);
      for (const MessageTable::Message& m : collective->table.messages) {
        const Connection& ends = collective->table.connections[m.connection];
        if (ends.from == self)
          send(rank, collective->ranks[ends.to], static_cast<double>((m.end - m.begin) * kElementBytes),
               ends.rail);
      }
    }
  }

  void finish() {
    for (const auto& [link, bytes] : bytes_) trace_.link_use.push_back({link, 1, bytes});
  }

private:
  void send(int from, int to, double bytes, int rail = -1) {
    trace_.bytes_total += bytes;
    ++trace_.engine.events;
    route_.clear();
    cluster_.route(endpoints_[from], endpoints_[to], rail, route_);
    for (const LinkId link : route_) bytes_[link] += bytes;
  }

  Trace& trace_;
  const Cluster& cluster_;
  const std::vector<int>& endpoints_;
  const Wiring& wiring_;
  std::map<LinkId, double> bytes_;
  std::vector<LinkId> route_;
};

}  // namespace

namespace {

// A kernel with a number in place of its name.
struct PackedKernel {
  int op, step, stream;
  std::uint32_t name;  // index in the list of names
  std::int64_t correlation;
  double begin_s, end_s;
};

// Writes each name once, since names repeat.
void put_kernels(std::string& text, const std::vector<KernelSpan>& kernels) {
  std::map<std::string, std::uint32_t> numbers;
  std::string names;
  std::vector<PackedKernel> packed;
  for (const KernelSpan& k : kernels) {
    const auto [known, fresh] = numbers.try_emplace(k.name, static_cast<std::uint32_t>(numbers.size()));
    if (fresh) names += k.name + '\0';
    packed.push_back({k.op, k.step, k.stream, known->second, k.correlation, k.begin_s, k.end_s});
  }
  put(text, std::vector<char>(names.begin(), names.end()));
  put(text, packed);
}

std::vector<KernelSpan> take_kernels(Reader& reader) {
  const auto text = reader.take<char>();
  std::vector<std::string> names;
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find(begin, text.end(), '\0');
    names.emplace_back(begin, end);
    begin = end == text.end() ? end : end + 1;
  }
  std::vector<KernelSpan> kernels;
  for (const PackedKernel& k : reader.take<PackedKernel>()) {
    if (k.name >= names.size()) throw RunError("a rank's report is broken");
    kernels.push_back({names[k.name], k.op, k.step, k.stream, k.correlation, k.begin_s, k.end_s});
  }
  return kernels;
}

// Sorts the kernels by start and makes their times relative to `first_s`. Drops kernels outside [first_s,
// last_s] and clamps the others to it, because the ops' own times are more reliable than the kernels' clock.
std::vector<KernelSpan> kernels_between(std::vector<KernelSpan> kernels, double first_s, double last_s) {
  std::erase_if(kernels, [&](const KernelSpan& k) { return k.end_s < first_s || k.begin_s > last_s; });
  for (KernelSpan& k : kernels)
    for (double* s : {&k.begin_s, &k.end_s}) *s = std::clamp(*s, first_s, last_s) - first_s;
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelSpan& a, const KernelSpan& b) { return a.begin_s < b.begin_s; });
  return kernels;
}

}  // namespace

std::string pack(const RankReport& report) {
  std::string text;
  put(text, report.spans);
  put(text, report.learned.losses);
  put(text, report.learned.gradients);
  put(text, std::vector<std::uint64_t>{report.learned.weights, report.learned.replicated});
  put(text, report.learned.staleness);
  put(text, std::vector<char>(report.host.begin(), report.host.end()));
  put(text, std::vector<double>{report.clock_error_s});
  const std::string gpu = report.gpu.uuid.empty() ? "" : to_json(report.gpu).dump();
  put(text, std::vector<char>(gpu.begin(), gpu.end()));
  put_kernels(text, report.kernels);
  return text;
}

RankReport unpack(const std::string& text) {
  Reader reader(text);
  RankReport report;
  report.spans = reader.take<RankSpan>();
  report.learned.losses = reader.take<double>();
  report.learned.gradients = reader.take<std::uint64_t>();
  const auto weights = reader.take<std::uint64_t>();
  if (weights.size() != 2) throw RunError("a rank's report is broken");
  report.learned.weights = weights[0];
  report.learned.replicated = weights[1];
  report.learned.staleness = reader.take<int>();
  const auto host = reader.take<char>();
  report.host.assign(host.begin(), host.end());
  const auto error_s = reader.take<double>();
  if (!error_s.empty()) report.clock_error_s = error_s.front();
  const auto gpu = reader.take<char>();
  report.kernels = take_kernels(reader);
  if (gpu.empty()) return report;
  const std::string place = "a rank's report";
  const nlohmann::json json = parse_json({gpu.data(), gpu.size()}, place);
  report.gpu = read_gpu_record(JsonReader(json, place));
  return report;
}

Trace record(const std::string& name, const std::shared_ptr<const Schedule>& schedule,
             const std::vector<int>& endpoints, int repeats, const Cluster& cluster, const Wiring& wiring,
             const std::vector<RankReport>& reports) {
  Trace trace;
  Phase phase;
  phase.schedule = schedule;
  phase.repeats = repeats;
  trace.run.jobs.push_back({name, {phase}, endpoints});
  trace.job_failed = {false};
  trace.engine.fidelity = "measured";
  trace.engine.classes = static_cast<int>(reports.size());

  double first_s = std::numeric_limits<double>::infinity();
  for (const RankReport& report : reports)
    for (const RankSpan& span : report.spans) first_s = std::min(first_s, span.ready_s);
  Recorder recorder(trace, cluster, endpoints, wiring);
  Spans& spans = trace.spans;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const auto [role, rank] = wiring.place(static_cast<int>(r));
    RankClass who;
    who.role = role;
    who.phase_program = schedule->program_of(role, rank);
    who.ranks = {rank};
    trace.classes.push_back(std::move(who));
    for (const RankSpan& span : reports[r].spans) {
      spans.rank_class.push_back(static_cast<int>(r));
      spans.phase.push_back(0);
      spans.step.push_back(span.call.step);
      spans.op.push_back(span.call.op);
      spans.iteration.push_back(span.call.iteration);
      spans.ready_s.push_back(span.ready_s - first_s);
      spans.begin_s.push_back(span.begin_s - first_s);
      spans.end_s.push_back(span.end_s - first_s);
      spans.status.push_back(Status::done);
      spans.sender.push_back(span.sender < 0 ? -1 : wiring.place(span.sender).second);
      trace.end_s = std::max(trace.end_s, spans.end_s.back());
      recorder.count(static_cast<int>(r), span.call.op, trace.op_of(spans.size() - 1));
    }
  }
  // Storages are ranks of the schedule without a process.
  for (int r = static_cast<int>(reports.size()); r < schedule->ranks(); ++r) {
    const auto [role, rank] = wiring.place(r);
    RankClass idle;
    idle.role = role;
    idle.phase_program = schedule->program_of(role, rank);
    idle.ranks = {rank};
    trace.classes.push_back(std::move(idle));
  }
  recorder.finish();
  if (std::any_of(reports.begin(), reports.end(), [](const RankReport& r) { return !r.kernels.empty(); }))
    for (const RankReport& report : reports)
      trace.kernels.push_back(kernels_between(report.kernels, first_s, first_s + trace.end_s));

  const Sides sides(trace);
  for (std::size_t row = 0; row < spans.size(); ++row) {
    const OpKind kind = trace.op_of(row).kind;
    if (kind != OpKind::exchange && kind != OpKind::collective) continue;
    for (const std::size_t other : sides.of(row))
      spans.begin_s[row] = std::max(spans.begin_s[row], spans.ready_s[other]);
    spans.begin_s[row] =
        std::min(spans.begin_s[row], spans.end_s[row]);  // an early sender may have ended before
  }
  return trace;
}

}  // namespace rehearse
