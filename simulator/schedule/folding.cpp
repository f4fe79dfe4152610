#include "simulator/schedule/folding.hpp"

#include <algorithm>
#include <bit>

namespace rehearse {

std::uint64_t rank_colour(const Schedule& schedule, int role, int rank) {
  const int number = schedule.program_of(role, rank);
  std::uint64_t colour = mix_hash(number, role);
  if (number < 0) return colour;
  const auto add = [&](const Quantity& q) {
    if (!q.values.empty())
      colour = mix_hash(colour, std::bit_cast<std::uint64_t>(q.at(schedule.roles[role], rank)));
  };
  const Program& program = schedule.programs[number];
  for (const Op& op : program.ops) {
    for (const Message& m : op.messages) add(m.bytes);
    if (op.kind == OpKind::collective) add(op.collective.bytes);
  }
  for (const Tensor& t : program.tensors) add(t.bytes);
  return colour;
}

bool foldable(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.arithmetic || !op.signalled.empty()) return false;
      for (const Message& m : op.messages)
        if (m.peer.kind == Peer::Kind::any || m.peer.kind == Peer::Kind::sender) return false;
    }
  return true;
}

void add_transfers(Hypergraph& graph, const Communication& communication, int first_node,
                   std::uint64_t salt) {
  for (const Transfer& t : communication.transfers) {
    graph.add_edge(mix_hash(salt, t.pattern));
    for (std::size_t i = 0; i < t.ranks.size(); ++i)
      graph.touch(first_node + t.ranks[i], t.collective ? kMember : i == 0 ? kSends : kReceives);
  }
}

}  // namespace rehearse
