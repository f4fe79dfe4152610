#include <algorithm>

#include "simulator/profiler/measured_step.hpp"

namespace rehearse {
namespace {

// A launch that takes more than this many times the median was delayed by a full queue.
constexpr double kHeldUp = 10;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void place_kernels(StepSource& source) {
  const ProfilerTrace& trace = source.trace;
  std::unordered_map<std::uint32_t, const ProfilerEvent*> launches;
  std::vector<double> lengths;
  for (const ProfilerEvent& event : trace.events) {
    if (event.kind != ProfilerEventKind::launch) continue;
    if (event.correlation != 0) launches[event.correlation] = &event;
    if (waits_for_device(trace.names[event.name]))
      source.waits.push_back({event.begin_us, event.end_us});
    else
      lengths.push_back(event.end_us - event.begin_us);
  }
  const double usual = median_of(std::move(lengths));
  for (const ProfilerEvent& event : trace.events)
    if (event.kind == ProfilerEventKind::launch && event.end_us - event.begin_us > kHeldUp * usual &&
        !waits_for_device(trace.names[event.name]))
      source.waits.push_back({event.begin_us + usual, event.end_us});
  source.waits = united(std::move(source.waits));
  for (const ProfilerEvent& event : trace.events) {
    if (event.kind != ProfilerEventKind::kernel) continue;
    const auto launch = launches.find(event.correlation);
    if (launch == launches.end()) continue;
    source.kernels.push_back({{event.begin_us, event.end_us},
                              launch->second->thread,
                              launch->second->begin_us,
                              is_collective_kernel(trace.names[event.name])});
  }
  std::sort(source.kernels.begin(), source.kernels.end(),
            [](const PlacedKernel& a, const PlacedKernel& b) { return a.launched < b.launched; });
}

void find_windows(StepSource& source) {
  std::vector<HostOps::Annotation> steps, updates;
  for (const HostOps::Annotation& one : source.ops.annotations()) {
    const std::string& name = source.trace.names[one.name];
    if (name.starts_with("ProfilerStep#")) steps.push_back(one);
    if (name.starts_with("Optimizer.step#")) updates.push_back(one);
  }
  source.told_by_updates = steps.empty();
  const std::vector<HostOps::Annotation>& marks = steps.empty() ? updates : steps;
  if (marks.empty()) return;
  source.main_thread = marks.front().thread;
  double end = 0;
  bool first = true;
  for (const HostOps::Annotation& mark : marks) {
    if (mark.thread != source.main_thread) continue;
    if (!source.told_by_updates)
      source.windows.push_back(mark.time);
    else if (!first)
      source.windows.push_back({end, mark.time.end});
    end = mark.time.end;
    first = false;
  }
}

}  // namespace

StepSource::StepSource(const ProfilerTrace& its_trace)
    : trace(its_trace), ops(its_trace), host(its_trace, ops) {
  place_kernels(*this);
  // Traces of other accelerators can have kernels that do not say which call launched them.
  on_device = trace.has_kernels && (trace.accelerator.empty() || !kernels.empty());
  find_windows(*this);
}

}  // namespace rehearse
