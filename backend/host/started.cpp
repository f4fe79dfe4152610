#include "backend/host/started.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

int number(const Environment& get, const char* name, long least, long most = 1'000'000) {
  const char* text = get(name);
  char* end = nullptr;
  const long value = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (text == nullptr || end == text || *end != '\0' || value < least || value > most)
    throw InputError({}, fmt::format("the environment variable {} is {}; allowed: a number of {} or more",
                                     name, text == nullptr ? "not set" : fmt::format("\"{}\"", text), least));
  return static_cast<int>(value);
}

// Returns the number of tasks of the srun step that this process belongs to; 0: it belongs to none.
int tasks_of_slurm(const Environment& get) {
  const char* tasks = get("SLURM_STEP_NUM_TASKS");
  return get("SLURM_PROCID") == nullptr || tasks == nullptr ? 0 : std::atoi(tasks);
}

// Returns a port below those that Linux assigns by itself (from 32768 on), which differs between jobs and
// steps that share a machine.
int port_of_step(const Environment& get) {
  const auto value = [&](const char* name) {
    const char* text = get(name);
    return text == nullptr ? 0UL : std::strtoul(text, nullptr, 10);
  };
  return static_cast<int>(20000 + (16 * value("SLURM_JOB_ID") + value("SLURM_STEP_ID")) % 10000);
}

}  // namespace

const char* process_environment(const char* name) {
  return std::getenv(name);
}

Starter starter_of_process(bool with_mpi, const Environment& get) {
  if (get("OMPI_COMM_WORLD_SIZE") != nullptr) return Starter::mpi;
  if (get("WORLD_SIZE") != nullptr) return Starter::variables;
  const int tasks = tasks_of_slurm(get);
  const bool for_mpi = get("PMIX_RANK") != nullptr || get("PMI_RANK") != nullptr;
  if (with_mpi && for_mpi && tasks != 1) return Starter::mpi;
  return tasks > 1 ? Starter::variables : Starter::none;
}

bool is_first_of_mpi(const Environment& get) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = get(name)) return std::string(rank) == "0";
  return false;
}

TcpOptions ranks_of_environment(const Environment& get) {
  TcpOptions options;
  if (get("RANK") == nullptr && get("WORLD_SIZE") == nullptr && tasks_of_slurm(get) > 1) {
    options.rank = number(get, "SLURM_PROCID", 0);
    options.ranks = number(get, "SLURM_STEP_NUM_TASKS", 1);
    if (const char* list = get("SLURM_STEP_NODELIST")) options.first_address = first_of_hostlist(list);
    options.first_port = port_of_step(get);
  } else {
    options.rank = number(get, "RANK", 0);
    options.ranks = number(get, "WORLD_SIZE", 1);
  }
  if (const char* address = get("MASTER_ADDR")) options.first_address = address;
  if (get("MASTER_PORT") != nullptr) options.first_port = number(get, "MASTER_PORT", 1, 65535);
  if (options.rank >= options.ranks)
    throw InputError({}, fmt::format("this process has rank {} of {}; allowed: 0 to {}", options.rank,
                                     options.ranks, options.ranks - 1));
  return options;
}

std::string first_of_hostlist(const std::string& list) {
  std::string name;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      name += list[i];
      continue;
    }
    while (++i < list.size() && list[i] != '-' && list[i] != ',' && list[i] != ']') name += list[i];
    while (i < list.size() && list[i] != ']') ++i;
  }
  return name;
}

}  // namespace rehearse
