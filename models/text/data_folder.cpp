#include "models/text/data_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <vector>

#include "models/text/error.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path>& further_places() {
  static std::vector<fs::path> places;
  return places;
}

std::vector<fs::path> places() {
  std::vector<fs::path> all;
  std::error_code error;
  if (const char* data = std::getenv("REHEARSE_DATA"); data != nullptr && *data != '\0') {
    if (!fs::is_directory(data, error))
      throw InputError(
          {"REHEARSE_DATA"},
          fmt::format("is {}, which is not a folder; allowed: a folder like share/rehearse of an "
                      "installation, or no value",
                      in_quotes(data)));
    all.emplace_back(data);
  }
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) all.push_back(executable.parent_path().parent_path() / "share/rehearse");
  all.insert(all.end(), further_places().begin(), further_places().end());
  all.emplace_back(REHEARSE_SOURCE_DIR);
  all.emplace_back(REHEARSE_INSTALL_DIR);
  return all;
}

}  // namespace

fs::path data_folder(const fs::path& inside) {
  const std::vector<fs::path> all = places();
  std::error_code error;
  for (const fs::path& place : all)
    if (fs::is_directory(place / inside, error)) return place / inside;
  return all.front() / inside;
}

bool add_data_place(fs::path place) {
  further_places().push_back(std::move(place));
  return true;
}

std::string searched_folders(const fs::path& inside) {
  std::string searched;
  for (const fs::path& place : places())
    searched += (searched.empty() ? "" : ", ") + (place / inside).string();
  return searched;
}

std::string allowed_names(std::span<const std::string> known, const fs::path& inside) {
  if (!known.empty()) return fmt::format("{}", fmt::join(known, ", "));
  return fmt::format("none, because nothing was found in {}", searched_folders(inside));
}

}  // namespace rehearse
