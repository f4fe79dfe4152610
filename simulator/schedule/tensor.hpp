// Defines the tensors that a program's ops read and write.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "models/precision.hpp"
#include "simulator/schedule/mesh.hpp"

namespace rehearse {

// The tensors of a program. Memory use and the check for races are based on them.
enum class TensorKind { weight, gradient, activation, activation_gradient, optimizer_state, batch, buffer };
inline constexpr std::array<std::string_view, 7> kTensorKindNames = {
    "weight", "gradient", "activation", "activation_gradient", "optimizer_state", "batch", "buffer"};
// Where a tensor is stored: in the memory of its rank's device, in that of the node's processors, or on
// drives.
enum class TensorMemory { device, host, nvme };
struct Tensor {
  TensorKind kind = TensorKind::activation;
  std::string name;
  int first_layer = 0, last_layer = -1;  // inclusive
  int microbatch = -1;                   // -1: does not belong to one micro-batch
  int shards = 1;                        // each rank of the program's role holds 1/shards of it; 1: all of it
  int slot_count = 1;                    // equal parts, which messages fill and carry one by one
  int boundary = -1;  // the output of this layer, or its gradient, that stages exchange; -1: none
  Precision type = Precision::fp32;
  Quantity bytes;
  bool shared = false;  // unordered use is intended, as for the weights of asynchronous servers: not a race
  TensorMemory memory = TensorMemory::device;
  bool kept = false;  // persistent, whatever its kind
  // Persistent tensors (weights, optimizer state, gradient buffers) exist all the time; others from their
  // first write to their last use in a step.
  bool persistent() const {
    return kept || kind == TensorKind::weight || kind == TensorKind::optimizer_state || kind == TensorKind::gradient;
  }
};

}  // namespace rehearse
