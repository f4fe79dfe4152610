// Gathers tensors that differ only in their layer or micro-batch in one row of a table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/trace/memory_moment.hpp"

namespace rehearse {

struct TensorRow {
  std::string name;  // "activations"; of a single tensor its own name: "activations 3, chunk 1"
  TensorKind kind = TensorKind::activation;
  bool server = false;  // it belongs to a server, not to the worker
  int count = 1;
  double bytes = 0;                               // of all of them
  std::vector<std::pair<int, int>> layers;        // ranges, ascending; empty: of no layer
  std::vector<std::pair<int, int>> microbatches;  // the same
  double born_s = 0, freed_s = 0;                 // of the first and of the last of them
  std::string born_in, freed_in;                  // ops; empty: live before, or after, the step
};

// Returns the rows of a moment's tensors, those of most bytes first.
std::vector<TensorRow> tensor_rows(const Trace& trace, const MemoryMoment& moment);
// The same for several moments together, such as those of a worker and of a server beside it.
std::vector<TensorRow> tensor_rows(const Trace& trace, const std::vector<MemoryMoment>& moments);

// Returns "0-2, 8" of two ranges; empty if there are none.
std::string ranges_text(const std::vector<std::pair<int, int>>& ranges);

}  // namespace rehearse
