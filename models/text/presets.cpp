#include <algorithm>
#include <filesystem>
#include <numeric>
#include <tuple>

#include "models/text/data_folder.hpp"
#include "models/text/document.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// Devices and prices are in folders below the cluster presets, and what input consists of has a folder each.
fs::path below_data_folder(std::string_view folder) {
  constexpr std::string_view kInput = "simulator/input/";
  if (folder.starts_with(kInput)) return fs::path(kInput) / "presets" / folder.substr(kInput.size());
  if (folder == "topologies/devices") return "topologies/presets/devices";
  if (folder == "topologies/prices") return "topologies/presets/prices";
  return fs::path(folder) / "presets";
}

bool is_preset_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), allowed) && name.find("..") == std::string_view::npos;
}

}  // namespace

std::string preset_path(std::string_view folder, std::string_view name) {
  if (!is_preset_name(name)) return "";
  fs::path path = data_folder(below_data_folder(folder)) / (std::string(name) + ".toml");
  std::error_code error;
  return fs::is_regular_file(path, error) ? path.string() : "";
}

std::vector<std::string> preset_names(std::string_view folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(data_folder(below_data_folder(folder)), error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".toml") names.push_back(entry->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string allowed_presets(std::string_view folder) {
  return allowed_names(preset_names(folder), below_data_folder(folder));
}

std::string nearest_name(std::string_view found, std::span<const std::string> known) {
  constexpr std::size_t kMaxLength = 64;
  if (found.empty() || found.size() > kMaxLength) return "";
  std::size_t limit = std::max<std::size_t>(2, found.size() / 3);
  // Names that begin with what was found are near, however long they are. Of equally near names, those that
  // begin like it come first.
  std::tuple<std::size_t, bool, bool> best{std::min(limit, found.size() - 1) + 1, false, false};
  std::string nearest;
  for (const auto& name : known) {
    if (name.size() > kMaxLength) continue;
    // Edit distance in which swapping two neighbors counts as one edit (optimal string alignment), row by
    // row.
    std::vector<std::size_t> before_last, last(name.size() + 1), row(name.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= found.size(); ++i) {
      row[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        std::size_t substituted = last[j - 1] + (found[i - 1] == name[j - 1] ? 0 : 1);
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
        if (i > 1 && j > 1 && found[i - 1] == name[j - 2] && found[i - 2] == name[j - 1]) {
          row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
      }
      before_last = last;
      last = row;
    }
    const bool begins = found.size() >= 3 && name.starts_with(found);
    const std::tuple<std::size_t, bool, bool> distance{
        begins ? std::min<std::size_t>(last.back(), 1) : last.back(), !begins,
        name.empty() || name.front() != found.front()};
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace rehearse
