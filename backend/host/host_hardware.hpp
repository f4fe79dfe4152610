// Processors and sockets: ops are carried out by the thread of their stream, one after the other.
#pragma once

#include <memory>

#include "backend/runtime/hardware.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// A collective's messages between its members, as the table says, over this rank's channels; the buffer has
// room for the table's elements, fp32 numbers or pairs of fp16 ones. Returns when this member has sent and
// received all of its own.
void run_table(Transport& transport, const CollectiveWiring& wiring, int rank, const Payload& buffer);

// For `rank` of all roles. The transport is open (Wiring::channels_of). RunError if all-reduces are to be the
// library's and it has none.
std::unique_ptr<Hardware> host_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload,
                                        RealRun::Collectives collectives);

}  // namespace rehearse
