#include "simulator/report/input_sentence.hpp"

#include <fmt/format.h>

#include <cmath>

#include "simulator/report/format.hpp"
#include "simulator/strategies/programs/stage_input.hpp"

namespace rehearse {
namespace {

// Advises as many workers as load what the devices train, at most one for each core.
WayOut more_workers(const Result& result, const InputRates& rates, double wanted_per_s) {
  const Scenario& s = result.scenario;
  const Node& node = s.cluster->node();
  const int now = std::max(1, s.data.loader.workers), cores = cores_of_device(node);
  const int then = static_cast<int>(std::ceil(now * wanted_per_s / rates.workers - 1e-9));
  const std::string noun = device_noun(node.device);
  if (then <= cores)
    return {fmt::format("{} workers for each {} would load {} {}/s", then, noun,
                        with_prefix(rates.workers * then / now), s.model.sample_unit),
            {fmt::format("data.loader.workers={}", then)}};
  if (now < cores)
    return {fmt::format("a worker for each of the {} cores of a {} would load {} {}/s", cores, noun,
                        with_prefix(rates.workers * cores / now), s.model.sample_unit),
            {fmt::format("data.loader.workers={}", cores)}};
  return {"the workers already use all cores",
          {},
          0,
          "samples that are stored prepared, or prepared on the GPUs"};
}

// Advises the bandwidth of a storage that suffices, or a cache of all samples in the nodes' memory.
WayOut more_storage(const Result& result, const InputRates& rates, double wanted_per_s) {
  const Scenario& s = result.scenario;
  const double needed = rates.storage_bytes_per_s * wanted_per_s / rates.storage;
  WayOut way{fmt::format("the storage would have to deliver {}, {} more", in_gb_per_s(needed),
                         in_gb_per_s(needed - rates.storage_bytes_per_s)),
             {}};
  if (const double gib = cache_of_all_gib(s.data, s.cluster->node()); gib > 0) {
    way.why += fmt::format(", or a cache of {:.0f} GiB in each node hold all samples", gib);
    way.sets = {fmt::format("data.cache.gib={:.0f}", gib)};
  }
  return way;
}

}  // namespace

double trained_without_stalls(const Result& result) {
  const Metrics& m = result.metrics;
  return m.samples_per_s * m.step_time_s / (m.step_time_s - m.breakdown.data_stall_s);
}

std::string input_sentence(const Result& result) {
  const Scenario& s = result.scenario;
  if (!s.data.given) return "";
  const InputRates rates = input_rates(s);
  const std::string& unit = s.model.sample_unit;
  const int workers = s.data.loader.workers;
  std::string text =
      std::isfinite(rates.workers)
          ? fmt::format("{} for each {} can load {} {}/s",
                        workers == 0 ? "the training process" : counted(workers, "worker"),
                        device_noun(s.cluster->node().device), with_prefix(rates.workers), unit)
          : "loading takes no time";
  if (std::isfinite(rates.storage))
    text += fmt::format(", the storage ({}) can deliver {} at {}", s.data.access.title,
                        with_prefix(rates.storage), in_gb_per_s(rates.storage_bytes_per_s));
  text += fmt::format("; {} train {}{}", device_noun(s.cluster->node().device) + "s",
                      with_prefix(trained_without_stalls(result)),
                      result.metrics.breakdown.data_stall_s > 0 ? " if they need not wait" : "");
  if (rates.loading.hit_rate > 0)
    text += fmt::format("; {} of the samples come from the cache", in_percent(rates.loading.hit_rate));
  return "Input: " + text + ".";
}

WayOut more_input(const Result& result) {
  if (!result.scenario.data.given) return {};
  const InputRates rates = input_rates(result.scenario);
  const double wanted = trained_without_stalls(result);
  return rates.storage < rates.workers ? more_storage(result, rates, wanted)
                                       : more_workers(result, rates, wanted);
}

}  // namespace rehearse
