#include "backend/training/weight_runs.hpp"

#include <algorithm>
#include <numeric>

#include "backend/training/trained_network.hpp"

namespace rehearse {

std::size_t elements_of(const std::vector<WeightRun>& runs) {
  return std::accumulate(runs.begin(), runs.end(), std::size_t{0},
                         [](std::size_t sum, const WeightRun& run) { return sum + run.count; });
}

void copy_runs(Arithmetic& arithmetic, int stream, const std::vector<WeightRun>& runs, std::size_t begin,
               const Array& flat, const Array& packed, bool to_packed) {
  std::size_t run_begin = 0;
  for (const WeightRun& run : runs) {
    const std::size_t from = std::max(begin, run_begin),
                      end = std::min(begin + packed.elements, run_begin + run.count);
    if (from < end) {
      const Array in_flat = flat.part(run.first + from - run_begin, end - from),
                  in_packed = packed.part(from - begin, end - from);
      arithmetic.copy(stream, to_packed ? in_flat : in_packed, to_packed ? in_packed : in_flat);
    }
    run_begin += run.count;
  }
}

PartSums::PartSums(const Program& program, const TrainedNetwork& network, Arithmetic& arithmetic)
    : network_(network), arithmetic_(arithmetic) {
  for (const Op& op : program.ops) {
    if (op.action.kind != Action::Kind::sum_part) continue;
    const auto [sum, fresh] = sums_.try_emplace({op.first_layer, op.action.part});
    if (!fresh) continue;
    sum->second.runs = network.runs({op.first_layer, op.last_layer}, op.action.part);
    sum->second.packed = OwnedArray(arithmetic, elements_of(sum->second.runs), Precision::fp32);
  }
}

Array PartSums::copy(int stream, const Op& op, bool to_packed) {
  const Sum& sum = sums_.at({op.first_layer, op.action.part});
  copy_runs(arithmetic_, stream, sum.runs, 0, network_.gradients({op.first_layer, op.last_layer}), sum.packed,
            to_packed);
  return sum.packed;
}

}  // namespace rehearse
