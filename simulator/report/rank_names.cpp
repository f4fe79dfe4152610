#include "simulator/report/rank_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rehearse {
namespace {

// Returns "0-63, 70", for example.
std::string ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    text += (text.empty() ? "" : ", ") +
            (first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  }
  return text;
}

const Schedule& class_schedule(const Trace& trace, int rank_class) {
  return *trace.run.jobs[trace.classes[rank_class].job].phases.front().schedule;
}

}  // namespace

const Role& class_role(const Trace& trace, int rank_class) {
  return class_schedule(trace, rank_class).roles[trace.classes[rank_class].role];
}

int class_stage(const Trace& trace, int rank_class) {
  const int axis = class_role(trace, rank_class).meshes.front().axis("pipeline");
  const auto program = static_cast<std::size_t>(trace.classes[rank_class].phase_program);
  for (const At& at : class_schedule(trace, rank_class).programs[program].where)
    if (at.mesh == 0 && at.axis == axis) return at.coordinate;
  return -1;
}

std::string class_name(const Trace& trace, int rank_class) {
  const RankClass& who = trace.classes[rank_class];
  const Job& job = trace.run.jobs[who.job];
  const Role& role = class_role(trace, rank_class);
  const Program& program = class_schedule(trace, rank_class).programs[who.phase_program];
  std::string text = trace.run.jobs.size() > 1 ? job.name + ": " : "";
  text += program.name.empty() ? role.name : program.name;

  const Mesh& mesh = role.meshes.front();
  std::vector<std::set<int>> coordinates(mesh.axes().size());
  for (const int rank : who.ranks) {
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      coordinates[axis].insert(mesh.coordinate(rank, static_cast<int>(axis)));
    }
  }
  std::size_t product = 1;
  for (const auto& on_axis : coordinates) product *= on_axis.size();
  if (product == who.ranks.size()) {  // a block of the mesh, which its coordinates describe
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      const bool fixed_by_program =
          std::any_of(program.where.begin(), program.where.end(),
                      [&](const At& at) { return at.mesh == 0 && at.axis == static_cast<int>(axis); });
      if (fixed_by_program || mesh.axes()[axis].size == 1) continue;
      text += fmt::format(", {} {}", mesh.axes()[axis].name, ranges(coordinates[axis]));
    }
    return text + (who.ranks.size() == 1 ? fmt::format(" (rank {})", who.ranks.front())
                                         : fmt::format(" ({} ranks)", who.ranks.size()));
  }
  constexpr std::size_t kFew = 8;
  if (who.ranks.size() <= kFew) {
    return text + fmt::format(" (ranks {})", ranges({who.ranks.begin(), who.ranks.end()}));
  }
  return text + fmt::format(" ({} ranks: {} ...)", who.ranks.size(),
                            ranges({who.ranks.begin(), who.ranks.begin() + kFew}));
}

}  // namespace rehearse
