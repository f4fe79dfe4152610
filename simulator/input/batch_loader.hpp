// Writes the ops that load the batches of a pipeline stage: by workers, which read and prepare them, and by
// copies to the device.
#pragma once

#include <vector>

#include "simulator/input/loading.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// The roles of the cluster's storages are added when all others are known; until then, messages name this
// one.
constexpr int storage_role(int which) {
  return -1 - which;
}

struct BatchLoader {
  BatchLoading loading;
  DataLoader loader;
  Quantity storage_of;      // the rank of the storage from which each worker reads
  Quantity read;            // the bytes that each worker reads of a batch
  bool on_network = false;  // the storage is reached over the cluster's network
  bool copies = false;      // prepared batches are copied to a device with a memory of its own
};

struct LoadedBatch {
  int op = -1;      // that brings the batch to the device
  int tensor = -1;  // that the batch is
};
// Appends the ops of one batch. The one that trains on it must depend on the result.
LoadedBatch load_batch(Program& program, const BatchLoader& loader, int microbatch);

// The ops of a batch, and the last one of the program's first stream before it; -1: none.
struct BatchOps {
  int load = -1, copy = -1, read = -1, before = -1;
};
// Returns those of all batches, in the order in which the program trains on them.
std::vector<BatchOps> batches_of(const Program& program);

// Divides the batches of a complete program among the loader's workers, and makes their ops wait for one
// another: a worker loads one batch after the other, as far ahead as the loader allows, and a batch is copied
// once the device has room for it. The program must have as many batches as a schedule that repeats
// (steps_per_schedule()).
void connect_batches(Program& program, const BatchLoader& loader);

// Appends copies of all ops, so that the program does `times` times in a row what it did once.
void repeat_ops(Program& program, int times);

}  // namespace rehearse
