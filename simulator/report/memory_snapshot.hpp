// Writes the allocations of a step as a snapshot that PyTorch's viewer opens (pytorch.org/memory_viz).
#pragma once

#include <string>

#include "simulator/report/report.hpp"

namespace rehearse {

// Returns the snapshot of the fullest worker in the last step, as torch.cuda.memory._dump_snapshot() pickles
// one: what is always allocated are the blocks, and the step's allocations and frees are the trace of device
// 0. Frames name the tensor and the op. Without known memory there are no blocks.
std::string memory_snapshot(const Trace& trace, int job);
// Writes it to a file. Throws RunError if it cannot be written.
void write_memory_snapshot(const Result& result, const std::string& path);

}  // namespace rehearse
