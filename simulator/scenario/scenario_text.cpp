// A scenario as one text that needs no other file of the user's: what it points to is folded in. Presets stay
// names: they are shipped.
#include <filesystem>

#include "models/base/toml_text.hpp"
#include "simulator/scenario/readers.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

TomlValue value_of(std::variant<std::int64_t, double, bool, std::string> data) {
  TomlValue value;
  std::visit([&](auto& held) { value.data = std::move(held); }, data);
  return value;
}

void put(TomlValue& table, const std::string& key, TomlValue value) {
  if (TomlValue* present = find(table, key)) {
    *present = std::move(value);
    return;
  }
  TomlEntry& entry = table.get<TomlValue::Table>()->emplace_back();
  entry.key = key;
  entry.value = std::move(value);
}

void remove(TomlValue& table, std::string_view key) {
  auto& entries = *table.get<TomlValue::Table>();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (entry->key == key) {
      entries.erase(entry);
      return;
    }
}

// The file that `table.key` names, relative to `folder`; empty: none.
std::string file_at(TomlValue& table, std::string_view key, const std::string& folder) {
  const TomlValue* value = find(table, key);
  const auto* name = value ? value->get<std::string>() : nullptr;
  return name ? (fs::path(folder) / *name).string() : "";
}

TomlValue read_table(const std::string& path) {
  return parse_toml(read_text_file(path, "TOML file"), path);
}

TomlValue empty_table() {
  TomlValue table;
  table.data = TomlValue::Table{};
  return table;
}

// The keys of [model.transformer].
TomlValue table_of(const Transformer& t) {
  TomlValue table = empty_table();
  const auto whole = [&](const char* key, double number) {
    put(table, key, value_of(static_cast<std::int64_t>(number)));
  };
  const auto truth = [&](const char* key, bool is) { put(table, key, value_of(is)); };
  whole("layers", t.layers);
  whole("hidden", t.hidden);
  whole("heads", t.heads);
  whole("kv_heads", t.kv_heads > 0 ? t.kv_heads : t.heads);
  whole("feed_forward", t.feed_forward);
  whole("vocabulary", t.vocabulary);
  whole("sequence_length", t.sequence_length);
  truth("rotary", t.rotary);
  whole("positions", t.positions);
  whole("token_types", t.token_types);
  truth("causal", t.causal);
  truth("tied_embeddings", t.tied_embeddings);
  truth("final_norm", t.final_norm);
  truth("embedding_norm", t.embedding_norm);
  truth("gated", t.gated);
  truth("biases", t.biases);
  truth("qkv_biases", t.qkv_biases);
  truth("dropout", t.dropout);
  truth("pooler", t.pooler);
  truth("masked_lm_head", t.masked_lm_head);
  if (t.experts > 0) {
    whole("experts", t.experts);
    whole("experts_per_token", t.experts_per_token);
    whole("shared_expert", t.shared_expert);
  }
  return table;
}

void fold_model(TomlValue& section, const std::string& folder, const Model& model) {
  if (find(section, "huggingface") != nullptr) {
    section = empty_table();
    put(section, "name", value_of(model.name));
    put(section, "title", value_of(model.title));
    TomlValue sources;
    sources.data = TomlValue::Array{};
    for (const std::string& source : model.sources)
      sources.get<TomlValue::Array>()->push_back(value_of(fs::path(source).filename().string()));
    put(section, "sources", std::move(sources));
    put(section, "transformer", table_of(std::get<Transformer>(model.shape)));
  } else if (const std::string file = file_at(section, "file", folder); !file.empty()) {
    section = read_table(file);
    put(section, "name", value_of(model.name));
  }
}

void fold_device(TomlValue& node, const std::string& folder) {
  const std::string file = file_at(node, "device_file", folder);
  if (file.empty()) return;
  TomlValue device = read_table(file);
  if (find(device, "name") == nullptr) put(device, "name", value_of(fs::path(file).stem().string()));
  remove(node, "device_file");
  put(node, "device", std::move(device));
}

void fold_cluster(TomlValue& section, std::string folder, const Cluster& cluster) {
  if (const std::string file = file_at(section, "file", folder); !file.empty()) {
    folder = fs::path(file).parent_path().string();
    TomlValue body = read_table(file);
    remove(body, "title");  // tells what the file is
    remove(section, "file");
    for (TomlEntry& entry : *body.get<TomlValue::Table>())
      if (find(section, entry.key) == nullptr) put(section, entry.key, std::move(entry.value));
    put(section, "name", value_of(cluster.name));
  }
  if (TomlValue* node = find(section, "node")) fold_device(*node, folder);
}

}  // namespace

std::string scenario_text(TomlValue root, const std::string& base_folder, const Scenario& scenario) {
  if (TomlValue* model = find(root, "model")) fold_model(*model, base_folder, scenario.model);
  if (TomlValue* cluster = find(root, "cluster")) fold_cluster(*cluster, base_folder, *scenario.cluster);
  if (TomlValue* simulation = find(root, "simulation")) {
    const std::string file = file_at(*simulation, "link_profile", base_folder);
    if (!file.empty()) put(*simulation, "link_profile", read_table(file));
  }
  return toml_text(root);
}

}  // namespace rehearse
