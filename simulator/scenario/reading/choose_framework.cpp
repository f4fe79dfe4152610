#include "simulator/scenario/reading/choose_framework.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "models/text/document.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/scenario/reading/readers.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

// [fits] of a framework preset.
struct Fits {
  std::vector<std::string> strategies;           // strategy presets that it runs
  std::vector<std::string> precisions;           // of training
  std::vector<std::int64_t> compute_capability;  // of the oldest and of the newest GPU that it ran on
  bool experts = false;                          // models with mixtures of experts, or all others
  std::int64_t year = 0;
};

// Reads the preset `name`; its year is 0 if it fits no job by default.
Fits read_fits(const std::string& name) {
  Document document = Document::parse_file(preset_path("simulator/frameworks", name));
  Section section = document.root().section("fits");
  Fits fits;
  if (!section.present()) return fits;
  fits.strategies = section.texts("strategies");
  fits.precisions = section.texts("precisions");
  fits.compute_capability = section.integers("compute_capability", 1, 1000);
  if (fits.compute_capability.size() != 2)
    section.refuse("compute_capability", "an array of another length", "the oldest and the newest");
  fits.experts = section.boolean("experts");
  fits.year = section.integer("year", 2000, 2100);
  section.finish();
  return fits;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool covers(const Fits& fits, const FrameworkQuestion& question, const std::string& strategy) {
  const auto* transformer = std::get_if<Transformer>(&question.model.shape);
  if (fits.year == 0 || !transformer) return false;
  return (strategy.empty() || contains(fits.strategies, strategy)) &&
         contains(fits.precisions, name_of(question.precision)) &&
         question.device.compute_capability >= fits.compute_capability.front() &&
         question.device.compute_capability <= fits.compute_capability.back() &&
         (transformer->experts > 0) == fits.experts;
}

std::string text_at(const TomlValue& root, std::string_view table, std::string_view key) {
  const TomlValue* section = find_table(root, table);
  const TomlEntry* entry = section ? find_entry(*section, key) : nullptr;
  const auto* text = entry ? entry->value.get<std::string>() : nullptr;
  return text ? *text : "";
}

}  // namespace

std::vector<std::string> fitting_frameworks(const FrameworkQuestion& question, const std::string& strategy) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : preset_names("simulator/frameworks")) {
    const Fits fits = read_fits(name);
    if (covers(fits, question, strategy)) found.emplace_back(-fits.year, name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [year, name] : found) names.push_back(std::move(name));
  return names;
}

std::string default_framework(const TomlValue& root, const std::string& base_folder) {
  const std::string strategy = text_at(root, "strategy", "preset");
  const std::string protocol = text_at(root, "simulation", "protocol");
  if (strategy.empty() || find_table(root, "framework") || !text_at(root, "training", "framework").empty() ||
      (!protocol.empty() && protocol != kProtocolNames[Protocol::nccl]))
    return "";
  TomlValue alone = toml_table();
  for (const char* table : {"model", "cluster", "training"})
    put(alone, table, find_table(root, table) ? *find_table(root, table) : toml_table());
  try {
    Document document = Document::parse_text(toml_text(alone), "scenario");
    Section model = document.root().section("model"), cluster = document.root().section("cluster"),
            training = document.root().section("training");
    const Model trained = read_model(model, base_folder);
    const std::shared_ptr<const Cluster> trained_on = read_cluster(cluster, base_folder);
    const Device& device = trained_on->node().device;
    const auto precision = static_cast<Precision>(
        training.choice("precision", kPrecisionNames, static_cast<std::size_t>(default_precision(device))));
    const std::vector<std::string> names = fitting_frameworks({trained, device, precision}, strategy);
    return names.empty() ? "" : names.front();
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace rehearse
