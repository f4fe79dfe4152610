#include "simulator/strategies/programs/model_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/text/error.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/stage_spread.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/placed_devices.hpp"

namespace rehearse {
namespace {

[[noreturn]] void refuse(const Scenario& scenario, const std::string& message) {
  throw InputError({scenario.name, 0, 0}, message);
}

bool is_recomputed(const Layer& layer) {
  return std::any_of(layer.segments.begin(), layer.segments.end(),
                     [](const Segment& segment) { return !segment.cost.recompute.empty(); });
}

PassShape without_recompute(PassShape pass) {
  pass.recompute = Recompute::none;
  return pass;
}

// Returns the model's layers with the times of the stages that hold them.
std::vector<Layer> layers_of(const Scenario& scenario, const PassShape& pass) {
  std::vector<Layer> layers = model_layers(scenario.model, pass);
  const auto* profiled = std::get_if<ProfiledModel>(&scenario.model.shape);
  if (!profiled || profiled->stage_deviation == 0) return layers;
  const int stages = scenario.strategy.pipeline;
  const std::vector<double> factors = stage_factors(stages, profiled->stage_deviation);
  const PartPlacement placement = order_of(scenario.strategy.schedule).placement;
  for (std::size_t part = 0; part < layers.size(); ++part) {
    const int stage = stage_of_part(placement, stages, static_cast<int>(part));
    for (Segment& segment : layers[part].segments)
      for (auto* kernels :
           {&segment.cost.forward, &segment.cost.backward_input, &segment.cost.backward_weight})
        for (Kernel& kernel : *kernels) kernel.seconds *= factors[static_cast<std::size_t>(stage)];
  }
  return layers;
}

std::vector<int> choose_stages(const Scenario& scenario, const std::vector<LayerCost>& costs) {
  const int layers = static_cast<int>(costs.size());
  const int chunks = scenario.strategy.virtual_stages, stages = scenario.strategy.pipeline * chunks;
  if (stages > layers)
    refuse(scenario, fmt::format("strategy.pipeline is {}{}; allowed: at most {}, the number of layers of {}",
                                 scenario.strategy.pipeline,
                                 chunks > 1 ? fmt::format(" with {} virtual stages each", chunks) : "",
                                 layers / chunks, scenario.model.name));
  const std::vector<int>& given = scenario.strategy.stage_layers;
  if (given.empty() && scenario.strategy.stages_by == StagesBy::speed && scenario.strategy.pipeline > 1) {
    const PlacedDevices placed = placed_devices(scenario);
    const PartPlacement placement = order_of(scenario.strategy.schedule).placement;
    std::vector<std::vector<double>> of_stage, of_part;
    for (int stage = 0; stage < placed.stages; ++stage)
      of_stage.push_back(layer_times_s(scenario, costs, placed.of_stage(stage)));
    for (int part = 0; part < stages; ++part)
      of_part.push_back(of_stage[static_cast<std::size_t>(stage_of_part(placement, placed.stages, part))]);
    return balance_stages(of_part);
  }
  if (given.empty()) {
    std::vector<double> times_s;
    for (const LayerCost& layer : costs)
      times_s.push_back(layer_time_s(layer, scenario.cluster->node().device, scenario.training.precision));
    return balance_stages(times_s, stages);
  }
  if (static_cast<int>(given.size()) != stages)
    refuse(scenario, fmt::format("strategy.stage_layers has {} numbers; allowed: {}, one for each {}",
                                 given.size(), stages, chunks > 1 ? "virtual stage" : "pipeline stage"));
  if (*std::min_element(given.begin(), given.end()) < 1)
    refuse(scenario, "strategy.stage_layers has a stage without layers; allowed: at least 1 in each");
  if (const int sum = std::accumulate(given.begin(), given.end(), 0); sum != layers)
    refuse(scenario,
           fmt::format("strategy.stage_layers add up to {}; allowed: {}, the number of layers of {}", sum,
                       layers, scenario.model.name));
  return given;
}

}  // namespace

std::vector<LayerCost> costs_of(const std::vector<Layer>& layers) {
  std::vector<LayerCost> costs;
  for (const Layer& layer : layers) costs.push_back(merged(layer));
  return costs;
}

std::vector<Layer> layers_in_parts(const Scenario& scenario, const PassShape& pass,
                                   const std::vector<int>& stage_layers) {
  std::vector<Layer> layers = layers_of(scenario, pass);
  const int most = scenario.training.recompute_layers;
  if (most == 0 || pass.recompute == Recompute::none) return layers;
  const std::vector<Layer> kept = layers_of(scenario, without_recompute(pass));
  for (const LayerRange& part : layer_ranges(stage_layers)) {
    int recomputed = 0;
    for (int i = part.first; i <= part.last; ++i) {
      const auto number = static_cast<std::size_t>(i);
      if (is_recomputed(layers[number]) && recomputed++ >= most) layers[number] = kept[number];
    }
  }
  return layers;
}

int most_recompute_layers(const Scenario& scenario, const std::vector<int>& stage_layers) {
  const std::vector<Layer> layers = layers_of(scenario, pass_shape(scenario));
  std::ptrdiff_t most = 0;
  for (const LayerRange& part : layer_ranges(stage_layers))
    most = std::max(most, std::count_if(layers.begin() + part.first, layers.begin() + part.last + 1,
                                        [](const Layer& layer) { return is_recomputed(layer); }));
  return static_cast<int>(most);
}

ModelCut cut_model(const Scenario& scenario) {
  const PassShape pass = pass_shape(scenario);
  const int of_each = scenario.training.recompute_layers;
  const bool some = pass.recompute != Recompute::none && of_each > 0;
  ModelCut cut;
  if (!some) cut.layers = layers_of(scenario, pass);
  const std::vector<LayerCost> own = costs_of(cut.layers);
  cut.keeping_all =
      pass.recompute == Recompute::none ? own : costs_of(layers_of(scenario, without_recompute(pass)));
  cut.stage_layers = choose_stages(scenario, some ? cut.keeping_all : own);
  if (!some) return cut;
  if (const int most = most_recompute_layers(scenario, cut.stage_layers); of_each > most)
    refuse(scenario,
           fmt::format(
               "training.recompute_layers is {}; allowed: 1 to {}, the layers that the largest stage can "
               "recompute, or no such key to recompute all",
               of_each, most));
  cut.layers = layers_in_parts(scenario, pass, cut.stage_layers);
  return cut;
}

}  // namespace rehearse
