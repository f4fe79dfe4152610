// Draws when asynchronous workers begin, for simulations whose results are averaged.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Returns seconds in [0, round_s), by simulation and worker. The starts of each worker are a Latin hypercube
// sample (McKay, Beckman, Conover, Technometrics 1979): a round is divided into `simulations` equal parts,
// and each part has one of the worker's starts, in an order that is drawn for each worker. The same seed
// gives the same starts on every machine.
std::vector<std::vector<double>> starting_phases(int simulations, int workers, double round_s,
                                                 std::uint64_t seed);

}  // namespace rehearse
