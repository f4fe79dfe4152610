#include "backend/runtime/wiring.hpp"

#include <algorithm>
#include <cmath>

#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {

std::size_t message_bytes(const Quantity& amount, const Role& role, int rank) {
  return static_cast<std::size_t>(std::max(1LL, std::llround(amount.at(role, rank))));
}

int CollectiveWiring::member_of(int rank) const {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

Wiring::Wiring(const Schedule& schedule, const Cluster& cluster, const std::vector<int>& endpoints,
               double chunk_bytes)
    : schedule_(schedule),
      cluster_(cluster),
      endpoints_(endpoints),
      chunk_bytes_(chunk_bytes),
      processes_(process_ranks(schedule)),
      communication_(schedule) {
  for (std::size_t t = 0; t < communication_.transfers.size(); ++t) {
    const Transfer& transfer = communication_.transfers[t];
    const bool to_process = std::max(transfer.ranks.front(), transfer.ranks.back()) < processes_;
    if (!transfer.collective && to_process)
      channels_.push_back({transfer.ranks[0], transfer.ranks[1], static_cast<int>(t)});
  }
  for (int rank = 0; rank < schedule_.ranks(); ++rank) {
    const int program = communication_.program_of_rank(rank);
    if (program < 0) continue;
    const std::vector<Slot>& slots = communication_.slots_of(program);
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (slots[s].kind == Slot::Kind::receive_any)
        for (const int t : communication_.at(rank, static_cast<int>(s))) from_anyone_.insert(t);
  }
  wire_collectives();
}

// Numbers the channels of collectives after those of messages.
void Wiring::wire_collectives() {
  int next = static_cast<int>(communication_.transfers.size());
  for (int rank = 0; rank < schedule_.ranks(); ++rank) {
    const int number = communication_.program_of_rank(rank);
    if (number < 0) continue;
    const Program& program = schedule_.programs[number];
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      if (program.ops[op].kind != OpKind::collective) continue;
      const Collective& collective = program.ops[op].collective;
      for (const int t : communication_.at(rank, communication_.slot(number, static_cast<int>(op), 0))) {
        const std::vector<int>& ranks = communication_.transfers[t].ranks;
        if (ranks.size() < 2) continue;
        const CollectiveKey key{t, static_cast<int>(collective.kind),
                                static_cast<int>(collective.used_algorithm()), collective.channels};
        if (collectives_.count(key) > 0) continue;
        std::vector<Endpoint> members;
        for (const int member : ranks) members.push_back(endpoints_[member]);
        Wired wired{collective_plan(collective.used_algorithm(), cluster_, members, collective.channels),
                    next};
        for (const Connection& c : connections_of(course_of(collective.kind), wired.plan))
          channels_.push_back({ranks[c.from], ranks[c.to], next++});
        collectives_.emplace(key, std::move(wired));
      }
    }
  }
}

std::pair<int, int> Wiring::place(int rank) const {
  const int role = communication_.role_of_rank(rank);
  return {role, rank - schedule_.first_rank(role)};
}

const Op& Wiring::op_of(int rank, int op) const {
  return schedule_.programs[communication_.program_of_rank(rank)].ops[op];
}

std::vector<Channel> Wiring::channels_of(int rank) const {
  std::vector<Channel> own;
  std::copy_if(channels_.begin(), channels_.end(), std::back_inserter(own),
               [&](const Channel& c) { return c.from == rank || c.to == rank; });
  return own;
}

std::vector<ExchangePart> Wiring::exchange(int rank, int op_number) const {
  const Op& op = op_of(rank, op_number);
  const auto [role, own] = place(rank);
  std::vector<ExchangePart> parts;
  for (std::size_t m = 0; m < op.messages.size(); ++m) {
    const int slot =
        communication_.slot(communication_.program_of_rank(rank), op_number, static_cast<int>(m));
    const std::vector<int>& transfers = communication_.at(rank, slot);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      ExchangePart part;
      part.send = op.messages[m].direction == Message::Direction::send;
      part.message = static_cast<int>(m);
      part.peer = communication_.transfers[transfers[i]].ranks[part.send ? 1 : 0];
      part.channel = transfers[i];
      part.bytes = message_bytes(op.messages[m].bytes, schedule_.roles[role], own);
      if (part.peer >= processes_) continue;
      part.rendezvous = from_anyone_.count(transfers[i]) == 0;
      part.number = static_cast<int>(i);
      part.of = static_cast<int>(transfers.size());
      parts.push_back(part);
    }
  }
  return parts;
}

std::shared_ptr<const CollectiveWiring> Wiring::collective(int rank, int op_number) const {
  const Collective& collective = op_of(rank, op_number).collective;
  const auto [role, own] = place(rank);
  const std::vector<int>& transfers =
      communication_.at(rank, communication_.slot(communication_.program_of_rank(rank), op_number, 0));
  if (transfers.empty() || communication_.transfers[transfers[0]].ranks.size() < 2) return nullptr;
  const CollectiveKey key{transfers[0], static_cast<int>(collective.kind),
                          static_cast<int>(collective.used_algorithm()), collective.channels};
  const auto to_elements = [](double bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes / static_cast<double>(kElementBytes) - 1e-9));
  };
  const std::vector<int>& ranks = communication_.transfers[transfers[0]].ranks;
  std::int64_t elements =
      std::max<std::int64_t>(1, to_elements(collective.bytes.at(schedule_.roles[role], own)));
  // All members contribute or receive parts of equal size.
  if (collective.kind == CollectiveKind::all_gather || collective.kind == CollectiveKind::reduce_scatter) {
    const auto members = static_cast<std::int64_t>(ranks.size());
    elements = (elements + members - 1) / members * members;
  }
  std::shared_ptr<const CollectiveWiring>& known = tables_[{key, elements}];
  if (known) return known;
  const Wired& wired = collectives_.at(key);
  auto wiring = std::make_shared<CollectiveWiring>();
  wiring->ranks = ranks;
  wiring->first_channel = wired.first_channel;
  // Cuts the messages as the engine does (simulator/engine/tables.cpp).
  const std::int64_t piece = to_elements(chunk_bytes_ > 0 ? chunk_bytes_ : nccl::kPieceBytes);
  wiring->table = message_table(collective.kind, wired.plan, elements, {to_elements(chunk_bytes_), piece});
  known = wiring;
  return known;
}

std::vector<Channel> Wiring::endless_channels(int rank) const {
  std::vector<Channel> endless;
  for (std::size_t t = 0; t < communication_.transfers.size(); ++t) {
    const Transfer& transfer = communication_.transfers[t];
    if (transfer.collective || transfer.ranks[0] != rank || transfer.ranks[1] >= processes_) continue;
    const int receiver = transfer.ranks[1];
    const Program& program = schedule_.programs[communication_.program_of_rank(receiver)];
    const bool repeats = std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
      return op.kind == OpKind::repeat_begin && op.count == 0;
    });
    if (repeats) endless.push_back({rank, receiver, static_cast<int>(t)});
  }
  return endless;
}

}  // namespace rehearse
