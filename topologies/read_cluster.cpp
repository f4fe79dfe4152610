#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "topologies/cluster.hpp"
#include "topologies/uplinks.hpp"

namespace rehearse {
namespace {

constexpr double kGb = 1e9 / 8;  // bytes/s of a gigabit a second
constexpr double kGB = 1e9;
constexpr double kMicrosecond = 1e-6;
constexpr Range kBandwidth{1e-6, 1e6};
constexpr Range kLatency{0, 1e6};
constexpr int kMost = 1'000'000;
constexpr std::size_t kMostSlow = 10'000;

constexpr std::array<std::string_view, 4> kInterconnects = {"none", "nvswitch", "nvlink-mesh", "pcie"};
constexpr std::array<std::string_view, 2> kRoutings = {"d-mod-k", "ecmp-hash"};

// Keys of some fabrics only.
struct FabricKey {
  std::string_view name;
  std::vector<Fabric::Kind> kinds;
};

const std::vector<FabricKey>& fabric_keys() {
  using enum Fabric::Kind;
  static const std::vector<FabricKey> keys = {
      {"radix", {leaf_spine, rail, fat_tree}},
      {"nodes_per_leaf", {leaf_spine, rail}},
      {"spines", {leaf_spine, rail}},
      {"oversubscription", {leaf_spine, rail, fat_tree}},
      {"link_gbps", {leaf_spine, rail, fat_tree, ring, torus, dragonfly}},
      {"routing", {leaf_spine, rail, fat_tree}},
      {"dims", {torus}},
      {"groups", {dragonfly}},
      {"routers_per_group", {dragonfly}},
      {"nodes_per_router", {dragonfly}},
      {"global_gbps", {dragonfly}}};
  return keys;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The path of a preset, or an error at `key` with the nearest name.
std::string checked_preset(Section& section, std::string_view key, std::string_view folder) {
  const std::vector<std::string> known = preset_names(folder);
  if (!section.has(key)) section.refuse(key, "missing", listed(known));
  const std::string name = section.text(key);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = nearest_name(name, known);
    section.refuse(key, '"' + name + '"',
                   listed(known) + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return preset_path(folder, name);
}

std::string beside(const std::string& folder, const std::string& file) {
  const std::filesystem::path path(file);
  return path.is_absolute() || folder.empty() ? file : (std::filesystem::path(folder) / path).string();
}

Device device_of(Section& section, const std::string& folder) {
  if (section.has("device_file")) {
    if (section.has("device"))
      section.refuse("device", "given beside device_file", "one of device, device_file");
    Document document = Document::parse_file(beside(folder, section.text("device_file")));
    Section root = document.root();
    return read_device(root);
  }
  if (section.is_table("device")) {  // a device file's keys, here
    Section device = section.section("device");
    return read_device(device);
  }
  Document document = Document::parse_file(checked_preset(section, "device", "topologies/devices"));
  Section root = document.root();
  return read_device(root);
}

Node read_node(Section& section, const std::string& folder) {
  Node node;
  node.device = device_of(section, folder);
  node.devices = static_cast<int>(section.integer("devices", 1, 4096));
  const std::size_t fallback = node.devices == 1 ? 0 : 1;
  std::optional<std::size_t> interconnect;
  if (node.devices == 1) interconnect = fallback;
  using enum Node::Interconnect;
  constexpr std::array<Node::Interconnect, 4> kInOrder = {none, nvswitch, nvlink_mesh, pcie};
  node.interconnect = kInOrder[section.choice("interconnect", kInterconnects, interconnect)];
  if (node.interconnect == none && node.devices > 1)
    section.refuse("interconnect", "\"none\" between several devices",
                   "nvswitch, nvlink-mesh, pcie; or devices = 1");
  if (node.interconnect == nvswitch || node.interconnect == nvlink_mesh)
    node.device_bandwidth = section.number("nvlink_gb_per_s", kBandwidth) * kGB;
  node.device_latency_s = section.number("device_latency_us", kLatency, 0) * kMicrosecond;
  const bool pcie_needed = node.interconnect == Node::Interconnect::pcie;
  const std::optional<double> no_pcie = pcie_needed ? std::nullopt : std::optional<double>(0);
  node.pcie_bandwidth = section.number("pcie_gb_per_s", kBandwidth, no_pcie) * kGB;
  for (Section& level : section.sections("pcie_switch")) {
    Node::PcieSwitches& s = node.pcie_switches.emplace_back();
    const int below = node.pcie_switches.size() > 1 ? node.pcie_switches.end()[-2].devices : 1;
    s.devices = static_cast<int>(level.integer("devices", 2, 4096));
    if (s.devices <= below || s.devices % below != 0)
      level.refuse(
          "devices", fmt::format("{}", s.devices),
          fmt::format("a multiple of {} above it, as a switch of the level before joins {}", below, below));
    s.bandwidth = level.number("gb_per_s", kBandwidth) * kGB;
    level.finish();
    if (node.pcie_bandwidth <= 0)
      section.refuse("pcie_switch", "given without pcie_gb_per_s", "both of them");
    if (node.pcie_switches.size() > 8) section.refuse("pcie_switch", "more than 8 levels", "at most 8");
  }
  if (node.interconnect == nvlink_mesh) {
    for (Section& link : section.sections("nvlink")) {
      Node::MeshLink& m = node.mesh.emplace_back();
      m.a = static_cast<int>(link.integer("a", 0, node.devices - 1));
      m.b = static_cast<int>(link.integer("b", 0, node.devices - 1));
      m.count = static_cast<int>(link.integer("count", 1, 64, 1));
      if (m.a == m.b) link.refuse("b", fmt::format("{}, as a", m.b), "another device");
      link.finish();
    }
  }
  for (Section& ring : section.sections("ring")) {
    std::vector<int>& order = node.rings.emplace_back();
    for (const std::int64_t device : ring.integers("order", 0, node.devices - 1))
      order.push_back(static_cast<int>(device));
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (twice || static_cast<int>(order.size()) != node.devices)
      ring.refuse("order", fmt::format("{} devices{}", order.size(), twice ? ", one of them twice" : ""),
                  fmt::format("each of the devices 0 to {} once", node.devices - 1));
    ring.finish();
    if (node.rings.size() > 64) section.refuse("ring", "more than 64 rings", "at most 64");
  }
  node.nics = static_cast<int>(section.integer("nics", 1, 256, 1));
  node.nic_bandwidth = section.number("nic_gbps", kBandwidth, 0) * kGb;
  node.cpu_cores = static_cast<int>(section.integer("cpu_cores", 1, 65'536, 1));
  node.cpu_memory_bandwidth = 1e9 * section.number("cpu_gb_per_s", kNotNegative, 0.0);
  section.finish();
  return node;
}

// Leaves the first `devices` devices of the node and what joins them.
void use_devices(Node& node, int devices) {
  node.nics = std::max(1, static_cast<int>(std::int64_t{node.nics} * devices / node.devices));
  node.devices = devices;
  std::erase_if(node.mesh, [&](const Node::MeshLink& m) { return m.a >= devices || m.b >= devices; });
  for (std::vector<int>& ring : node.rings)
    std::erase_if(ring, [&](int device) { return device >= devices; });
}

// What [fabric] and the overrides in [cluster] say, before anything follows from it.
class FabricKeys {
public:
  std::optional<std::size_t> kind, routing;
  std::optional<double> oversubscription, link_gbps, global_gbps, latency_us;
  std::optional<int> radix, nodes_per_leaf, spines, groups, routers_per_group, nodes_per_router;
  std::vector<int> dims;

  Fabric::Kind fabric() const { return static_cast<Fabric::Kind>(kind.value_or(0)); }

  void read(Section& s) {
    take(s, "kind", kind, s.choice("kind", kFabricNames, 0));
    for (const FabricKey& key : fabric_keys())
      if (s.has(key.name) && std::find(key.kinds.begin(), key.kinds.end(), fabric()) == key.kinds.end())
        s.refuse(key.name, "given", "only with kind = " + quoted(key.kinds));
    if (s.has("radix")) nodes_per_leaf.reset();  // it follows anew
    take(s, "routing", routing, s.choice("routing", kRoutings, 0));
    take(s, "oversubscription", oversubscription, s.number("oversubscription", {0.001, 1000}, 1));
    take(s, "link_gbps", link_gbps, s.number("link_gbps", kBandwidth, 1));
    take(s, "latency_us", latency_us, s.number("latency_us", kLatency, 0));
    take(s, "nodes_per_leaf", nodes_per_leaf, static_cast<int>(s.integer("nodes_per_leaf", 1, kMost, 1)));
    take(s, "spines", spines, static_cast<int>(s.integer("spines", 1, 65'536, 1)));
    take(s, "radix", radix, static_cast<int>(s.integer("radix", 2, 65'536, 2)));
    if (fabric() == Fabric::Kind::fat_tree && s.has("radix") && (*radix % 2 != 0 || *radix > 1024))
      s.refuse("radix", fmt::format("{} ports", *radix), "2 to 1,024, even");
    take(s, "groups", groups, static_cast<int>(s.integer("groups", 1, 16'384, 1)));
    take(s, "routers_per_group", routers_per_group,
         static_cast<int>(s.integer("routers_per_group", 1, 4096, 1)));
    take(s, "nodes_per_router", nodes_per_router,
         static_cast<int>(s.integer("nodes_per_router", 1, kMost, 1)));
    take(s, "global_gbps", global_gbps, s.number("global_gbps", kBandwidth, 1));
    const std::vector<std::int64_t> given = s.integers("dims", 1, kMost);
    if (given.size() > 8) s.refuse("dims", fmt::format("{} dimensions", given.size()), "1 to 8");
    if (s.has("dims")) dims.assign(given.begin(), given.end());
  }

private:
  static std::string quoted(const std::vector<Fabric::Kind>& kinds) {
    std::string text;
    for (const Fabric::Kind k : kinds)
      text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", kFabricNames[static_cast<std::size_t>(k)]);
    return text;
  }
  // Every key is read, so that all are known to "did you mean"; only what is given overrides.
  template <class T>
  static void take(const Section& s, std::string_view key, std::optional<T>& to, T value) {
    if (s.has(key)) to = value;
  }
};

Fabric make_fabric(const FabricKeys& keys, const Node& node, const Section& section) {
  Fabric fabric;
  using enum Fabric::Kind;
  fabric.kind = keys.fabric();
  fabric.latency_s = keys.latency_us.value_or(0) * kMicrosecond;
  if (fabric.kind == single_switch || fabric.kind == links) return fabric;
  const std::string name = fmt::format("\"{}\"", kFabricNames[static_cast<std::size_t>(fabric.kind)]);
  fabric.link_bandwidth = keys.link_gbps ? *keys.link_gbps * kGb : node.nic_bandwidth;
  if (fabric.kind == ring || fabric.kind == torus) {
    if (fabric.link_bandwidth <= 0)
      section.refuse("kind", name + " with neither NICs nor link_gbps", "node.nic_gbps or link_gbps above 0");
    if (fabric.kind == torus && keys.dims.empty()) section.refuse("kind", name + " without dims", "dims");
    fabric.dims = keys.dims;
    return fabric;
  }
  if (node.nic_bandwidth <= 0) section.refuse("kind", name + " without NICs", "node.nic_gbps above 0");
  if (fabric.kind == dragonfly) {
    if (!keys.routers_per_group || !keys.nodes_per_router)
      section.refuse("kind", name + " without routers_per_group or nodes_per_router", "both of them");
    fabric.groups = keys.groups.value_or(0);
    fabric.routers_per_group = *keys.routers_per_group;
    fabric.nodes_per_router = *keys.nodes_per_router;
    fabric.global_bandwidth = keys.global_gbps ? *keys.global_gbps * kGb : fabric.link_bandwidth;
    return fabric;
  }
  fabric.routing = static_cast<Fabric::Routing>(keys.routing.value_or(0));
  if (fabric.kind == fat_tree) {
    if (!keys.radix) section.refuse("kind", name + " without radix", "radix, even");
    fabric.radix = *keys.radix;
    fabric.oversubscription = keys.oversubscription.value_or(1);
    return fabric;
  }
  const int nics_a_leaf = fabric.kind == rail ? 1 : node.nics;  // of one node
  fabric.spines = keys.spines.value_or(0);
  if (!keys.nodes_per_leaf && !keys.radix)
    section.refuse("kind", name + " with neither radix nor nodes_per_leaf", "one of them");
  fabric.oversubscription = keys.oversubscription.value_or(1);
  if (keys.nodes_per_leaf) {
    fabric.nodes_per_leaf = *keys.nodes_per_leaf;
    // Both sides of a leaf are given: the ratio follows.
    if (keys.spines && keys.link_gbps && !keys.oversubscription)
      fabric.oversubscription =
          fabric.nodes_per_leaf * nics_a_leaf * node.nic_bandwidth / (fabric.spines * fabric.link_bandwidth);
    return fabric;
  }
  // A leaf's ports: one a NIC below, and above as many as carry the NICs' bandwidth over the
  // oversubscription.
  // Given spines have no say in it.
  const double ports_a_node =
      nics_a_leaf * (1 + node.nic_bandwidth / (fabric.oversubscription * fabric.link_bandwidth));
  const double fitting = std::floor(*keys.radix / ports_a_node + 1e-9);
  double needed = std::ceil(ports_a_node - 1e-9);
  for (fabric.nodes_per_leaf = static_cast<int>(fitting); fabric.nodes_per_leaf >= 1;
       --fabric.nodes_per_leaf) {
    if (fabric.spines > 0) return fabric;
    const std::int64_t ports = ports_below_leaf(fabric, node);
    needed = static_cast<double>(ports) + fewest_uplinks(fabric, node, ports).spines;
    if (needed <= *keys.radix) return fabric;
  }
  section.refuse("radix", fmt::format("{} ports", *keys.radix),
                 fmt::format("at least {} for one node's NICs and their uplinks", needed));
}

void read_links(Section& section, ClusterParts& parts) {
  parts.place = section.place("link");
  for (Section& link : section.sections("link")) {
    ClusterParts::GraphLink& l = parts.graph.emplace_back();
    l.place = link.place();
    l.a = link.text("a");
    l.b = link.text("b");
    l.bandwidth = link.number("gbps", kBandwidth) * kGb;
    l.latency_s = link.number("latency_us", kLatency, parts.fabric.latency_s / kMicrosecond) * kMicrosecond;
    link.finish();
  }
}

void read_slow(Section& section, ClusterParts& parts) {
  std::vector<Section> slow = section.sections("slow");
  if (slow.empty()) return;
  if (slow.size() > kMostSlow)
    section.refuse("slow", fmt::format("{} slow devices and links", slow.size()),
                   fmt::format("at most {}", kMostSlow));
  const auto whole = make_cluster(parts);  // for the names of its links
  for (Section& s : slow) {
    const double factor = s.number("factor", {0, 1000, true});
    if (s.has("device") == s.has("link"))
      throw InputError(s.place(),
                       fmt::format("{} names {}; allowed: one of device, link", s.path(),
                                   s.has("device") ? "both a device and a link" : "no device and no link"));
    if (s.has("device")) {
      parts.slow_devices.push_back({static_cast<int>(s.integer("device", 0, whole->devices() - 1)), factor});
    } else {
      const std::string name = s.text("link");
      if (whole->find_links(name).empty())
        s.refuse("link", '"' + name.substr(0, 100) + '"',
                 whole->links() > 0 ? "a link of the cluster, such as \"" + whole->link_name(0) + "\" or \"" +
                                          whole->link_name(whole->links() - 1) + '"'
                                    : "nothing: the cluster has no links");
      parts.slow_links.push_back({name, factor});
    }
    s.finish();
  }
}

// Node, fabric, links and sources: of a cluster file, or of [cluster] itself.
void read_body(Section& body, const std::string& folder, ClusterParts& parts, FabricKeys& keys) {
  Section node = body.section("node");
  if (!node.present())
    throw InputError(body.place(),
                     "there is no node; allowed: a table `node` (or a cluster's preset or file)");
  parts.node = read_node(node, folder);
  Section fabric = body.section("fabric");
  keys.read(fabric);
  fabric.finish();
  parts.sources = body.texts("sources");
  parts.network_basis =
      static_cast<Basis>(body.choice("basis", kBasisNames, static_cast<std::size_t>(Basis::guess)));
}

}  // namespace

std::vector<std::string> cluster_names() {
  return preset_names("topologies");
}

std::shared_ptr<const Cluster> read_cluster(Section& section, const std::string& base_folder) {
  ClusterParts parts;
  parts.place = section.place();
  FabricKeys keys;
  const bool preset = section.has("preset"), file = section.has("file");
  if (preset && file) section.refuse("file", "given beside preset", "one of preset, file");
  if ((preset || file) && (section.has("node") || section.has("fabric") || section.has("link")))
    section.refuse(section.has("node")     ? "node"
                   : section.has("fabric") ? "fabric"
                                           : "link",
                   preset ? "given beside preset" : "given beside file",
                   "keys of [fabric] and nic_gbps, in [cluster] itself");

  std::int64_t nodes = 1, server_nodes = 0;
  Section body = section;
  std::optional<Document> document;
  if (preset || file) {
    const std::string path =
        preset ? checked_preset(section, "preset", "topologies") : beside(base_folder, section.text("file"));
    document = Document::parse_file(path);
    body = document->root();
    const std::filesystem::path at(path);
    parts.name = body.text("name", at.stem().string());
    body.text("title", "");
    read_body(body, at.parent_path().string(), parts, keys);
    nodes = body.integer("nodes", 1, kMost, 1);
    server_nodes = body.integer("server_nodes", 0, kMost, 0);
  } else {
    parts.name = section.text("name", "node");
    read_body(section, base_folder, parts, keys);
  }
  use_devices(parts.node, static_cast<int>(section.integer("devices_per_node", 1, parts.node.devices,
                                                           parts.node.devices)));
  const double nic_gbps = section.number("nic_gbps", kBandwidth, 0);
  if (nic_gbps > 0) parts.node.nic_bandwidth = nic_gbps * kGb;
  keys.read(section);
  const bool overridden = section.has("radix") || section.has("kind") || !document;
  parts.fabric = make_fabric(keys, parts.node, overridden ? section : body.section("fabric"));
  parts.nodes = static_cast<int>(section.integer("nodes", 1, kMost, nodes));
  parts.server_nodes = static_cast<int>(section.integer("server_nodes", 0, kMost, server_nodes));
  Section& with_links = document ? body : section;
  if (parts.fabric.kind == Fabric::Kind::links)
    read_links(with_links, parts);
  else if (with_links.has("link"))
    with_links.refuse("link", "given", "only with kind = \"links\"");
  if (document) body.finish();
  read_slow(section, parts);
  section.finish();
  return make_cluster(parts);
}

}  // namespace rehearse
