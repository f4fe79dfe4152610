// Declares the axes of the workers' mesh. Each axis is one file with a table that says, for each kind of
// segment, by which dimension the axis splits the work; axes.inc lists all axes.
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

// A factor of an axis: `size` members, which are `stride` apart on the axis.
struct Factor {
  std::string_view axis;
  int size = 1, stride = 1;
  AxisTable table;
  // Stores only its shard of a gathered input for the backward pass, which gathers it again.
  bool keeps_shards = false;
  // Its ranks take part in the gradient sum of the ranks that share a batch.
  bool sums_gradients = false;
  // Tensors that would be gathered over it are passed around a ring instead, and processed piece by piece.
  bool ring = false;
  // Tensors that are replicated on its ranks are sent to other stages in shards of the sequence and gathered
  // there.
  bool scatters_between_stages = false;
};

// A key of [strategy] that sets the degree of an axis, and the functions that define the axis.
struct AxisEntry {
  std::string_view name;  // of the axis and of the key
  std::string_view summary;
  Purpose purpose;      // of its collectives
  bool always_in_mesh;  // even with one member; other axes are then left out of the mesh
  bool same_weights;    // its ranks hold the same weights
  int (*degree)(const StrategyChoice&);
  void (*read)(Section& strategy, StrategyChoice& choice);
  // Refuses settings that this scenario does not support, citing the key's place in [strategy].
  void (*fit)(Section& strategy, const Scenario& scenario);
  // Returns the factors, the outermost first; empty if the axis does not split the layers' work.
  std::vector<Factor> (*factors)(const Scenario& scenario);
  std::string (*headline)(const StrategyChoice&);  // "tensor 8"
  // Advice for steps that wait most for the axis's communication. `busiest`: the link that was used most.
  Advice (*less_communication)(const Scenario& scenario, const LinkPlace& busiest);
  // Advice for steps in which its ranks wait most for each other because their work is unequal; null if it is
  // always equal.
  Advice (*less_waiting)(const Scenario& scenario) = nullptr;
  // Null for an axis of the workers' mesh. Otherwise the axis covers the same ranks as other axes and changes
  // their factors: splits them where this axis begins and ends, and assigns other dimensions.
  void (*overlay)(const Scenario& scenario, std::vector<Factor>& factors) = nullptr;
};

// Returns all axes, in the order in which a headline names them.
std::span<const AxisEntry* const> axes();
const AxisEntry* find_axis(std::string_view name);  // null if there is none
// Returns whether the workers' mesh has the axis.
bool in_mesh(const AxisEntry& axis, const StrategyChoice& choice);

// Returns the workers' mesh, the innermost axis first. Axes that the placement does not name come first if
// they split the layers' work, which needs the fastest links, and last otherwise.
std::vector<Axis> worker_axes(const StrategyChoice& choice);
// Returns the number of ranks that hold the same weights.
int weight_copies(const StrategyChoice& choice);

// Returns whether the experts of a mixture are on other ranks than the mesh's axes say.
bool places_experts(const Scenario& scenario);
// Returns the mesh of the same ranks with the axes "expert_tensor" (ranks that share an expert) and "expert"
// (ranks that distribute the experts); empty if these ranks are not neighbours.
std::vector<Axis> expert_mesh(const StrategyChoice& choice);
// Returns how many neighbours on an axis of the mesh hold different experts or different parts of their
// weights.
int ranks_with_experts_apart(const Scenario& scenario, std::string_view axis);

// Returns the factors of all axes of a scenario that split the layers' work, the outermost first.
std::vector<Factor> factors_of(const Scenario& scenario);
// Returns "data 16 x tensor 8 x pipeline 4": the degrees of all axes of the mesh.
std::string degrees_text(const StrategyChoice& choice);
// Returns into how many shards each dimension is split in each kind of segment.
Splits splits_of(const std::vector<Factor>& factors);

// Describes one pass of a scenario on one device. This is the only function that builds a PassShape from a
// scenario.
PassShape pass_shape(const Scenario& scenario);

}  // namespace rehearse
