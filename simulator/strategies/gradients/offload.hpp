// Moves sharded state off the devices, to host memory or NVMe, and writes the ops that transfer it there and
// back (Ren et al., "ZeRO-Offload", USENIX ATC 2021; Rajbhandari et al., "ZeRO-Infinity", SC 2021).
#pragma once

#include <string>

#include "models/text/document.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Parses offload and offload_parameters; `stage`: the ZeRO stage, 0 if nothing is sharded. Refuses settings
// that are incompatible with the stage or with the gradient strategy.
OffloadChoice read_offload(Section& strategy, const StrategyChoice& choice, int stage);
// Refuses to offload on a cluster that does not state how fast its host is.
void fit_offload(Section& strategy, const Scenario& scenario);

// For headlines: ", optimizer state in host memory, weights on NVMe"; empty if everything is on the devices.
std::string offload_text(const OffloadChoice& offload);

TensorMemory memory_of(OffloadTo to);

// Names of the streams on which the host works for a device.
inline constexpr const char *kToHostStream = "device to host", *kToDeviceStream = "host to device",
                            *kHostStream = "host processors", *kNvmeReadStream = "NVMe read",
                            *kNvmeWriteStream = "NVMe write";

// Returns a host op that moves `bytes` belonging to the layers of `bucket`.
Op host_op(Program& program, std::string name, const std::string& stream, HostAction action,
           const Bucket& bucket, double bytes);
// Adds a buffer in host memory and returns the tensor's index.
int add_host_buffer(Program& program, std::string name, double bytes);

// Result of write_host_update(), which writes the optimizer step of a stage whose optimizer state is off its
// devices: bucket by bucket in the order of the next forward pass, each state is read from NVMe if it is
// there, updated on the host's processors and written back, and the bucket's weights are copied to the device
// unless they are offloaded, too. At most three buckets' states are in host memory at a time: one being read,
// one being updated, one being written. The step begins when all `gradients` (tensors in host memory, by
// bucket) are there, which is when op `complete` ends, because gradients are clipped by the norm of all of
// them.
struct HostUpdate {
  // By bucket: the op that puts its updated weights where the passes read them; -1: the bucket has no
  // parameters.
  std::vector<int> updated;
  std::vector<int> last;  // the step has ended when all of these ops have
};
HostUpdate write_host_update(const StepPlan& plan, StageProgram& stage, const std::vector<int>& gradients,
                             int complete);

}  // namespace rehearse
