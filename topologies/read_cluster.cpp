#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/text/printable.hpp"
#include "models/text/toml_table.hpp"
#include "topologies/cluster.hpp"
#include "topologies/read_node.hpp"
#include "topologies/uplinks.hpp"

namespace rehearse {
namespace {

constexpr int kMost = 1'000'000;
constexpr std::size_t kMostSlow = 10'000;

constexpr std::array<std::string_view, 2> kRoutings = {"d-mod-k", "ecmp-hash"};

// Keys that apply only to some fabrics.
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
      {"sharp", {single_switch, leaf_spine, rail, fat_tree}},
      {"dims", {torus}},
      {"groups", {dragonfly}},
      {"routers_per_group", {dragonfly}},
      {"nodes_per_router", {dragonfly}},
      {"global_gbps", {dragonfly}}};
  return keys;
}

// Reduces the node to its first `devices` devices and the links between them.
void use_devices(Node& node, int devices) {
  node.whole_devices = node.devices;
  node.whole_nics = node.nics;
  node.nics = std::max(1, static_cast<int>(std::int64_t{node.nics} * devices / node.devices));
  node.devices = devices;
  std::erase_if(node.mesh, [&](const Node::MeshLink& m) { return m.a >= devices || m.b >= devices; });
  for (std::vector<int>& ring : node.rings)
    std::erase_if(ring, [&](int device) { return device >= devices; });
}

// The keys of [fabric] and the overrides in [cluster], before anything is derived from them.
class FabricKeys {
public:
  std::optional<std::size_t> kind, routing;
  std::optional<double> oversubscription, link_gbps, global_gbps, latency_us;
  std::optional<int> radix, nodes_per_leaf, spines, groups, routers_per_group, nodes_per_router;
  std::optional<bool> sharp;
  std::vector<int> dims;

  Fabric::Kind fabric() const { return static_cast<Fabric::Kind>(kind.value_or(0)); }

  void read(Section& s) {
    take(s, "kind", kind, s.choice("kind", kFabricNames, 0));
    for (const FabricKey& key : fabric_keys())
      if (s.has(key.name) && std::find(key.kinds.begin(), key.kinds.end(), fabric()) == key.kinds.end())
        s.refuse(key.name, "given", "only with kind = " + quoted(key.kinds));
    if (s.has("radix")) nodes_per_leaf.reset();  // it is derived again
    take(s, "routing", routing, s.choice("routing", kRoutings, 0));
    take(s, "sharp", sharp, s.boolean("sharp", false));
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
  // All keys are read, so that all are known to "did you mean"; only given ones override.
  template <class T>
  static void take(const Section& s, std::string_view key, std::optional<T>& to, T value) {
    if (s.has(key)) to = value;
  }
};

Fabric make_fabric(const FabricKeys& keys, const Node& node, const Section& section) {
  Fabric fabric;
  using enum Fabric::Kind;
  fabric.kind = keys.fabric();
  fabric.latency_s = keys.latency_us.value_or(0) * kMicro;
  fabric.sharp = keys.sharp.value_or(false);
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
  const int nics_a_leaf = fabric.kind == rail ? 1 : node.nics;  // NICs of one node
  fabric.spines = keys.spines.value_or(0);
  if (!keys.nodes_per_leaf && !keys.radix)
    section.refuse("kind", name + " with neither radix nor nodes_per_leaf", "one of them");
  fabric.oversubscription = keys.oversubscription.value_or(1);
  if (keys.nodes_per_leaf) {
    fabric.nodes_per_leaf = *keys.nodes_per_leaf;
    // Both sides of a leaf are given: derive the ratio.
    if (keys.spines && keys.link_gbps && !keys.oversubscription)
      fabric.oversubscription =
          fabric.nodes_per_leaf * nics_a_leaf * node.nic_bandwidth / (fabric.spines * fabric.link_bandwidth);
    return fabric;
  }
  // Ports of a leaf: one per NIC below, and enough above to carry the bandwidth of the NICs divided by the
  // oversubscription. A given number of spines does not affect this.
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
    l.latency_s = link.number("latency_us", kLatency, parts.fabric.latency_s / kMicro) * kMicro;
    link.finish();
  }
}

// Parses [[cluster.group]]: further nodes, which differ in their devices.
void read_groups(Section& section, ClusterParts& parts) {
  for (Section& one : section.sections("group")) {
    ClusterParts::Group group;
    group.nodes = static_cast<int>(one.integer("nodes", 1, kMost, 1));
    checked_preset(one, "device", "topologies/devices");
    group.device = device_preset(one.text("device"));
    const bool gpus = parts.node.device.compute_capability > 0;
    if ((group.device.compute_capability > 0) != gpus)
      one.refuse("device", '"' + group.device.name + '"',
                 gpus ? "a GPU, as the other nodes have" : "a processor, as the other nodes have");
    one.finish();
    parts.groups.push_back(std::move(group));
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
                                    : "none: the cluster has no links");
      parts.slow_links.push_back({name, factor});
    }
    s.finish();
  }
}

// The preset or file of a cluster that [cluster] names.
struct ClusterFile {
  Document document;
  Section root;
  std::string folder;  // base of the file names in it: relative to the scenario's folder, or absolute
  std::string name;
  Node node;  // as given in the file
  Fabric::Kind kind = Fabric::Kind::single_switch;
  std::vector<std::string> sources;
  Basis basis = Basis::guess;
  std::int64_t nodes = 1, server_nodes = 0;
};

constexpr const char* kNoNode = "there is no node; allowed: a table `node` (or a cluster's preset or file)";

Basis read_basis(Section& section, Basis fallback) {
  return static_cast<Basis>(section.choice("basis", kBasisNames, static_cast<std::size_t>(fallback)));
}

// Reads the file separately, so that its errors name the file's own keys.
ClusterFile read_cluster_file(Section& section, const std::string& base_folder) {
  const bool preset = section.has("preset");
  if (preset && section.has("file")) section.refuse("file", "given with preset", "one of preset, file");
  std::string path, folder;
  if (preset) {
    path = checked_preset(section, "preset", "topologies");
    folder = std::filesystem::absolute(path).parent_path().string();
  } else {
    const std::string named = section.text("file");
    path = beside(base_folder, named);
    folder = std::filesystem::path(named).parent_path().string();
  }
  Document document = Document::parse_file(path);
  ClusterFile file{.document = document, .root = document.root(), .folder = folder};
  Section& root = file.root;
  file.name = root.text("name", title_of_file(path));
  root.text("title", "");
  Section node = root.section("node"), fabric = root.section("fabric");
  if (!node.present()) throw InputError(root.place(), kNoNode);
  file.node = read_node(node, std::filesystem::path(path).parent_path().string());
  FabricKeys keys;
  keys.read(fabric);
  file.kind = keys.fabric();
  read_port_power(fabric);
  fabric.finish();
  file.sources = root.texts("sources");
  file.basis = read_basis(root, Basis::guess);
  file.nodes = root.integer("nodes", 1, kMost, 1);
  file.server_nodes = root.integer("server_nodes", 0, kMost, 0);
  root.expect({"link"});
  root.finish();
  if (file.kind != Fabric::Kind::links && root.has("link"))
    root.refuse("link", "given", "only with kind = \"links\"");
  return file;
}

// Adds what `fabric` leaves out, except the keys of another kind. Returns the keys that `fabric` changes.
std::vector<std::string> fill_in_fabric(TomlValue& fabric, TomlValue base) {
  const std::vector<std::string> changed = changed_keys(fabric, base);
  const TomlEntry* entry = find_entry(fabric, "kind");
  const auto* kind = entry ? entry->value.get<std::string>() : nullptr;
  for (const FabricKey& key : fabric_keys())
    if (kind && std::none_of(key.kinds.begin(), key.kinds.end(), [&](Fabric::Kind k) {
          return kFabricNames[static_cast<std::size_t>(k)] == *kind;
        }))
      erase_key(base, key.name);
  if (find_entry(fabric, "radix")) erase_key(base, "nodes_per_leaf");  // it is derived again
  for (const std::string_view key : kPortPowerKeys)
    if (TomlValue* constant = find_table(fabric, key))
      mark_changed_value(*constant, find_table(base, key) ? *find_table(base, key) : toml_table());
  fill_in(fabric, base);
  return changed;
}

// Completes the node and the fabric of [cluster] from the file that it names. Returns the keys that [cluster]
// changes, except the device's.
std::vector<std::string> fill_in_cluster(Section& section, const ClusterFile& file) {
  TomlValue& own = *section.tree();
  const auto table = [](const TomlValue& root, std::string_view key) {
    const TomlValue* found = find_table(root, key);
    return found ? *found : toml_table();
  };
  const TomlValue base_node = table(file.document.tree(), "node"),
                  base_fabric = table(file.document.tree(), "fabric");
  for (const auto& [key, base] : {std::pair{"node", &base_node}, std::pair{"fabric", &base_fabric}})
    if (!section.section(key).present()) put(own, key, toml_table(base->place));
  std::vector<std::string> changed = fill_in_node(*find(own, "node"), base_node, file.folder);
  const auto add = [&](const std::string& key) {
    if (std::find(changed.begin(), changed.end(), key) == changed.end()) changed.push_back(key);
  };
  for (const std::string& path : fill_in_fabric(*find(own, "fabric"), base_fabric))
    add(path.substr(0, path.find('.')));
  // The keys of both can also be in [cluster] itself.
  const auto compare = [&](std::string_view key, const TomlValue& base) {
    const TomlEntry *here = find_entry(own, key), *there = find_entry(base, key);
    if (here && !(there && same_value(here->value, there->value))) add(std::string(key));
  };
  compare("nic_gbps", base_node);
  for (const std::string_view key : {"kind", "latency_us"}) compare(key, base_fabric);
  for (const FabricKey& key : fabric_keys()) compare(key.name, base_fabric);
  compare("link", file.document.tree());
  return changed;
}

// Records the differences from the file: the title lists them, and the network no longer relies only on the
// file's sources.
void note_changes(ClusterParts& parts, const ClusterFile& file, std::vector<std::string> changed) {
  constexpr std::array<std::string_view, 2> kOfProcessors = {"cpu_cores", "cpu_gb_per_s"};
  const auto is_among = [](const auto& keys, const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  std::vector<std::string> network = changed;
  std::erase_if(network, [&](const std::string& key) {
    return is_among(kOfProcessors, key) || is_among(kNodePowerKeys, key) || is_among(kPortPowerKeys, key);
  });
  const Device &device = parts.node.device, &before = file.node.device;
  if (device.name != before.name || device.title != before.title) changed.insert(changed.begin(), "device");
  parts.changes = but_for(changed);
  parts.sources = file.sources;
  parts.network_basis = file.basis;
  if (network.empty()) return;
  parts.sources.push_back(changed_by_scenario(network));
  parts.network_basis = Basis::guess;
}

}  // namespace

std::vector<std::string> cluster_names() {
  return preset_names("topologies");
}

std::shared_ptr<const Cluster> read_cluster(Section& section, const std::string& base_folder,
                                            const std::vector<Storage>& storages) {
  section.expect({"preset", "file", "name", "title", "basis", "sources", "nodes", "server_nodes",
                  "devices_per_node", "node", "fabric", "link", "slow", "group"});
  ClusterParts parts;
  parts.place = section.place();
  parts.storages = storages;
  std::optional<ClusterFile> file;
  std::vector<std::string> changed;
  const bool own_fabric = section.has("fabric");
  if (section.has("preset") || section.has("file")) {
    file = read_cluster_file(section, base_folder);
    changed = fill_in_cluster(section, *file);
  }
  parts.name = section.text("name", file ? file->name : "node");
  section.text("title", "");
  Section node = section.section("node"), fabric = section.section("fabric");
  if (!node.present()) throw InputError(section.place(), kNoNode);
  parts.node = read_node(node, base_folder);
  if (file) note_changes(parts, *file, changed);
  const std::vector<std::string> sources = section.texts("sources");
  if (section.has("sources")) parts.sources = sources;
  parts.network_basis = read_basis(section, file ? parts.network_basis : Basis::guess);
  FabricKeys keys;
  keys.read(fabric);
  const PortPower port_power = read_port_power(fabric);
  fabric.finish();

  use_devices(parts.node, static_cast<int>(section.integer("devices_per_node", 1, parts.node.devices,
                                                           parts.node.devices)));
  // Keys in [cluster] itself take precedence over those of [cluster.node] and [cluster.fabric].
  const double nic_gbps = section.number("nic_gbps", kBandwidth, 0);
  if (nic_gbps > 0) parts.node.nic_bandwidth = nic_gbps * kGb;
  keys.read(section);
  section.finish();
  const bool here = section.has("radix") || section.has("kind") || !file;
  parts.fabric = make_fabric(keys, parts.node,
                             here         ? section
                             : own_fabric ? fabric
                                          : file->root.section("fabric"));
  parts.fabric.port_power = port_power;
  parts.nodes = static_cast<int>(section.integer("nodes", 1, kMost, file ? file->nodes : 1));
  parts.server_nodes =
      static_cast<int>(section.integer("server_nodes", 0, kMost, file ? file->server_nodes : 0));
  if (parts.fabric.kind == Fabric::Kind::links)
    read_links(file && !section.has("link") ? file->root : section, parts);
  else if (section.has("link"))
    section.refuse("link", "given", "only with kind = \"links\"");
  read_groups(section, parts);
  read_slow(section, parts);
  return make_cluster(parts);
}

}  // namespace rehearse
