// From what every rank did to the trace of the run.
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/rank_executor.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

// What a rank tells rank 0 when it is done. Times are on rank 0's clock.
struct RankReport {
  std::vector<RankSpan> spans;
  std::vector<KernelSpan> kernels;
  Workload::Learned learned;
  std::string host;          // its machine, as machine_name() tells it
  double clock_error_s = 0;  // how far its clock may be off
  GpuRecord gpu;             // without a UUID: it had none
};

// As text for a transport; RunError if the text is not whole.
std::string pack(const RankReport& report);
RankReport unpack(const std::string& text);

// One class for each rank, in order of ranks over all roles; time 0 is when the first op was ready. A
// transfer begins when the last of its sides is ready. What the links carried follows from the messages.
Trace record(const std::string& name, const std::shared_ptr<const Schedule>& schedule,
             const std::vector<int>& endpoints, int repeats, const Cluster& cluster, const Wiring& wiring,
             const std::vector<RankReport>& reports);

}  // namespace rehearse
