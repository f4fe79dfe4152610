#include "simulator/trace/flows.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

struct Ends {
  std::vector<std::size_t> sends, receives;
};

class Matching {
public:
  explicit Matching(const Trace& trace) : trace_(trace) {
    for (std::size_t c = 0; c < trace.classes.size(); ++c) {
      const RankClass& who = trace.classes[c];
      for (const int rank : who.ranks) class_of_[{who.job, who.role, rank}] = static_cast<int>(c);
    }
  }

  std::vector<Flow> run() {
    int replies_to = -1;  // class from which the stream's last receive from any rank received; -1: none
    for (std::size_t row = 0; row < trace_.spans.size(); ++row) {
      const Op& op = trace_.op_of(row);
      const int c = trace_.spans.rank_class[row];
      if (row == 0 || trace_.spans.rank_class[row - 1] != c || trace_.op_of(row - 1).stream != op.stream) {
        replies_to = -1;
      }
      if (op.kind != OpKind::exchange || trace_.spans.status[row] != Status::done) continue;
      for (std::size_t part = 0; part < op.messages.size(); ++part)
        add(row, c, op.messages[part], part, replies_to);
    }
    std::vector<Flow> flows;
    for (auto& [key, ends] : ends_) {
      for (auto* rows : {&ends.sends, &ends.receives}) {
        std::stable_sort(rows->begin(), rows->end(), [&](std::size_t a, std::size_t b) {
          return trace_.spans.ready_s[a] < trace_.spans.ready_s[b];
        });
      }
      const std::size_t pairs = std::min(ends.sends.size(), ends.receives.size());
      for (std::size_t i = 0; i < pairs; ++i) flows.push_back({ends.sends[i], ends.receives[i]});
    }
    std::sort(flows.begin(), flows.end(),
              [](const Flow& a, const Flow& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
    return flows;
  }

private:
  void add(std::size_t row, int c, const Message& message, std::size_t part, int& replies_to) {
    const bool sends = message.direction == Message::Direction::send;
    const auto note = [&](int other) {
      if (other < 0) return;
      Ends& ends = sends ? ends_[{c, other, message.tag}] : ends_[{other, c, message.tag}];
      (sends ? ends.sends : ends.receives).push_back(row);
    };
    const RankClass& who = trace_.classes[c];
    if (message.peer.kind == Peer::Kind::any) {
      replies_to = class_at(who.job, message.peer.role, trace_.spans.sender[row]);
      note(replies_to);
    } else if (message.peer.kind == Peer::Kind::sender) {
      note(replies_to);
    } else {
      for (const int other : peer_classes(row, c, message, part)) note(other);
    }
  }

  // Returns the classes of a message's peers: one arrow for each class, no matter how many ranks it
  // represents.
  const std::set<int>& peer_classes(std::size_t row, int c, const Message& message, std::size_t part) {
    const Schedule& schedule = schedule_of(trace_, row);
    const auto [it, fresh] = peers_.try_emplace({&schedule, c, trace_.spans.op[row], part});
    if (fresh) {
      const RankClass& who = trace_.classes[c];
      const int role = message.peer.kind == Peer::Kind::offset ? who.role : message.peer.role;
      for (const int rank : peer_ranks(schedule.roles, who.role, message.peer, who.ranks.front())) {
        it->second.insert(class_at(who.job, role, rank));
      }
    }
    return it->second;
  }

  int class_at(int job, int role, int rank) const {
    const auto it = class_of_.find({job, role, rank});
    return it == class_of_.end() ? -1 : it->second;
  }

  const Trace& trace_;
  std::map<std::tuple<int, int, int>, int> class_of_;  // job, role, rank
  std::map<std::tuple<int, int, int>, Ends> ends_;     // sender's class, receiver's class, tag
  std::map<std::tuple<const Schedule*, int, int, std::size_t>, std::set<int>> peers_;
};

}  // namespace

std::vector<Flow> message_flows(const Trace& trace) {
  return Matching(trace).run();
}

}  // namespace rehearse
