// Provides helpers that workloads with real training share.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "backend/loading/batch_input.hpp"
#include "backend/runtime/workload.hpp"
#include "backend/training/trained_network.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

struct TrainingOptions {
  // Hashes the optimizer's input in every step (or, if the gradients of ranks are meant to differ, the
  // weights at the start of a round) and the final weights, which takes time.
  bool check_replicas = false;
  long first = 0;             // runs of the schedule that were done before, by an earlier process
  long repeats = 1;           // of the schedule; determines how many steps' data are needed
  bool on_processors = true;  // arrays are in process memory, and issued work is already done
  std::shared_ptr<const SampleSource> samples;  // that it trains on; null: those that the scenario names
  BatchInput* input = nullptr;                  // that loads its batches; null: no ops load them
};

// Returns how many steps' data are stored on the device, given the bytes per step: those of all steps or, if
// they take more than kMostData bytes (on processors, whose ranks share a machine's memory,
// kMostDataOnProcessors), of as many as fit, and at least 2. They are generated together, before the first of
// these steps, so that the step times in between are those of the training alone.
inline constexpr double kMostData = 256e6, kMostDataOnProcessors = 64e6;
long kept_steps(const TrainingOptions& options, long steps, double bytes_of_step);

OptimizerSettings optimizer_of(const Scenario& scenario);
// Return the FNV-1a hash (Fowler, Noll, Vo) of bytes, and of the bits of the array's numbers in fp32, eight
// bytes at a time, continuing from `hash`. Bytes may be hashed in pieces of multiples of eight.
inline constexpr std::uint64_t kHashBegin = 14695981039346656037ULL;
std::uint64_t hash_of_bytes(const void* data, std::size_t bytes, std::uint64_t hash);
std::uint64_t hash_of(Arithmetic& arithmetic, int stream, const Array& array, std::uint64_t hash);

Payload payload(const Array& array);
// Returns the tensor that a message carries: sends carry the tensors that the op reads, receives those that
// it writes, in order; one tensor can be split over several ranks. -1: none.
int tensor_of(const Op& op, int message);
bool is_update(const Op& op);
// Return what a schedule does: compress gradients, average the weights of ranks that took separate optimizer
// steps, compute the loss of all ranks' outputs on one rank, shard gradients or weights.
bool compresses(const Schedule& schedule);
bool averages(const Schedule& schedule);
bool gathers_outputs(const Schedule& schedule);
bool has_shards(const Schedule& schedule);
bool computes(const Program& program, Action::Kind action);
// Return whether an op scatters gradients or gathers weights, and whether it is a forward or backward pass.
bool is_of_shards(const Op& op);
bool is_pass(const Op& op);
// Returns tensors of gradients that ops swap with those that the passes of the program write.
std::set<int> gradients_apart(const Program& program);
// Returns the peer of the first exchange that sends or receives this tensor of a program, or a default Peer
// if there is none.
Peer far_side(const Program& program, int tensor);
// Adds all slots except the first to `sum`, which is as large as a slot.
void add_further_slots(Arithmetic& arithmetic, int stream, const Array& slots, const Array& sum);

}  // namespace rehearse
