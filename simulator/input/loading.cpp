#include "simulator/input/loading.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse {
namespace {

double cached_share(const Data& data, int nodes) {
  if (data.samples <= 0 || data.cache_bytes <= 0) return 0;
  return hit_rate(data.cache, data.cache_bytes / (data.samples * data.sample_bytes), data.shuffle, nodes);
}

// Returns the bytes/s that a single reader gets of a storage that serves nobody else.
double alone_bytes_per_s(const Data& data, const Cluster& cluster) {
  const Storage& storage = cluster.storage();
  double least = storage.read_bandwidth / std::max(1, storage.servers);
  for (const double limit : {storage.client_bandwidth, data.access.reader_bytes_per_s,
                             storage.servers > 0 ? cluster.node().nic_bandwidth : 0.0})
    if (limit > 0) least = std::min(least, limit);
  return least;
}

// Returns by how much preparation is slowed down where the workers of a node's devices outnumber its cores.
double core_contention(const DataLoader& loader, const Node& node) {
  return std::max(1.0, static_cast<double>(loader.workers) * node.devices / std::max(1, node.cpu_cores));
}

}  // namespace

int cores_of_device(const Node& node) {
  return node.cpu_cores / node.devices;
}

double cache_of_all_gib(const Data& data, const Node& node) {
  constexpr double kFreeMemory = 0.8, kGiB = 1073741824;  // of a host, beside the processes
  const double all = data.samples * data.sample_bytes;
  const bool helps = data.storage.kind != Storage::Kind::none && all > data.cache_bytes;
  return helps && all <= kFreeMemory * node.cpu_memory_bytes ? std::ceil(all / kGiB) : 0;
}

BatchLoading batch_loading(const Data& data, const Cluster& cluster, double samples, int devices) {
  const Node& node = cluster.node();
  const DataLoader& loader = data.loader;
  const bool together = loader.kind == LoaderKind::samples;
  const double workers = std::max(1, loader.workers);
  const double at_once = together ? workers : 1;  // samples that are read or prepared at the same time
  BatchLoading loading;
  loading.samples = samples;
  if (data.storage.kind != Storage::Kind::none) {
    loading.hit_rate = cached_share(data, (devices + node.devices - 1) / node.devices);
    const double read = samples * (1 - loading.hit_rate);
    loading.read_bytes = read * data.sample_bytes;
    const double operations = data.record_bytes > 0 ? loading.read_bytes / data.record_bytes : read;
    loading.read_s =
        (operations * data.access.latency_s + loading.read_bytes / alone_bytes_per_s(data, cluster)) /
        at_once;
  }
  loading.prepare_s = samples * data.core_s.value * core_contention(loader, node) / at_once;
  loading.device_bytes = samples * data.device_bytes;
  loading.streams = together ? 1 : static_cast<int>(workers);
  loading.in_flight = loader.workers == 0 ? 1 : loading.streams * loader.prefetch;
  return loading;
}

double BatchLoading::samples_per_s() const {
  return batch_s() > 0 ? streams * samples / batch_s() : INFINITY;
}

int steps_per_schedule(const BatchLoading& loading, const DataLoader& loader, int microbatches) {
  const int turns = std::lcm(loading.streams, loader.device_batches);
  const int least = std::max(loading.in_flight, loader.device_batches);
  int steps = turns / std::gcd(turns, microbatches);
  const int batches = steps * microbatches;
  return steps * ((least + batches - 1) / batches);
}

}  // namespace rehearse
