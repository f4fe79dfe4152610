// Runs ops on processors and sockets: the thread of a stream runs its ops one after the other.
#pragma once

#include <memory>

#include "backend/runtime/hardware.hpp"
#include "backend/runtime/transport.hpp"
#include "backend/runtime/wiring.hpp"
#include "backend/runtime/workload.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Runs a collective as the messages of its message table, over this rank's channels. The payload's buffer has
// room for the table's elements, which are fp32 numbers or pairs of fp16 numbers. Returns when this member
// has sent and received all of its messages.
void run_table(Transport& transport, const CollectiveWiring& wiring, int rank, const Payload& payload);

// Creates the hardware of `rank`, numbered over all roles. The transport must be open for
// Wiring::channels_of(). Throws RunError if the library is to run all-reduces and has none.
std::unique_ptr<Hardware> host_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload,
                                        RealRun::Collectives collectives);

}  // namespace rehearse
