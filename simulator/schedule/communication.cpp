#include "simulator/schedule/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "models/text/error.hpp"

namespace rehearse {

namespace {

Slot::Kind kind_of(const Message& message) {
  if (message.direction == Message::Direction::send)
    return message.peer.kind == Peer::Kind::sender ? Slot::Kind::reply : Slot::Kind::send;
  return message.peer.kind == Peer::Kind::any ? Slot::Kind::receive_any : Slot::Kind::receive;
}

bool same_communicator(const Collective& a, const Collective& b) {
  return a.group == b.group && a.channels == b.channels && a.used_algorithm() == b.used_algorithm() &&
         course_of(a.kind) == course_of(b.kind);
}

// Thousands of ops use the same few slots, so an op is copied into a slot only when there is no match.
int find_or_add(std::vector<Slot>& slots, const auto& is_its, const auto& fill) {
  const auto number = std::find_if(slots.begin(), slots.end(), is_its) - slots.begin();
  if (number == static_cast<std::ptrdiff_t>(slots.size())) fill(slots.emplace_back());
  return static_cast<int>(number);
}

int slot_of_message(std::vector<Slot>& slots, const Op& op, const Message& message) {
  const Slot::Kind kind = kind_of(message);
  return find_or_add(
      slots,
      [&](const Slot& slot) {
        return slot.kind == kind && slot.tag == message.tag && slot.peer == message.peer &&
               slot.access == message.access;
      },
      [&](Slot& slot) {
        slot.kind = kind;
        slot.peer = message.peer;
        slot.tag = message.tag;
        slot.access = message.access;
        slot.stream = op.stream;
      });
}

int slot_of_collective(std::vector<Slot>& slots, const Op& op) {
  return find_or_add(
      slots,
      [&](const Slot& slot) {
        return slot.kind == Slot::Kind::collective && slot.stream == op.stream &&
               same_communicator(slot.collective, op.collective);
      },
      [&](Slot& slot) {
        slot.kind = Slot::Kind::collective;
        slot.collective = op.collective;
        slot.stream = op.stream;
      });
}

struct MessageKey {
  int sender, receiver, tag;
  bool operator==(const MessageKey&) const = default;
};
struct MessageHash {
  std::size_t operator()(const MessageKey& k) const {
    std::uint64_t h = static_cast<std::uint64_t>(k.sender) * 0x9E3779B97F4A7C15ull + k.receiver;
    h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull + k.tag;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
};

}  // namespace

int process_ranks(const Schedule& schedule) {
  int last = 0;
  for (const Program& program : schedule.programs)
    if (!program.ops.empty()) last = std::max(last, program.role);
  return schedule.first_rank(last) + schedule.roles[static_cast<std::size_t>(last)].size();
}

Communication::Communication(const Schedule& schedule, RankSymmetry symmetry) : symmetry_(symmetry) {
  const int ranks = symmetry_.representatives(schedule.ranks());
  program_.assign(ranks, -1);
  role_.assign(ranks, 0);
  at_.resize(ranks);
  slots_.resize(schedule.programs.size());
  slot_of_part_.resize(schedule.programs.size());
  first_part_.resize(schedule.programs.size());

  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const Program& program = schedule.programs[p];
    std::vector<int>& parts = slot_of_part_[p];
    first_part_[p].reserve(program.ops.size());
    for (const Op& op : program.ops) {
      const auto first = static_cast<std::ptrdiff_t>(parts.size());
      first_part_[p].push_back(static_cast<int>(first));
      for (const Message& message : op.messages) {
        const int slot = slot_of_message(slots_[p], op, message);
        if (slots_[p][slot].stream != op.stream ||
            std::find(parts.begin() + first, parts.end(), slot) != parts.end())
          slots_[p][slot].may_overlap = true;
        parts.push_back(slot);
      }
      if (op.kind == OpKind::collective) parts.push_back(slot_of_collective(slots_[p], op));
    }
  }

  int number = 0;  // of a rank that represents others
  for (std::size_t role = 0; role < schedule.roles.size(); ++role) {
    const int first = schedule.first_rank(static_cast<int>(role)), size = schedule.roles[role].size();
    for (; number < ranks && symmetry_.rank_of(number) < first + size; ++number) {
      const int r = symmetry_.rank_of(number) - first;
      role_[number] = static_cast<int>(role);
      program_[number] = schedule.program_of(static_cast<int>(role), r);
      if (program_[number] < 0)
        throw RunError(
            fmt::format("schedule: rank {} of role \"{}\" has no program", r, schedule.roles[role].name));
      at_[number].resize(slots_[program_[number]].size());
    }
  }

  std::unordered_map<MessageKey, int, MessageHash> messages;
  // A message's pattern is the pair of slots at its ends; one slot is missing until the other end is seen.
  std::vector<std::pair<int, int>> ends;  // by transfer: (program, slot) codes of sender and receiver
  const auto message = [&](int sender, int receiver, int tag) {
    const auto [it, added] =
        messages.try_emplace({sender, receiver, tag}, static_cast<int>(transfers.size()));
    if (added) {
      transfers.push_back({0, false, {sender, receiver}, false});
      ends.emplace_back(-1, -1);
    }
    return it->second;
  };
  std::vector<int> first_slot(slots_.size() + 1, 0);
  for (std::size_t p = 0; p < slots_.size(); ++p)
    first_slot[p + 1] = first_slot[p] + static_cast<int>(slots_[p].size());

  // A communicator is identified by a group and a stream's name; its groups are created once, at their first
  // member.
  struct Communicator {
    int role;
    std::string stream;
    Collective collective;
    std::vector<int> transfer_of_rank;
  };
  std::vector<Communicator> communicators;

  for (number = 0; number < ranks; ++number) {
    const int rank = symmetry_.rank_of(number);
    const int p = program_[number], role = role_[number], first = schedule.first_rank(role);
    for (std::size_t s = 0; s < slots_[p].size(); ++s) {
      const Slot& slot = slots_[p][s];
      std::vector<int>& here = at_[number][s];
      const int code = first_slot[p] + static_cast<int>(s);
      if (slot.kind == Slot::Kind::send || slot.kind == Slot::Kind::receive) {
        const bool send = slot.kind == Slot::Kind::send;
        const bool own_role = slot.peer.kind == Peer::Kind::offset;
        const int other_first = own_role ? first : schedule.first_rank(slot.peer.role);
        for (int peer : peer_ranks(schedule.roles, role, slot.peer, rank - first)) {
          const int other = other_first + peer;
          const int t = send ? message(rank, other, slot.tag) : message(other, rank, slot.tag);
          (send ? ends[t].first : ends[t].second) = code;
          here.push_back(t);
        }
      } else if (slot.kind == Slot::Kind::collective) {
        const std::string& stream = schedule.programs[p].streams[slot.stream];
        Communicator* communicator = nullptr;
        for (Communicator& c : communicators)
          if (c.role == role && c.stream == stream && same_communicator(c.collective, slot.collective))
            communicator = &c;
        if (communicator == nullptr) {
          communicators.push_back(
              {role, stream, slot.collective, std::vector<int>(schedule.roles[role].size(), -1)});
          communicator = &communicators.back();
        }
        if (communicator->transfer_of_rank[rank - first] < 0) {
          std::vector<int> members = group_members(schedule.roles[role], slot.collective.group, rank - first);
          if (members.empty())
            throw RunError(fmt::format("schedule: program \"{}\" calls a collective of a group it is not in",
                                       schedule.programs[p].name));
          bool spread = false;
          for (int& m : members) {
            communicator->transfer_of_rank[m] = static_cast<int>(transfers.size());
            m += first;
            spread = spread || !symmetry_.represents(m);
          }
          const int pattern = -1 - static_cast<int>(communicator - communicators.data());
          transfers.push_back({pattern, true, std::move(members), spread});
          ends.emplace_back(-1, -1);
        }
        here.push_back(communicator->transfer_of_rank[rank - first]);
      }
    }
  }

  // Receives from any rank and replies refer to the transfers that the named ends set up.
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    if (transfers[t].collective) continue;
    const int sender = transfers[t].ranks[0], receiver = transfers[t].ranks[1];
    const auto attach = [&](int at_rank, Slot::Kind kind, int other_role, int& end) {
      const int p = program_of_rank(at_rank);
      for (std::size_t s = 0; s < slots_[p].size(); ++s) {
        const Slot& slot = slots_[p][s];
        if (slot.kind != kind || messages.count({sender, receiver, slot.tag}) == 0 ||
            messages.at({sender, receiver, slot.tag}) != static_cast<int>(t))
          continue;
        if (kind == Slot::Kind::receive_any && slot.peer.role != other_role) continue;
        at_[symmetry_.number_of(at_rank)][s].push_back(static_cast<int>(t));
        end = first_slot[p] + static_cast<int>(s);
      }
    };
    if (ends[t].second < 0) attach(receiver, Slot::Kind::receive_any, role_of_rank(sender), ends[t].second);
    if (ends[t].first < 0) attach(sender, Slot::Kind::reply, role_of_rank(receiver), ends[t].first);
  }

  std::map<std::pair<int, int>, int> pattern_of;
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    const std::pair<int, int> key = transfers[t].collective ? std::pair(-2, transfers[t].pattern) : ends[t];
    transfers[t].pattern = pattern_of.try_emplace(key, static_cast<int>(pattern_of.size())).first->second;
  }
  patterns = static_cast<int>(pattern_of.size());
}

}  // namespace rehearse
