#include "simulator/trace/sides.hpp"

#include <algorithm>
#include <set>

#include "simulator/trace/causes.hpp"
#include "simulator/trace/flows.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// Collectives that members of a group call in the same order, so each member's n-th calls match. As seen from
// any of its members.
struct Communicator {
  const Schedule* schedule = nullptr;
  int job = 0, role = 0;
  std::string stream;
  Collective collective;     // group, channels, algorithm and whether it is pairwise
  std::vector<int> classes;  // of its members, sorted
  std::map<int, std::size_t> calls_of_class;
  std::vector<std::size_t> calls;

  bool is_called_by(const Schedule& its_schedule, const RankClass& who, const std::string& its_stream,
                    const Collective& call) const {
    return schedule == &its_schedule && job == who.job && role == who.role && stream == its_stream &&
           collective.group == call.group && collective.channels == call.channels &&
           collective.algorithm == call.algorithm &&
           (collective.kind == CollectiveKind::all_to_all) == (call.kind == CollectiveKind::all_to_all);
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
  std::vector<std::size_t> last_of_class(trace_.classes.size(), 0);  // thousands of ops call the same one
  for (std::size_t row = 0; row < trace_.spans.size(); ++row) {
    const Op& op = trace_.op_of(row);
    if (op.kind != OpKind::collective || trace_.spans.status[row] != Status::done) continue;
    const int c = trace_.spans.rank_class[row];
    const RankClass& who = trace_.classes[c];
    const Schedule& schedule = schedule_of(trace_, row);
    const std::string& stream = trace_.program_of(row).streams[op.stream];
    const auto is_called = [&](const Communicator& communicator) {
      return communicator.is_called_by(schedule, who, stream, op.collective) &&
             std::binary_search(communicator.classes.begin(), communicator.classes.end(), c);
    };
    std::size_t& number = last_of_class[c];
    if (number >= communicators.size() || !is_called(communicators[number]))
      number = static_cast<std::size_t>(std::find_if(communicators.begin(), communicators.end(), is_called) -
                                        communicators.begin());
    if (number == communicators.size()) {
      std::set<int> classes;
      for (const int rank : group_members(schedule.roles[who.role], op.collective.group, who.ranks.front())) {
        const auto it = class_of.find({who.job, who.role, rank});
        if (it != class_of.end()) classes.insert(it->second);
      }
      communicators.push_back({&schedule,
                               who.job,
                               who.role,
                               stream,
                               op.collective,
                               std::vector<int>(classes.begin(), classes.end()),
                               {},
                               {}});
    }
    Communicator& communicator = communicators[number];
    if (communicator.classes.size() < 2) continue;  // no other class has a row of it
    const std::size_t call = communicator.calls_of_class[c]++;
    if (call == communicator.calls.size()) {
      communicator.calls.push_back(calls_.size());
      calls_.emplace_back();
    }
    calls_[communicator.calls[call]].push_back(row);
    call_of_row_.emplace_back(row, communicator.calls[call]);
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
