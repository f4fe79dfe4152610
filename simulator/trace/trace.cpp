#include "simulator/trace/trace.hpp"

namespace rehearse {

const Program& Trace::program_of(std::size_t span) const {
  const RankClass& rank_class = classes[spans.rank_class[span]];
  const Schedule& schedule = *run.jobs[rank_class.job].phases[spans.phase[span]].schedule;
  // Each phase's schedule numbers its programs anew; only the first phase's number is stored.
  const int program = spans.phase[span] == 0 ? rank_class.phase_program
                                             : schedule.program_of(rank_class.role, rank_class.ranks.front());
  return schedule.programs[program];
}

}  // namespace rehearse
