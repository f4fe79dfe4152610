#include "topologies/faster.hpp"

#include <map>
#include <utility>

namespace rehearse {
namespace {

class FasterCluster final : public Cluster {
public:
  FasterCluster(std::shared_ptr<const Cluster> cluster, const Faster& factors)
      : Cluster(*cluster), cluster_(std::move(cluster)), factors_(factors) {
    device_speed_ *= factors.devices;
    processor_speed_ *= factors.processors;
    if (factors.device) node_.device = *factors.device;
    node_.device.memory_bandwidth.value *= factors.device_memory;
    for (NodeGroup& group : groups_) group.device.memory_bandwidth.value *= factors.device_memory;
    for (double* link : {&node_.device_bandwidth, &node_.host_link_bandwidth, &node_.host_links_bandwidth})
      *link *= factors.intra_node_links;
    for (double* rate :
         {&node_.cpu_memory_bandwidth, &node_.nvme_read_bandwidth, &node_.nvme_write_bandwidth})
      *rate *= factors.host;
    for (const int number : factors.at_full_speed) {
      const SlowPart& part = slow_parts.at(static_cast<std::size_t>(number));
      if (part.device >= 0) device_factors_.at(part.device) /= part.factor;
      for (const LinkId l : part.links) repaired_.emplace(l, 1.0).first->second /= part.factor;
    }
  }

  std::int64_t switch_ports() const override { return cluster_->switch_ports(); }
  int links() const override { return cluster_->links(); }
  double bandwidth(LinkId l) const override {
    const double bytes_per_s = cluster_->bandwidth(l) * factor_of(cluster_->link_place(l).kind);
    const auto repaired = repaired_.find(l);
    return repaired == repaired_.end() ? bytes_per_s : bytes_per_s * repaired->second;
  }
  double latency_s(LinkId l) const override { return cluster_->latency_s(l); }
  LinkPlace link_place(LinkId l) const override { return cluster_->link_place(l); }
  std::string link_name(LinkId l) const override { return cluster_->link_name(l); }
  std::vector<LinkId> find_links(const std::string& wanted) const override {
    return cluster_->find_links(wanted);
  }
  void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const override {
    cluster_->route(from, to, rail, links);
  }
  int nodes_per_equal_block() const override { return cluster_->nodes_per_equal_block(); }
  int node_beside(LinkId l) const override { return cluster_->node_beside(l); }

private:
  double factor_of(LinkPlace::Kind place) const {
    switch (place) {
      case LinkPlace::Kind::inside_node:
        return factors_.intra_node_links;
      case LinkPlace::Kind::storage:
        return factors_.storage;
      case LinkPlace::Kind::network_card:
      case LinkPlace::Kind::fabric:
        break;
    }
    return factors_.network_links;
  }

  std::shared_ptr<const Cluster> cluster_;
  Faster factors_;
  std::map<LinkId, double> repaired_;
};

}  // namespace

std::shared_ptr<const Cluster> faster(std::shared_ptr<const Cluster> cluster, const Faster& factors) {
  return std::make_shared<FasterCluster>(std::move(cluster), factors);
}

}  // namespace rehearse
