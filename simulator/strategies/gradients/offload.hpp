// What shards keep off their devices, in host memory or on NVMe, and the ops that bring it there and back
// (Ren et al., "ZeRO-Offload", USENIX ATC 2021; Rajbhandari et al., "ZeRO-Infinity", SC 2021).
#pragma once

#include <string>

#include "models/text/document.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Parses offload and offload_parameters; `stage`: of ZeRO, 0 if nothing is shared out. Refuses what does not
// go with the stage and the way gradients are brought together.
OffloadChoice read_offload(Section& strategy, const StrategyChoice& choice, int stage);
// Refuses to keep anything off the devices of a cluster that does not say how fast its host is.
void fit_offload(Section& strategy, const Scenario& scenario);

// For headlines: ", optimizer state in host memory, weights on NVMe"; empty if all lies on the devices.
std::string offload_text(const OffloadChoice& offload);

TensorMemory memory_of(OffloadTo to);

// Names of the streams on which a device's host works for it.
inline constexpr const char *kToHostStream = "device to host", *kToDeviceStream = "host to device",
                            *kHostStream = "host processors", *kNvmeReadStream = "NVMe read",
                            *kNvmeWriteStream = "NVMe write";

// An op of the host that moves `bytes` which belong to layers of `bucket`.
Op host_op(Program& program, std::string name, const std::string& stream, HostAction action,
           const Bucket& bucket, double bytes);
// A buffer in host memory: the tensor's number.
int add_host_buffer(Program& program, std::string name, double bytes);

// Writes the optimizer step of a stage whose optimizer state lies off its devices: bucket by bucket in the
// order of the next forward pass, each read from NVMe where it lies there, updated on the host's processors
// and written back, and its weights copied to the device unless they are kept off it, too. At most three
// buckets' states are in host memory at a time: one that is read, one that is updated, one that is written.
// The step begins when all `gradients` (tensors in host memory, by bucket) are there, which is when op
// `complete` ends, as gradients are clipped by the norm of all of them.
struct HostUpdate {
  // By bucket: the op that leaves its updated weights where the passes look for them; -1: nothing to train.
  std::vector<int> updated;
  std::vector<int> last;  // ops that all have ended once the step has
};
HostUpdate write_host_update(const StepPlan& plan, StageProgram& stage, const std::vector<int>& gradients,
                             int complete);

}  // namespace rehearse
