// The most that a rank of a schedule holds, told from the order of its program alone.
#pragma once

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Bytes of the fullest worker. Ops are taken to run one after the other as their program lists them, so that
// what streams do at the same time is left out: a simulation may find the buffers of a few transfers more.
double peak_worker_bytes(const Schedule& schedule);

}  // namespace rehearse
