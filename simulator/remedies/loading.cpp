#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/remedies/remedy_kinds.hpp"

namespace rehearse {

void load_faster(const Situation& now, Remedies& found) {
  const Data& data = now.scenario.data;
  if (!data.given) return;
  const Node& node = now.scenario.cluster->node();
  const int workers = std::max(1, data.loader.workers), cores = node.cpu_cores / node.devices;
  for (const int more : {data.loader.workers == 0 ? 1 : 2 * workers, cores})
    if (more > data.loader.workers && more <= cores)
      found.push_back({fmt::format("{} workers load at the same time", more),
                       {fmt::format("data.loader.workers={}", more)},
                       now.data_stall_s()});
  constexpr double kGiB = 1073741824, kFreeMemory = 0.8;
  const double all = data.samples * data.sample_bytes;
  if (data.storage.kind != Storage::Kind::none && all > data.cache_bytes &&
      all <= kFreeMemory * node.cpu_memory_bytes)
    found.push_back({"all samples fit into the memory of a node",
                     {fmt::format("data.cache.gib={:.0f}", std::ceil(all / kGiB))},
                     now.data_stall_s()});
}

}  // namespace rehearse
