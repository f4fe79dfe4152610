// Implements check(): a dry run without time, in which every op waits only for its dependencies and
// transfers, and a search for races.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "models/text/error.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/schedule/folding.hpp"
#include "simulator/schedule/stream_cursor.hpp"

namespace rehearse {

namespace {

class DryRun {
public:
  // `index`: by program.
  DryRun(const Schedule& schedule, const std::vector<ProgramIndex>& index)
      : schedule_(schedule), talk_(schedule, find_symmetry(schedule)), index_(index) {
    fold();
    counters_.resize(representative_.size());
    for (std::size_t c = 0; c < representative_.size(); ++c) {
      const Program& program = program_of(c);
      done_.emplace_back(program.ops.size(), 0);
      for (int s = 0; s < static_cast<int>(program.streams.size()); ++s)
        streams_.push_back({static_cast<int>(c), s, StreamCursor(program, index_of(c), s)});
    }
  }

  void run() {
    bool endless = false;
    for (const ProgramIndex& index : index_)
      endless |= std::find(index.per_step.begin(), index.per_step.end(), 0) != index.per_step.end();
    steps_ = schedule_.crosses_step() && !endless ? 2 : 1;
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t s = 0; s < streams_.size(); ++s) progress |= advance(static_cast<int>(s));
    }
    report_if_stuck();
  }

private:
  struct StreamState {
    int rank_class = 0, stream = 0;
    StreamCursor cursor;
    bool posted = false;  // its op has posted its transfers
    int outstanding = 0;  // number of these transfers that are not matched yet
    int last_sender = -1;
  };
  struct Posted {
    int stream = 0;  // index into streams_
    int op = 0;
    double bytes = 0;
    CollectiveKind kind = CollectiveKind::all_reduce;
  };
  struct TransferState {
    int representative = -1;                  // one transfer of the class
    std::vector<int> classes;                 // of the participants, each once
    std::map<int, std::deque<Posted>> calls;  // collective: by class; message: 0 sends, 1 receives
  };

  const Program& program_of(std::size_t c) const {
    return schedule_.programs[talk_.program_of_rank(representative_[c])];
  }
  const ProgramIndex& index_of(std::size_t c) const {
    return index_[talk_.program_of_rank(representative_[c])];
  }

  int class_of(int rank) const { return class_of_[talk_.symmetry().number_of(rank)]; }

  void fold() {
    Hypergraph graph;
    const RankColours colours(schedule_);
    const RankSymmetry& symmetry = talk_.symmetry();
    for (int n = 0; n < symmetry.representatives(schedule_.ranks()); ++n) {
      const int rank = symmetry.rank_of(n), role = talk_.role_of_rank(rank);
      graph.node_colour.push_back(colours.of(role, rank - schedule_.first_rank(role)));
    }
    add_transfers(graph, talk_, 0, 0);
    const Partition p = foldable(schedule_) ? coarsest_equitable_partition(graph) : discrete_partition(graph);
    class_of_ = p.node_class;
    representative_.assign(p.node_classes, -1);
    for (std::size_t n = 0; n < class_of_.size(); ++n)
      if (representative_[class_of_[n]] < 0)
        representative_[class_of_[n]] = symmetry.rank_of(static_cast<int>(n));
    transfer_class_ = p.edge_class;
    transfers_.resize(p.edge_classes);
    for (std::size_t t = 0; t < talk_.transfers.size(); ++t) {
      TransferState& transfer = transfers_[transfer_class_[t]];
      if (transfer.representative < 0) transfer.representative = static_cast<int>(t);
      std::vector<int>& classes = transfer.classes;
      if (!classes.empty() || !talk_.transfers[t].collective) continue;
      std::set<int> members;
      for (int r : talk_.transfers[t].ranks) members.insert(class_of(r));
      classes.assign(members.begin(), members.end());
    }
  }

  std::vector<int> transfers_of(const StreamState& s, int op, int part) const {
    const int rank = representative_[s.rank_class];
    std::set<int> classes;
    for (int t : talk_.at(rank, talk_.slot(talk_.program_of_rank(rank), op, part)))
      classes.insert(transfer_class_[t]);
    return {classes.begin(), classes.end()};
  }

  std::string describe(const Posted& call) const {
    const StreamState& s = streams_[call.stream];
    const Program& program = program_of(s.rank_class);
    return fmt::format("op {} \"{}\" of \"{}\"", call.op, program.ops[call.op].name, program.name);
  }

  void match(const Posted& a, const Posted& b, const char* what) {
    if (a.bytes != b.bytes)
      throw RunError(fmt::format("schedule: {} disagree on the bytes: {} has {}, {} has {}", what,
                                 describe(a), a.bytes, describe(b), b.bytes));
    if (a.kind != b.kind)
      throw RunError(fmt::format("schedule: a group's members call different collectives: {} is {}, {} is {}",
                                 describe(a), kCollectiveNames[static_cast<int>(a.kind)], describe(b),
                                 kCollectiveNames[static_cast<int>(b.kind)]));
  }

  void post(int stream, int op_number) {
    StreamState& s = streams_[stream];
    const Op& op = program_of(s.rank_class).ops[op_number];
    const int rank = representative_[s.rank_class];
    const int role = talk_.role_of_rank(rank);
    const int role_rank = rank - schedule_.first_rank(role);
    s.posted = true;
    if (op.kind == OpKind::collective) {
      const Posted call{stream, op_number, op.collective.bytes.at(schedule_.roles[role], role_rank),
                        op.collective.kind};
      for (int t : transfers_of(s, op_number, 0)) {
        TransferState& transfer = transfers_[t];
        if (transfer.classes.size() == 1) continue;  // all members call it now
        ++s.outstanding;
        transfer.calls[s.rank_class].push_back(call);
        const bool all = std::all_of(transfer.classes.begin(), transfer.classes.end(),
                                     [&](int c) { return !transfer.calls[c].empty(); });
        if (!all) continue;
        for (int c : transfer.classes) {
          match(transfer.calls[transfer.classes[0]].front(), transfer.calls[c].front(), "a group's members");
          --streams_[transfer.calls[c].front().stream].outstanding;
        }
        for (int c : transfer.classes) transfer.calls[c].pop_front();
      }
      return;
    }
    for (std::size_t part = 0; part < op.messages.size(); ++part) {
      const Message& m = op.messages[part];
      const bool send = m.direction == Message::Direction::send;
      const Posted call{stream, op_number, m.bytes.at(schedule_.roles[role], role_rank)};
      std::vector<int> classes = transfers_of(s, op_number, static_cast<int>(part));
      if (m.peer.kind == Peer::Kind::sender) {  // only the transfer to the rank that was received from last
        std::erase_if(classes, [&](int t) {
          return talk_.transfers[representative_transfer(t)].ranks[1] != s.last_sender;
        });
      }
      if (m.peer.kind == Peer::Kind::any) {
        ++s.outstanding;
        continue;  // handled by try_any
      }
      if (classes.empty())
        throw RunError(fmt::format("schedule: {} has no peer: {}", describe(call),
                                   m.peer.kind == Peer::Kind::sender
                                       ? "nothing was received before"
                                       : "it reaches beyond the end of the axis"));
      if (m.access.one_sided) continue;
      for (int t : classes) {
        ++s.outstanding;
        std::deque<Posted>& mine = transfers_[t].calls[send ? 0 : 1];
        std::deque<Posted>& theirs = transfers_[t].calls[send ? 1 : 0];
        mine.push_back(call);
        if (theirs.empty()) continue;
        match(send ? mine.front() : theirs.front(), send ? theirs.front() : mine.front(),
              "a send and its receive");
        --streams_[mine.front().stream].outstanding;
        --streams_[theirs.front().stream].outstanding;
        mine.pop_front();
        theirs.pop_front();
      }
    }
  }

  int representative_transfer(int transfer_class) const { return transfers_[transfer_class].representative; }

  void try_any(StreamState& s, int op_number) {
    const Op& op = program_of(s.rank_class).ops[op_number];
    if (op.messages.size() != 1 || op.messages[0].peer.kind != Peer::Kind::any) return;
    for (int t : transfers_of(s, op_number, 0)) {
      std::deque<Posted>& sends = transfers_[t].calls[0];
      if (sends.empty()) continue;
      --streams_[sends.front().stream].outstanding;
      sends.pop_front();
      --s.outstanding;
      s.last_sender = talk_.transfers[representative_transfer(t)].ranks[0];
      return;
    }
  }

  bool advance(int stream) {
    StreamState& s = streams_[stream];
    bool progress = false;
    while (s.cursor.step() < steps_) {
      if (s.cursor.at_end()) {
        s.cursor.next_step();
        progress = true;
        continue;
      }
      const int number = s.cursor.op();
      const Op& op = s.cursor.current();
      if (!s.posted) {
        if (s.cursor.unmet(done_[s.rank_class]) != nullptr) return progress;
        if (op.kind == OpKind::exchange || op.kind == OpKind::collective) post(stream, number);
        if (op.kind == OpKind::wait_until && !s.cursor.reached(counters_[s.rank_class])) return progress;
        s.posted = true;
        progress = true;
      }
      if (s.outstanding > 0) try_any(s, number);
      if (s.outstanding > 0) return progress;
      finish(s);
      progress = true;
    }
    return progress;
  }

  void finish(StreamState& s) {
    const Op& op = s.cursor.current();
    ++done_[s.rank_class][s.cursor.op()];
    if (op.kind == OpKind::signal) signal(s, op);
    s.posted = false;
    s.cursor.advance();
  }

  void signal(const StreamState& s, const Op& op) {
    const CounterAddress counter = s.cursor.counter();
    if (op.signalled.empty()) ++counters_[s.rank_class][counter];
    const int rank = representative_[s.rank_class], role = talk_.role_of_rank(rank);
    for (const Peer& peer : op.signalled)
      for (int r : peer_ranks(schedule_.roles, role, peer, rank - schedule_.first_rank(role))) {
        const int other_role = peer.kind == Peer::Kind::offset ? role : peer.role;
        ++counters_[class_of(schedule_.first_rank(other_role) + r)][counter];
      }
  }

  void report_if_stuck() const {
    std::string stuck;
    int count = 0;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const StreamState& s = streams_[i];
      if (s.cursor.step() >= steps_ || (!s.cursor.at_end() && s.cursor.endless())) continue;
      if (++count > 8) continue;
      const Program& program = program_of(s.rank_class);
      const int number = s.cursor.op();
      stuck += fmt::format("\n  {} on stream \"{}\" {}", describe({static_cast<int>(i), number}),
                           program.streams[s.stream], why(s));
    }
    if (count > 8) stuck += fmt::format("\n  and {} more", count - 8);
    if (count > 0) throw RunError("schedule: it can never end; these ops wait forever:" + stuck);
  }

  std::string why(const StreamState& s) const {
    const int number = s.cursor.op();
    const Op& op = s.cursor.current();
    if (!s.posted) {
      if (const Dependency* d = s.cursor.unmet(done_[s.rank_class]))
        return fmt::format("waits for op {} \"{}\"{}", d->op, program_of(s.rank_class).ops[d->op].name,
                           d->steps_back > 0 ? " of the step before" : "");
      return fmt::format("waits for counter \"{}\"", op.counter.name);
    }
    if (op.kind == OpKind::collective) {
      for (int t : transfers_of(s, number, 0))
        for (int c : transfers_[t].classes)
          if (const auto it = transfers_[t].calls.find(c);
              it == transfers_[t].calls.end() || it->second.empty())
            return fmt::format("waits for \"{}\" to call it", program_of(c).name);
      return "waits for other members to call it";
    }
    for (std::size_t part = 0; part < op.messages.size(); ++part) {
      const bool send = op.messages[part].direction == Message::Direction::send;
      if (op.messages[part].peer.kind == Peer::Kind::any) return "waits for any rank to send";
      for (int t : transfers_of(s, number, static_cast<int>(part))) {
        const auto& calls = transfers_[t].calls;
        const auto mine = calls.find(send ? 0 : 1);
        if (mine == calls.end() || mine->second.empty()) continue;
        const std::vector<int>& ranks = talk_.transfers[representative_transfer(t)].ranks;
        return fmt::format("waits for \"{}\" to {} (tag {})", program_of(class_of(ranks[send ? 1 : 0])).name,
                           send ? "receive" : "send", op.messages[part].tag);
      }
    }
    return "waits";
  }

  const Schedule& schedule_;
  Communication talk_;
  const std::vector<ProgramIndex>& index_;
  std::vector<int> class_of_;  // by number of the rank among those that the symmetry leaves
  std::vector<int> representative_, transfer_class_;
  std::vector<TransferState> transfers_;
  std::vector<std::vector<long>> done_;
  std::vector<StreamState> streams_;
  std::vector<Counters> counters_;  // by class
  int steps_ = 1;
};

// Two ops race if one writes a tensor that the other uses and neither must end before the other begins. Two
// steps are examined, so that the end of one is compared with the beginning of the next.
void find_races(const Program& program, const ProgramIndex& index) {
  const int ops = static_cast<int>(program.ops.size()), streams = static_cast<int>(program.streams.size());
  // The number of ops of stream s (over both steps) that have certainly ended before op i begins.
  std::vector<int> all_known(static_cast<std::size_t>(2) * ops * streams, 0);
  const auto known = [&](int i, int s) -> int& {
    return all_known[static_cast<std::size_t>(i) * streams + s];
  };
  std::vector<bool> settled(2 * ops, false);
  std::vector<std::size_t> next(streams, 0);
  const auto place = [&](int i) {  // position in its stream, counted through both steps
    const int op = i % ops;
    return index.position[op] + (i / ops) * static_cast<int>(index.stream_ops[program.ops[op].stream].size());
  };
  const auto take = [&](int into, int earlier) {
    for (int s = 0; s < streams; ++s) known(into, s) = std::max(known(into, s), known(earlier, s));
    int& own = known(into, program.ops[earlier % ops].stream);
    own = std::max(own, place(earlier) + 1);
  };
  std::vector<int> order;  // an order in which they can begin one by one
  for (bool progress = true; progress;) {
    progress = false;
    for (int s = 0; s < streams; ++s) {
      const std::size_t length = index.stream_ops[s].size();
      while (next[s] < 2 * length) {
        const int step = static_cast<int>(next[s] / length), op = index.stream_ops[s][next[s] % length];
        const int i = op + step * ops;
        bool ready = true;
        for (const Dependency& d : program.ops[op].after)
          if (step - d.steps_back >= 0 && !settled[d.op + (step - d.steps_back) * ops]) ready = false;
        if (!ready) break;
        if (next[s] > 0)
          take(i,
               index.stream_ops[s][(next[s] - 1) % length] + static_cast<int>((next[s] - 1) / length) * ops);
        for (const Dependency& d : program.ops[op].after)
          if (step - d.steps_back >= 0) take(i, d.op + (step - d.steps_back) * ops);
        settled[i] = true;
        order.push_back(i);
        ++next[s];
        progress = true;
      }
    }
  }
  const auto before = [&](int a, int b) { return known(b, program.ops[a % ops].stream) > place(a); };
  // The order is transitive: if each use follows the write before it, and each write follows the uses since
  // then, all are ordered. Thousands of micro-batches use the same gradients, so pairs are examined only to
  // name a race.
  const std::size_t tensors = program.tensors.size();
  std::vector<int> last_write(tensors, -1);
  std::vector<std::vector<int>> reads_since(tensors);
  std::vector<bool> races(tensors, order.size() < 2 * program.ops.size());
  for (int i : order) {
    const Op& op = program.ops[i % ops];
    const auto follows = [&](int earlier, int t) {
      if (earlier >= 0 && earlier != i && !before(earlier, i)) races[t] = true;
    };
    for (int t : op.reads) {
      follows(last_write[t], t);
      reads_since[t].push_back(i);
    }
    for (int t : op.writes) {
      follows(last_write[t], t);
      for (int read : reads_since[t]) follows(read, t);
      reads_since[t].clear();
      last_write[t] = i;
    }
  }
  if (std::find(races.begin(), races.end(), true) == races.end()) return;
  struct Use {
    int i;
    bool write;
  };
  std::vector<std::vector<Use>> uses(tensors);
  for (int i = 0; i < 2 * ops; ++i) {
    for (int t : program.ops[i % ops].writes) uses[t].push_back({i, true});
    for (int t : program.ops[i % ops].reads) uses[t].push_back({i, false});
  }
  for (std::size_t t = 0; t < tensors; ++t)
    for (const Use& w : uses[t]) {
      if (!races[t] || program.tensors[t].shared) break;
      if (!w.write) continue;
      for (const Use& u : uses[t]) {
        if (u.i == w.i || before(w.i, u.i) || before(u.i, w.i)) continue;
        throw RunError(
            fmt::format("schedule: race in \"{}\": op {} \"{}\" writes {} \"{}\" while op {} \"{}\"{} may {} "
                        "it; nothing orders them",
                        program.name, w.i % ops, program.ops[w.i % ops].name,
                        kTensorKindNames[static_cast<int>(program.tensors[t].kind)], program.tensors[t].name,
                        u.i % ops, program.ops[u.i % ops].name,
                        w.i / ops == u.i / ops ? "" : " of another step", u.write ? "write" : "read"));
      }
    }
}

}  // namespace

void check(const Schedule& schedule) {
  if (schedule.roles.empty()) throw RunError("schedule: it has no roles");
  for (const Role& role : schedule.roles) {
    for (const Mesh& mesh : role.meshes)
      if (mesh.size() != role.size())
        throw RunError(fmt::format("schedule: the meshes of role \"{}\" have {} and {} ranks", role.name,
                                   role.size(), mesh.size()));
  }
  std::vector<ProgramIndex> index;
  for (const Program& program : schedule.programs) {
    if (program.role < 0 || program.role >= static_cast<int>(schedule.roles.size()))
      throw RunError(fmt::format("schedule: program \"{}\" has role {}; there are {}", program.name,
                                 program.role, schedule.roles.size()));
    index.emplace_back(schedule, program);
  }
  DryRun(schedule, index).run();
  for (std::size_t p = 0; p < index.size(); ++p) find_races(schedule.programs[p], index[p]);
}

}  // namespace rehearse
