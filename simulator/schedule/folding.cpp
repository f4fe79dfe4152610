#include "simulator/schedule/folding.hpp"

#include <algorithm>
#include <bit>

namespace rehearse {

RankColours::RankColours(const Schedule& schedule) : schedule_(schedule) {
  for (const Program& program : schedule.programs) {
    std::vector<const Quantity*>& varying = varying_.emplace_back();
    const auto look_at = [&](const Quantity& q) {
      if (!q.values.empty()) varying.push_back(&q);
    };
    for (const Op& op : program.ops) {
      for (const Message& m : op.messages) look_at(m.bytes);
      if (op.kind == OpKind::collective) look_at(op.collective.bytes);
      if (op.kind == OpKind::compute || op.kind == OpKind::host) look_at(op.share);
    }
    for (const Tensor& t : program.tensors) look_at(t.bytes);
  }
}

std::uint64_t RankColours::of(int role, int rank) const {
  const int program = schedule_.program_of(role, rank);
  std::uint64_t colour = mix_hash(program, role);
  if (program < 0) return colour;
  for (const Quantity* q : varying_[program])
    colour = mix_hash(colour, std::bit_cast<std::uint64_t>(q->at(schedule_.roles[role], rank)));
  return colour;
}

bool foldable(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      if (op.turn >= 0) return false;  // equal ranks get their turns one after another
      if (op.arithmetic || !op.signalled.empty()) return false;
      for (const Message& m : op.messages)
        if (m.peer.kind == Peer::Kind::any || m.peer.kind == Peer::Kind::sender) return false;
    }
  return true;
}

void add_transfers(Hypergraph& graph, const Communication& communication, int first_node,
                   std::uint64_t salt) {
  const RankSymmetry& symmetry = communication.symmetry();
  for (const Transfer& t : communication.transfers) {
    graph.add_edge(mix_hash(salt, t.pattern));
    for (std::size_t i = 0; i < t.ranks.size(); ++i)
      if (symmetry.represents(t.ranks[i]))
        graph.touch(first_node + symmetry.number_of(t.ranks[i]),
                    t.collective ? kMember
                    : i == 0     ? kSends
                                 : kReceives,
                    t.spread ? symmetry.copies() : 1);
  }
}

}  // namespace rehearse
