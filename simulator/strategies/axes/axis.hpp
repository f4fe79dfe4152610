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
  // Saves the shard of a gathered product input for the backward pass, which gathers it again.
  bool keeps_shards = false;
};

// A key of [strategy] that gives an axis its degree, and what follows from it.
struct AxisEntry {
  std::string_view name;  // of the axis and the key
  std::string_view summary;
  Purpose purpose;      // of its collectives
  bool always_in_mesh;  // even with one member; other axes then leave no trace
  int (*degree)(const StrategyChoice&);
  void (*read)(Section& strategy, StrategyChoice& choice);
  // Refuses what this scenario cannot have, by the place of the key in [strategy].
  void (*fit)(Section& strategy, const Scenario& scenario);
  // The outermost first; empty where the axis leaves the layers' work whole.
  std::vector<Factor> (*factors)(const Scenario& scenario);
  std::string (*headline)(const StrategyChoice&);  // "tensor 8"
  // If its communication is what a step waits for most.
  Advice (*less_communication)(const Scenario& scenario);
};

// All of them, in the order in which a headline names them.
std::span<const AxisEntry* const> axes();
const AxisEntry* find_axis(std::string_view name);  // null if there is none
// Whether the workers' mesh has the axis.
bool in_mesh(const AxisEntry& axis, const StrategyChoice& choice);

// The factors of all axes of a scenario that split the layers' work, the outermost first.
std::vector<Factor> factors_of(const Scenario& scenario);
// "data 16 x tensor 8 x pipeline 4": the degrees of all axes of the mesh.
std::string degrees_text(const StrategyChoice& choice);
// In how many shards each dimension lies in each kind of segment.
Splits splits_of(const std::vector<Factor>& factors);

// Describes one pass of a scenario on one device. The only place that builds a PassShape from a scenario.
PassShape pass_shape(const Scenario& scenario);

}  // namespace rehearse
