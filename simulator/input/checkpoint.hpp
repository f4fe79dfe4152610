// Defines how a training run writes checkpoints: how often, what, by whom, and to where.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/storage.hpp"

namespace rehearse {

// blocking: training continues once the checkpoint has been written. asynchronous: once it has been copied to
// host memory, from where it is written beside the next steps.
enum class CheckpointMode { blocking, asynchronous };
inline constexpr std::array<std::string_view, 2> kCheckpointModeNames = {"blocking", "async"};

// Who writes what several data-parallel ranks hold. all: they divide it evenly. holders: the first of those
// that hold it. first: the first data-parallel rank, which also gathers what the others hold shards of.
enum class CheckpointWriters { all, holders, first };
inline constexpr std::array<std::string_view, 3> kCheckpointWritersNames = {"all", "holders", "first"};

// Where a checkpoint is written to, one tier after the other. peer: the host memory of the next node. local:
// the node's drives. storage: Checkpoint::storage.
enum class CheckpointTier { peer, local, storage };
inline constexpr std::array<std::string_view, 3> kCheckpointTierNames = {"peer", "local", "storage"};

struct Checkpoint {
  bool given = false;  // otherwise no checkpoints are written
  std::string title;   // of what writes them
  int every = 1;       // optimizer steps
  CheckpointMode mode = CheckpointMode::blocking;
  CheckpointWriters writers = CheckpointWriters::all;
  std::vector<CheckpointTier> tiers;
  double bytes_per_parameter = 0;  // 0: the weights and the optimizer's state as the ranks hold them
  double writer_bytes_per_s = 0;   // of one rank, which serialises what it writes; 0: unlimited
  double copy_bytes_per_s = 0;     // from a device to host memory; 0: as the node's links allow
  double latency_s = 0;            // of a write
  std::string storage_title;
  int storage = -1, drives = -1;  // the cluster's storages that these tiers write to; -1: none
};

// A schedule that begins with a checkpoint of the state before it.
struct CheckpointCycle {
  int rounds = 1;  // of the step (or of what the schedule has instead), which follow the checkpoint
  bool writes = true;  // otherwise only the rounds, without a checkpoint
  // The next checkpoint is that of the next repetition, and waits until this one has been written. Otherwise
  // it is far away, and the rounds must be long enough for this one.
  bool repeats = false;
  double written_share = 1;  // of the bytes that are written asynchronously
};

// What a checkpoint consists of.
struct CheckpointBytes {
  double total = 0;  // written, by all ranks together
  double most = 0;   // by one rank
  double most_of_node = 0;
  double copy_s = 0;  // from the device of the rank that writes most to host memory
  // Without training beside it: the time in which the slowest writer, the links of the node that writes most,
  // and the storage can write it, tier after tier.
  double least_write_s = 0;
};

}  // namespace rehearse
