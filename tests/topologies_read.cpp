#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

const std::string kNode =
    "[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"v100\"\ndevices = 2\ninterconnect = \"nvswitch\"\n"
    "nvlink_gb_per_s = 100\nnic_gbps = 80\n";

std::string error_of(const std::string& text) {
  try {
    cluster_of(text);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("overrides reach node and fabric") {
  const std::string head = "[cluster]\npreset = \"dgx-a100\"\nnodes = 8\n";
  const auto plain = cluster_of(head);
  const auto half = cluster_of(
      head + "oversubscription = 2.0\nlatency_us = 3\nrouting = \"ecmp-hash\"\nserver_nodes = 2\n");
  CHECK(half->fabric().oversubscription == 2);
  CHECK(half->fabric().nodes_per_leaf == 3);  // 40 ports: 3 x 8 down, 12 up
  CHECK(half->fabric().spines == 12);
  CHECK(half->fabric().latency_s == Approx(3e-6));
  CHECK(half->fabric().routing == Fabric::Routing::ecmp_hash);
  CHECK(half->server_nodes() == 2);
  CHECK_FALSE(plain->fabric().sharp);
  CHECK(cluster_of(head + "sharp = true\n")->fabric().sharp);
  CHECK(half->endpoint_name(half->server_processor(1)) == "server1.cpu");
  CHECK(half->endpoint_name(half->processor_of_node(7)) == "node7.cpu");
  CHECK(half->endpoint_name(35) == "node4.gpu3");
  CHECK(half->node_of(half->server_processor(1)) == 9);
  const auto fast = cluster_of(head + "nic_gbps = 400\nradix = 64\nnodes_per_leaf = 1\n");
  CHECK(fast->node().nic_bandwidth == Approx(50e9));
  CHECK(fast->fabric().nodes_per_leaf == 1);
  const auto cables = cluster_of(head + "link_gbps = 400\n");
  CHECK(cables->fabric().nodes_per_leaf == 3);  // 3 x 8 down, 12 cables up
  CHECK(cables->fabric().spines == 12);
  CHECK(cluster_of(head + "kind = \"switch\"\n")->fabric().kind == Fabric::Kind::single_switch);
  CHECK(plain->network_basis == Basis::published);
}

TEST_CASE("an inline cluster, its links and what is slow") {
  const auto cluster = cluster_of(kNode + R"(
[cluster.fabric]
kind = "links"
[[cluster.link]]
a = "node0"
b = "sw"
gbps = 8
latency_us = 1
[[cluster.link]]
a = "sw"
b = "node1"
gbps = 16
[[cluster.link]]
a = "node2"
b = "node1"
gbps = 8
[[cluster.link]]
a = "node2"
b = "node3"
gbps = 8
[[cluster.slow]]
device = 3
factor = 0.5
[[cluster.slow]]
link = "node1-sw"
factor = 0.25
)");
  CHECK(cluster->network_basis == Basis::guess);  // the file gives no source for the figures
  const auto links = route_of(*cluster, 0, 6);
  CHECK(names_of(*cluster, links) == std::vector<std::string>{"node0.nic0.out", "node0-sw", "sw-node1",
                                                              "node1-node2", "node2-node3", "node3.nic0.in"});
  CHECK(cluster->bandwidth(links[1]) == Approx(1e9));
  CHECK(cluster->bandwidth(links[2]) == Approx(0.5e9));
  CHECK(cluster->device_factor(3) == 0.5);
}

TEST_CASE("both sides of a leaf given: the ratio follows") {
  const auto cluster =
      cluster_of(kNode +
                 "nics = 2\n[cluster.fabric]\nkind = \"leaf-spine\"\nnodes_per_leaf = 2\nspines = 2\n"
                 "link_gbps = 40\n");
  CHECK(cluster->fabric().oversubscription == Approx(2 * 2 * 80.0 / (2 * 40)));
  CHECK(cluster->bandwidth(cluster->find_links("leaf1-spine1").at(0)) == Approx(5e9));
}

TEST_CASE("a cluster file is read from beside the scenario, a device file from beside the cluster file") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "rehearse-topologies-read";
  fs::create_directories(folder / "devices");
  std::ofstream(folder / "lab.toml")
      << "sources = [\"a lab\"]\nbasis = \"measured\"\nnodes = 3\nserver_nodes = 1\n"
         "[node]\ndevice_file = \"devices/mine.toml\"\ndevices = 1\nnic_gbps = 10\n";
  std::ofstream(folder / "devices/mine.toml")
      << "title = \"mine\"\nmemory_gib = {value = 2, basis = \"measured\", source = \"free -b\"}\n"
         "memory_gb_per_s = {value = 3, basis = \"measured\", source = \"STREAM\"}\n"
         "[peak_tflops]\nfp32 = {value = 0.5, basis = \"guess\", source = \"a guess\"}\n";
  Document document = Document::parse_text("[cluster]\nfile = \"lab.toml\"\n", "s.toml");
  Section root = document.root();
  Section section = root.section("cluster");
  const auto cluster = read_cluster(section, folder.string());
  CHECK(cluster->name == "lab");
  CHECK(cluster->nodes() == 3);
  CHECK(cluster->server_nodes() == 1);
  CHECK(cluster->network_basis == Basis::measured);
  CHECK(cluster->node().device.name == "mine");
  CHECK(cluster->node().device.memory_bytes.value == 2 * 1073741824.0);
  CHECK(cluster->node().device.gemm_efficiency.value == 0);
  fs::remove_all(folder);
}

TEST_CASE("bad cluster input is refused at its place") {
  const std::string dgx = "[cluster]\npreset = \"dgx-a100\"\nnodes = 8\n";
  const std::string graph = kNode + "[cluster.fabric]\nkind = \"links\"\n";
  const auto link = [](const std::string& a, const std::string& b) {
    return "[[cluster.link]]\na = \"" + a + "\"\nb = \"" + b + "\"\ngbps = 1\n";
  };
  const std::string all = link("node0", "s") + link("node1", "s") + link("node2", "s");
  struct Case {
    std::string text, place, message;
  };
  const std::vector<Case> cases = {
      {"[cluster]\npreset = \"dgx-a10\"\n", "lab.toml:2:", "did you mean \"dgx-a100\""},
      {"[cluster]\nfile = \"/nowhere/lab.toml\"\n", "/nowhere/lab.toml", ""},
      {"[cluster]\npreset = \"dgx-a100\"\nfile = \"x.toml\"\n", "lab.toml:3:", "preset"},
      {"[cluster]\nnodes = 4\n", "lab.toml:", "no node"},
      {dgx + "[cluster.node]\ndevices = 0\n", "lab.toml:5:", "cluster.node.devices is 0"},
      {dgx + "oversubscripton = 2\n", "lab.toml:4:", "oversubscription"},
      {dgx + "oversubscription = 0\n", "lab.toml:4:", "oversubscription"},
      {dgx + "oversubscription = nan\n", "lab.toml:4:", "oversubscription"},
      {dgx + "oversubscription = \"two\"\n", "lab.toml:4:", "oversubscription"},
      {dgx + "nic_gbps = -200\n", "lab.toml:4:", "nic_gbps"},
      {dgx + "radix = 8\n", "lab.toml:4:", "at least 16"},
      {dgx + "routing = \"random\"\n", "lab.toml:4:", "ecmp-hash"},
      {dgx + "kind = \"switch\"\noversubscription = 2\n", "lab.toml:5:", "leaf-spine"},
      {dgx + "kind = \"ring\"\nsharp = true\n",
       "lab.toml:5:", "only with kind = \"switch\", \"leaf-spine\", \"rail\", \"fat-tree\""},
      {"[cluster]\npreset = \"dgx-a100\"\nnodes = 0\n", "lab.toml:3:", "nodes"},
      {"[cluster]\npreset = \"dgx-a100\"\nnodes = 1000000\n", "lab.toml:", "2,097,152 devices"},
      {"[cluster]\npreset = \"dgx-a100\"\nnodes = 99999999999\n", "lab.toml:3:", "nodes"},
      {"[cluster]\npreset = \"dgx-a100\"\nnodes = 100000\nspines = 65536\n", "lab.toml:", "links"},
      {dgx + "[[cluster.slow]]\ndevice = 64\nfactor = 0.5\n", "lab.toml:5:", "63"},
      {dgx + "[[cluster.slow]]\ndevice = 6\nfactor = 0\n", "lab.toml:6:", "factor"},
      {dgx + "[[cluster.slow]]\nlink = \"leaf9-spine0\"\nfactor = 1\n", "lab.toml:5:", "leaf9-spine0"},
      {dgx + "[[cluster.slow]]\nfactor = 0.5\n", "lab.toml:4:", "one of device, link"},
      {dgx + "[[cluster.slow]]\nlink = \"node0.nic0\"\ndevice = 3\nfactor = 0.5\n", "lab.toml:4:", "both"},
      {kNode + "nics = 257\n", "lab.toml:9:", "nics"},
      {"[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"v10\"\ndevices = 1\n", "lab.toml:4:", "v100"},
      {"[cluster]\n[cluster.node]\ndevice = \"v100\"\ndevices = 2\ninterconnect = \"none\"\n",
       "lab.toml:5:", "nvswitch"},
      {"[cluster]\n[cluster.node]\ndevice = \"v100\"\ndevices = 2\ninterconnect = \"nvlink\"\n",
       "lab.toml:5:", "nvlink-mesh"},
      {"[cluster]\nnodes = 2\n[cluster.node]\ndevice = \"v100\"\ndevices = 1\n", "lab.toml:", "NIC"},
      {kNode + "ring = [{order = [0, 0]}]\n", "lab.toml:9:", "each of the devices 0 to 1"},
      {kNode + "[cluster.fabric]\nkind = \"leaf-spine\"\n", "lab.toml:", "radix"},
      {kNode + "[cluster.fabric]\nradix = 40\n", "lab.toml:10:", "leaf-spine"},
      {graph + all, "lab.toml:", "no path leads from node0 to node3"},
      {graph + all + link("node3", "node4"), "lab.toml:23:", "node4"},
      {graph + all + link("node3", "node3"), "lab.toml:23:", "itself"},
      {graph + all + link("s", "node0"), "lab.toml:23:", "second link"},
      {graph + all + link("node3", "a-b"), "lab.toml:23:", "letters"},
      {kNode + all, "lab.toml:", "links"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string message = error_of(c.text);
    CAPTURE(message);
    CHECK(message.rfind(c.place, 0) == 0);
    CHECK(holds(message, c.message));
  }
}

TEST_CASE("a cluster has at most 2^21 devices") {
  const auto cluster = make_cluster(leaf_spine(524'288, 4, 2, 2, 2, 1));
  CHECK(cluster->devices() == 2'097'152);
  CHECK(cluster->endpoint_name(2'097'151) == "node524287.gpu3");
}

TEST_CASE("bad parts make no cluster") {
  std::vector<ClusterParts> bad;
  const auto add = [&](auto change) {
    bad.push_back(leaf_spine(4, 4, 2, 2, 2, 1));
    change(bad.back());
  };
  add([](ClusterParts& p) { p.nodes = 0; });
  add([](ClusterParts& p) { p.nodes = 524'289; });
  add([](ClusterParts& p) { p.server_nodes = -1; });
  add([](ClusterParts& p) { p.node.devices = 0; });
  add([](ClusterParts& p) { p.node.nics = 0; });
  add([](ClusterParts& p) { p.node.nic_bandwidth = 0; });
  add([](ClusterParts& p) { p.node.nic_bandwidth = -1; });
  add([](ClusterParts& p) { p.node.device_bandwidth = 0; });
  add([](ClusterParts& p) { p.node.interconnect = Node::Interconnect::none; });
  add([](ClusterParts& p) { p.node.rings = {{0, 1, 2, 2}}; });
  add([](ClusterParts& p) { p.fabric.nodes_per_leaf = 0; });
  add([](ClusterParts& p) { p.fabric.oversubscription = 0; });
  add([](ClusterParts& p) { p.fabric.spines = -1; });
  add([](ClusterParts& p) { p.slow_devices = {{16, 0.5}}; });
  add([](ClusterParts& p) { p.slow_devices = {{1, -0.5}}; });
  add([](ClusterParts& p) { p.slow_links = {{"leaf2-spine0", 0.5}}; });
  for (auto change :
       {Node::MeshLink{0, 4, 1}, Node::MeshLink{1, 1, 1}, Node::MeshLink{0, 2, 0}, Node::MeshLink{1, 0, 1}}) {
    bad.push_back(mesh_nodes(2));
    bad.back().node.mesh.push_back(change);
  }
  bad.push_back(mesh_nodes(1));
  bad.back().node.pcie_bandwidth = 0;  // and two pairs have no NVLink
  CHECK_NOTHROW(make_cluster(leaf_spine(4, 4, 2, 2, 2, 1)));
  CHECK_NOTHROW(make_cluster(mesh_nodes(2)));
  for (std::size_t i = 0; i < bad.size(); ++i) {
    CAPTURE(i);
    CHECK_THROWS_AS(make_cluster(bad[i]), InputError);
  }
}
