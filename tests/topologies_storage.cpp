// Tests the storage of a cluster: endpoints, links, names and routes.
#include <algorithm>
#include <stdexcept>

#include "tests/catch.hpp"
#include "topologies/cluster.hpp"
#include "topologies/faster.hpp"

using namespace rehearse;

namespace {

ClusterParts stored(const Storage& storage, int server_nodes = 1) {
  ClusterParts parts;
  parts.name = "test";
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 2;
  parts.node.interconnect = Node::Interconnect::nvswitch;
  parts.node.device_bandwidth = 300e9;
  parts.node.nics = 1;
  parts.node.nic_bandwidth = 10e9;
  parts.node.nvme_read_bandwidth = 7e9;
  parts.node.nvme_write_bandwidth = 3e9;
  parts.nodes = 3;
  parts.server_nodes = server_nodes;
  if (storage.kind != Storage::Kind::none) parts.storages = {storage};
  return parts;
}

std::vector<std::string> names_of(const Cluster& cluster, Endpoint from, Endpoint to) {
  std::vector<LinkId> links;
  cluster.route(from, to, -1, links);
  std::vector<std::string> names;
  for (const LinkId link : links) names.push_back(cluster.link_name(link));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("storage: drives belong to their nodes") {
  const auto cluster = make_cluster(stored({.kind = Storage::Kind::local}));
  REQUIRE(cluster->storage_endpoints() == 3);
  const Endpoint drive = cluster->storage_endpoint(1);
  CHECK(cluster->endpoints() == 3 * 2 + 3 + 1 + 3);
  CHECK(cluster->endpoint_name(drive) == "node1.drive");
  CHECK(cluster->node_of(drive) == 1);
  CHECK(names_of(*cluster, drive, 2) == Names{"node1.drive.out"});  // device 0 of node 1
  CHECK(names_of(*cluster, 3, drive) == Names{"node1.drive.in"});
  CHECK_THROWS_AS(names_of(*cluster, drive, 0), std::out_of_range);
  const LinkId out = cluster->find_links("node1.drive.out").at(0);
  CHECK(cluster->bandwidth(out) == 7e9);
  CHECK(cluster->bandwidth(out + 1) == 3e9);
  CHECK(cluster->find_links("node1.drive") == std::vector<LinkId>{out, out + 1});
  CHECK(cluster->link_place(out).kind == LinkPlace::Kind::storage);
  CHECK_FALSE(crosses_network(cluster->link_place(out)));
  // All else is as without storage.
  const auto without = make_cluster(stored({}));
  CHECK(without->storage_endpoints() == 0);
  CHECK(names_of(*cluster, 0, 4) == names_of(*without, 0, 4));
  CHECK(cluster->links() == without->links() + 2 * 3);
}

TEST_CASE("storage: servers with a network of their own are one endpoint") {
  const auto cluster = make_cluster(stored({.kind = Storage::Kind::shared,
                                            .read_bandwidth = 40e9,
                                            .write_bandwidth = 20e9,
                                            .operations_bandwidth = 30e9,
                                            .client_bandwidth = 5e9}));
  REQUIRE(cluster->storage_endpoints() == 1);
  const Endpoint storage = cluster->storage_endpoint(0);
  CHECK(cluster->endpoint_name(storage) == "storage0");
  CHECK(cluster->node_of(storage) == -1);
  CHECK(names_of(*cluster, storage, 5) == Names{"storage0.out", "node2.storage.in"});
  CHECK(names_of(*cluster, 5, storage) == Names{"node2.storage.out", "storage0.in"});
  CHECK(names_of(*cluster, cluster->server_processor(0), storage) ==
        Names{"server0.storage.out", "storage0.in"});
  CHECK(cluster->bandwidth(cluster->find_links("storage0.out").at(0)) ==
        30e9);  // fewer operations than bytes
  CHECK(cluster->bandwidth(cluster->find_links("storage0.in").at(0)) == 20e9);
  CHECK(cluster->bandwidth(cluster->find_links("node2.storage.in").at(0)) == 5e9);
  Faster factors;
  factors.storage = 2;
  const auto twice = faster(cluster, factors);
  CHECK(twice->bandwidth(cluster->find_links("storage0.out").at(0)) == 60e9);
  CHECK(twice->bandwidth(cluster->find_links("node2.nic0.in").at(0)) == 10e9);
}

TEST_CASE("storage: servers on the fabric are reached through network cards") {
  const auto cluster = make_cluster(
      stored({.kind = Storage::Kind::shared, .read_bandwidth = 40e9, .write_bandwidth = 40e9, .servers = 2}));
  REQUIRE(cluster->storage_endpoints() == 2);
  CHECK(cluster->server_nodes() == 1);
  const Endpoint second = cluster->storage_endpoint(1);
  CHECK(cluster->endpoint_name(second) == "storage1");
  CHECK(names_of(*cluster, second, 5) == Names{"storage1.out", "storage1.nic0.out", "node2.nic0.in"});
  CHECK(names_of(*cluster, 5, second) == Names{"node2.nic0.out", "storage1.nic0.in", "storage1.in"});
  CHECK(cluster->bandwidth(cluster->find_links("storage1.out").at(0)) == 20e9);
  CHECK(cluster->find_links("storage1.nic0.out").size() == 1);
  CHECK(cluster->link_name(cluster->find_links("server0.nic0.out").at(0)) == "server0.nic0.out");
}

TEST_CASE("storage: a cluster may have several, each with its own endpoints and links") {
  ClusterParts parts = stored({.kind = Storage::Kind::local});
  parts.storages.push_back({.name = "checkpoints",
                            .kind = Storage::Kind::shared,
                            .read_bandwidth = 8e9,
                            .write_bandwidth = 4e9,
                            .client_bandwidth = 2e9});
  parts.storages.push_back({.name = "objects",
                            .kind = Storage::Kind::shared,
                            .read_bandwidth = 6e9,
                            .write_bandwidth = 6e9,
                            .servers = 2});
  const auto cluster = make_cluster(parts);
  REQUIRE(cluster->storages().size() == 3);
  CHECK(cluster->server_nodes() == 1);
  CHECK(cluster->endpoints() == 3 * 2 + 3 + 1 + 3 + 1 + 2);
  const Endpoint drive = cluster->storage_endpoint(2), shared = cluster->storage_endpoint(0, 1),
                 second = cluster->storage_endpoint(1, 2);
  CHECK(cluster->endpoint_name(drive) == "node2.drive");
  CHECK(cluster->endpoint_name(shared) == "checkpoints0");
  CHECK(cluster->endpoint_name(second) == "objects1");
  CHECK(cluster->node_of(drive) == 2);
  CHECK(cluster->node_of(shared) == -1);
  CHECK(cluster->node_of(second) == 3 + 1 + 1);
  CHECK(names_of(*cluster, 5, shared) == Names{"node2.checkpoints.out", "checkpoints0.in"});
  CHECK(names_of(*cluster, 5, second) == Names{"node2.nic0.out", "objects1.nic0.in", "objects1.in"});
  CHECK(names_of(*cluster, second, 0) == Names{"objects1.out", "objects1.nic0.out", "node0.nic0.in"});
  CHECK(cluster->bandwidth(cluster->find_links("checkpoints0.in").at(0)) == 4e9);
  CHECK(cluster->bandwidth(cluster->find_links("objects1.in").at(0)) == 3e9);
  CHECK(cluster->find_links("server1.nic0.out").empty());  // it is a server of "objects"
  CHECK(cluster->find_links("objects0.nic0.out").size() == 1);
  for (LinkId link = 0; link < cluster->links(); ++link) {  // names are those of their links
    const std::vector<LinkId> found = cluster->find_links(cluster->link_name(link));
    CHECK(std::count(found.begin(), found.end(), link) == 1);
  }
}
