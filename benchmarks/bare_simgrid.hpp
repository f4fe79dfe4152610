// A ring all-reduce written straight onto SimGrid, as a yardstick for the engine's own.
#pragma once

namespace rehearse {

// `ranks` on a star of links of `bandwidth` bytes/s: 2 (ranks - 1) steps, in each of which every rank sleeps
// for `latency_s`, sends bytes / ranks to its neighbour and waits for both ends. Returns the simulated time.
// Once per process.
double bare_ring(int ranks, double bytes, double bandwidth, double latency_s);

}  // namespace rehearse
