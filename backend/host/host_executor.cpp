#include "backend/host/host_executor.hpp"

#include "backend/host/host_arithmetic.hpp"
#include "backend/host/host_hardware.hpp"

namespace rehearse {

Executor host_executor() {
  Executor executor;
  executor.name = "host";
  executor.arithmetic = [](int streams) { return std::make_unique<HostArithmetic>(streams); };
  executor.hardware = [](const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
                         Workload& workload,
                         Arithmetic&) { return host_hardware(schedule, wiring, rank, transport, workload); };
  return executor;
}

}  // namespace rehearse
