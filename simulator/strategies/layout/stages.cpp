#include "simulator/strategies/layout/stages.hpp"

#include <algorithm>
#include <limits>

#include "simulator/costs/compute.hpp"

namespace rehearse {

double layer_time_s(const LayerCost& layer, const Device& device, Precision precision) {
  double seconds = 0;
  for (const auto* pass : {&layer.forward, &layer.recompute, &layer.backward_input, &layer.backward_weight})
    for (const Kernel& kernel : *pass) seconds += kernel_time_s(kernel, device, precision);
  return seconds;
}

std::vector<int> balance_stages(const std::vector<double>& layer_times_s, int stages) {
  return balance_stages(std::vector<std::vector<double>>(static_cast<std::size_t>(stages), layer_times_s));
}

std::vector<int> balance_stages(const std::vector<std::vector<double>>& layer_times_s) {
  const int stages = static_cast<int>(layer_times_s.size());
  const int layers = static_cast<int>(layer_times_s.front().size());
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // By stage: total time of the layers before each layer.
  std::vector<std::vector<double>> before_on(layer_times_s.size(), std::vector<double>(layers + 1, 0));
  for (int s = 0; s < stages; ++s)
    for (int i = 0; i < layers; ++i) before_on[s][i + 1] = before_on[s][i] + layer_times_s[s][i];

  // Runs dynamic programming over (stages, layers in them) twice: first minimizes the slowest stage alone,
  // which then bounds all stages of the second run, which makes them even.
  using Table = std::vector<std::vector<double>>;
  Table slowest(stages + 1, std::vector<double>(layers + 1, kNever));
  slowest[0][0] = 0;
  for (int s = 1; s <= stages; ++s) {
    const std::vector<double>& before = before_on[s - 1];
    for (int end = s; end <= layers; ++end)
      // Earlier beginnings make the stage longer.
      for (int begin = end - 1; begin >= s - 1 && before[end] - before[begin] < slowest[s][end]; --begin)
        slowest[s][end] =
            std::min(slowest[s][end], std::max(slowest[s - 1][begin], before[end] - before[begin]));
  }
  const double bound = slowest[stages][layers] * (1 + 1e-12);

  Table squares(stages + 1, std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<int>> cut(stages + 1, std::vector<int>(layers + 1, -1));
  squares[0][0] = 0;
  for (int s = 1; s <= stages; ++s) {
    const std::vector<double>& before = before_on[s - 1];
    for (int end = s, first = s - 1; end <= layers; ++end) {
      first = std::max(first, s - 1);
      while (first < end && before[end] - before[first] > bound) ++first;
      for (int begin = first; begin < end; ++begin) {
        const double stage_s = before[end] - before[begin];
        if (squares[s - 1][begin] == kNever) continue;
        const double sum = squares[s - 1][begin] + stage_s * stage_s;
        // Rounding must not decide between equal cuts: the first one is retained.
        if (sum < squares[s][end] * (1 - 1e-12) || cut[s][end] < 0) {
          squares[s][end] = sum;
          cut[s][end] = begin;
        }
      }
    }
  }
  std::vector<int> result(stages, 0);
  for (int s = stages, end = layers; s > 0; --s) {
    result[s - 1] = end - cut[s][end];
    end = cut[s][end];
  }
  return result;
}

std::vector<LayerRange> layer_ranges(const std::vector<int>& stage_layers) {
  std::vector<LayerRange> ranges;
  int first = 0;
  for (int layers : stage_layers) {
    ranges.push_back({first, first + layers - 1});
    first += layers;
  }
  return ranges;
}

}  // namespace rehearse
