#include "simulator/schedule/op_count.hpp"

namespace rehearse {

double ops_of(const Schedule& schedule) {
  double ops = 0;
  for (const Program& program : schedule.programs) ops += static_cast<double>(program.ops.size());
  return ops;
}

}  // namespace rehearse
