// Builds scenarios of small transformers over several axes, for the tests of strategies.
#pragma once

#include <utility>

#include "tests/strategies_scenarios.hpp"

namespace rehearse::test {

inline Model axes_gpt(int layers, double sequence = 128) {
  Model model = small_gpt(layers);
  auto& t = std::get<Transformer>(model.shape);
  t.heads = 8;
  t.vocabulary = 1024;
  t.sequence_length = t.positions = sequence;
  return model;
}

inline Model axes_mixture(int layers, double experts = 8) {
  Model model = axes_gpt(layers);
  auto& t = std::get<Transformer>(model.shape);
  t.experts = experts;
  t.experts_per_token = 2;
  return model;
}

struct Degrees {
  int data = 1, context = 1, tensor = 1, pipeline = 1;
};

// Builds a scenario of four micro-batches with 2 samples each, on nodes with one device each.
inline Scenario axes_scenario(Model model, Degrees degrees) {
  Scenario s = scenario(std::move(model), degrees.data, degrees.pipeline, 4);
  s.strategy.context = degrees.context;
  s.strategy.tensor = degrees.tensor;
  s.strategy.placement = {"tensor", "context", "data", "pipeline"};
  s.cluster = cluster(degrees.data * degrees.context * degrees.tensor * degrees.pipeline);
  return s;
}

// Returns the model's FLOPs in a step, summed over all ranks.
inline double flops_of_all_ranks(const Scenario& s) {
  const auto plan = write_schedule(s);
  const Role& workers = plan.schedule->roles[0];
  double sum = 0;
  for (int rank = 0; rank < workers.size(); ++rank)
    for (const Op& op : plan.schedule->programs[plan.schedule->program_of(0, rank)].ops)
      if (op.work >= 0) sum += plan.schedule->works[op.work].model_flops;
  return sum;
}

}  // namespace rehearse::test
