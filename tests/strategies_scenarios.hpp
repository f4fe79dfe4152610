// Builds scenarios by hand for the tests of strategies, and counts ops and bytes of their schedules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse::test {

// Returns layers of width x width with biases, i.e. (width + 1) x width parameters each.
inline Model perceptron(int layers, double width = 1024) {
  Model model;
  model.name = model.title = "perceptron";
  model.sample_unit = "samples";
  MultiLayerPerceptron shape;
  shape.widths.assign(static_cast<std::size_t>(layers) + 1, width);
  model.shape = shape;
  return model;
}

inline Model small_gpt(int layers) {
  Transformer shape;
  shape.layers = layers;
  shape.hidden = 256;
  shape.heads = 4;
  shape.vocabulary = 1000;
  shape.sequence_length = shape.positions = 128;
  Model model;
  model.name = model.title = "small gpt";
  model.sample_unit = "sequences";
  model.shape = shape;
  return model;
}

// Returns a profiled model in which every stage takes 1 ms forward and 2 ms backward and sends 1 MB.
inline Model profile(int stages, std::vector<double> parameters = {}) {
  ProfiledModel shape;
  shape.forward_s.assign(stages, 1e-3);
  shape.backward_input_s.assign(stages, 1.5e-3);
  shape.backward_weight_s.assign(stages, 0.5e-3);
  shape.p2p_bytes.assign(stages, 1e6);
  shape.parameters = std::move(parameters);
  Model model;
  model.name = model.title = "profile";
  model.sample_unit = "samples";
  model.shape = shape;
  return model;
}

// Returns a cluster of `nodes` nodes with one device each and `servers` server nodes.
inline std::shared_ptr<const Cluster> cluster(int nodes, int servers = 0) {
  ClusterParts parts;
  parts.name = "test";
  Device& device = parts.node.device;
  device.name = device.title = "test device";
  for (Sourced& peak : device.peak_flops) peak.value = 1e13;
  device.memory_bandwidth.value = 1e12;
  device.memory_bytes.value = 16e9;
  device.gemm_efficiency.value = device.memory_efficiency.value = device.attention_efficiency.value = 1;
  device.convolution_efficiency.value = 1;
  parts.node.devices = 1;
  parts.node.interconnect = Node::Interconnect::none;
  parts.node.nics = 1;
  parts.node.nic_bandwidth = 1.25e9;
  parts.node.pcie_bandwidth = 16e9;
  parts.nodes = nodes;
  parts.server_nodes = servers;
  return make_cluster(parts);
}

// Returns a scenario with fp32, Adam, ring all-reduce and 1F1B.
inline Scenario scenario(Model model, int data, int pipeline, int microbatches, int servers = 0) {
  Scenario s;
  s.name = "test";
  s.model = std::move(model);
  s.training.micro_batch = 2;
  s.microbatches = microbatches;
  s.training.global_batch = 2.0 * microbatches * data;
  s.training.precision = s.training.gradient_precision = s.training.activation_precision = Precision::fp32;
  s.strategy.data = data;
  s.strategy.pipeline = pipeline;
  s.strategy.placement = {"data", "pipeline"};
  s.strategy.parameter_server.servers = servers > 0 ? servers : 1;
  if (servers > 0) s.strategy.gradients = "parameter-server";
  s.cluster = cluster(data * pipeline, servers);
  return s;
}

// Returns why no schedule can be written for the scenario; empty if one can.
inline std::string refusal_of(const Scenario& scenario) {
  try {
    write_schedule(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Returns the passes of a program's compute stream as "F0 F1 B0 ..."; a pass that is split into ops counts
// once.
inline std::string passes(const Program& program) {
  std::string text, last;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::compute || (op.pass != Pass::forward && op.pass != Pass::backward)) continue;
    std::string one = (op.pass == Pass::forward ? "F" : "B") + std::to_string(op.microbatch);
    if (one != last) text += (text.empty() ? "" : " ") + one;
    last = one;
  }
  return text;
}

inline int count_ops(const Program& program, OpKind kind, Pass pass) {
  int count = 0;
  for (const Op& op : program.ops) count += op.kind == kind && op.pass == pass;
  return count;
}

// Returns the bytes that a rank sends in a step in messages and in ring all-reduces, 2(n-1)/n of each buffer.
inline double bytes_sent(const Schedule& schedule, int role, int rank) {
  const Program& program = schedule.programs[schedule.program_of(role, rank)];
  double bytes = 0;
  for (const Op& op : program.ops) {
    for (const Message& message : op.messages)
      if (message.direction == Message::Direction::send)
        bytes += message.bytes.at(schedule.roles[role], rank) *
                 static_cast<double>(peer_ranks(schedule.roles, role, message.peer, rank).size());
    if (op.kind == OpKind::collective) {
      const double n = group_size(schedule.roles[role], op.collective.group);
      bytes += 2 * (n - 1) / n * op.collective.bytes.at(schedule.roles[role], rank);
    }
  }
  return bytes;
}

inline double bytes_of(const Program& program, TensorKind kind) {
  double bytes = 0;
  for (const Tensor& tensor : program.tensors)
    if (tensor.kind == kind) bytes += tensor.bytes.base;
  return bytes;
}

}  // namespace rehearse::test
