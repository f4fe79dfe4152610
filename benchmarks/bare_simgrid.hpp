// Runs a ring all-reduce written directly in SimGrid, as a baseline for the engine's speed.
#pragma once

namespace rehearse {

// Simulates `ranks` on a star with links of `bandwidth` bytes/s: in each of 2 (ranks - 1) steps, every rank
// sleeps for `latency_s`, sends bytes / ranks to its neighbour and waits for its send and receive. Returns
// the simulated time in seconds. Can be called only once per process.
double bare_ring(int ranks, double bytes, double bandwidth, double latency_s);

}  // namespace rehearse
