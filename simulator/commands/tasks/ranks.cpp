#include "simulator/commands/tasks/ranks.hpp"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/text/number_in.hpp"

namespace rehearse {
namespace {

std::optional<long> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : number_in<long>(text);
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
