#include "backend/runtime/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"

namespace rehearse {

int Communicator::member_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::vector<Communicator> communicators(const Schedule& schedule, const Communication& communication) {
  std::vector<Communicator> all;
  std::vector<int> of_transfer(communication.transfers.size(), -1);
  for (std::size_t t = 0; t < communication.transfers.size(); ++t) {
    if (communication.transfers[t].ranks.size() < 2) continue;
    of_transfer[t] = static_cast<int>(all.size());
    all.push_back({static_cast<int>(t), communication.transfers[t].ranks, {}});
  }
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const int number = communication.program_of_rank(rank);
    const std::vector<Op>& ops = schedule.programs[static_cast<std::size_t>(number)].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != OpKind::collective) continue;
      for (const int t : communication.at(rank, communication.slot(number, static_cast<int>(i), 0)))
        if (of_transfer[static_cast<std::size_t>(t)] >= 0)
          all[static_cast<std::size_t>(of_transfer[static_cast<std::size_t>(t)])].kinds.insert(
              ops[i].collective.kind);
    }
  }
  return all;
}

void refuse_unordered(const Schedule& schedule, const Communication& communication) {
  const auto refuse = [](const Op& op, const char* why) {
    throw RunError(
        fmt::format("op \"{}\" {}, which the streams of a GPU cannot do; allowed on GPUs: schedules "
                    "whose order is known in advance, such as synchronous servers",
                    op.name, why));
  };
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const std::vector<Op>& ops = schedule.programs[p].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (op.kind == OpKind::repeat_begin && op.count == 0) refuse(op, "repeats until others are done");
      if (op.turn >= 0) refuse(op, "waits for its turn");
      for (std::size_t m = 0; m < op.messages.size(); ++m) {
        const Peer::Kind peer = op.messages[m].peer.kind;
        if (peer == Peer::Kind::any) refuse(op, "receives from the first rank that sends");
        if (peer == Peer::Kind::sender) refuse(op, "replies to the rank that has sent");
        const int slot = communication.slot(static_cast<int>(p), static_cast<int>(i), static_cast<int>(m));
        if (communication.slots_of(static_cast<int>(p))[static_cast<std::size_t>(slot)].stream != op.stream)
          refuse(op, "shares its peer and tag with an op of another stream, in no order between the two");
      }
    }
  }
}

std::vector<std::string> share_ids(Transport& transport, const std::vector<Communicator>& communicators,
                                   const std::function<std::string()>& make_id) {
  std::string own;
  std::size_t made = 0;
  for (const Communicator& c : communicators)
    if (c.ranks.front() == transport.rank()) {
      own += make_id();
      ++made;
    }
  if (made > 0 && (own.size() % made != 0 || own.empty()))
    throw RunError("ids of communicators differ in length");
  const std::vector<std::string> by_rank = all_gather(transport, own);
  std::vector<std::size_t> of_rank(by_rank.size(), 0), taken(by_rank.size(), 0);
  for (const Communicator& c : communicators) ++of_rank[static_cast<std::size_t>(c.ranks.front())];
  std::vector<std::string> ids;
  for (const Communicator& c : communicators) {
    const auto maker = static_cast<std::size_t>(c.ranks.front());
    const std::size_t size = by_rank[maker].size() / of_rank[maker];
    if (size == 0) throw RunError(fmt::format("rank {} created no ids for its communicators", maker));
    ids.push_back(by_rank[maker].substr(size * taken[maker]++, size));
  }
  return ids;
}

BlockBudget block_budget(const std::vector<Communicator>& communicators, int ranks, int multiprocessors) {
  constexpr int kMost = 32;                                  // more blocks do not make NCCL faster
  const int budget = multiprocessors - multiprocessors / 4;  // an NCCL block takes most of a multiprocessor
  struct Count {
    int collectives = 0, messages = 0;
  };
  std::vector<Count> of_rank(static_cast<std::size_t>(ranks));
  for (const Communicator& c : communicators)
    for (const int rank : c.ranks) {
      Count& count = of_rank[static_cast<std::size_t>(rank)];
      ++(c.kinds.empty() ? count.messages : count.collectives);
    }
  BlockBudget result;
  for (const Count& count : of_rank)
    result.most_together = std::max(result.most_together, count.collectives + count.messages);
  if (result.most_together <= 1) return result;
  const auto fits = [&](int collectives, int messages) {
    return std::all_of(of_rank.begin(), of_rank.end(), [&](const Count& count) {
      return count.collectives * collectives + count.messages * messages <= budget;
    });
  };
  if (!fits(1, 1))
    throw RunError(
        fmt::format("{} communicators of a rank wait on its GPU at the same time; allowed: {}, three "
                    "quarters of its {} multiprocessors",
                    result.most_together, budget, multiprocessors));
  result.collectives = result.messages = 1;
  while (2 * result.collectives <= kMost && fits(2 * result.collectives, 1)) result.collectives *= 2;
  while (2 * result.messages <= kMost && fits(result.collectives, 2 * result.messages)) result.messages *= 2;
  return result;
}

CollectiveCall collective_call(CollectiveKind kind, std::size_t elements, int members, int member) {
  const auto n = static_cast<std::size_t>(members), own = static_cast<std::size_t>(member);
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return {elements / n, 0, own * (elements / n)};
    case CollectiveKind::all_gather:
      return {elements / n, own * (elements / n), 0};
    case CollectiveKind::all_to_all:
      return {elements / (n * n), 0, 0};
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      break;
  }
  return {elements, 0, 0};
}

std::size_t pair_part(std::size_t count, int members, int from, int to) {
  return count *
         (static_cast<std::size_t>(from) * static_cast<std::size_t>(members) + static_cast<std::size_t>(to));
}

}  // namespace rehearse
