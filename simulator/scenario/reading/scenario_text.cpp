// Writes a scenario as a single text that needs no other file of the user's: includes the contents of the
// files to which it refers. Presets remain names, because they are shipped.
#include <filesystem>

#include "models/kernels.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/scenario/reading/readers.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// Returns the path of the file that `table.key` names, relative to `folder`; empty if there is none.
std::string file_at(TomlValue& table, std::string_view key, const std::string& folder) {
  const TomlValue* value = find(table, key);
  const auto* name = value ? value->get<std::string>() : nullptr;
  return name ? (fs::path(folder) / *name).string() : "";
}

TomlValue read_table(const std::string& path) {
  return parse_toml(read_text_file(path, "TOML file"), path);
}

TomlValue texts(const std::vector<std::string>& all) {
  TomlValue array;
  array.data = TomlValue::Array{};
  for (const std::string& text : all) array.get<TomlValue::Array>()->push_back(toml_value(text));
  return array;
}

void fold_model(TomlValue& section, const TomlValue& read, const Model& model) {
  const bool huggingface = find(section, "huggingface") != nullptr;
  if (!huggingface && find(section, "file") == nullptr) return;
  std::vector<std::string> sources = model.sources;
  if (huggingface) sources.front() = fs::path(sources.front()).filename().string();
  section = toml_table();
  put(section, "name", toml_value(model.name));
  put(section, "title", toml_value(model.title));
  if (!sources.empty()) put(section, "sources", texts(sources));
  if (!model.notes.empty()) put(section, "notes", texts(model.notes));
  for (const TomlEntry& entry : *read.get<TomlValue::Table>())
    if (entry.value.get<TomlValue::Table>() != nullptr) put(section, entry.key, entry.value);
}

void fold_device(TomlValue& node, const TomlValue& read, const std::string& folder, const Device& device) {
  const std::string file = file_at(node, "device_file", folder);
  if (file.empty()) return;
  const TomlValue* changed = find_table(read, "device");  // merged with the file's contents
  TomlValue table = changed != nullptr ? *changed : read_table(file);
  put(table, "name", toml_value(device.name));
  put(table, "title", toml_value(device.title));
  erase_key(node, "device_file");
  put(node, "device", std::move(table));
}

void fold_cluster(TomlValue& section, const TomlValue& read, const std::string& folder,
                  const Cluster& cluster) {
  if (const std::string file = file_at(section, "file", folder); !file.empty()) {
    erase_key(section, "file");
    for (const char* key : {"node", "fabric"}) put(section, key, *find_table(read, key));
    const TomlValue body = read_table(file);
    for (const char* key : {"nodes", "server_nodes", "link"}) {
      const TomlEntry* entry = find_entry(body, key);
      const bool fits = std::string_view(key) != "link" || cluster.fabric().kind == Fabric::Kind::links;
      if (entry != nullptr && fits && find(section, key) == nullptr) put(section, key, entry->value);
    }
    put(section, "name", toml_value(cluster.name + cluster.changes));
    put(section, "basis",
        toml_value(std::string(kBasisNames[static_cast<std::size_t>(cluster.network_basis)])));
    put(section, "sources", texts(cluster.sources));
  }
  const TomlValue* node_read = find_table(read, "node");
  if (TomlValue* node = find_table(section, "node"); node != nullptr && node_read != nullptr)
    fold_device(*node, *node_read, folder, cluster.node().device);
}

// Prices for the cluster `name` must use the name that the cluster has in the text.
void fold_prices(TomlValue& cost, const std::string& folder, const std::string& name,
                 const std::string* name_in_text) {
  const std::string file = file_at(cost, "prices", folder);
  if (!file.empty()) put(cost, "prices", read_table(file));
  TomlValue* prices = find_table(cost, "prices");
  TomlValue* list = prices ? find(*prices, "price") : nullptr;
  auto* all = list ? list->get<TomlValue::Array>() : nullptr;
  if (!all || !name_in_text) return;
  for (TomlValue& price : *all) {
    const TomlEntry* cluster = find_entry(price, "cluster");
    const auto* its = cluster ? cluster->value.get<std::string>() : nullptr;
    if (its && *its == name) put(price, "cluster", toml_value(*name_in_text));
  }
}

}  // namespace

std::string scenario_text(TomlValue root, const TomlValue& read, const std::string& base_folder,
                          const Scenario& scenario) {
  if (TomlValue* model = find(root, "model")) fold_model(*model, *find_table(read, "model"), scenario.model);
  if (TomlValue* cluster = find(root, "cluster"))
    fold_cluster(*cluster, *find_table(read, "cluster"), base_folder, *scenario.cluster);
  if (TomlValue* simulation = find(root, "simulation")) {
    const std::string file = file_at(*simulation, "link_profile", base_folder);
    if (!file.empty()) put(*simulation, "link_profile", read_table(file));
  }
  if (TomlValue* cost = find(root, "cost")) {
    const TomlValue* cluster = find_table(root, "cluster");
    const TomlEntry* name = cluster ? find_entry(*cluster, "name") : nullptr;
    fold_prices(*cost, base_folder, scenario.cluster->name, name ? name->value.get<std::string>() : nullptr);
  }
  return toml_text(root);
}

}  // namespace rehearse
