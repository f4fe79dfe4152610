// Divides the samples of a micro-batch among replicas of different speed.
#pragma once

#include <vector>

namespace rehearse {

// Returns how many samples each replica trains, at least 1, so that the slowest replica is as fast as
// possible: it minimizes the largest samples[r] x sample_s[r]. All begin with `each` samples. While it makes
// that replica faster than the slowest one was, a sample of the slowest moves to the replica that has it done
// first, and at most `most_moved` samples do (0: as many as it takes).
//
// The greedy moves are optimal. A replica that receives a sample would be the first to have one more done,
// and no other replica's next sample ends earlier later on, so that no sample moves twice; and where no move
// helps, every smaller bound on the times leaves room for too few samples. Batches by speed are those of
// LB-BSP (Chen et al., "Semi-Dynamic Load Balancing", SoCC 2020), in samples, whose speeds are known here.
std::vector<int> divide_samples(const std::vector<double>& sample_s, int each, int most_moved);

}  // namespace rehearse
