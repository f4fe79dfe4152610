#include "topologies/faster.hpp"

#include <utility>

namespace rehearse {
namespace {

class FasterCluster final : public Cluster {
public:
  FasterCluster(std::shared_ptr<const Cluster> cluster, const Faster& factors)
      : Cluster(*cluster), cluster_(std::move(cluster)), factors_(factors) {
    device_speed_ *= factors.devices;
    processor_speed_ *= factors.processors;
    node_.device.memory_bandwidth.value *= factors.device_memory;
  }

  int links() const override { return cluster_->links(); }
  double bandwidth(LinkId l) const override {
    return cluster_->bandwidth(l) *
           (cluster_->inside_node(l) ? factors_.intra_node_links : factors_.network_links);
  }
  double latency_s(LinkId l) const override { return cluster_->latency_s(l); }
  bool inside_node(LinkId l) const override { return cluster_->inside_node(l); }
  std::string link_name(LinkId l) const override { return cluster_->link_name(l); }
  std::vector<LinkId> find_links(const std::string& wanted) const override {
    return cluster_->find_links(wanted);
  }
  void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const override {
    cluster_->route(from, to, rail, links);
  }

private:
  std::shared_ptr<const Cluster> cluster_;
  Faster factors_;
};

}  // namespace

std::shared_ptr<const Cluster> faster(std::shared_ptr<const Cluster> cluster, const Faster& factors) {
  return std::make_shared<FasterCluster>(std::move(cluster), factors);
}

}  // namespace rehearse
