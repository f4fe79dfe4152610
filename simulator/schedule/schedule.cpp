#include "simulator/schedule/schedule.hpp"

#include <algorithm>

namespace rehearse {

int Schedule::ranks() const {
  int sum = 0;
  for (const Role& role : roles) sum += role.size();
  return sum;
}

int Schedule::first_rank(int role) const {
  int first = 0;
  for (int r = 0; r < role; ++r) first += roles[r].size();
  return first;
}

int Schedule::program_of(int role, int rank) const {
  for (std::size_t p = 0; p < programs.size(); ++p) {
    if (programs[p].role != role) continue;
    const bool fits = std::all_of(programs[p].where.begin(), programs[p].where.end(), [&](const At& at) {
      return roles[role].meshes[at.mesh].coordinate(rank, at.axis) == at.coordinate;
    });
    if (fits) return static_cast<int>(p);
  }
  return -1;
}

namespace {

bool is_control(const Op& op) {
  if (op.kind == OpKind::signal || op.kind == OpKind::wait_until || op.kind == OpKind::repeat_begin)
    return true;
  return std::any_of(op.messages.begin(), op.messages.end(), [](const Message& m) {
    return m.peer.kind == Peer::Kind::any || m.peer.kind == Peer::Kind::sender;
  });
}

template <class Condition>
bool any_op(const Schedule& schedule, Condition condition) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), condition);
  });
}

}  // namespace

bool Schedule::has_control_ops() const {
  return any_op(*this, is_control);
}

int Schedule::repeats(int steps) const {
  if (asynchrony) return asynchrony->warmup_rounds + steps * asynchrony->window_rounds;
  constexpr int kToLoadAsUsual = 3;
  if (loads_ahead) return steps + kToLoadAsUsual;
  return steps + (crosses_step() || staggered ? 1 : 0);
}

bool Schedule::crosses_step() const {
  return has_control_ops() || any_op(*this, [](const Op& op) {
           return std::any_of(op.after.begin(), op.after.end(),
                              [](const Dependency& d) { return d.steps_back > 0; });
         });
}

}  // namespace rehearse
