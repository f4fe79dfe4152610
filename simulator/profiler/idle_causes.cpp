#include "simulator/profiler/idle_causes.hpp"

#include <algorithm>

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 11> kWaits = {"cudaDeviceSynchronize", "cudaStreamSynchronize",
                                                     "cudaEventSynchronize",  "cudaMemcpy",
                                                     "cuStreamSynchronize",   "cuCtxSynchronize",
                                                     "hipDeviceSynchronize",  "hipStreamSynchronize",
                                                     "hipEventSynchronize",   "hipMemcpy",
                                                     "hipMemcpyWithStream"};

// The clocks of GPU and host agree to a few microseconds: a call that waits for the device can seem to return
// before its last kernel ends.
constexpr double kClocksDiffer = 5;

// The name of torch/utils/data/dataloader.py of pytorch/pytorch for the next batch, as an annotation or,
// until 2022, an operator.
bool loads_data(std::string_view name) {
  return name.starts_with("enumerate(DataLoader)");
}

bool copies(std::string_view call) {
  return call.starts_with("cudaMemcpy") || call.starts_with("cuMemcpy") || call.starts_with("hipMemcpy");
}

std::size_t number_of(IdleCause cause) {
  return static_cast<std::size_t>(cause);
}

}  // namespace

bool waits_for_device(std::string_view call) {
  return std::find(kWaits.begin(), kWaits.end(), call) != kWaits.end();
}

HostActivity::HostActivity(const ProfilerTrace& trace, const HostOps& ops) : trace_(trace), ops_(ops) {
  for (const ProfilerEvent& event : trace.events) {
    const std::string& name = trace.names[event.name];
    const Call call{{event.begin_us, event.end_us}, event.name};
    if (event.kind == ProfilerEventKind::launch && waits_for_device(name))
      waits_[event.thread].push_back(call);
    else if (event.kind == ProfilerEventKind::launch && copies(name))
      copies_[event.thread].push_back(call);
    else if ((event.kind == ProfilerEventKind::op || event.kind == ProfilerEventKind::annotation) &&
             loads_data(name))
      loading_[event.thread].push_back(call);
  }
  for (Calls* all : {&loading_, &waits_, &copies_})
    for (auto& [thread, calls] : *all)
      std::sort(calls.begin(), calls.end(),
                [](const Call& a, const Call& b) { return a.time.begin < b.time.begin; });
}

// The parts of a gap whose cause is not known yet.
class HostActivity::Gap {
public:
  Gap(const HostActivity& host, Interval gap, IdleSums& sums) : host_(host), left_{gap}, sums_(sums) {}

  void take(Interval cut, IdleCause cause, const std::string& name) {
    double taken = 0;
    std::vector<Interval> left;
    for (const Interval& piece : left_) {
      const Interval common{std::max(piece.begin, cut.begin), std::min(piece.end, cut.end)};
      if (common.length() <= 0) {
        left.push_back(piece);
        continue;
      }
      taken += common.length();
      if (common.begin > piece.begin) left.push_back({piece.begin, common.begin});
      if (common.end < piece.end) left.push_back({common.end, piece.end});
    }
    left_ = std::move(left);
    add(taken, cause, name);
  }
  void take_all(IdleCause cause, const std::string& name) {
    double taken = 0;
    for (const Interval& piece : left_) taken += piece.length();
    left_.clear();
    add(taken, cause, name);
  }
  // Takes the parts during which one of the thread's calls is under way.
  void take_calls(const Calls& all, std::uint32_t thread, IdleCause cause) {
    const auto its = all.find(thread);
    if (its == all.end() || left_.empty()) return;
    const Interval whole{left_.front().begin, left_.back().end};
    auto call = std::upper_bound(its->second.begin(), its->second.end(), whole.begin,
                                 [](double time, const Call& one) { return time < one.time.begin; });
    if (call != its->second.begin()) --call;
    for (; call != its->second.end() && call->time.begin < whole.end; ++call)
      take(call->time, cause, host_.trace_.names[call->name]);
  }
  // Takes the parts during which the thread runs an operator.
  void take_operators(std::uint32_t thread) {
    if (left_.empty()) return;
    const Interval whole{left_.front().begin, left_.back().end};
    const std::vector<OuterOp>& ops = host_.ops_.of_thread(thread);
    auto op = std::upper_bound(ops.begin(), ops.end(), whole.begin,
                               [](double time, const OuterOp& one) { return time < one.begin; });
    if (op != ops.begin()) --op;
    for (; op != ops.end() && op->begin < whole.end; ++op)
      take({op->begin, op->end}, IdleCause::operators, host_.name_of(*op));
  }

private:
  void add(double time, IdleCause cause, const std::string& name) {
    if (time <= 0) return;
    IdleSum& sum = sums_[number_of(cause)];
    sum.time += time;
    if (!name.empty()) sum.by_name[name] += time;
  }

  const HostActivity& host_;
  std::vector<Interval> left_;
  IdleSums& sums_;
};

std::string HostActivity::name_of(const OuterOp& op) const {
  constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
  std::string name = trace_.names[trace_.events[op.event].name];
  if (name.starts_with(kEvaluate)) name.erase(0, kEvaluate.size());
  return name;
}

// Returns the thread's call that waited until the GPU ran dry at this time, with the operator around it;
// empty if there is none.
std::string HostActivity::emptied(std::uint32_t thread, double time) const {
  const auto its = waits_.find(thread);
  if (its == waits_.end()) return "";
  auto call = std::upper_bound(its->second.begin(), its->second.end(), time,
                               [](double at, const Call& one) { return at < one.time.begin; });
  if (call == its->second.begin()) return "";
  --call;
  if (call->time.end < time - kClocksDiffer) return "";
  const OuterOp* op = ops_.at(thread, call->time.begin);
  return trace_.names[call->name] + (op ? " in " + name_of(*op) : "");
}

double HostActivity::add_gap(Interval gap, const PlacedKernel& next, std::uint32_t main_thread,
                             IdleSums& sums) const {
  if (gap.length() <= 0) return 0;
  const double launched = std::clamp(next.launched, gap.begin, gap.end);
  if (launched < gap.end) Gap(*this, {launched, gap.end}, sums).take_all(IdleCause::queue, "");
  if (launched <= gap.begin) return 0;
  Gap left(*this, {gap.begin, launched}, sums);
  const double data_before = sums[number_of(IdleCause::data)].time;
  left.take_calls(loading_, main_thread, IdleCause::data);
  const double data = sums[number_of(IdleCause::data)].time - data_before;
  std::vector<std::uint32_t> threads = {next.thread};
  if (main_thread != next.thread) threads.push_back(main_thread);
  for (const std::uint32_t thread : threads)
    if (const std::string call = emptied(thread, gap.begin); !call.empty()) {
      left.take_all(IdleCause::synchronisation, call);
      return data;
    }
  for (const std::uint32_t thread : threads) {
    left.take_calls(waits_, thread, IdleCause::synchronisation);
    left.take_calls(copies_, thread, IdleCause::copies);
    left.take_operators(thread);
  }
  left.take_all(IdleCause::python, "");
  return data;
}

}  // namespace rehearse
