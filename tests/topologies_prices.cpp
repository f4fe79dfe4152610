// Checks price lists, and the power that devices and clusters draw.
#include "topologies/prices.hpp"

#include "tests/bad_inputs.hpp"
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

std::shared_ptr<const Cluster> cluster_with(const std::string& keys) {
  Document document = Document::parse_text("[cluster]\n" + keys, "job.toml");
  Section section = document.root().section("cluster");
  return read_cluster(section, "");
}

bool is_sourced(const Sourced& number) {
  return number.value > 0 && number.source.size() >= 5 && number.source != "not given";
}

}  // namespace

TEST_CASE("every shipped device and cluster has a price and its power, each with a source") {
  const PriceList list = shipped_prices();
  CHECK(list.currency == "USD");
  REQUIRE(list.per_server_hour);
  CHECK(is_sourced(*list.per_server_hour));
  REQUIRE(list.pue);
  CHECK(is_sourced(*list.pue));
  REQUIRE(list.carbon_g_per_kwh);
  CHECK(is_sourced(*list.carbon_g_per_kwh));
  for (const std::string& name : device_names()) {
    CAPTURE(name);
    const Device device = device_preset(name);
    CHECK(is_sourced(device.power_w));
    CHECK(is_sourced(device.idle_power_w));
    CHECK(device.idle_power_w.value < device.power_w.value);
    const Price* price = find_price(list, name, "somewhere");
    REQUIRE(price != nullptr);
    CHECK(price->device == name);
    CHECK(is_sourced(price->per_device_hour));
  }
  for (const std::string& name : cluster_names()) {
    CAPTURE(name);
    const auto cluster = cluster_with("preset = \"" + name + "\"\n");
    const NodePower& power = cluster->node().power;
    CHECK(is_sourced(power.host));
    CHECK(is_sourced(power.host_idle));
    CHECK(is_sourced(power.nic));
    const bool switches = cluster->fabric().kind != Fabric::Kind::torus;
    CHECK(is_sourced(cluster->fabric().port_power.use) == switches);
    CHECK(is_sourced(cluster->fabric().port_power.idle) == switches);
    CHECK(find_price(list, cluster->node().device.name, name) != nullptr);
  }
  // An entry that names no existing device or cluster would never be used.
  const auto devices = device_names(), clusters = cluster_names();
  const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
    return name.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Price& price : list.prices) {
    CAPTURE(price.device, price.cluster);
    CHECK(is_among(devices, price.device));
    CHECK(is_among(clusters, price.cluster));
  }
}

TEST_CASE("the price that names most counts") {
  const char* entry = "basis = \"measured\"\nsource = \"a bill\"\ndate = \"2025-06-05\"\n";
  std::string text = "currency = \"EUR\"\n";
  for (const char* names : {"per_device_hour = 1", "device = \"chip\"\nper_device_hour = 2",
                            "cluster = \"lab\"\nper_device_hour = 3",
                            "cluster = \"lab\"\ndevice = \"chip\"\nper_device_hour = 4"})
    text += std::string("[[price]]\n") + names + "\n" + entry;
  Document document = Document::parse_text(text, "prices.toml");
  Section root = document.root();
  const PriceList list = read_prices(root);
  CHECK(list.title == "prices");
  CHECK(list.currency == "EUR");
  CHECK_FALSE(list.pue);
  CHECK_FALSE(list.per_server_hour);
  struct Case {
    const char *device, *cluster;
    double price;
  };
  for (const Case& c : {Case{"other", "there", 1}, Case{"chip", "there", 2}, Case{"other", "lab", 3},
                        Case{"chip", "lab", 4}}) {
    CAPTURE(c.device, c.cluster);
    CHECK(find_price(list, c.device, c.cluster)->per_device_hour.value == c.price);
  }
  CHECK(list.prices.front().per_device_hour.source == "a bill, 2025-06-05");
  CHECK(find_price(PriceList{}, "chip", "lab") == nullptr);
}

TEST_CASE("every bad list of prices is refused in the expected words") {
  test::check_bad_inputs("prices", ".toml", 8, [](const std::string& file) {
    Document document = Document::parse_file(file);
    Section root = document.root();
    read_prices(root);
  });
}

TEST_CASE("ports of switches are those that cables lead to") {
  struct Case {
    const char* keys;
    std::int64_t ports;
  };
  for (const Case& c : {
           Case{"preset = \"dgx-a100\"\nnodes = 1\n", 0},
           Case{"preset = \"ethernet\"\nnodes = 5\nserver_nodes = 2\n", 7},
           Case{"preset = \"tpu-v4\"\n", 0},
           // A fat tree with 4 ports per switch and one NIC per node: two pods of 4 nodes; 8 NICs, and 2 x 2
           // x 2 cables each below and above the aggregation switches.
           Case{"preset = \"ethernet\"\nnodes = 8\nkind = \"fat-tree\"\nradix = 4\n", 8 + 2 * (8 + 8)},
           // Two nodes and a switch: two cable ends at the switch.
           Case{"preset = \"ethernet\"\nnodes = 2\nkind = \"links\"\nlink = [{a = \"node0\", b = \"s\", gbps "
                "= 1}, "
                "{a = \"s\", b = \"node1\", gbps = 1}]\n",
                2},
       }) {
    CAPTURE(c.keys);
    CHECK(cluster_with(c.keys)->switch_ports() == c.ports);
  }
}

TEST_CASE("a scenario sets the power of parts, which leaves the network's basis as it is") {
  const std::string preset = "preset = \"dgx-a100\"\nnodes = 2\n";
  const auto plain = cluster_with(preset);
  const auto changed = cluster_with(preset +
                                    "[cluster.node.host_power_w]\nvalue = 1500\n"
                                    "[cluster.fabric.port_power_w]\nvalue = 15\n");
  CHECK(changed->node().power.host.value == 1500);
  CHECK(changed->node().power.host.basis == Basis::guess);
  CHECK(changed->node().power.host.source == "set by the scenario, instead of 1890");
  CHECK(changed->node().power.host_idle.value == plain->node().power.host_idle.value);
  CHECK(changed->fabric().port_power.use.value == 15);
  CHECK(changed->fabric().port_power.use.source == "set by the scenario, instead of 11");
  CHECK(changed->network_basis == plain->network_basis);
  CHECK(changed->sources == plain->sources);
  CHECK(changed->title == "2 x dgx-a100, but for host_power_w, port_power_w (16 GPUs)");
  // If only part of a node is used, the entire machine still draws power and is paid for.
  const auto part = cluster_with(preset + "devices_per_node = 2\n");
  CHECK(part->node().devices == 2);
  CHECK(part->node().whole_devices == 8);
  CHECK(part->node().whole_nics == 8);
}
