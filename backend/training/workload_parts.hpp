// What workloads that train have in common.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/runtime/workload.hpp"
#include "backend/training/trained_network.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct TrainingOptions {
  // Hashes what the optimizer gets in every step (where ranks' gradients are meant to differ, the weights
  // that a round begins with), and the weights in the end, which takes time.
  bool check_replicas = false;
  long repeats = 1;           // of the schedule: how many steps' data are needed
  bool on_processors = true;  // arrays lie in the process's memory, and what is issued has been done
};

// How many steps' data are kept on the device, of so many bytes each. On GPUs those of all steps are made
// before the first one, unless they take more than kMostData bytes; else 2, and each step's are made before
// its first op.
inline constexpr double kMostData = 256e6;
long kept_steps(const TrainingOptions& options, long steps, double bytes_of_step);

OptimizerSettings optimizer_of(const Scenario& scenario);
// FNV-1a (Fowler, Noll, Vo) of the numbers' bits, eight bytes at a time, going on from `hash`.
inline constexpr std::uint64_t kHashBegin = 14695981039346656037ULL;
std::uint64_t hash_of(Arithmetic& arithmetic, int stream, const Array& numbers, std::uint64_t hash);

Payload payload(const Array& array);
// The tensor that a message carries: sends carry what the op reads, receives what it writes, in order; one
// tensor may be cut over several ranks. -1: none.
int tensor_of(const Op& op, int message);
bool is_update(const Op& op);
// The other side of the first exchange that sends or receives this tensor of a program; a Peer without
// conditions if there is none.
Peer far_side(const Program& program, int tensor);
// Adds all slots but the first to `sum`, which is as large as a slot.
void add_further_slots(Arithmetic& arithmetic, int stream, const Array& slots, const Array& sum);

}  // namespace rehearse
