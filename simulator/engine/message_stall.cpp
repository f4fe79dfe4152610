#include "simulator/engine/message_stall.hpp"

namespace rehearse {

double stall_factor(double share, const Role& role, const std::vector<Endpoint>& endpoints,
                    const Cluster& cluster) {
  if (share <= 0 || role.meshes.empty()) return 1;
  const Mesh& mesh = role.meshes.front();
  const int pipeline = mesh.axis("pipeline"), tensor = mesh.axis("tensor");
  if (pipeline < 0) return 1;
  const auto node_of_stage = [&](int stage) {
    return cluster.node_of(endpoints[static_cast<std::size_t>(mesh.moved(0, pipeline, stage))]);
  };
  for (int stage = 1; stage < mesh.axes()[static_cast<std::size_t>(pipeline)].size; ++stage)
    if (node_of_stage(stage) != node_of_stage(stage - 1))
      return 1 + share * (tensor < 0 ? 1 : mesh.axes()[static_cast<std::size_t>(tensor)].size);
  return 1;
}

}  // namespace rehearse
