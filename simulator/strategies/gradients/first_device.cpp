// PyTorch's DataParallel: one process drives the devices of a node, and the first device holds the model. For
// every micro-batch it scatters the inputs and broadcasts the weights, gathers the outputs, computes the
// loss, scatters its gradients and sums the replicas' gradients (Li et al., "PyTorch Distributed", VLDB 2020,
// section 2.2; torch/nn/parallel/data_parallel.py, and comm.py for the broadcast and the sum, which NCCL
// carries out). One autograd node sums the gradients of all weights, so nothing overlaps with the backward
// pass.
#include <fmt/format.h>

#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/program_writer.hpp"

namespace rehearse {
namespace {

// Returns the program of the first device, or of all other devices: all ops follow one another on the compute
// stream.
Program device_program(StepPlan& plan, const Work& loss, bool first) {
  const Training& training = plan.scenario.training;
  const int devices = plan.scenario.strategy.data;
  StageProgram device = begin_stage(plan, 0, {});
  Program& program = device.program;
  program.name = first ? "first device" : "replica";
  if (first) program.where = {{plan.data_axis, 0}};
  std::vector<Peer> others;  // the first device exchanges with all others, each of these only with the first
  for (int i = 1; first && i < devices; ++i) others.push_back(Peer::along(plan.data_axis, i));
  if (!first) others.push_back(Peer::member(0, 0));

  const double logits = plan.layers.back().logits, share = first ? devices : 1;  // of the complete batch
  const double input_bytes =
      training.micro_batch * sample_bytes(plan.scenario.model, training.sequence_length, training.precision);
  const double output_bytes = logits * element_bytes(training.activation_precision);
  // The first device has one slot per device; slot 0 is its own.
  const auto add = [&](TensorKind kind, std::string name, double bytes) {
    const int number = add_buffer(program, std::move(name), bytes);
    program.tensors[number].kind = kind;
    program.tensors[number].slot_count = first ? devices : 1;
    if (kind != TensorKind::batch) program.tensors[number].boundary = device.layers.last;
    return number;
  };
  const int inputs = add(TensorKind::batch, "inputs", share * input_bytes);
  const int outputs =
      add(TensorKind::buffer, "outputs", share * (output_bytes + (first ? kSoftmaxBytes * logits : 0)));
  const int output_gradients =
      add(TensorKind::activation_gradient, "gradients of the outputs", share * output_bytes);

  const auto exchange = [&](const std::string& name, int k, bool from_first, double bytes, int tensor) {
    if (devices == 1 || bytes == 0) return;
    const auto direction = first == from_first ? Message::Direction::send : Message::Direction::receive;
    Op op = exchange_op(program, name, "compute", direction, others, bytes);
    (first == from_first ? op.reads : op.writes) = {tensor};
    op.microbatch = k;
    for (std::size_t i = 0; first && i < others.size(); ++i) op.messages[i].slot = static_cast<int>(i) + 1;
    add_op(program, std::move(op));
  };
  const auto collective = [&](const std::string& name, CollectiveKind kind, double bytes, int tensor) {
    if (devices == 1) return;
    Op op = collective_op(plan, program, name, "compute", kind, bytes);
    op.writes = {tensor};
    add_op(program, std::move(op));
  };
  PassHooks hooks;
  hooks.before_forward = [&](int k) {
    exchange(fmt::format("scatter inputs {}", k), k, true, input_bytes, inputs);
    collective(fmt::format("broadcast weights {}", k), CollectiveKind::broadcast,
               device.parameters() * element_bytes(training.precision), device.weights[0]);
  };
  hooks.before_backward = [&](const PassItem& item, int) {
    const int k = item.microbatch;
    exchange(fmt::format("gather outputs {}", k), k, false, output_bytes, outputs);
    if (first && !loss.kernels.empty()) {
      Op op = compute_op(plan, program, fmt::format("loss {}", k), Pass::other, loss);
      op.action.kind = Action::Kind::loss;
      op.microbatch = k;
      op.reads = {outputs};
      op.writes = {output_gradients};
      add_op(program, std::move(op));
    }
    exchange(fmt::format("scatter gradients {}", k), k, true, output_bytes, output_gradients);
  };
  hooks.behind_backward = [&](int k) {
    collective(fmt::format("reduce gradients {}", k), CollectiveKind::reduce,
               gradient_bytes(plan, device.buckets[0]), device.gradients[0]);
  };
  write_passes(plan, device, hooks);
  if (first) add_op(program, optimizer_op(plan, device));
  return program;
}

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
  }

  void write(StepPlan& plan) const override {
    const Work loss = take_loss(plan, plan.scenario.strategy.data);
    plan.schedule.programs.push_back(device_program(plan, loss, true));
    if (plan.scenario.strategy.data == 1) return;
    plan.schedule.programs.push_back(device_program(plan, loss, false));
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
