#include "simulator/profiler/step_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "models/text/error.hpp"
#include "models/text/si_prefixes.hpp"
#include "simulator/profiler/measured_step.hpp"

namespace rehearse {
namespace {

constexpr const char* kHowTo =
    "a trace of forward pass, backward pass and optimizer.step(), with prof.step() after each of them under "
    "torch.profiler.schedule";

using Measure = std::function<double(const MeasuredStep&)>;

// Returns the median; for an even number of steps, the mean of the two in the middle.
double median(const std::vector<MeasuredStep>& steps, const Measure& measure) {
  std::vector<double> values;
  for (const MeasuredStep& step : steps) values.push_back(measure(step));
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Identifies steps with the same layers: the operators that begin layers, and their parameters.
using Signature = std::vector<std::pair<std::uint32_t, double>>;
Signature signature_of(const MeasuredStep& step, const ProfilerTrace& trace) {
  Signature signature = {{static_cast<std::uint32_t>(step.passes), 0}};
  for (const MeasuredLayer& layer : step.layers)
    signature.emplace_back(trace.events[layer.head].name, layer.parameters);
  return signature;
}

std::vector<MeasuredStep> steps_of(const StepSource& source) {
  const auto refuse = [&](const std::string& found) {
    throw InputError({source.trace.file, 0, 0}, fmt::format("{}; allowed: {}", found, kHowTo));
  };
  if (source.trace.events.empty()) refuse("has no events of PyTorch's profiler");
  if (source.windows.empty())
    refuse(
        fmt::format("has {} events of PyTorch's profiler, but no step: neither \"ProfilerStep#\" nor two "
                    "\"Optimizer.step#\" annotations",
                    source.trace.events.size()));
  std::vector<MeasuredStep> steps;
  std::size_t without_passes = 0;
  for (std::size_t i = 0; i < source.windows.size(); ++i) {
    MeasuredStep step = measure_step(source, i);
    if (step.passes == 0)
      ++without_passes;
    else
      steps.push_back(std::move(step));
  }
  if (steps.empty())
    refuse(
        fmt::format("has {} steps, none of them with a forward and a backward pass (operators with a "
                    "\"Sequence number\" and nodes \"autograd::engine::evaluate_function\")",
                    without_passes));
  // On a GPU, only the next step shows where a step ends.
  std::erase_if(steps, [](const MeasuredStep& step) { return step.step <= 0; });
  if (steps.empty())
    refuse(fmt::format("has {} steps, none of them followed by another on the GPU", source.windows.size()));
  // The first step is slower than others, as the profiler warms up. If updates mark the steps, it is not
  // among them.
  if (steps.size() > 1 && !source.told_by_updates) steps.erase(steps.begin());
  return steps;
}

std::vector<MeasuredStep> most_common(std::vector<MeasuredStep> steps, const ProfilerTrace& trace) {
  std::map<Signature, std::size_t> counts;
  for (const MeasuredStep& step : steps) ++counts[signature_of(step, trace)];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second == 1 && steps.size() > 1)
    throw InputError({trace.file, 0, 0},
                     fmt::format("its {} steps have layers that differ from each other; allowed: steps that "
                                 "repeat the same layers",
                                 steps.size()));
  std::erase_if(steps, [&](const MeasuredStep& step) { return signature_of(step, trace) != most->first; });
  return steps;
}

// Returns the name of the innermost module around a layer's first operator, or the operator's own name if
// there is none. Equal names are numbered.
std::vector<std::string> names_of_layers(const StepSource& source, const MeasuredStep& step) {
  const auto& events = source.trace.events;
  double first = events[step.layers.front().head].begin_us, last = first;
  for (const MeasuredLayer& layer : step.layers) {
    first = std::min(first, events[layer.head].begin_us);
    last = std::max(last, events[layer.head].begin_us);
  }
  std::vector<HostOps::Annotation> calls;  // of this step
  for (const HostOps::Annotation& call : source.ops.modules())
    if (call.time.begin <= last && call.time.end >= first) calls.push_back(call);
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  for (const MeasuredLayer& layer : step.layers) {
    const ProfilerEvent& head = events[layer.head];
    std::string name;
    double shortest = 0;
    for (const HostOps::Annotation& call : calls) {
      if (call.time.begin > head.begin_us) break;
      if (call.thread != head.thread || call.time.end < head.end_us) continue;
      if (!name.empty() && call.time.length() > shortest) continue;
      name = source.trace.names[call.name].substr(std::string_view("nn.Module: ").size());
      shortest = call.time.length();
    }
    if (name.empty()) {
      name = source.trace.names[head.name];
      if (name.starts_with("aten::")) name.erase(0, 6);
    }
    ++uses[name];
    names.push_back(std::move(name));
  }
  std::map<std::string, int> so_far;
  for (std::string& name : names)
    if (uses[name] > 1) name += fmt::format(".{}", so_far[name]++);
  return names;
}

// Returns "AdamW" for "Optimizer.step#AdamW.step".
std::string optimizer_of(const std::string& annotation) {
  const std::size_t begin = annotation.find('#');
  if (begin == std::string::npos) return "";
  return annotation.substr(begin + 1, annotation.rfind(".step") - begin - 1);
}

void add_layers(StepProfile& profile, const StepSource& source, const std::vector<MeasuredStep>& steps) {
  const std::vector<std::string> names = names_of_layers(source, steps.front());
  const double passes = profile.passes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto of_layer = [&](double MeasuredLayer::*field) {
      return median(steps, [&](const MeasuredStep& step) { return step.layers[i].*field; });
    };
    ProfiledLayer layer;
    layer.name = names[i];
    layer.forward_s = of_layer(&MeasuredLayer::forward) * kMicro / passes;
    layer.backward_s = of_layer(&MeasuredLayer::backward) * kMicro / passes;
    layer.forward_idle_s = of_layer(&MeasuredLayer::forward_idle) * kMicro / passes;
    layer.backward_idle_s = of_layer(&MeasuredLayer::backward_idle) * kMicro / passes;
    layer.parameters = steps.front().layers[i].parameters;
    layer.gradient_bytes = steps.front().layers[i].gradient_bytes;
    layer.output_bytes = steps.front().layers[i].output_bytes;
    layer.forward_kernels = of_layer(&MeasuredLayer::forward_kernels) / passes;
    layer.backward_kernels = of_layer(&MeasuredLayer::backward_kernels) / passes;
    profile.has_shapes = profile.has_shapes || layer.parameters > 0;
    profile.layers.push_back(std::move(layer));
  }
}

void add_idle_causes(StepProfile& profile, const std::vector<MeasuredStep>& steps) {
  for (std::size_t c = 0; c < kIdleCauses; ++c) {
    ProfiledIdle idle;
    idle.cause = static_cast<IdleCause>(c);
    idle.seconds = kMicro * median(steps, [&](const MeasuredStep& step) { return step.idle_causes[c].time; });
    if (idle.seconds <= 0) continue;
    std::map<std::string, double> by_name;
    for (const MeasuredStep& step : steps)
      for (const auto& [name, time] : step.idle_causes[c].by_name) by_name[name] += time;
    const auto most = std::max_element(by_name.begin(), by_name.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != by_name.end()) idle.name = most->first;
    profile.idle_causes.push_back(std::move(idle));
  }
  std::stable_sort(profile.idle_causes.begin(), profile.idle_causes.end(),
                   [](const ProfiledIdle& a, const ProfiledIdle& b) { return a.seconds > b.seconds; });
}

// Follows a GPU and the process that feeds it through a step, as the simulator does (Simulation::compute): an
// op ends when its kernels have run and its last kernel was launched; the process issues nothing during
// waits.
class LaunchedStep {
public:
  explicit LaunchedStep(double kernel_s) : kernel_s_(kernel_s) {}

  // Returns how long the device must wait in the next op, beside `known_s`, so that the op ends as far after
  // the previous one as was profiled, `busy_s` + `idle_s` + `known_s`; less if launches delay it that much.
  double wait_s(double busy_s, double idle_s, double known_s, double kernels) {
    profiled_s_ += busy_s + idle_s + known_s;
    const double launched_s = host_s_ + kernels * kernel_s_;
    const double end_s = std::max(std::max(device_s_, host_s_) + busy_s, launched_s) + known_s;
    const double wait_s = std::max(0.0, profiled_s_ - end_s);
    host_s_ = launched_s + known_s + wait_s;
    device_s_ = end_s + wait_s;
    return wait_s;
  }

private:
  const double kernel_s_;
  double host_s_ = 0, device_s_ = 0, profiled_s_ = 0;
};

}  // namespace

ProfiledWaits waits_of(const StepProfile& profile) {
  // Totals of one pass.
  double forward_s = 0, backward_s = 0, forward_idle_s = 0, backward_idle_s = 0;
  double forward_kernels = 0, backward_kernels = 0;
  for (const ProfiledLayer& layer : profile.layers) {
    forward_s += layer.forward_s;
    backward_s += layer.backward_s;
    forward_idle_s += layer.forward_idle_s;
    backward_idle_s += layer.backward_idle_s;
    forward_kernels += layer.forward_kernels;
    backward_kernels += layer.backward_kernels;
  }
  ProfiledWaits waits;
  waits.data_s = profile.data_s / profile.passes;
  waits.outside_s = profile.between_steps_s - profile.between_data_s + profile.other_idle_s;
  LaunchedStep step(profile.kernel_launch_s);
  double forward_wait_s = 0, backward_wait_s = 0;
  for (int pass = 0; pass < profile.passes; ++pass) {
    forward_wait_s += step.wait_s(forward_s, forward_idle_s, waits.data_s, forward_kernels) / profile.passes;
    backward_wait_s += step.wait_s(backward_s, backward_idle_s, 0, backward_kernels) / profile.passes;
  }
  // Without parameters, the scenario has no update.
  if (!profile.has_shapes || profile.optimizer_s <= 0)
    waits.outside_s += profile.optimizer_idle_s;
  else
    waits.optimizer_s =
        step.wait_s(profile.optimizer_s, profile.optimizer_idle_s, 0, profile.optimizer_kernels);
  for (const ProfiledLayer& layer : profile.layers) {
    waits.forward_s.push_back(forward_idle_s > 0 ? forward_wait_s * layer.forward_idle_s / forward_idle_s
                                                 : 0);
    waits.backward_s.push_back(backward_idle_s > 0 ? backward_wait_s * layer.backward_idle_s / backward_idle_s
                                                   : 0);
  }
  return waits;
}

double StepProfile::layers_s() const {
  double sum = 0;
  for (const ProfiledLayer& layer : layers) sum += layer.forward_s + layer.backward_s;
  return passes * sum;
}

StepProfile profile_steps(const ProfilerTrace& trace) {
  const StepSource source(trace);
  const std::vector<MeasuredStep> steps = most_common(steps_of(source), trace);
  StepProfile profile;
  profile.file = trace.file;
  profile.gpu = trace.gpu;
  profile.accelerator = trace.accelerator;
  profile.on_gpu = source.on_device;
  profile.told_by_updates = source.told_by_updates;
  profile.steps_found = static_cast<int>(source.windows.size());
  profile.steps_used = static_cast<int>(steps.size());
  const MeasuredStep& first = steps.front();
  profile.passes = first.passes;
  profile.micro_batch = first.micro_batch;
  profile.element_bytes = first.element_bytes;
  profile.gradients_ready = first.ready;
  profile.communication = trace.communication;
  profile.ranks = trace.ranks;
  add_layers(profile, source, steps);

  const auto seconds = [&](double MeasuredStep::*field) {
    return kMicro * median(steps, [&](const MeasuredStep& step) { return step.*field; });
  };
  profile.step_s = seconds(&MeasuredStep::step);
  profile.optimizer_s = seconds(&MeasuredStep::optimizer);
  profile.communication_s = seconds(&MeasuredStep::communication);
  profile.collective_s = seconds(&MeasuredStep::collective);
  profile.other_s = seconds(&MeasuredStep::other);
  profile.idle_s = seconds(&MeasuredStep::idle);
  profile.between_steps_s = seconds(&MeasuredStep::between);
  profile.optimizer_idle_s = seconds(&MeasuredStep::optimizer_idle);
  profile.other_idle_s = seconds(&MeasuredStep::other_idle);
  profile.data_s = seconds(&MeasuredStep::data);
  profile.between_data_s = seconds(&MeasuredStep::between_data);
  add_idle_causes(profile, steps);
  profile.optimizer_kernels = seconds(&MeasuredStep::optimizer_kernels) / kMicro;
  const auto by_length = [](const MeasuredStep& a, const MeasuredStep& b) { return a.step < b.step; };
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end(), by_length);
  profile.least_step_s = least->step * kMicro;
  profile.most_step_s = most->step * kMicro;
  if (first.optimizer > 0) profile.optimizer = optimizer_of(trace.names[first.optimizer_name]);
  profile.momentum = first.momentum;
  if (profile.on_gpu && first.issued_kernels > 0)
    profile.kernel_launch_s = kMicro * median(steps, [](const MeasuredStep& step) {
                                return step.issued_kernels > 0 ? step.issuing / step.issued_kernels : 0;
                              });
  return profile;
}

}  // namespace rehearse
