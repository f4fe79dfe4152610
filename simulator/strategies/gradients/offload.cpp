#include "simulator/strategies/gradients/offload.hpp"

#include <fmt/format.h>

#include "simulator/costs/host.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kBucketsInFlight = 3;  // states that are read, updated and written at the same time

std::string quoted_name(OffloadTo to) {
  return fmt::format("\"{}\"", kOffloadNames[static_cast<std::size_t>(to)]);
}

std::string place_text(OffloadTo to) {
  return to == OffloadTo::nvme ? "on NVMe" : "in host memory";
}

Purpose purpose_of(HostAction action) {
  if (action == HostAction::update) return Purpose::host_update;
  const bool copy = action == HostAction::copy_to_host || action == HostAction::copy_to_device;
  return copy ? Purpose::host_copy : Purpose::nvme;
}

}  // namespace

OffloadChoice read_offload(Section& strategy, const StrategyChoice& choice, int stage) {
  OffloadChoice offload;
  offload.optimizer = static_cast<OffloadTo>(strategy.choice("offload", kOffloadNames, 0));
  offload.parameters = static_cast<OffloadTo>(strategy.choice("offload_parameters", kOffloadNames, 0));
  const auto refuse = [&](const char* key, OffloadTo to, const std::string& beside, const char* allowed) {
    strategy.refuse_inapplicable(key, fmt::format("{} {}", quoted_name(to), beside), allowed);
  };
  if (choice.gradients != "all-reduce") {
    const std::string with = fmt::format("with gradients = \"{}\"", choice.gradients);
    constexpr const char* kAllowed = "\"none\", or gradients = \"all-reduce\" with zero_stage or fsdp";
    if (offload.optimizer != OffloadTo::none) refuse("offload", offload.optimizer, with, kAllowed);
    if (offload.parameters != OffloadTo::none)
      refuse("offload_parameters", offload.parameters, with, kAllowed);
  }
  if (offload.optimizer != OffloadTo::none && stage == 0)
    refuse("offload", offload.optimizer, "without shards (zero_stage = 0, fsdp = \"none\")",
           "\"none\", or with zero_stage = 1, 2 or 3, or fsdp");
  if (offload.parameters == OffloadTo::none) return offload;
  if (stage < 3)
    refuse("offload_parameters", offload.parameters, fmt::format("with zero_stage = {}", stage),
           "\"none\", or with zero_stage = 3 or fsdp");
  if (offload.optimizer == OffloadTo::none)
    refuse("offload_parameters", offload.parameters, "without offload",
           "\"none\", or with offload = \"cpu\" or \"nvme\": weights are updated where they are stored");
  return offload;
}

void fit_offload(Section& strategy, const Scenario& scenario) {
  const OffloadChoice& offload = scenario.strategy.offload;
  if (offload.optimizer == OffloadTo::none) return;
  const std::string missing = missing_host_key(scenario.cluster->node(), offload.uses_nvme());
  if (missing.empty()) return;
  const bool by_parameters = missing.starts_with("nvme") && offload.optimizer != OffloadTo::nvme;
  const OffloadTo to = by_parameters ? offload.parameters : offload.optimizer;
  strategy.refuse(by_parameters ? "offload_parameters" : "offload",
                  fmt::format("{} on {}, which has no {}", quoted_name(to), scenario.cluster->name, missing),
                  fmt::format("\"none\", or with cluster.node.{}", missing));
}

std::string offload_text(const OffloadChoice& offload) {
  if (offload.optimizer == OffloadTo::none) return "";
  if (offload.parameters == OffloadTo::none) return ", optimizer state " + place_text(offload.optimizer);
  if (offload.parameters == offload.optimizer)
    return ", optimizer state and weights " + place_text(offload.optimizer);
  return fmt::format(", optimizer state {}, weights {}", place_text(offload.optimizer),
                     place_text(offload.parameters));
}

TensorMemory memory_of(OffloadTo to) {
  return to == OffloadTo::nvme  ? TensorMemory::nvme
         : to == OffloadTo::cpu ? TensorMemory::host
                                : TensorMemory::device;
}

Op host_op(Program& program, std::string name, const std::string& stream, HostAction action,
           const Bucket& bucket, double bytes) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::host;
  op.stream = stream_named(program, stream);
  op.host_action = action;
  op.host_bytes = bytes;
  op.purpose = purpose_of(action);
  op.first_layer = bucket.first_layer;
  op.last_layer = bucket.last_layer;
  return op;
}

int add_host_buffer(Program& program, std::string name, double bytes) {
  const int number = add_buffer(program, std::move(name), bytes);
  program.tensors[static_cast<std::size_t>(number)].memory = TensorMemory::host;
  return number;
}

HostUpdate write_host_update(const StepPlan& plan, StageProgram& stage, const std::vector<int>& gradients,
                             int complete) {
  const Training& training = plan.scenario.training;
  const OffloadChoice& offload = plan.scenario.strategy.offload;
  const double moved = update_bytes(training.optimizer, training.precision, training.gradient_precision);
  const bool state_on_nvme = offload.optimizer == OffloadTo::nvme;
  add_optimizer_state(plan, stage);
  HostUpdate result;
  result.updated.assign(stage.buckets.size(), -1);
  Program& program = stage.program;
  std::vector<int> written;  // by bucket, in the order of the updates: the op that frees its state's buffer
  for (std::size_t b = stage.buckets.size(); b-- > 0;) {
    const Bucket& bucket = stage.buckets[b];
    if (bucket.parameters == 0) continue;
    const std::string layers = layers_text(bucket);
    const auto op_of = [&](const std::string& name, const char* stream, HostAction action, double bytes) {
      Op op = host_op(program, fmt::format("{} {}", name, layers), stream, action, bucket, bytes);
      op.pass = Pass::optimizer;
      return op;
    };
    int state = stage.optimizer_state[b], read = -1;
    const int kept_state = state;
    double state_bytes = 0;
    if (state >= 0) {
      Tensor& tensor = program.tensors[static_cast<std::size_t>(state)];
      tensor.memory = memory_of(offload.optimizer);
      state_bytes = tensor.bytes.base;
    }
    if (state >= 0 && state_on_nvme) {
      state = add_host_buffer(program, fmt::format("optimizer state of {}", layers), state_bytes);
      Op op = op_of("read optimizer state of", kNvmeReadStream, HostAction::read_nvme, state_bytes);
      op.after = {{complete}};
      if (written.size() >= kBucketsInFlight)
        op.after.push_back({written[written.size() - kBucketsInFlight]});
      op.reads = {kept_state};
      op.writes = {state};
      read = add_op(program, std::move(op));
    }

    const double parameters = kept_parameters(plan, bucket, stage.held.optimizer);
    const double weight_bytes = parameters * element_bytes(training.precision);
    const bool weights_in_host = offload.parameters == OffloadTo::cpu;
    const int weights =
        weights_in_host
            ? stage.weights[b]
            : add_host_buffer(program, fmt::format("updated weights of {}", layers), weight_bytes);
    Op update = op_of("update", kHostStream, HostAction::update, parameters * moved);
    update.after = {{complete}};
    if (read >= 0) update.after.push_back({read});
    update.reads = {gradients[b]};
    update.writes = {weights};
    if (state >= 0) update.writes.push_back(state);
    const int updated = add_op(program, std::move(update));
    int last = updated;
    if (state != kept_state) {
      Op op = op_of("write optimizer state of", kNvmeWriteStream, HostAction::write_nvme, state_bytes);
      op.after = {{updated}};
      op.reads = {state};
      op.writes = {kept_state};
      last = add_op(program, std::move(op));
      written.push_back(last);
    }
    result.updated[b] = updated;
    if (!weights_in_host) {
      const bool to_nvme = offload.parameters == OffloadTo::nvme;
      Op op = to_nvme ? op_of("write weights of", kNvmeWriteStream, HostAction::write_nvme, weight_bytes)
                      : op_of("copy weights of", kToDeviceStream, HostAction::copy_to_device, weight_bytes);
      if (!to_nvme) op.name += " to the device";
      op.after = {{updated}};
      op.reads = {weights};
      op.writes = {stage.weights[b]};
      result.updated[b] = add_op(program, std::move(op));
    }
    result.last = {last, result.updated[b]};  // streams run in order: those of the last bucket end last
  }
  return result;
}

}  // namespace rehearse
