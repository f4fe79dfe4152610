#include <fmt/format.h>

#include "gui/models/topology/topology_graph.hpp"
#include "topologies/cabling.hpp"

namespace rehearse::gui {

namespace {

class Builder {
public:
  Builder(const Cluster& cluster, int node)
      : cluster_(cluster), name_(node_name_of(node, cluster.nodes())), server_(node >= cluster.nodes()) {}

  NodeInside build() {
    const Node& node = cluster_.node();
    if (!server_) add_devices();
    if (server_ || node.pcie_bandwidth > 0) add_processor();
    if (node.nic_bandwidth > 0) add_nics();
    return std::move(inside_);
  }

private:
  int part(NodeInside::Part::Kind kind, std::string name, int layer) {
    inside_.parts.push_back({kind, std::move(name), layer});
    return static_cast<int>(inside_.parts.size()) - 1;
  }
  // Draws a wire between two parts and attaches the links of this name, the one from a to b first. Without a
  // name it is only drawn.
  void wire(int a, int b, const std::string& name) {
    NodeInside::Wire wire{a, b, -1, -1};
    if (!name.empty()) {
      const std::vector<LinkId> both = cluster_.find_links(name_ + name);
      if (both.size() == 2) wire = {a, b, both[0], both[1]};
    }
    inside_.wires.push_back(wire);
  }

  void add_devices() {
    const Node& node = cluster_.node();
    const bool nvswitch = node.interconnect == Node::Interconnect::nvswitch;
    for (int d = 0; d < node.devices; ++d)
      devices_.push_back(part(NodeInside::Part::Kind::device, fmt::format("gpu{}", d), nvswitch ? 1 : 0));
    if (nvswitch) {
      const int hub = part(NodeInside::Part::Kind::nvswitch, "NVSwitch", 0);
      for (int d = 0; d < node.devices; ++d) wire(devices_[d], hub, fmt::format(".gpu{}.nvlink", d));
    } else if (node.interconnect == Node::Interconnect::nvlink_mesh) {
      for (const Node::MeshLink& m : node.mesh)
        wire(devices_[m.a], devices_[m.b], fmt::format(".gpu{}-gpu{}", m.a, m.b));
    }
    top_ = nvswitch ? 2 : 1;
  }

  // Adds the processor and the parts that connect devices and network cards to it.
  void add_processor() {
    const Node& node = cluster_.node();
    if (!server_ && !node.pcie_switches.empty()) {
      below_ = devices_;
      std::vector<int>& below = below_;
      int number = 0, joined = 1;  // `joined`: devices behind each switch of the level below
      for (const Node::PcieSwitches& level : node.pcie_switches) {
        std::vector<int> switches;
        for (int first = 0; first < node.devices; first += level.devices, ++number)
          switches.push_back(part(NodeInside::Part::Kind::pcie, fmt::format("switch{}", number), top_));
        for (std::size_t i = 0; i < below.size(); ++i) {
          const std::size_t up = i * joined / level.devices;
          const std::string name = joined == 1 && below == devices_
                                       ? fmt::format(".gpu{}.pcie", i)
                                       : fmt::format(".{}.pcie", inside_.parts[below[i]].name);
          wire(below[i], switches[up], name);
        }
        if (innermost_.empty()) innermost_ = switches;
        below = switches;
        joined = level.devices;
        ++top_;
      }
      if (node.sockets > 1) return add_sockets();
      root_ = part(NodeInside::Part::Kind::processor, "cpu", top_++);
      for (const int one : below) wire(one, root_, fmt::format(".{}.pcie", inside_.parts[one].name));
      return;
    }
    if (server_ && node.pcie_bandwidth <= 0) {
      root_ = part(NodeInside::Part::Kind::processor, "cpu", top_++);
      return;
    }
    if (!server_ && node.sockets > 1) {
      below_ = devices_;
      return add_sockets();
    }
    const int processor = part(NodeInside::Part::Kind::processor, "cpu", std::max(0, top_ - 1));
    root_ = part(NodeInside::Part::Kind::pcie, "PCIe", std::max(1, top_));
    top_ = std::max(1, top_) + 1;
    for (std::size_t d = 0; d < devices_.size(); ++d) wire(devices_[d], root_, fmt::format(".gpu{}.pcie", d));
    wire(processor, root_, ".cpu.pcie");
  }

  // Adds the sockets above the devices or switches of `below_`, and in their middle what joins them. All
  // sockets reach host memory over one link, the processor's.
  void add_sockets() {
    const Node& node = cluster_.node();
    const int processor = part(NodeInside::Part::Kind::processor, "cpu", top_ - 1);
    int joint = -1;
    for (int s = 0; s < node.sockets; ++s) {
      if (s == node.sockets / 2) joint = part(NodeInside::Part::Kind::between_sockets, "inter-socket", top_);
      sockets_.push_back(part(NodeInside::Part::Kind::socket, fmt::format("socket{}", s), top_));
    }
    ++top_;
    const int each = node.pcie_switches.empty() ? 1 : node.pcie_switches.back().devices;
    for (std::size_t i = 0; i < below_.size(); ++i)
      wire(below_[i], sockets_[node.socket_of_device(static_cast<int>(i) * each)],
           fmt::format(".{}.pcie", inside_.parts[below_[i]].name));
    for (std::size_t s = 0; s < sockets_.size(); ++s) {
      wire(processor, sockets_[s], ".cpu.pcie");
      wire(sockets_[s], joint, fmt::format(".socket{}", s));
    }
  }

  void add_nics() {
    const Node& node = cluster_.node();
    const int layer = top_++;
    const int network = part(NodeInside::Part::Kind::network, "network", top_);
    for (int n = 0; n < node.nics; ++n) {
      const int nic = part(NodeInside::Part::Kind::nic, fmt::format("nic{}", n), layer);
      int behind = sockets_.empty() ? root_ : sockets_[node.socket_of_nic(n)];
      if (static_cast<int>(innermost_.size()) == node.nics) behind = innermost_[n];
      if (behind < 0 && !devices_.empty()) behind = devices_[cluster_.device_at_nic(n)];
      if (behind >= 0) wire(behind, nic, "");
      wire(nic, network, fmt::format(".nic{}", n));
    }
  }

  const Cluster& cluster_;
  std::string name_;
  bool server_;
  NodeInside inside_;
  std::vector<int> devices_, innermost_, sockets_;
  std::vector<int> below_;  // what hangs at the sockets: the devices, or the outermost switches
  int root_ = -1;           // the processor, or the PCIe bus that connects it and the devices
  int top_ = 0;             // next layer
};

}  // namespace

NodeInside inside_of(const Cluster& cluster, int node) {
  return Builder(cluster, node).build();
}

}  // namespace rehearse::gui
