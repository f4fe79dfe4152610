#include "topologies/read_node.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 4> kInterconnects = {"none", "nvswitch", "nvlink-mesh", "pcie"};
constexpr const char* kGBPerS = "a number, in GB/s";

// Applies mark_changed_value() to all constants in `device`.
void mark_changed_values(TomlValue& device, const TomlValue& base) {
  for (TomlEntry& entry : *device.get<TomlValue::Table>()) {
    if (!entry.value.get<TomlValue::Table>()) continue;
    const TomlValue none = toml_table();
    const TomlValue* other = find_table(base, entry.key);
    if (!other) other = &none;
    if (find_entry(entry.value, "value"))
      mark_changed_value(entry.value, *other);
    else  // a table by precision, or a constant without a new value
      mark_changed_values(entry.value, *other);
  }
}

// Returns "memory_gib" for "memory_gib.value"; "" for keys that describe a value without changing it.
std::string changed_constant(const std::string& key) {
  for (const std::string_view word : {"title", "name", "preset"})
    if (key == word) return "";
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos) return key;
  const std::string last = key.substr(dot + 1);
  if (last == "basis" || last == "source" || last == "uncertainty") return "";
  return last == "value" ? key.substr(0, dot) : key;
}

// Reads the device of the file `path` with the constants that `section` changes.
Device read_changed_device(Section& section, const std::string& path) {
  Document document = Document::parse_file(path);
  Section root = document.root();
  const Device named = read_device(root);  // separately, so that errors name the file's own keys
  TomlValue base = document.tree();
  put(base, "name", toml_value(named.name));
  put(base, "title", toml_value(named.title));
  std::vector<std::string> changed;
  for (const std::string& key : changed_keys(*section.tree(), base)) {
    const std::string constant = changed_constant(key);
    if (!constant.empty()) changed.push_back(constant);
  }
  const bool titled = section.has("title");
  mark_changed_values(*section.tree(), base);
  fill_in(*section.tree(), base);
  Device device = read_device(section);
  if (!titled) device.title += but_for(changed);
  return device;
}

Device read_device_file(const std::string& path) {
  Document document = Document::parse_file(path);
  Section root = document.root();
  return read_device(root);
}

// Reads the device: a preset's name, a file, or a table of a device file's keys, which can be based on
// either.
Device device_of(Section& section, const std::string& folder) {
  const bool table = section.is_table("device"), file = section.has("device_file");
  if (file && section.has("device") && !table)
    section.refuse("device", "given with device_file", "one of device, device_file");
  const std::string path = file ? beside(folder, section.text("device_file")) : "";
  if (!table) return read_device_file(file ? path : checked_preset(section, "device", "topologies/devices"));
  Section device = section.section("device");
  const bool preset = device.has("preset");
  if (file && preset)
    section.refuse("device_file", "given with device.preset", "one of device.preset, device_file");
  device.text("preset", "");
  if (preset) return read_changed_device(device, checked_preset(device, "preset", "topologies/devices"));
  return file ? read_changed_device(device, path) : read_device(device);
}

void read_pcie_switches(Section& section, Node& node) {
  for (Section& level : section.sections("pcie_switch")) {
    Node::PcieSwitches& s = node.pcie_switches.emplace_back();
    const int below = node.pcie_switches.size() > 1 ? node.pcie_switches.end()[-2].devices : 1;
    s.devices = static_cast<int>(level.integer("devices", 2, 4096));
    if (s.devices <= below || s.devices % below != 0)
      level.refuse("devices", fmt::format("{}", s.devices),
                   fmt::format("a larger multiple of {}, because a switch of the previous level joins {}",
                               below, below));
    s.bandwidth = level.number("gb_per_s", kBandwidth) * kGB;
    level.finish();
    if (node.pcie_switches.size() > 8) section.refuse("pcie_switch", "more than 8 levels", "at most 8");
  }
  if (!node.pcie_switches.empty()) section.require("pcie_gb_per_s", "pcie_switch", kGBPerS);
}

void read_sockets(Section& section, Node& node) {
  node.sockets = static_cast<int>(section.integer("sockets", 1, 64, 1));
  node.inter_socket_bandwidth = section.number("inter_socket_gb_per_s", kBandwidth, 0) * kGB;
  if (node.sockets == 1) return;
  section.require("pcie_gb_per_s", "sockets", kGBPerS);
  section.require("inter_socket_gb_per_s", "sockets", kGBPerS);
  const int each = (node.devices + node.sockets - 1) / node.sockets;
  if (!node.pcie_switches.empty() && each % node.pcie_switches.back().devices != 0)
    section.refuse("sockets", fmt::format("{}, with {} devices at each", node.sockets, each),
                   fmt::format("sockets with a multiple of {} devices, because a PCIe switch joins {}",
                               node.pcie_switches.back().devices, node.pcie_switches.back().devices));
}

// Reads the bandwidths of copies between devices and host. By default they follow from PCIe and the uplinks
// of its switches.
void read_host_links(Section& section, Node& node) {
  node.host_link_bandwidth = section.number("host_link_gb_per_s", kBandwidth, 0) * kGB;
  node.host_links_bandwidth = section.number("host_links_gb_per_s", kBandwidth, 0) * kGB;
  if (node.host_link_bandwidth <= 0) node.host_link_bandwidth = node.pcie_bandwidth;
  if (node.host_links_bandwidth > 0) return;
  for (const Node::PcieSwitches& level : node.pcie_switches) {
    const int switches = (node.devices + level.devices - 1) / level.devices;
    const double uplinks = switches * level.bandwidth;
    const double least = node.host_links_bandwidth;
    node.host_links_bandwidth = least > 0 ? std::min(least, uplinks) : uplinks;
  }
}

void read_mesh(Section& section, Node& node) {
  for (Section& link : section.sections("nvlink")) {
    Node::MeshLink& m = node.mesh.emplace_back();
    m.a = static_cast<int>(link.integer("a", 0, node.devices - 1));
    m.b = static_cast<int>(link.integer("b", 0, node.devices - 1));
    m.count = static_cast<int>(link.integer("count", 1, 64, 1));
    if (m.a == m.b) link.refuse("b", fmt::format("{}, as a", m.b), "another device");
    link.finish();
  }
}

void read_rings(Section& section, Node& node) {
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
}

// Keeps the device in `base` only if `node` does not choose another one, in a form that the table in `node`
// can change.
void fit_device(const TomlValue& node, TomlValue& base, const std::string& folder) {
  if (TomlValue* file = find(base, "device_file"))
    if (auto* name = file->get<std::string>()) *name = beside(folder, *name);
  const TomlEntry* own = find_entry(node, "device");
  const bool table = own && own->value.get<TomlValue::Table>();
  const bool another =
      find_entry(node, "device_file") || (own && !table) || (table && find_entry(own->value, "preset"));
  if (another) {
    erase_key(base, "device");
    erase_key(base, "device_file");
    return;
  }
  TomlValue* named = find(base, "device");
  if (!table || !named || !named->get<std::string>()) return;
  TomlValue preset = toml_table(named->place);
  put(preset, "preset", *named);
  *named = std::move(preset);
}

// Reduces the NVLinks and rings in `base` to those of the first `devices` devices.
void fit_devices(TomlValue& base, std::int64_t devices, std::int64_t devices_before) {
  const auto is_gone = [&](const TomlValue& value) {
    const auto* device = value.get<std::int64_t>();
    return device && *device >= devices;
  };
  const auto array_of = [](TomlValue* value) { return value ? value->get<TomlValue::Array>() : nullptr; };
  if (auto* links = array_of(find(base, "nvlink")))
    std::erase_if(*links, [&](const TomlValue& link) {
      const TomlEntry *a = find_entry(link, "a"), *b = find_entry(link, "b");
      return (a && is_gone(a->value)) || (b && is_gone(b->value));
    });
  if (devices > devices_before) erase_key(base, "ring");  // they do not include the new devices
  if (auto* rings = array_of(find(base, "ring")))
    for (TomlValue& ring : *rings)
      if (auto* order = array_of(find(ring, "order"))) std::erase_if(*order, is_gone);
}

}  // namespace

void mark_changed_value(TomlValue& constant, const TomlValue& base) {
  const TomlEntry* given = find_entry(constant, "value");
  if (!given) return;
  const TomlEntry* before = find_entry(base, "value");
  if (before && same_value(given->value, before->value)) return;
  const Place place = given->value.place;
  const std::string source =
      before ? fmt::format("set by the scenario, instead of {}", toml_value_text(before->value))
             : "set by the scenario";
  if (!find_entry(constant, "basis"))
    put(constant, "basis",
        toml_value(std::string(kBasisNames[static_cast<std::size_t>(Basis::guess)]), place));
  if (!find_entry(constant, "source")) put(constant, "source", toml_value(source, place));
  const auto* basis = find_entry(constant, "basis")->value.get<std::string>();
  const auto* known = basis ? std::find(kBasisNames.begin(), kBasisNames.end(), *basis) : kBasisNames.end();
  if (!find_entry(constant, "uncertainty") && known != kBasisNames.end())
    put(constant, "uncertainty",
        toml_value(kDeviationOfBasis[static_cast<std::size_t>(known - kBasisNames.begin())], place));
}

std::string checked_preset(Section& section, std::string_view key, std::string_view folder) {
  const std::vector<std::string> known = preset_names(folder);
  const std::string allowed = allowed_presets(folder);
  section.require(key, "", allowed);
  const std::string name = section.text(key);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = nearest_name(name, known);
    section.refuse(key, '"' + name + '"', allowed + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return preset_path(folder, name);
}

std::string beside(const std::string& folder, const std::string& file) {
  const std::filesystem::path path(file);
  return path.is_absolute() || folder.empty() ? file : (std::filesystem::path(folder) / path).string();
}

Node read_node(Section& section, const std::string& folder) {
  section.expect({"device",
                  "device_file",
                  "devices",
                  "interconnect",
                  "nvlink_gb_per_s",
                  "device_latency_us",
                  "pcie_gb_per_s",
                  "pcie_efficiency",
                  "pcie_switch",
                  "sockets",
                  "inter_socket_gb_per_s",
                  "nvlink",
                  "ring",
                  "nics",
                  "nic_gbps",
                  "nic_latency_us",
                  "nic_efficiency",
                  "nic_ordered",
                  "cpu_cores",
                  "cpu_gb_per_s",
                  "cpu_memory_gib",
                  "host_link_gb_per_s",
                  "host_links_gb_per_s",
                  "nvme_read_gb_per_s",
                  "nvme_write_gb_per_s",
                  "host_power_w",
                  "host_idle_power_w",
                  "nic_power_w"});
  Node node;
  node.device = device_of(section, folder);
  node.devices = static_cast<int>(section.integer("devices", 1, 4096));
  std::optional<std::size_t> interconnect;
  if (node.devices == 1) interconnect = 0;
  using enum Node::Interconnect;
  constexpr std::array<Node::Interconnect, 4> kInOrder = {none, nvswitch, nvlink_mesh, pcie};
  node.interconnect = kInOrder[section.choice("interconnect", kInterconnects, interconnect)];
  if (node.interconnect == none && node.devices > 1)
    section.refuse("interconnect", "\"none\" between several devices",
                   "nvswitch, nvlink-mesh, pcie; or devices = 1");
  const bool nvlinks = node.interconnect == nvswitch || node.interconnect == nvlink_mesh;
  if (nvlinks) section.require("nvlink_gb_per_s", "interconnect", kGBPerS);
  if (node.interconnect == pcie) section.require("pcie_gb_per_s", "interconnect", kGBPerS);
  if (section.has("nvlink_gb_per_s") && !nvlinks)
    section.refuse("nvlink_gb_per_s", "given", "only with interconnect = \"nvswitch\", \"nvlink-mesh\"");
  if (section.has("nvlink") && node.interconnect != nvlink_mesh)
    section.refuse("nvlink", "given", "only with interconnect = \"nvlink-mesh\"");
  node.device_bandwidth = section.number("nvlink_gb_per_s", kBandwidth, 0) * kGB;
  node.device_latency_s = section.number("device_latency_us", kLatency, 0) * kMicro;
  node.pcie_bandwidth = section.number("pcie_gb_per_s", kBandwidth, 0) * kGB;
  node.pcie_efficiency = section.number("pcie_efficiency", kFraction, Node::kPcieEfficiency);
  read_pcie_switches(section, node);
  read_sockets(section, node);
  read_mesh(section, node);
  read_rings(section, node);
  node.nics = static_cast<int>(section.integer("nics", 1, 256, 1));
  node.nic_bandwidth = section.number("nic_gbps", kBandwidth, 0) * kGb;
  node.nic_latency_s = section.number("nic_latency_us", kLatency, 0) * kMicro;
  node.nic_efficiency = section.number("nic_efficiency", kFraction, Node::kNicEfficiency);
  node.nic_ordered = section.boolean("nic_ordered", true);
  node.cpu_cores = static_cast<int>(section.integer("cpu_cores", 1, 65'536, 1));
  node.cpu_memory_bandwidth = 1e9 * section.number("cpu_gb_per_s", kNotNegative, 0.0);
  node.cpu_memory_bytes = 1073741824.0 * section.number("cpu_memory_gib", {0, 1e6, true}, 0);
  read_host_links(section, node);
  node.nvme_read_bandwidth = section.number("nvme_read_gb_per_s", kBandwidth, 0) * kGB;
  node.nvme_write_bandwidth = section.number("nvme_write_gb_per_s", kBandwidth, 0) * kGB;
  node.power = read_node_power(section);
  section.finish();
  return node;
}

std::vector<std::string> fill_in_node(TomlValue& node, TomlValue base, const std::string& folder) {
  fit_device(node, base, folder);
  std::vector<std::string> changed;
  for (const std::string& path : changed_keys(node, base)) {
    const std::string key = path.substr(0, path.find('.'));
    if (key != "device" && key != "device_file") changed.push_back(key);
  }
  for (const std::string_view key : kNodePowerKeys)
    if (TomlValue* constant = find_table(node, key))
      mark_changed_value(*constant, find_table(base, key) ? *find_table(base, key) : toml_table());
  const auto chosen = std::find(changed.begin(), changed.end(), "interconnect");
  if (chosen != changed.end()) {  // the bandwidth of an NVSwitch's cable is not that of a mesh's NVLink
    erase_key(base, "nvlink_gb_per_s");
    erase_key(base, "nvlink");
  }
  const TomlEntry *devices = find_entry(node, "devices"), *before = find_entry(base, "devices");
  if (devices && before && devices->value.get<std::int64_t>() && before->value.get<std::int64_t>())
    fit_devices(base, *devices->value.get<std::int64_t>(), *before->value.get<std::int64_t>());
  fill_in(node, base);
  return changed;
}

}  // namespace rehearse
