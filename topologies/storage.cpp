// Adds storages to a cluster: their endpoints, their links, and the routes from and to them.
#include "topologies/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "topologies/cabling.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

// Links of storages are numbered after those of the network, storage by storage: two for each endpoint
// (reading, writing), then, if the storage has its own network, two for each node and server node (into it,
// out of it).
class StorageCluster final : public Cluster {
public:
  StorageCluster(std::shared_ptr<const Cluster> network, const std::vector<Storage>& storages)
      : Cluster(*network), network_(std::move(network)) {
    storages_ = storages;
    for (const Storage& storage : storages_) server_nodes_ -= storage.servers;
    LinkId next = network_->links();
    for (int which = 0; which < static_cast<int>(storages_.size()); ++which) {
      Storage& storage = storages_[static_cast<std::size_t>(which)];
      if (storage.kind == Storage::Kind::local) {
        if (storage.read_bandwidth <= 0) storage.read_bandwidth = node_.nvme_read_bandwidth;
        if (storage.write_bandwidth <= 0) storage.write_bandwidth = node_.nvme_write_bandwidth;
      }
      if (storage.operations_bandwidth > 0)
        storage.read_bandwidth = std::min(storage.read_bandwidth, storage.operations_bandwidth);
      first_.push_back(next);
      next +=
          2 * storage_endpoints(which) + (storage.client_bandwidth > 0 ? 2 * (nodes_ + server_nodes_) : 0);
    }
    first_.push_back(next);
  }

  std::int64_t switch_ports() const override { return network_->switch_ports(); }
  int links() const override { return first_.back(); }
  double bandwidth(LinkId l) const override {
    if (l < first_.front()) return network_->bandwidth(l);
    const At at = at_link(l);
    const Storage& its = storage(at.which);
    if (at.client >= 0) return its.client_bandwidth;
    const int servers = its.kind == Storage::Kind::shared ? storage_endpoints(at.which) : 1;
    return (at.writes ? its.write_bandwidth : its.read_bandwidth) / servers;
  }
  double latency_s(LinkId l) const override { return l < first_.front() ? network_->latency_s(l) : 0; }
  LinkPlace link_place(LinkId l) const override {
    return l < first_.front() ? network_->link_place(l) : LinkPlace{LinkPlace::Kind::storage, false};
  }
  std::string link_name(LinkId l) const override {
    if (l < first_.front()) return renamed(network_->link_name(l));
    const At at = at_link(l);
    if (at.client >= 0)
      return fmt::format("{}{}.{}.{}", at.client < nodes_ ? "node" : "server",
                         at.client < nodes_ ? at.client : at.client - nodes_, storage(at.which).name,
                         at.writes ? "out" : "in");
    return endpoint_name(storage_endpoint(at.number, at.which)) + (at.writes ? ".in" : ".out");
  }
  std::vector<LinkId> find_links(const std::string& wanted) const override {
    for (LinkId l = first_.front(); l < links(); ++l) {
      const std::string name = link_name(l);
      if (name == wanted) return {l};
      if (name.substr(0, name.rfind('.')) == wanted) return {l, l + 1};
    }
    int node = server_nodes_;  // as the network numbers server nodes
    for (const Storage& its : storages_)
      for (int server = 0; server < its.servers; ++server, ++node)
        if (const std::string own = fmt::format("{}{}.", its.name, server); wanted.starts_with(own))
          return network_->find_links(fmt::format("server{}.", node) + wanted.substr(own.size()));
    int number = 0;
    std::string_view rest = wanted;
    if (take_number(rest, "server", number) && number >= server_nodes_) return {};  // a storage's own
    return network_->find_links(wanted);
  }
  void route(Endpoint from, Endpoint to, int rail, std::vector<LinkId>& links) const override {
    if (!is_storage(from) && !is_storage(to)) return network_->route(from, to, rail, links);
    const bool reads = is_storage(from);
    const Endpoint end = reads ? from : to;
    const int node = node_of(reads ? to : from);
    const StoragePlace place = storage_place(end);
    const Storage& its = storage(place.which);
    if (end >= endpoints() || (its.kind == Storage::Kind::local && node != place.number))
      throw std::out_of_range(fmt::format("node {} has no way to {}", node, endpoint_name(end)));
    const LinkId first = first_[static_cast<std::size_t>(place.which)],
                 own = first + 2 * place.number + (reads ? 0 : 1);
    if (reads) links.push_back(own);
    if (its.servers > 0) {
      const Endpoint server = processor_of_node(node_of(end)), here = processor_of_node(node);
      network_->route(reads ? server : here, reads ? here : server, rail, links);
    } else if (its.client_bandwidth > 0) {
      links.push_back(first + 2 * storage_endpoints(place.which) + 2 * node + (reads ? 0 : 1));
    }
    if (!reads) links.push_back(own);
  }
  int nodes_per_equal_block() const override { return network_->nodes_per_equal_block(); }
  int node_beside(LinkId l) const override {
    if (l < first_.front()) return network_->node_beside(l);
    const At at = at_link(l);
    if (at.client >= 0) return at.client;
    return storage(at.which).kind == Storage::Kind::local ? at.number : 0;
  }

private:
  // A link of a storage: of one of its endpoints, or of a node's own way to it.
  struct At {
    int which = 0, number = 0, client = -1;
    bool writes = false;
  };
  At at_link(LinkId l) const {
    At at;
    while (l >= first_[static_cast<std::size_t>(at.which) + 1]) ++at.which;
    const int offset = l - first_[static_cast<std::size_t>(at.which)], own = storage_endpoints(at.which);
    at.number = offset / 2;
    at.writes = offset % 2 == 1;
    if (at.number >= own) at.client = at.number - own;
    return at;
  }
  // The network knows the servers of storages as server nodes.
  std::string renamed(std::string name) const {
    int number = 0;
    std::string_view rest = name;
    if (!take_number(rest, "server", number) || number < server_nodes_) return name;
    number -= server_nodes_;
    for (const Storage& its : storages_) {
      if (number < its.servers) return fmt::format("{}{}{}", its.name, number, rest);
      number -= its.servers;
    }
    return name;
  }

  std::shared_ptr<const Cluster> network_;
  std::vector<LinkId> first_;  // by storage, and behind the last one
};

}  // namespace

std::shared_ptr<const Cluster> with_storages(std::shared_ptr<const Cluster> network,
                                             const std::vector<Storage>& storages) {
  if (storages.empty()) return network;
  return std::make_shared<StorageCluster>(std::move(network), storages);
}

}  // namespace rehearse
