#include "backend/host/host_executor.hpp"

#include "backend/host/host_arithmetic.hpp"
#include "backend/host/host_hardware.hpp"

namespace rehearse {

Executor host_executor(RealRun::Collectives collectives) {
  Executor executor;
  executor.name = "host";
  if (collectives == RealRun::Collectives::library)
    executor.notes.emplace_back("all-reduces are the library's own, with the algorithm that it chose");
  executor.arithmetic = [](int streams) { return std::make_unique<HostArithmetic>(streams); };
  executor.hardware = [collectives](const Schedule& schedule, const Wiring& wiring, int rank,
                                    Transport& transport, Workload& workload, Arithmetic&) {
    return host_hardware(schedule, wiring, rank, transport, workload, collectives);
  };
  return executor;
}

}  // namespace rehearse
