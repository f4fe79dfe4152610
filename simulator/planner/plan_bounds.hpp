// Computes lower bounds of a plan's step time and memory, fast enough for hundreds of thousands of plans.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/planner/layer_times.hpp"
#include "simulator/planner/pipeline_bound.hpp"
#include "simulator/planner/plan_choice.hpp"
#include "simulator/planner/slowed_kernels.hpp"

namespace rehearse {

struct CoreBound {
  double seconds = 0;                     // of all passes, whatever the choices for gradients
  std::array<double, kHoldings> bytes{};  // on the fullest device, including the reserve, by holding_of()
};

// Bounds of plans for one model on one cluster. They hold for the simulation of the same plan, because
// kernels and collectives take at least the time that they take alone, whatever waits for what.
class PlanBounds {
public:
  // `scenario` is what all plans have in common. It must outlive the bounds. `reserve_bytes`: kept free
  // beside tensors on each device; nullopt: what CUDA, NCCL and cuBLAS are estimated to use.
  PlanBounds(const Scenario& scenario, std::optional<double> reserve_bytes);
  ~PlanBounds();

  // Returns the number of layers of the model, including the embedding and the output layer.
  int layers() const;
  // Returns why the model cannot be split in this way; empty if it can.
  std::string refusal(const CoreChoice& core);
  // Returns the number of layers of each part by the core's rule; empty if there is no such cut.
  const std::vector<int>& stage_layers(const CoreChoice& core);
  // Returns the maximum number of layers of one part that can be recomputed.
  int most_recomputed(const CoreChoice& core);
  CoreBound core_bound(const CoreChoice& core);

  // The parameters of a part of the model on one device.
  struct HeldParameters {
    double dense = 0, experts = 0;
    double largest_layer = 0;  // number outside experts, of the layer with the most
  };
  // The parts of a model that a pipeline's stages compute, in the model's order.
  struct Parts {
    std::vector<PartTimes> times;
    std::vector<HeldParameters> parameters;
  };
  // A core whose passes have been placed one by one on a timeline, without gradients.
  struct WalkedCore {
    CoreChoice core;
    Parts parts;
    std::vector<StageSpan> spans;
    double quick_s = 0;
    int microbatches = 1;
  };
  WalkedCore walk(const CoreChoice& core);
  // Returns a lower bound, in seconds, of a step with these gradients: the time of walk() plus what combining
  // gradients and updating weights add to it.
  double plan_bound_s(const WalkedCore& walked, const GradientChoice& gradients);

private:
  struct StageSync;
  struct Cell;
  using CellKey = std::array<int, 8>;
  const Cell& cell(const CoreChoice& core, Recompute recompute);
  const std::vector<int>& new_cut(const Cell& cell, int parts, StageCut rule);
  const std::vector<int>& cut(const Cell& cell, int parts, StageCut rule);
  Parts parts(const CoreChoice& core);
  PipelineShape shape(const CoreChoice& core) const;
  StrategyChoice strategy_of(const CoreChoice& core) const;
  double pushed_s(const CoreChoice& core, int servers, double parameters) const;
  double shards_of(Sharing sharing, double copies) const;
  double bucket_parameters(const GradientChoice& gradients) const;
  double pieces_s(const CoreChoice& core, const GradientChoice& gradients, CollectiveKind kind, double count,
                  double piece, double element);
  StageSync stage_sync(const WalkedCore& walked, const GradientChoice& gradients, int stage);
  static int walked_microbatches(const CoreChoice& core);
  std::vector<StageSpan> walk_with_sums(const WalkedCore& walked, const GradientChoice& gradients);
  double synced_s(const CoreChoice& core, const GradientChoice& gradients, const StageSpan& span,
                  const StageSync& sync) const;
  const SlowedKernels& slowed(const CoreChoice& core, const DeviceLoad& load);
  double reserved_bytes(const CoreChoice& core, bool by_servers);
  double sent_s(const CoreChoice& core, double bytes);
  int microbatches(const CoreChoice& core) const;
  const std::vector<Endpoint>& gradient_group(const CoreChoice& core, bool pipeline_inside, Sharing sharing);

  const Scenario& scenario_;
  const std::optional<double> reserve_bytes_;
  LayerTimer timer_;
  double update_s_per_parameter_ = 0;
  std::map<CellKey, std::unique_ptr<Cell>> cells_;
  std::map<std::pair<const Cell*, DeviceLoad>, SlowedKernels> slowed_;
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> cuts_;
  std::map<std::array<int, 6>, std::vector<Endpoint>> groups_;
  std::map<std::array<int, 5>, std::vector<int>> in_flight_;
};

}  // namespace rehearse
