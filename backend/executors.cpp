#include "backend/executors.hpp"

#include <istream>
#include <iterator>

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

Scenario read_run_scenario(const std::string& path, const std::vector<std::string>& overrides,
                           std::istream& in) {
  if (path != "-") return read_scenario_file(path, overrides);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return read_scenario_text(text, "<stdin>", overrides);
}

}  // namespace rehearse
