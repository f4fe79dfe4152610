// When asynchronous workers begin, in simulations whose results are averaged.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Seconds in [0, round_s), by simulation and worker. The starts of each worker are a Latin hypercube sample
// (McKay, Beckman, Conover, Technometrics 1979): its `simulations` starts lie one in each of as many equal
// parts of a round, in an order that is drawn for each worker. The same seed gives the same starts on every
// machine.
std::vector<std::vector<double>> starting_phases(int simulations, int workers, double round_s,
                                                 std::uint64_t seed);

}  // namespace rehearse
