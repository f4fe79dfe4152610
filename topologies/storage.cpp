// Adds storage to a cluster: its endpoints, its links, and the routes from and to it.
#include "topologies/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "topologies/cabling.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

// Links of the storage are numbered after those of the network: two for each endpoint (reading, writing),
// then, if the storage has its own network, two for each node (into it, out of it).
class StorageCluster final : public Cluster {
public:
  // The servers of storage over the fabric are the last server nodes of `network`.
  StorageCluster(std::shared_ptr<const Cluster> network, const Storage& storage)
      : Cluster(*network), network_(std::move(network)), first_(network_->links()) {
    storage_ = storage;
    server_nodes_ -= storage.servers;
    if (storage.kind == Storage::Kind::local) {
      if (storage_.read_bandwidth <= 0) storage_.read_bandwidth = node_.nvme_read_bandwidth;
      if (storage_.write_bandwidth <= 0) storage_.write_bandwidth = node_.nvme_write_bandwidth;
    }
    if (storage_.operations_bandwidth > 0)
      storage_.read_bandwidth = std::min(storage_.read_bandwidth, storage_.operations_bandwidth);
  }

  std::int64_t switch_ports() const override { return network_->switch_ports(); }
  int links() const override {
    return first_ + 2 * storage_endpoints() + (storage_.client_bandwidth > 0 ? 2 * nodes_ : 0);
  }
  double bandwidth(LinkId l) const override {
    if (l < first_) return network_->bandwidth(l);
    if (is_client(l)) return storage_.client_bandwidth;
    return ((l - first_) % 2 == 0 ? storage_.read_bandwidth : storage_.write_bandwidth) / servers();
  }
  double latency_s(LinkId l) const override { return l < first_ ? network_->latency_s(l) : 0; }
  LinkPlace link_place(LinkId l) const override {
    return l < first_ ? network_->link_place(l) : LinkPlace{LinkPlace::Kind::storage, false};
  }
  std::string link_name(LinkId l) const override {
    if (l < first_) return renamed(network_->link_name(l));
    if (is_client(l))
      return fmt::format("node{}.storage.{}", client_of(l), (l - first_) % 2 == 0 ? "in" : "out");
    return endpoint_name(storage_endpoint((l - first_) / 2)) + ((l - first_) % 2 == 0 ? ".out" : ".in");
  }
  std::vector<LinkId> find_links(const std::string& wanted) const override {
    for (LinkId l = first_; l < links(); ++l) {
      const std::string name = link_name(l);
      if (name == wanted) return {l};
      if (name.substr(0, name.rfind('.')) == wanted) return {l, l + 1};
    }
    for (int server = 0; server < storage_.servers; ++server)
      if (const std::string own = fmt::format("storage{}.", server); wanted.starts_with(own))
        return network_->find_links(fmt::format("server{}.", server_nodes_ + server) +
                                    wanted.substr(own.size()));
    return network_->find_links(wanted);
  }
  void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const override {
    if (!is_storage(from) && !is_storage(to)) return network_->route(from, to, rail, links);
    const bool reads = is_storage(from);
    const Endpoint at = reads ? from : to;
    const int number = at - storage_endpoint(0), node = node_of(reads ? to : from);
    if (number >= storage_endpoints() || (storage_.kind == Storage::Kind::local && node != number))
      throw std::out_of_range(fmt::format("node {} has no way to {}", node, endpoint_name(at)));
    const LinkId own = first_ + 2 * number + (reads ? 0 : 1);
    if (reads) links.push_back(own);
    if (storage_.servers > 0)
      network_->route(reads ? at : processor_of_node(node), reads ? processor_of_node(node) : at, rail,
                      links);
    else if (storage_.client_bandwidth > 0)
      links.push_back(first_ + 2 * storage_endpoints() + 2 * node + (reads ? 0 : 1));
    if (!reads) links.push_back(own);
  }
  int nodes_per_equal_block() const override { return network_->nodes_per_equal_block(); }
  int node_beside(LinkId l) const override {
    if (l < first_) return network_->node_beside(l);
    if (is_client(l)) return client_of(l);
    return storage_.kind == Storage::Kind::local ? (l - first_) / 2 : 0;
  }

private:
  int servers() const { return storage_.kind == Storage::Kind::shared ? storage_endpoints() : 1; }
  bool is_client(LinkId l) const { return l >= first_ + 2 * storage_endpoints(); }
  int client_of(LinkId l) const { return (l - first_) / 2 - storage_endpoints(); }
  // The network knows the storage's servers as server nodes.
  std::string renamed(std::string name) const {
    int number = 0;
    std::string_view rest = name;
    if (storage_.servers == 0 || !take_number(rest, "server", number) || number < server_nodes_) return name;
    return fmt::format("storage{}{}", number - server_nodes_, rest);
  }

  std::shared_ptr<const Cluster> network_;
  LinkId first_ = 0;
};

}  // namespace

std::shared_ptr<const Cluster> with_storage(std::shared_ptr<const Cluster> network, const Storage& storage) {
  if (storage.kind == Storage::Kind::none) return network;
  return std::make_shared<StorageCluster>(std::move(network), storage);
}

}  // namespace rehearse
