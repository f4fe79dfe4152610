// Applies the assignments of "--set" and of a sweep to a scenario's document.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "models/text/toml_table.hpp"
#include "simulator/scenario/reading/readers.hpp"

namespace rehearse {
namespace {

// A section that can name a file with its tables, either a preset or a user's file.
struct NamingSection {
  std::string_view name, presets;
};
constexpr std::array<NamingSection, 2> kNaming = {{{"model", "models"}, {"cluster", "topologies"}}};

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> keys;
  while (true) {
    const std::size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return keys;
    path.remove_prefix(dot + 1);
  }
}

std::string_view key_of(std::string_view assignment) {
  std::string_view key = assignment.substr(0, assignment.find('='));
  while (!key.empty() && key.back() == ' ') key.remove_suffix(1);
  return key;
}

bool names_file(std::string_view assignment) {
  const std::vector<std::string> keys = split(key_of(assignment));
  return keys.size() == 2 && (keys[1] == "preset" || keys[1] == "file") &&
         std::any_of(kNaming.begin(), kNaming.end(), [&](const auto& s) { return s.name == keys[0]; });
}

// Returns the path of the file that the section of `naming` names; empty if it names none that exists.
std::string named_file(const TomlValue& root, const NamingSection& naming, const std::string& base_folder) {
  const TomlValue* section = find_table(root, naming.name);
  if (!section) return "";
  const auto text = [&](std::string_view key) {
    const TomlEntry* entry = find_entry(*section, key);
    const auto* value = entry ? entry->value.get<std::string>() : nullptr;
    return value ? *value : "";
  };
  if (const std::string preset = text("preset"); !preset.empty()) return preset_path(naming.presets, preset);
  const std::string file = text("file");
  return file.empty() ? "" : (std::filesystem::path(base_folder) / file).string();
}

// An override of a single element changes an array that may only exist in the file that the scenario names,
// so this first copies the entire array from there.
void bring_array(const Section& root, std::string_view assignment, const std::string& base_folder) {
  const std::string_view key = key_of(assignment);
  const std::size_t bracket = key.find('[');
  if (bracket == std::string_view::npos) return;
  const std::vector<std::string> keys = split(key.substr(0, bracket));
  const auto naming = std::find_if(kNaming.begin(), kNaming.end(),
                                   [&](const NamingSection& s) { return s.name == keys.front(); });
  if (naming == kNaming.end() || keys.size() < 2) return;
  const std::string file = named_file(*root.tree(), *naming, base_folder);
  if (file.empty()) return;
  const Document document = Document::parse_file(file);
  const TomlValue* from = &document.tree();
  TomlValue* to = find_table(*root.tree(), keys.front());
  for (std::size_t i = 1; i + 1 < keys.size(); ++i) {
    from = find_table(*from, keys[i]);
    if (!from) return;
    if (!find(*to, keys[i])) put(*to, keys[i], toml_table(from->place));
    to = find_table(*to, keys[i]);
    if (!to) return;
  }
  const TomlEntry* array = find_entry(*from, keys.back());
  if (array && array->value.get<TomlValue::Array>() && !find(*to, keys.back()))
    put(*to, keys.back(), array->value);
}

}  // namespace

void apply_overrides(Document& document, const std::string& base_folder, const Overrides& overrides) {
  for (const bool naming : {true, false}) {  // other overrides can change the files that these name
    for (const std::string& assignment : overrides.set) {
      if (names_file(assignment) != naming) continue;
      bring_array(document.root(), assignment, base_folder);
      document.set(assignment);
    }
    for (const std::string& assignment : overrides.varied) {
      if (names_file(assignment) != naming) continue;
      bring_array(document.root(), assignment, base_folder);
      const Place place = place_of("--vary", assignment);
      document.set(assignment, &place);
    }
  }
}

}  // namespace rehearse
