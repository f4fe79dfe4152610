// Synchronous parameter servers: workers push gradients, servers update, workers pull the new weights.
#pragma once

#include <vector>

#include "simulator/strategies/stage_program.hpp"

namespace rehearse {

inline constexpr int kServerRole = 1;

// Li et al., "Scaling Distributed Machine Learning with the Parameter Server" (OSDI 2014), synchronously,
// each bucket cut into equal shares over all servers (as BytePS does: Jiang et al., OSDI 2020). The worker's
// part. With `overlap` a bucket is pushed as soon as its backward pass is done, and the next step's forward
// pass waits for each bucket's weights only when it comes to their layers. Without, the step ends with all
// pushes and then all pulls.
void write_push_and_pull(StepPlan& plan, StageProgram& stage);

// The program of the servers: for every stage a stream that receives and one that sends, and one that
// updates.
Program server_program(StepPlan& plan, const std::vector<StageProgram>& stages);

}  // namespace rehearse
