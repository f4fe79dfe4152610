#include "simulator/commands/ranks.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rehearse {
namespace {

std::optional<long> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  long number = 0;
  const char* end = text + std::char_traits<char>::length(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

// A Slurm batch script also has SLURM_PROCID=0 and SLURM_NTASKS, but it is not one of several ranks: only
// processes that srun starts have a step.
Ranks ranks_of_this_run() {
  constexpr std::pair<const char*, const char*> kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& [rank_name, size_name] : kLaunchers) {
    if (std::string_view(rank_name) == "SLURM_PROCID" && std::getenv("SLURM_STEP_ID") == nullptr) continue;
    const auto rank = number_in_environment(rank_name), size = number_in_environment(size_name);
    if (rank && size && *rank >= 0 && *rank < *size) return {*rank, *size};
  }
  return {};
}

}  // namespace rehearse
