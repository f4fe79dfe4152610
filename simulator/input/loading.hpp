// Computes what loading one batch for one device takes: bytes and seconds.
#pragma once

#include "simulator/input/data.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// What it takes to load a micro-batch for one device.
struct BatchLoading {
  double samples = 0;
  double hit_rate = 0;    // share of the samples that come from the node's cache
  double read_bytes = 0;  // from the storage
  // Without other readers, of a worker (or of all, if they divide the samples of a batch), which reads and
  // prepares one sample after another.
  double read_s = 0, prepare_s = 0;
  double device_bytes = 0;
  int streams = 1;    // workers that load a batch each
  int in_flight = 1;  // batches that are loaded or ready at most
  bool reads() const { return read_bytes > 0; }
  double batch_s() const { return read_s + prepare_s; }
  // Returns the highest rate at which a worker reads, because it also has to prepare what it reads. Workers
  // do not run in step with one another, so a batch takes the longer of batch_s() and the time that its share
  // of the storage's bandwidth gives. Mohan et al. (VLDB 2021, arXiv 2007.06775) measured the same: the
  // slowest of storage, processors and devices sets the speed.
  double most_bytes_per_s() const { return batch_s() > 0 ? read_bytes / batch_s() : 0; }
  double samples_per_s() const;  // that a device's workers load without other readers; infinity: at once
};

// `devices`: that train, from the first one of the cluster on.
BatchLoading batch_loading(const Data& data, const Cluster& cluster, double samples, int devices);

// Returns the cores of a node for each of its devices, the most workers that do not slow one another down.
int cores_of_device(const Node& node);

// Returns the size in GiB of the cache with which a node never reads twice from the storage; 0 if it has such
// a cache, if nothing is read, or if host memory has no room for it beside the processes.
double cache_of_all_gib(const Data& data, const Node& node);

// Returns how many optimizer steps of `microbatches` a schedule must have, so that it is the same when it
// repeats: each worker loads as many batches, and what is loaded ahead belongs to this repetition or the next
// one.
int steps_per_schedule(const BatchLoading& loading, const DataLoader& loader, int microbatches);

}  // namespace rehearse
