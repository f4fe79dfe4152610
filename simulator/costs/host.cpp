#include "simulator/costs/host.hpp"

#include <algorithm>

namespace rehearse {

double host_copy_bandwidth(const Node& node) {
  if (node.host_links_bandwidth <= 0) return node.host_link_bandwidth;
  return std::min(node.host_link_bandwidth, node.host_links_bandwidth / node.devices);
}

double host_update_bandwidth(const Node& node) {
  return kHostUpdateEfficiency * node.cpu_memory_bandwidth / node.devices;
}

double nvme_read_bandwidth(const Node& node) {
  return node.nvme_read_bandwidth / node.devices;
}

double nvme_write_bandwidth(const Node& node) {
  return node.nvme_write_bandwidth / node.devices;
}

double usual_copy_bandwidth(const Device& device) {
  // PCIe 3.0, 4.0 and 5.0 with 16 lanes: what NVIDIA's bandwidthTest reports with pinned memory.
  constexpr double kGen3 = 12e9, kGen4 = 25e9, kGen5 = 55e9;
  if (device.compute_capability >= 90) return kGen5;
  return device.compute_capability >= 80 ? kGen4 : kGen3;
}

double host_time_s(const Op& op, const Node& node) {
  if (op.host_bytes <= 0) return 0;
  switch (op.host_action) {
    case HostAction::copy_to_host:
    case HostAction::copy_to_device:
      return op.host_bytes / host_copy_bandwidth(node);
    case HostAction::update:
      return op.host_bytes / host_update_bandwidth(node);
    case HostAction::read_nvme:
      return op.host_bytes / nvme_read_bandwidth(node);
    case HostAction::write_nvme:
      return op.host_bytes / nvme_write_bandwidth(node);
    case HostAction::load_batch:
    case HostAction::write_checkpoint:
    case HostAction::sleep:
      break;
  }
  return 0;
}

std::string missing_host_key(const Node& node, bool nvme) {
  if (node.host_link_bandwidth <= 0) return "host_link_gb_per_s";
  if (node.cpu_memory_bandwidth <= 0) return "cpu_gb_per_s";
  if (nvme && node.nvme_read_bandwidth <= 0) return "nvme_read_gb_per_s";
  if (nvme && node.nvme_write_bandwidth <= 0) return "nvme_write_gb_per_s";
  return "";
}

}  // namespace rehearse
