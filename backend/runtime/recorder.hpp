// Builds the trace of a run from what every rank did.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/rank_executor.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

// The report that a rank sends to rank 0 when it is done. Times are on rank 0's clock.
struct RankReport {
  std::vector<RankSpan> spans;
  std::vector<KernelSpan> kernels;
  Workload::Learned learned;
  std::string host;          // its machine, as machine_name() returns it
  double clock_error_s = 0;  // the largest error of its clock
  GpuRecord gpu;             // no UUID: it had no GPU
};

// Serializes a report for a transport. unpack() throws RunError if the text is incomplete or malformed.
std::string pack(const RankReport& report);
RankReport unpack(const std::string& text);

// Builds the trace, with one class per rank in order of ranks over all roles. Time 0 is when the first op was
// ready. A transfer begins when the last of its sides is ready. The bytes on the links are derived from the
// messages.
Trace record(const std::string& name, const std::shared_ptr<const Schedule>& schedule,
             const std::vector<int>& endpoints, int repeats, const Cluster& cluster, const Wiring& wiring,
             const std::vector<RankReport>& reports);

}  // namespace rehearse
