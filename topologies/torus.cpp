#include <algorithm>
#include <string>

#include "topologies/cabling.hpp"

namespace rehearse {
namespace {

// Nodes connected to their neighbors in every dimension, with wraparound; a ring has one dimension. The
// coordinate in the first dimension is a node's lowest digit. Routes take the dimensions in order, in the
// shorter direction of each; if both are equal, they go upwards. Places after the last node have only a
// router, "idle63".
class Torus final : public Cabling {
public:
  Torus(const Fabric& fabric, int nodes, int server_nodes)
      : nodes_(nodes), total_(nodes + server_nodes), bandwidth_(fabric.link_bandwidth) {
    for (const int size : fabric.dims) places_ *= size;
    int stride = 1;
    for (const int size : fabric.dims) {
      // In a dimension of size 2, neighbors are connected once, without wraparound.
      const int a_line = size > 2 ? size : size - 1;
      axes_.push_back({size, stride, a_line, cables_});
      cables_ += places_ / size * a_line;
      stride *= size;
    }
  }

  std::int64_t cables() const override { return cables_; }
  double bandwidth(int) const override { return bandwidth_; }

  Ends ends(int cable) const override {
    std::size_t d = axes_.size() - 1;
    while (axes_[d].first > cable || axes_[d].a_line == 0) --d;
    const Axis& axis = axes_[d];
    const int line = (cable - axis.first) / axis.a_line, at = (cable - axis.first) % axis.a_line;
    const int low = line % axis.stride, high = line / axis.stride * axis.stride * axis.size;
    return {place_name(high + at * axis.stride + low),
            place_name(high + (at + 1) % axis.size * axis.stride + low)};
  }

  int find(std::string_view a, std::string_view b) const override {
    const int from = node_named(a), to = node_named(b);
    if (from < 0 || to < 0) return -1;
    for (const Axis& axis : axes_) {
      if (axis.size == 1) continue;
      if (next(from, axis, 1) == to) return step(from, axis, 1);
      if (next(from, axis, -1) == to) return step(from, axis, -1);
    }
    return -1;
  }

  void route(const NodePair& flow, LinkId first, std::vector<LinkId>& links) const override {
    int at = flow.from_node;
    for (const Axis& axis : axes_) {
      const int ahead = (coordinate(flow.to_node, axis) - coordinate(at, axis) + axis.size) % axis.size;
      const int way = 2 * ahead <= axis.size ? 1 : -1;
      for (int left = std::min(ahead, axis.size - ahead); left > 0; --left) {
        links.push_back(first + step(at, axis, way));
        at = next(at, axis, way);
      }
    }
  }

private:
  struct Axis {
    int size = 1, stride = 1;
    int a_line = 0;  // cables of one line of nodes
    int first = 0;   // number of cables of the dimensions before
  };

  static int coordinate(int node, const Axis& axis) { return node / axis.stride % axis.size; }
  static int next(int node, const Axis& axis, int way) {
    const int at = coordinate(node, axis);
    return node + ((at + way + axis.size) % axis.size - at) * axis.stride;
  }
  // Returns the direction from a node to its neighbor; the cable has the number of the lower one of the two
  // in upward direction.
  static int step(int node, const Axis& axis, int way) {
    const int at = coordinate(node, axis);
    const int line = node / (axis.stride * axis.size) * axis.stride + node % axis.stride;
    const int upward = way > 0 ? at : (at - 1 + axis.size) % axis.size;
    // In a line of two nodes each is the other's neighbor in both directions, over the same cable.
    const bool back = axis.size == 2 ? at == 1 : way < 0;
    return 2 * (axis.first + line * axis.a_line + (axis.size == 2 ? 0 : upward)) + back;
  }

  std::string place_name(int place) const {
    return place < total_ ? node_name_of(place, nodes_) : "idle" + std::to_string(place);
  }

  int node_named(std::string_view text) const {
    int number = 0;
    if (is_number(text, "idle", number)) return number >= total_ && number < places_ ? number : -1;
    if (is_number(text, "node", number)) return number < nodes_ ? number : -1;
    return is_number(text, "server", number) && number < total_ - nodes_ ? nodes_ + number : -1;
  }

  int nodes_, total_, places_ = 1;
  double bandwidth_;
  std::vector<Axis> axes_;
  int cables_ = 0;
};

}  // namespace

std::unique_ptr<Cabling> make_torus(const Fabric& fabric, int nodes, int server_nodes) {
  return std::make_unique<Torus>(fabric, nodes, server_nodes);
}

}  // namespace rehearse
