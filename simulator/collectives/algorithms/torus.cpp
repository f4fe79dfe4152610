// Torus: two lanes for each dimension, one per direction, each with an equal share of the buffer. A lane
// reduce-scatters along one dimension after the other, then all-gathers in reverse order; no two lanes start
// with the same dimension and direction. Several members of one node first reduce-scatter the lane's part
// among themselves.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "simulator/collectives/algorithms/algorithm.hpp"

namespace rehearse {
namespace {

struct Box {
  std::string misfit;
  std::vector<int> sizes;  // sizes of the dimensions that the group fills; dimension 0 is the node if it has
                           // several members
  bool several_a_node = false;  // sizes[0] is the number of members of a node
  std::vector<int> member_at;   // by place; the coordinate in the first dimension is the lowest digit
};

std::string dims_text(const std::vector<int>& dims) {
  std::string text;
  for (const int size : dims) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

Box box_of(const AlgorithmGroup& group) {
  const Cluster& cluster = group.cluster;
  const std::vector<Endpoint>& members = group.members;
  Box box;
  const Fabric& fabric = cluster.fabric();
  if (fabric.kind != Fabric::Kind::torus && fabric.kind != Fabric::Kind::ring) {
    box.misfit = "a fabric that is not a torus; allowed: fabrics of kind \"torus\" or \"ring\"";
    return box;
  }
  const std::vector<std::vector<int>> nodes = members_by_node(cluster, members);
  std::vector<std::set<int>> used(fabric.dims.size());
  const auto coordinates = [&](int node) {
    std::vector<int> at;
    for (const int size : fabric.dims) {
      at.push_back(node % size);
      node /= size;
    }
    return at;
  };
  bool equal = true;
  for (const std::vector<int>& node : nodes) {
    equal = equal && node.size() == nodes.front().size();
    const std::vector<int> at = coordinates(cluster.node_of(members[node.front()]));
    for (std::size_t d = 0; d < at.size(); ++d) used[d].insert(at[d]);
  }
  bool whole = true;
  std::size_t places = 1;
  const std::size_t local = nodes.front().size();
  box.several_a_node = local > 1;
  if (local > 1) box.sizes.push_back(static_cast<int>(local));
  std::vector<std::size_t> dimensions;
  for (std::size_t d = 0; d < used.size(); ++d) {
    whole = whole && (used[d].size() == 1 || static_cast<int>(used[d].size()) == fabric.dims[d]);
    places *= used[d].size();
    if (used[d].size() < 2) continue;
    dimensions.push_back(d);
    box.sizes.push_back(fabric.dims[d]);
  }
  if (!equal || !whole || places != nodes.size()) {
    box.misfit = fmt::format(
        "{} members that do not fill complete dimensions of the torus of {}; allowed: groups of all nodes "
        "along some of its dimensions, with the same number of members on each",
        members.size(), dims_text(fabric.dims));
    return box;
  }
  box.member_at.assign(members.size(), 0);
  for (const std::vector<int>& node : nodes) {
    const std::vector<int> at = coordinates(cluster.node_of(members[node.front()]));
    std::size_t place = 0, stride = local;
    for (const std::size_t d : dimensions) {
      place += stride * static_cast<std::size_t>(at[d]);
      stride *= static_cast<std::size_t>(fabric.dims[d]);
    }
    for (std::size_t i = 0; i < node.size(); ++i) box.member_at[place + i] = node[i];
  }
  return box;
}

// Returns all lines of the box along a dimension; each is a ring.
std::vector<std::vector<int>> lines(const Box& box, std::size_t dimension, bool upwards) {
  std::size_t stride = 1;
  for (std::size_t d = 0; d < dimension; ++d) stride *= static_cast<std::size_t>(box.sizes[d]);
  const std::size_t size = static_cast<std::size_t>(box.sizes[dimension]);
  std::vector<std::vector<int>> all;
  for (std::size_t place = 0; place < box.member_at.size(); ++place) {
    if (place / stride % size != 0) continue;
    std::vector<int>& line = all.emplace_back();
    for (std::size_t i = 0; i < size; ++i) line.push_back(box.member_at[place + i * stride]);
    if (!upwards) std::reverse(line.begin(), line.end());
  }
  return all;
}

// The fabric must be a torus or a ring, and the group must fill entire dimensions of it with the same number
// of members on every node.
std::string torus_misfit(const AlgorithmGroup& group, const std::vector<std::vector<int>>&) {
  return box_of(group).misfit;
}

std::vector<Lane> torus_lanes(const AlgorithmGroup& group) {
  const Box box = box_of(group);
  const std::size_t local = box.several_a_node ? 1 : 0, dimensions = box.sizes.size() - local;
  const std::size_t parts = std::max<std::size_t>(1, 2 * dimensions);
  std::vector<Lane> lanes;
  for (std::size_t part = 0; part < parts; ++part) {
    Lane& lane = lanes.emplace_back();
    lane.share = 1.0 / static_cast<double>(parts);
    std::vector<std::size_t> order;
    if (box.several_a_node) order.push_back(0);
    for (std::size_t i = 0; i < dimensions; ++i) order.push_back(local + (part + i) % dimensions);
    for (const std::size_t d : order) {
      Stage& stage = lane.stages.emplace_back();
      stage.kind = Stage::Kind::reduce_scatter;
      stage.groups = lines(box, d, 2 * part < parts || dimensions == 0);
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      Stage stage = lane.stages[i];
      stage.kind = Stage::Kind::all_gather;
      lane.stages.push_back(std::move(stage));
    }
  }
  return lanes;
}

}  // namespace

extern const AlgorithmEntry kTorusAlgorithm{
    .lanes = torus_lanes,
    .misfit = torus_misfit,
    .cost = message_stage_cost,
};

}  // namespace rehearse
