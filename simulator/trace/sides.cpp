#include "simulator/trace/sides.hpp"

#include <algorithm>
#include <set>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/flows.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// What calls of one communicator have in common, seen from any of its members: collectives match in the order
// in which each member calls them.
struct Communicator {
  const Schedule* schedule = nullptr;
  int job = 0, role = 0;
  std::string stream;
  Collective collective;  // group, channels, algorithm and whether it is pairwise
  std::vector<int> classes;
  std::map<int, std::size_t> calls_of_class;
  std::vector<std::size_t> calls;

  // The same group, whichever of its members calls.
  bool same_but_for_classes(const Communicator& other) const {
    const Collective &a = collective, &b = other.collective;
    return schedule == other.schedule && job == other.job && role == other.role && stream == other.stream &&
           a.group == b.group && a.channels == b.channels && a.algorithm == b.algorithm &&
           (a.kind == CollectiveKind::all_to_all) == (b.kind == CollectiveKind::all_to_all);
  }
};

}  // namespace

Sides::Sides(const Trace& trace) : trace_(trace) {
  for (const Flow& flow : message_flows(trace)) {
    messages_.emplace_back(flow.from, flow.to);
    messages_.emplace_back(flow.to, flow.from);
  }
  std::sort(messages_.begin(), messages_.end());
  match_collectives();
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    const Op& op = trace.op_of(row);
    if (op.kind == OpKind::signal)
      signals_[{trace.classes[trace.spans.rank_class[row]].job, op.counter.name}].push_back(row);
  }
  for (auto& [key, rows] : signals_)
    std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
      return trace.spans.end_s[a] < trace.spans.end_s[b];
    });
}

void Sides::match_collectives() {
  std::map<std::tuple<int, int, int>, int> class_of;  // job, role, rank
  for (std::size_t c = 0; c < trace_.classes.size(); ++c)
    for (const int rank : trace_.classes[c].ranks)
      class_of[{trace_.classes[c].job, trace_.classes[c].role, rank}] = static_cast<int>(c);

  std::vector<Communicator> communicators;
  std::map<std::tuple<const Schedule*, int, int>, std::size_t> communicator_of;  // schedule, class, op
  for (std::size_t row = 0; row < trace_.spans.size(); ++row) {
    const Op& op = trace_.op_of(row);
    if (op.kind != OpKind::collective || trace_.spans.status[row] != Status::done) continue;
    const int c = trace_.spans.rank_class[row];
    const RankClass& who = trace_.classes[c];
    const Schedule& schedule = schedule_of(trace_, row);
    const auto [known, fresh] =
        communicator_of.try_emplace({&schedule, c, trace_.spans.op[row]}, communicators.size());
    if (fresh) {
      Communicator mine;
      mine.schedule = &schedule;
      mine.job = who.job;
      mine.role = who.role;
      mine.stream = trace_.program_of(row).streams[op.stream];
      mine.collective = op.collective;
      // A class is in one group of a kind: thousands of ops call the same communicator.
      auto same = std::find_if(communicators.begin(), communicators.end(), [&](const Communicator& other) {
        return std::binary_search(other.classes.begin(), other.classes.end(), c) &&
               other.same_but_for_classes(mine);
      });
      if (same == communicators.end()) {
        std::set<int> classes;
        for (const int rank :
             group_members(schedule.roles[who.role], op.collective.group, who.ranks.front())) {
          const auto it = class_of.find({who.job, who.role, rank});
          if (it != class_of.end()) classes.insert(it->second);
        }
        mine.classes.assign(classes.begin(), classes.end());
      }
      known->second = static_cast<std::size_t>(same - communicators.begin());
      if (same == communicators.end()) communicators.push_back(std::move(mine));
    }
    Communicator& communicator = communicators[known->second];
    const std::size_t number = communicator.calls_of_class[c]++;
    if (number == communicator.calls.size()) {
      communicator.calls.push_back(calls_.size());
      calls_.emplace_back();
    }
    calls_[communicator.calls[number]].push_back(row);
    call_of_row_.emplace_back(row, communicator.calls[number]);
  }
}

std::vector<std::size_t> Sides::of(std::size_t row) const {
  std::vector<std::size_t> others;
  for (auto it = std::lower_bound(messages_.begin(), messages_.end(), std::pair(row, std::size_t{0}));
       it != messages_.end() && it->first == row; ++it)
    others.push_back(it->second);
  const auto call =
      std::lower_bound(call_of_row_.begin(), call_of_row_.end(), std::pair(row, std::size_t{0}));
  if (call != call_of_row_.end() && call->first == row)
    for (const std::size_t member : calls_[call->second])
      if (member != row) others.push_back(member);
  return others;
}

std::size_t Sides::signal_for(std::size_t row) const {
  const Spans& spans = trace_.spans;
  const Op& op = trace_.op_of(row);
  const RankClass& who = trace_.classes[spans.rank_class[row]];
  const auto found = signals_.find({who.job, op.counter.name});
  if (found == signals_.end()) return kNoRow;
  const double end_s = spans.end_s[row];
  const auto reaches = [&](std::size_t signal) {
    const Op& its_op = trace_.op_of(signal);
    if (its_op.counter.at(spans.iteration[signal]) != op.counter.at(spans.iteration[row])) return false;
    const RankClass& from = trace_.classes[spans.rank_class[signal]];
    if (its_op.signalled.empty()) return &from == &who;
    for (const Peer& peer : its_op.signalled) {
      if ((peer.kind == Peer::Kind::offset ? from.role : peer.role) != who.role) continue;
      for (const int rank :
           peer_ranks(schedule_of(trace_, signal).roles, from.role, peer, from.ranks.front()))
        if (std::find(who.ranks.begin(), who.ranks.end(), rank) != who.ranks.end()) return true;
    }
    return false;
  };
  const std::vector<std::size_t>& rows = found->second;
  for (auto it = rows.rbegin(); it != rows.rend(); ++it) {
    if (spans.end_s[*it] > end_s && !same_instant(spans.end_s[*it], end_s)) continue;
    if (reaches(*it)) return *it;
  }
  return kNoRow;
}

}  // namespace rehearse
