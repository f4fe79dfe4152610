#include "backend/cuda/gpu_sampling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "backend/cuda/gpu_identity.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr std::chrono::milliseconds kEvery{20};

using Samples = std::vector<GpuSample>;

GpuStep summary_of(Samples::const_iterator first, Samples::const_iterator last) {
  GpuStep step;
  std::uint64_t reasons = 0;
  bool reasons_known = false;
  for (std::size_t i = 0; i < kSampledFigures.size(); ++i) {
    SampledFigure& figure = step.*kSampledFigures[i].second;
    double sum = 0;
    int told = 0;
    for (auto sample = first; sample != last; ++sample) {
      const double value = sample->figures[i];
      if (std::isnan(value)) continue;
      figure.least = told == 0 ? value : std::min(figure.least, value);
      figure.most = told == 0 ? value : std::max(figure.most, value);
      sum += value;
      ++told;
    }
    if (told > 0) figure.mean = sum / told;
  }
  for (auto sample = first; sample != last; ++sample) {
    if (!sample->clock_reasons) continue;
    reasons_known = true;
    reasons |= *sample->clock_reasons;
  }
  if (reasons_known) step.throttled_by = throttle_names(reasons);
  return step;
}

// Interpolates the energy counter linearly between the two samples around a time; returns nothing before the
// first sample and after the last.
std::optional<double> energy_at(const std::vector<const GpuSample*>& told, double time_s) {
  const auto after = std::lower_bound(told.begin(), told.end(), time_s,
                                      [](const GpuSample* sample, double s) { return sample->time_s < s; });
  if (after == told.end()) return {};
  const GpuSample& right = **after;
  if (right.time_s == time_s) return right.energy_j;
  if (after == told.begin()) return {};
  const GpuSample& left = **std::prev(after);
  const double share = (time_s - left.time_s) / (right.time_s - left.time_s);
  return *left.energy_j + share * (*right.energy_j - *left.energy_j);
}

// The thread is the last member, so it is destroyed first, which ends it.
struct Sampling {
  std::unique_ptr<NvmlDevice> device;
  Samples samples;
  std::jthread thread;

  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    do samples.push_back(device->sample());
    while (!stopped.wait_for(lock, stop, kEvery, [&] { return stop.stop_requested(); }));
    samples.push_back(device->sample());  // after the last step, for the energy at its end
  }
};

}  // namespace

std::vector<GpuStep> sampled_steps(const std::vector<GpuSample>& samples,
                                   const std::vector<double>& step_bounds_s) {
  std::vector<GpuStep> steps;
  if (samples.empty()) return steps;
  const auto from = [&](double time_s) {
    return std::lower_bound(samples.begin(), samples.end(), time_s,
                            [](const GpuSample& sample, double s) { return sample.time_s < s; });
  };
  for (std::size_t i = 0; i + 1 < step_bounds_s.size(); ++i) {
    auto first = from(step_bounds_s[i]), last = from(step_bounds_s[i + 1]);
    const auto inside = static_cast<int>(last - first);
    if (inside == 0) {
      const double middle_s = (step_bounds_s[i] + step_bounds_s[i + 1]) / 2;
      first = from(middle_s);
      const bool earlier =
          first != samples.begin() &&
          (first == samples.end() || middle_s - std::prev(first)->time_s < first->time_s - middle_s);
      if (earlier) --first;
      last = std::next(first);
    }
    steps.push_back(summary_of(first, last));
    steps.back().samples = inside;
  }
  return steps;
}

EnergyBasis add_energy(std::vector<GpuStep>& steps, const std::vector<GpuSample>& samples,
                       const std::vector<double>& step_bounds_s) {
  std::vector<const GpuSample*> told;
  for (const GpuSample& sample : samples)
    if (sample.energy_j) told.push_back(&sample);
  EnergyBasis basis = told.empty() ? EnergyBasis::unknown : EnergyBasis::counter;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double begin_s = step_bounds_s[i], end_s = step_bounds_s[i + 1];
    if (told.empty()) {
      steps[i].energy_j = steps[i].power_w.mean * (end_s - begin_s);
      if (!std::isnan(steps[i].energy_j)) basis = EnergyBasis::power;
      continue;
    }
    const std::optional<double> before = energy_at(told, begin_s), after = energy_at(told, end_s);
    if (before && after) steps[i].energy_j = *after - *before;
  }
  return basis;
}

EndSampling sample_gpu(const CudaArithmetic& arithmetic, const UsedMemory& used) {
  GpuRecord known;
  known.uuid = gpu_uuid(arithmetic.device());
  known.pci_bus_id = pci_bus_id(arithmetic.device());
  known.used_before_communicators_bytes = used.before_communicators;
  known.used_after_communicators_bytes = used.after_communicators;
  const auto sampling = std::make_shared<Sampling>();
  try {
    sampling->device = std::make_unique<NvmlDevice>(known.pci_bus_id);
    known.driver = sampling->device->driver();
    sampling->samples.push_back(
        sampling->device->sample());  // before the first step, for the energy at its start
    sampling->thread =
        std::jthread([running = sampling.get()](const std::stop_token& stop) { running->run(stop); });
  } catch (const RunError& error) {
    known.clocks_unknown = error.what();
  }
  return [&arithmetic, sampling, known](const std::vector<double>& step_bounds_s) {
    sampling->thread.request_stop();
    if (sampling->thread.joinable()) sampling->thread.join();
    GpuRecord record = known;
    record.allocated_bytes = static_cast<double>(arithmetic.most_allocated_bytes());
    record.steps = sampled_steps(sampling->samples, step_bounds_s);
    record.energy_basis = add_energy(record.steps, sampling->samples, step_bounds_s);
    return record;
  };
}

}  // namespace rehearse
