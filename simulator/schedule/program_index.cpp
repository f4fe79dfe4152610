#include "simulator/schedule/program_index.hpp"

#include <fmt/format.h>

#include "models/text/error.hpp"

namespace rehearse {

namespace {

struct Checker {
  const Schedule& schedule;
  const Program& program;

  [[noreturn]] void refuse(int op, const std::string& what) const {
    throw RunError(fmt::format("schedule: program \"{}\", op {} \"{}\": {}", program.name, op,
                               program.ops[op].name, what));
  }
  void index(int op, int value, std::size_t size, const char* what) const {
    if (value < 0 || value >= static_cast<int>(size))
      refuse(op, fmt::format("{} {} does not exist; there are {}", what, value, size));
  }
  void axis(int op, int role, int mesh, int axis_index) const {
    index(op, mesh, schedule.roles[role].meshes.size(), "mesh");
    index(op, axis_index, schedule.roles[role].meshes[mesh].axes().size(), "axis");
  }
  void amount(int op, const Quantity& quantity, const char* what) const {
    if (!(quantity.base >= 0)) refuse(op, fmt::format("{} is {}; it must be 0 or more", what, quantity.base));
    if (quantity.values.empty()) return;
    axis(op, program.role, quantity.mesh, quantity.axis);
    const int size = schedule.roles[program.role].meshes[quantity.mesh].axes()[quantity.axis].size;
    if (static_cast<int>(quantity.values.size()) != size)
      refuse(op, fmt::format("{} has {} values for an axis of {}", what, quantity.values.size(), size));
  }
  void peer(int op, const Peer& p) const {
    if (p.kind == Peer::Kind::sender) return;
    if (p.kind == Peer::Kind::offset) return axis(op, program.role, p.mesh, p.axis);
    index(op, p.role, schedule.roles.size(), "role");
    if (p.kind == Peer::Kind::member) amount(op, p.index, "the peer's index");
    for (const At& at : p.where) axis(op, p.role, at.mesh, at.axis);
  }
  void check(int number) const {
    const Op& op = program.ops[number];
    index(number, op.stream, program.streams.size(), "stream");
    for (const Dependency& d : op.after) {
      index(number, d.op, program.ops.size(), "op");
      if (d.steps_back < 0 || d.steps_back > 1) refuse(number, "a dependency reaches back 0 or 1 steps");
    }
    for (int t : op.reads) index(number, t, program.tensors.size(), "tensor");
    for (int t : op.writes) index(number, t, program.tensors.size(), "tensor");
    if (op.kind == OpKind::compute) index(number, op.work, schedule.works.size(), "work");
    if (op.kind == OpKind::compute || op.kind == OpKind::host)
      amount(number, op.share, "the share of the work");
    if (op.kind == OpKind::host && !(op.seconds >= 0)) refuse(number, "its time must be 0 or more");
    if (op.kind == OpKind::exchange && op.messages.empty()) refuse(number, "an exchange needs messages");
    for (const Message& m : op.messages) {
      peer(number, m.peer);
      amount(number, m.bytes, "the message's size");
      const bool send = m.direction == Message::Direction::send;
      if ((m.peer.kind == Peer::Kind::any && send) || (m.peer.kind == Peer::Kind::sender && !send))
        refuse(number, "\"any\" is for receives and \"sender\" for sends");
      if (m.access.one_sided && m.peer.kind != Peer::Kind::member)
        refuse(number, "the storage that it reads or writes must be a member of a role");
      if (!(m.access.most_bytes_per_s >= 0)) refuse(number, "the rate of an access must be 0 or more");
      if (m.peer.kind == Peer::Kind::any && op.messages.size() > 1)
        refuse(number, "a receive from any rank must be the only message of its op");
    }
    for (const Peer& p : op.signalled) peer(number, p);
    if (op.kind == OpKind::collective) {
      amount(number, op.collective.bytes, "the collective's size");
      index(number, op.collective.group.mesh, schedule.roles[program.role].meshes.size(), "mesh");
      for (const GroupAxis& part : op.collective.group.axes) {
        axis(number, program.role, op.collective.group.mesh, part.axis);
        const int size = schedule.roles[program.role].meshes[op.collective.group.mesh].axes()[part.axis].size;
        if (part.block > 0 && size % (part.block * part.stride) != 0)
          refuse(number,
                 fmt::format("blocks of {} x {} do not divide an axis of {}", part.block, part.stride, size));
        for (int c : part.coordinates) index(number, c, size, "coordinate");
      }
    }
    if (op.turn >= 0) {
      index(number, op.turn, program.turns.size(), "turn");
      const bool one_transfer = op.messages.size() == 1 && (op.messages[0].peer.kind == Peer::Kind::member ||
                                                            op.messages[0].peer.kind == Peer::Kind::offset);
      if (op.kind != OpKind::compute && !(op.kind == OpKind::exchange && one_transfer))
        refuse(number, "turns are for computing and for exchanges of one transfer with a named peer");
    }
    if (op.kind == OpKind::repeat_begin && op.count < 0)
      refuse(number, "it repeats a negative number of times");
  }
};

}  // namespace

ProgramIndex::ProgramIndex(const Schedule& schedule, const Program& program)
    : stream_ops(program.streams.size()),
      position(program.ops.size(), 0),
      partner(program.ops.size(), -1),
      per_step(program.ops.size(), 1) {
  for (const Turn& turn : program.turns)
    if (turn.at_once < 1)
      throw RunError(fmt::format("schedule: program \"{}\", turn \"{}\": at_once must be at least 1",
                                 program.name, turn.name));
  const Checker checker{schedule, program};
  std::vector<std::vector<int>> open(program.streams.size());
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    checker.check(i);
    const Op& op = program.ops[i];
    position[i] = static_cast<int>(stream_ops[op.stream].size());
    stream_ops[op.stream].push_back(i);
    std::vector<int>& stack = open[op.stream];
    for (int begin : stack) per_step[i] *= program.ops[begin].count;
    if (op.kind == OpKind::repeat_end) {
      if (stack.empty()) checker.refuse(i, "there is no repeat to end on this stream");
      partner[i] = stack.back();
      partner[stack.back()] = i;
      stack.pop_back();
    }
    if (op.kind == OpKind::repeat_begin) stack.push_back(i);
  }
  for (const std::vector<int>& stack : open)
    if (!stack.empty()) checker.refuse(stack.back(), "this repeat never ends");
}

long ProgramIndex::required(int op, const Dependency& dependency, long nth) const {
  const long own = per_step[op], others = per_step[dependency.op];
  if (own == others || own == 0 || others == 0) return nth - dependency.steps_back * (own == 0 ? 1 : own);
  const long step = (nth - 1) / own - dependency.steps_back;  // the step that is waited for, from 0
  if (step < 0) return 0;
  return own < others ? (step + 1) * others : step * others + 1;
}

}  // namespace rehearse
