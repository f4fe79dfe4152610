#include "simulator/engine/run_ahead.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

bool is_served_in_order(const Op& op) {
  if (op.kind == OpKind::repeat_begin && op.count == 0) return true;  // ends when other ranks are done
  if (op.arithmetic || op.turn >= 0) return true;
  return std::any_of(op.messages.begin(), op.messages.end(), [](const Message& m) {
    return m.peer.kind == Peer::Kind::any || m.peer.kind == Peer::Kind::sender;
  });
}

}  // namespace

bool may_run_ahead(const Run& run, const EngineOptions& options) {
  if (!run.events.empty() || options.fidelity == Fidelity::chunk) return false;
  for (const Job& job : run.jobs)
    for (const Phase& phase : job.phases) {
      if (phase.until_s < std::numeric_limits<double>::infinity() || phase.schedule->asynchrony) return false;
      for (const Program& program : phase.schedule->programs)
        if (std::any_of(program.ops.begin(), program.ops.end(), is_served_in_order)) return false;
    }
  return true;
}

std::vector<bool> called_in_time(const Run& run, const Layout& layout) {
  constexpr int kNobody = -1;
  std::vector<bool> in_time(layout.transfers.size(), false);
  // By transfer: the class and stream that sends last, and that receives last or calls a collective.
  struct Caller {
    int rank_class = kNobody, stream = 0;
  };
  std::vector<Caller> sends(layout.transfers.size()), others(layout.transfers.size());
  for (std::size_t c = 0; c < layout.classes.size(); ++c) {
    const Layout::Class& rank_class = layout.classes[c];
    for (std::size_t ph = 0; ph < rank_class.phases.size(); ++ph) {
      const ClassProgram& does = rank_class.phases[ph];
      if (does.program < 0) continue;
      const Communication& talk = *layout.communication[rank_class.job][ph];
      const std::vector<Slot>& slots = talk.slots_of(does.program);
      for (std::size_t s = 0; s < slots.size(); ++s)
        for (int t : does.transfers[s]) {
          Caller& caller = slots[s].kind == Slot::Kind::send ? sends[t] : others[t];
          const bool another = caller.rank_class == static_cast<int>(c) && caller.stream != slots[s].stream;
          if (another || slots[s].may_overlap) in_time[t] = true;
          caller = {static_cast<int>(c), slots[s].stream};
        }
      if (does.beside.empty()) continue;
      const Program& program = run.jobs[rank_class.job].phases[ph].schedule->programs[does.program];
      for (std::size_t i = 0; i < program.ops.size(); ++i)
        if (program.ops[i].kind == OpKind::collective && does.beside[i])
          for (int t : does.transfers[talk.slot(does.program, static_cast<int>(i), 0)]) in_time[t] = true;
    }
  }
  return in_time;
}

}  // namespace rehearse
