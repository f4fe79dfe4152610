#include "simulator/strategies/programs/batch_shares.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "simulator/costs/compute.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/batch_division.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/placed_devices.hpp"

namespace rehearse {
namespace {

class BatchDivider {
public:
  explicit BatchDivider(StepPlan& plan)
      : plan_(plan), scenario_(plan.scenario), placed_(placed_devices(plan.scenario)) {
    const auto each = static_cast<int>(scenario_.training.micro_batch);
    samples_ = divide_samples(replica_sample_s(scenario_, placed_, plan.layers, plan.parts), each,
                              scenario_.strategy.moved_samples);
    ratio_ = by_replica(
        [&](int replica) { return static_cast<double>(samples_[static_cast<std::size_t>(replica)]) / each; });
    for (const int samples : samples_)
      if (samples != each) models_[samples];
  }

  void divide() {
    if (models_.empty()) {
      plan_.notes.emplace_back("All replicas train equal shares of the batch: no other division is faster.");
      return;
    }
    std::vector<int> stage_layers;
    for (const LayerRange& part : plan_.parts) stage_layers.push_back(part.last - part.first + 1);
    for (auto& [samples, model] : models_) {
      PassShape pass = pass_shape(scenario_);
      pass.micro_batch *= samples / scenario_.training.micro_batch;
      model.layers = layers_in_parts(scenario_, pass, stage_layers);
      for (const Layer& layer : model.layers)
        for (const Segment& segment : layer.segments) model.segments.push_back(&segment);
    }
    for (Program& program : plan_.schedule.programs)
      if (program.role == kWorkers) divide(program);
    const auto [least, most] = std::minmax_element(samples_.begin(), samples_.end());
    std::string told = fmt::format("{}", fmt::join(samples_, ", "));
    constexpr std::size_t kMostTold = 16;
    if (samples_.size() > kMostTold) told = fmt::format("{} to {}", *least, *most);
    plan_.notes.push_back(fmt::format(
        "Replicas train {} samples of each micro-batch, by the speed of their slowest devices.", told));
  }

private:
  struct ModelOfShare {
    std::vector<Layer> layers;
    std::vector<const Segment*> segments;
  };

  template <class Value>
  Quantity by_replica(Value value) const {
    Quantity quantity;
    quantity.axis = plan_.data_axis;
    for (int replica = 0; replica < scenario_.strategy.data; ++replica)
      quantity.values.push_back(value(replica));
    return quantity;
  }

  void divide(Program& program) {
    int stage = 0;
    for (const At& at : program.where)
      if (at.mesh == 0 && at.axis == plan_.pipeline_axis) stage = at.coordinate;
    std::map<int, Quantity> shares;  // by work
    std::vector<char> sized(program.tensors.size(), 0);
    for (Op& op : program.ops) {
      switch (op.action.kind) {
        case Action::Kind::forward:
        case Action::Kind::recompute:
        case Action::Kind::backward:
        case Action::Kind::backward_input:
        case Action::Kind::backward_weight: {
          const auto [known, fresh] = shares.try_emplace(op.work);
          if (fresh) known->second = share_of_work(op, stage);
          op.share = known->second;
          continue;
        }
        case Action::Kind::change:
          scale(op.collective.bytes);
          for (const int tensor : op.writes) sized[static_cast<std::size_t>(tensor)] = 1;
          continue;
        default:
          break;
      }
      if (op.kind == OpKind::exchange && op.purpose == Purpose::pipeline)
        for (Message& message : op.messages) scale(message.bytes);
    }
    for (std::size_t t = 0; t < program.tensors.size(); ++t) {
      Tensor& tensor = program.tensors[t];
      const bool of_samples = tensor.kind == TensorKind::activation ||
                              tensor.kind == TensorKind::activation_gradient || tensor.microbatch >= 0;
      if (of_samples || sized[t] != 0) scale(tensor.bytes);
    }
  }

  void scale(Quantity& bytes) const {
    const double base = bytes.base;
    bytes = by_replica([&](int replica) { return base * ratio_.values[static_cast<std::size_t>(replica)]; });
  }

  // Returns the time of the replica's samples over that of a micro-batch, on its slowest device.
  Quantity share_of_work(const Op& op, int stage) {
    const Work& all = plan_.schedule.works[static_cast<std::size_t>(op.work)];
    std::map<std::pair<int, DeviceKinds>, double> known;
    return by_replica([&](int replica) {
      const int samples = samples_[static_cast<std::size_t>(replica)];
      const auto model = models_.find(samples);
      if (model == models_.end()) return 1.0;
      const DeviceKinds& kinds = placed_.at(stage, replica);
      const auto [share, fresh] = known.try_emplace({samples, kinds}, 1);
      if (!fresh) return share->second;
      const Work own =
          pass_work(plan_, model->second.segments, op.pass, op.action.first_segment, op.action.end_segment);
      double slowest_s = 0;
      for (const DeviceKind& kind : kinds) {
        const Device& device = device_of(*scenario_.cluster, kind);
        const double all_s = work_time_s(all, device, kind.factor);
        if (all_s <= slowest_s) continue;
        slowest_s = all_s;
        share->second = work_time_s(own, device, kind.factor) / all_s;
      }
      return share->second;
    });
  }

  StepPlan& plan_;
  const Scenario& scenario_;
  const PlacedDevices placed_;
  std::vector<int> samples_;            // by replica
  Quantity ratio_;                      // of its samples to those of a micro-batch
  std::map<int, ModelOfShare> models_;  // by samples
};

}  // namespace

void divide_batch(StepPlan& plan) {
  if (plan.scenario.strategy.batch_by == BatchBy::speed && plan.scenario.strategy.data > 1)
    BatchDivider(plan).divide();
}

}  // namespace rehearse
