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

// The rows of most bytes, and what they leave out.
struct LargestRows {
  std::vector<TensorRow> rows;  // at most kLargestRows
  double bytes = 0;             // of all tensors
  double others_bytes = 0;      // of those without a row
  int others = 0;
};
inline constexpr std::size_t kLargestRows = 10;
LargestRows largest_rows(const Trace& trace, const std::vector<MemoryMoment>& moments);

// Returns "activations x 16", or "weights 3 (server)".
std::string title_of(const TensorRow& row);
std::string kind_text(TensorKind kind);  // "activation gradient"
// Returns "0-2, 8" of two ranges; empty if there are none.
std::string ranges_text(const std::vector<std::pair<int, int>>& ranges);

}  // namespace rehearse
