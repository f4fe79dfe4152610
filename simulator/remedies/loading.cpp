#include <fmt/format.h>

#include <algorithm>

#include "simulator/input/loading.hpp"
#include "simulator/remedies/remedy_kinds.hpp"

namespace rehearse {

void load_faster(const Situation& now, Remedies& found) {
  const Data& data = now.scenario.data;
  if (!data.given) return;
  const Node& node = now.scenario.cluster->node();
  const int workers = std::max(1, data.loader.workers), cores = cores_of_device(node);
  for (const int more : {data.loader.workers == 0 ? 1 : 2 * workers, cores})
    if (more > data.loader.workers && more <= cores)
      found.push_back({fmt::format("{} workers load at the same time", more),
                       {fmt::format("data.loader.workers={}", more)},
                       now.data_stall_s()});
  if (const double gib = cache_of_all_gib(data, node); gib > 0)
    found.push_back({"all samples fit into the memory of a node",
                     {fmt::format("data.cache.gib={:.0f}", gib)},
                     now.data_stall_s()});
}

}  // namespace rehearse
