// PyTorch's DataParallel: one process drives the devices of a node, and the first device holds the model. For
// every micro-batch it scatters the inputs and broadcasts the weights, gathers the outputs, computes the
// loss, scatters its gradients and sums the replicas' gradients (Li et al., "PyTorch Distributed", VLDB 2020,
// section 2.2; torch/nn/parallel/data_parallel.py, and comm.py for the broadcast and the sum, which NCCL
// carries out). One autograd node sums the gradients of all weights, so nothing overlaps with the backward
// pass.
#include <fmt/format.h>

#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

// The first device, or all other devices: all ops follow one another on the compute stream.
class OneProcess : public StageHooks {
public:
  OneProcess(StepPlan& plan, const Work& loss, bool first)
      : StageHooks(plan, begin_stage(plan, 0, {})),
        loss_(loss),
        first_(first),
        devices_(plan.scenario.strategy.data) {
    const Training& training = plan.scenario.training;
    stage_.program.name = first ? "first device" : "replica";
    if (first) stage_.program.where = {{plan.data_axis, 0}};
    // The first device exchanges with all others, each of these only with the first.
    for (int i = 1; first && i < devices_; ++i) others_.push_back(Peer::along(plan.data_axis, i));
    if (!first) others_.push_back(Peer::member(0, 0));

    const double logits = plan.layers.back().logits, share = first ? devices_ : 1;  // of the complete batch
    input_bytes_ = training.micro_batch *
                   sample_bytes(plan.scenario.model, training.sequence_length, training.precision);
    output_bytes_ = logits * element_bytes(training.activation_precision);
    inputs_ = add(TensorKind::batch, "inputs", share * input_bytes_);
    outputs_ = add(TensorKind::buffer, "outputs",
                   share * (output_bytes_ + (first ? plan.layers.back().loss_saved_bytes : 0)));
    output_gradients_ =
        add(TensorKind::activation_gradient, "gradients of the outputs", share * output_bytes_);
  }

  void before_forward(int k) override {
    exchange(fmt::format("scatter inputs {}", k), k, true, input_bytes_, inputs_);
    collective(fmt::format("broadcast weights {}", k), CollectiveKind::broadcast,
               stage_.parameters() * element_bytes(plan_.scenario.training.precision), stage_.weights[0]);
  }

  void before_backward(const PassItem& item, int) override {
    const int k = item.microbatch;
    exchange(fmt::format("gather outputs {}", k), k, false, output_bytes_, outputs_);
    if (first_ && !loss_.kernels.empty()) {
      Op op = compute_op(plan_, stage_.program, fmt::format("loss {}", k), Pass::other, loss_);
      op.action.kind = Action::Kind::loss;
      op.microbatch = k;
      op.reads = {outputs_};
      op.writes = {output_gradients_};
      add_op(stage_.program, std::move(op));
    }
    exchange(fmt::format("scatter gradients {}", k), k, true, output_bytes_, output_gradients_);
  }

  void behind_backward(int k) override {
    collective(fmt::format("reduce gradients {}", k), CollectiveKind::reduce,
               gradient_bytes(plan_, stage_.buckets[0]), stage_.gradients[0]);
  }

  void end_of_step() override {
    if (first_) StageHooks::end_of_step();
  }

private:
  // The first device has one slot per device; slot 0 is its own.
  int add(TensorKind kind, std::string name, double bytes) {
    const int number = add_buffer(stage_.program, std::move(name), bytes);
    Tensor& tensor = stage_.program.tensors[static_cast<std::size_t>(number)];
    tensor.kind = kind;
    tensor.slot_count = first_ ? devices_ : 1;
    if (kind != TensorKind::batch) tensor.boundary = stage_.layers.last;
    return number;
  }

  void exchange(const std::string& name, int k, bool from_first, double bytes, int tensor) {
    if (devices_ == 1 || bytes == 0) return;
    const auto direction = first_ == from_first ? Message::Direction::send : Message::Direction::receive;
    Op op = exchange_op(stage_.program, name, "compute", direction, others_, bytes);
    (first_ == from_first ? op.reads : op.writes) = {tensor};
    op.microbatch = k;
    for (std::size_t i = 0; first_ && i < others_.size(); ++i) op.messages[i].slot = static_cast<int>(i) + 1;
    add_op(stage_.program, std::move(op));
  }

  void collective(const std::string& name, CollectiveKind kind, double bytes, int tensor) {
    if (devices_ == 1) return;
    Op op = collective_op(plan_, stage_.program, name, "compute", kind, bytes);
    op.writes = {tensor};
    add_op(stage_.program, std::move(op));
  }

  const Work& loss_;
  const bool first_;
  const int devices_;
  std::vector<Peer> others_;
  double input_bytes_ = 0, output_bytes_ = 0;
  int inputs_ = -1, outputs_ = -1, output_gradients_ = -1;
};

class FirstDevice : public GradientStrategy {
public:
  std::string headline(const Scenario&) const override { return "updated on the first device"; }

  void fit(Section& strategy, const Scenario& scenario) const override {
    if (scenario.cluster->nodes() > 1)
      strategy.refuse("gradients", fmt::format("\"first-device\" on {} nodes", scenario.cluster->nodes()),
                      "one node, whose devices a process can drive");
    if (scenario.strategy.pipeline > 1)
      strategy.refuse("gradients",
                      fmt::format("\"first-device\" with {} pipeline stages", scenario.strategy.pipeline),
                      "pipeline = 1: every device has a replica of the entire model");
    if (scenario.data.given)
      strategy.refuse("gradients", "\"first-device\" beside [data]",
                      "[data] with other strategies: the first device gets the batches of all");
  }

  void write(StepPlan& plan) const override {
    const Work loss = take_loss(plan, plan.scenario.strategy.data);
    write_stage(OneProcess(plan, loss, true));
    if (plan.scenario.strategy.data == 1) return;
    write_stage(OneProcess(plan, loss, false));
    if (loss.kernels.empty()) {
      plan.notes.emplace_back(
          "The model does not describe its outputs and their loss: none are sent or computed.");
      return;
    }
    plan.notes.emplace_back(
        "While the first device computes the loss of all outputs and updates, the others wait.");
  }
};

}  // namespace

extern const GradientStrategyEntry kFirstDeviceStrategy{
    "first-device", "data parallel in one process: the first device scatters, gathers and updates",
    "PyTorch's DataParallel. For each micro-batch the first device of a node scatters the inputs, "
    "broadcasts\n"
    "the weights, gathers the outputs, computes the loss and sums all gradients; it alone updates weights.",
    "data = 8                    # the devices of the one node; may be left out\n"
    "gradients = \"first-device\"\n",
    [](Section&, StrategyChoice&) -> std::shared_ptr<const GradientStrategy> {
      return std::make_shared<FirstDevice>();
    }};

}  // namespace rehearse
