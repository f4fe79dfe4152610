#include "backend/commands/run_guard.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "backend/runs/real_run.hpp"
#include "backend/training/training_workload.hpp"
#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/printable.hpp"
#include "simulator/schedule/peak_memory.hpp"

namespace rehearse {
namespace {

// 768 ranks that only send small messages took 18 GB.
constexpr double kProcessBytes = 24e6;
// Ranks mostly wait for each other, so some of them fit on a core. Guesses: with more, a run measures the
// system's scheduler.
constexpr int kRanksOfCore = 16, kTimedRanksOfCore = 64;
constexpr int kFewCores = 2;  // a machine with fewer counts as if it had as many

// A stream has a buffer to send from and one to receive into (bare_workload.cpp).
double bytes_of_buffers(const Program& program, const Role& role, int rank) {
  std::map<int, double> most;
  for (const Op& op : program.ops) {
    double& bytes = most[op.stream];
    for (const Message& message : op.messages) bytes = std::max(bytes, message.bytes.at(role, rank));
    if (op.kind == OpKind::collective) bytes = std::max(bytes, op.collective.bytes.at(role, rank));
  }
  double sum = 0;
  for (const auto& [stream, bytes] : most) sum += 2 * bytes;
  return sum;
}

double available_bytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string key; in >> key;) {
    double kib = 0;
    if (key == "MemAvailable:" && in >> kib) return kib * 1024;
    in.ignore(256, '\n');
  }
  return 0;
}

// Returns whether the file begins as a record does: with Chrome's trace format, or compressed.
bool looks_like_record(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(256, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  if (head.empty()) return true;
  const bool compressed = head.size() > 1 && head[0] == '\x1f' && head[1] == '\x8b';
  return compressed || (head[0] == '{' && (head.find("\"traceEvents\"") != std::string::npos ||
                                           head.find("\"displayTimeUnit\"") != std::string::npos));
}

// Returns a lower bound of the record's size: recorded runs have about 400 bytes a span, compressed about 50.
double least_record_bytes(const std::string& path, const Scenario& scenario, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  double ops = 0;
  for (std::size_t role = 0; role < schedule.roles.size(); ++role)
    for (int rank = 0; rank < schedule.roles[role].size(); ++rank)
      if (const int program = schedule.program_of(static_cast<int>(role), rank); program >= 0)
        ops += static_cast<double>(schedule.programs[static_cast<std::size_t>(program)].ops.size());
  const bool compressed = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  return ops * (scenario.run.warmup + scenario.run.steps) * (compressed ? 20 : 200);
}

}  // namespace

RunNeeds needs_of(const Plan& plan, bool trained) {
  const Schedule& schedule = *plan.schedule;
  RunNeeds needs;
  needs.ranks = process_ranks(schedule);
  std::map<int, double> of_program;
  for (std::size_t r = 0; r < schedule.roles.size(); ++r) {
    const Role& role = schedule.roles[r];
    for (int rank = 0; rank < role.size(); ++rank) {
      if (schedule.first_rank(static_cast<int>(r)) + rank >= needs.ranks) break;
      needs.bytes += kProcessBytes;
      const int number = schedule.program_of(static_cast<int>(r), rank);
      if (number < 0) continue;
      const auto [it, fresh] = of_program.try_emplace(number, 0);
      const Program& program = schedule.programs[static_cast<std::size_t>(number)];
      if (fresh)
        it->second = trained ? tensor_bytes(program, role, rank) : bytes_of_buffers(program, role, rank);
      needs.bytes += it->second;
    }
  }
  return needs;
}

MachineRoom room_here() {
  return {std::max(1, static_cast<int>(std::thread::hardware_concurrency())), available_bytes()};
}

std::string why_no_room(const RunNeeds& needs, const MachineRoom& room, RealRun::Compute compute) {
  const int of_core = compute == RealRun::Compute::timed ? kTimedRanksOfCore : kRanksOfCore;
  const int most = of_core * std::max(room.cores, kFewCores);
  if (needs.ranks > most)
    return fmt::format("{} ranks would run on {} cores; allowed: at most {}", needs.ranks, room.cores, most);
  if (room.free_bytes > 0 && needs.bytes > room.free_bytes)
    return fmt::format("{} ranks would take about {:.3g} GB of memory; allowed: what is free, {:.3g} GB",
                       needs.ranks, needs.bytes / 1e9, room.free_bytes / 1e9);
  return "";
}

void refuse_crowding(const Scenario& scenario, const Plan& plan, bool oversubscribe) {
  if (oversubscribe) return;
  const bool trained = scenario.run.compute != RealRun::Compute::timed &&
                       why_not_trained(scenario, *plan.schedule, true).empty();
  const std::string why = why_no_room(needs_of(plan, trained), room_here(), scenario.run.compute);
  if (!why.empty())
    throw InputError({}, fmt::format("{}: {} (--oversubscribe starts them all the same; rehearse simulate "
                                     "predicts the run without ranks)",
                                     scenario.name, why));
}

void refuse_unwritable_record(const std::string& path, const Scenario& scenario, const Plan& plan) {
  if (path.empty()) return;
  struct stat about {};
  const bool exists = stat(path.c_str(), &about) == 0;
  const auto fail = [&](int error) {
    throw RunError(fmt::format("{}: cannot be written: {}", printable(path), std::strerror(error)));
  };
  if (exists && S_ISDIR(about.st_mode)) fail(EISDIR);
  if (exists && S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 7)) fail(ENOSPC);  // /dev/full
  if (exists && !S_ISREG(about.st_mode)) return;  // a pipe or a device: the record goes straight into it
  if (exists && !looks_like_record(path))
    throw InputError({},
                     fmt::format("--trace {} is a file that is no record of a run; allowed: a new file, or "
                                 "a record to replace",
                                 printable(path)));
  if (!exists && std::filesystem::is_symlink(std::filesystem::symlink_status(path))) return;
  { const OutputFile probe(path); }
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return;
  const double left = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize),
               needed = least_record_bytes(path, scenario, plan);
  if (left < needed)
    throw RunError(
        fmt::format("{}: cannot be written: its disk has {:.3g} MB left, and the record takes at "
                    "least {:.3g} MB",
                    printable(path), left / 1e6, needed / 1e6));
}

void refuse_uneven_vocabulary(const Scenario& scenario) {
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  const int tensor = scenario.strategy.tensor;
  if (!t || tensor == 1 || std::fmod(t->vocabulary, tensor) == 0) return;
  throw InputError(
      {},
      fmt::format("{}: model.transformer.vocabulary is {} with strategy.tensor = {}; allowed "
                  "for real ranks: a multiple of {}, such as {}",
                  scenario.name, t->vocabulary, tensor, tensor, tensor * std::ceil(t->vocabulary / tensor)));
}

}  // namespace rehearse
