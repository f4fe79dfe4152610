#include "simulator/trace/gpu_record.hpp"

#include <algorithm>
#include <map>

namespace rehearse {

double fullest_worker_bytes(const std::vector<GpuRecord>& ranks, const std::vector<int>& endpoints,
                            int workers) {
  if (ranks.size() != endpoints.size()) return 0;
  std::map<int, double> of_servers;  // by endpoint
  for (std::size_t r = static_cast<std::size_t>(workers); r < ranks.size(); ++r) {
    double& bytes = of_servers[endpoints[r]];
    bytes = std::max(bytes, ranks[r].allocated_bytes);
  }
  double fullest = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(workers) && r < ranks.size(); ++r) {
    if (ranks[r].predicted_bytes <= 0) continue;
    const auto beside = of_servers.find(endpoints[r]);
    fullest =
        std::max(fullest, ranks[r].allocated_bytes + (beside == of_servers.end() ? 0.0 : beside->second));
  }
  return fullest;
}

}  // namespace rehearse
