// The axes of the workers' mesh. Each axis is one file with a table that says, for each kind of segment, by
// which dimension the axis splits the work; axes.inc lists all axes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/scenario/advice.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/op.hpp"
#include "simulator/strategies/layout/placement.hpp"

namespace rehearse {

// A factor of an axis: `size` members, `stride` apart on it.
struct Factor {
  std::string_view axis;
  int size = 1, stride = 1;
  AxisTable table;
  // Saves the shard of a gathered input for the backward pass, which gathers it again.
  bool keeps_shards = false;
  // Its ranks take part in the sum of gradients of those that share a batch.
  bool sums_gradients = false;
  // What would be gathered over it is passed around a ring, and computed with piece by piece.
  bool ring = false;
  // What its ranks all have goes on to another stage in shards of the sequence, and is gathered there.
  bool scatters_between_stages = false;
};

// A key of [strategy] that gives an axis its degree, and what follows from it.
struct AxisEntry {
  std::string_view name;  // of the axis and the key
  std::string_view summary;
  Purpose purpose;      // of its collectives
  bool always_in_mesh;  // even with one member; other axes then leave no trace
  bool same_weights;    // its ranks hold the same weights
  int (*degree)(const StrategyChoice&);
  void (*read)(Section& strategy, StrategyChoice& choice);
  // Refuses what this scenario cannot have, by the place of the key in [strategy].
  void (*fit)(Section& strategy, const Scenario& scenario);
  // The outermost first; empty where the axis leaves the layers' work whole.
  std::vector<Factor> (*factors)(const Scenario& scenario);
  std::string (*headline)(const StrategyChoice&);  // "tensor 8"
  // If its communication is what a step waits for most.
  Advice (*less_communication)(const Scenario& scenario);
  // If its ranks wait most for each other, since they have unequally much to do; null: they have not.
  Advice (*less_waiting)(const Scenario& scenario) = nullptr;
  // Null for an axis of the workers' mesh. Else the axis lies over the same ranks as others, whose factors
  // this changes: it splits them where it begins and ends, and names other dimensions.
  void (*overlay)(const Scenario& scenario, std::vector<Factor>& factors) = nullptr;
};

// All of them, in the order in which a headline names them.
std::span<const AxisEntry* const> axes();
const AxisEntry* find_axis(std::string_view name);  // null if there is none
// Whether the workers' mesh has the axis.
bool in_mesh(const AxisEntry& axis, const StrategyChoice& choice);

// The workers' mesh, the innermost axis first. Axes that the placement does not name come first if they share
// out layers' work, which wants the fastest links, else last.
std::vector<Axis> worker_axes(const StrategyChoice& choice);
// Ranks that hold the same weights.
int weight_copies(const StrategyChoice& choice);

// The experts of a mixture lie on other ranks than the mesh's axes say.
bool places_experts(const Scenario& scenario);
// The same ranks by who shares an expert ("expert_tensor") and who shares out experts ("expert"); no axes
// where these are no neighbours.
std::vector<Axis> expert_mesh(const StrategyChoice& choice);
// Of the neighbours on an axis of the mesh, how many share out experts or their weights.
int ranks_with_experts_apart(const Scenario& scenario, std::string_view axis);

// The factors of all axes of a scenario that split the layers' work, the outermost first.
std::vector<Factor> factors_of(const Scenario& scenario);
// "data 16 x tensor 8 x pipeline 4": the degrees of all axes of the mesh.
std::string degrees_text(const StrategyChoice& choice);
// In how many shards each dimension lies in each kind of segment.
Splits splits_of(const std::vector<Factor>& factors);

// Describes one pass of a scenario on one device. The only place that builds a PassShape from a scenario.
PassShape pass_shape(const Scenario& scenario);

}  // namespace rehearse
