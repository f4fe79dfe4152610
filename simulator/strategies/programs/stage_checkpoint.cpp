#include "simulator/strategies/programs/stage_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/costs/host.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {
namespace {

constexpr const char* kStream = "checkpoint";

[[noreturn]] void refuse(const StepPlan& plan, std::string_view key, const std::string& found,
                         std::string_view allowed) {
  throw InputError({plan.scenario.name, 0, 0},
                   fmt::format("checkpoint.{} is {}; allowed: {}", key, found, allowed));
}

bool is_state(const Tensor& tensor) {
  return tensor.kind == TensorKind::weight || tensor.kind == TensorKind::optimizer_state;
}

// The ranks that hold the same weights, in the order in which they divide them.
class Replicas {
public:
  explicit Replicas(const StepPlan& plan) : plan_(plan), mesh_(plan.schedule.roles.front().meshes.front()) {
    for (const GroupAxis& axis : plan.gradient_axes) axes_.push_back(axis.axis);
    const bool with_data = std::count(axes_.begin(), axes_.end(), plan.context_axis) > 0;
    if (plan.context_axis >= 0 && !with_data) axes_.push_back(plan.context_axis);
    for (const int axis : axes_) size_ *= mesh_.axes()[static_cast<std::size_t>(axis)].size;
  }

  int place_of(int rank) const {
    int place = 0, stride = 1;
    for (const int axis : axes_) {
      place += stride * mesh_.coordinate(rank, axis);
      stride *= mesh_.axes()[static_cast<std::size_t>(axis)].size;
    }
    return place;
  }

  // Returns the bytes of a tensor that the rank at a place writes, of those that hold it.
  double written(const Tensor& tensor, double held, CheckpointWriters writers, int place) const {
    double parameters = 0, experts = 0;
    for (int i = std::max(0, tensor.first_layer); i <= tensor.last_layer; ++i) {
      parameters += plan_.layers[static_cast<std::size_t>(i)].parameters;
      if (!plan_.expert_parameters.empty()) experts += plan_.expert_parameters[static_cast<std::size_t>(i)];
    }
    const int with_same_experts =
        std::max(1, size_ * expert_ranks(plan_) / std::max(1, gradient_ranks(plan_)));
    const int expert_shards = std::max(1, tensor.shards * with_same_experts / size_);
    const double dense = std::max(0.0, parameters - experts) / tensor.shards,
                 placed = experts / expert_shards, share = dense + placed > 0 ? placed / (dense + placed) : 0;
    return written_by(held * (1 - share), size_ / tensor.shards, writers, place) +
           written_by(held * share, with_same_experts / expert_shards, writers, place);
  }

private:
  // `copies`: ranks that hold the same bytes.
  double written_by(double held, int copies, CheckpointWriters writers, int place) const {
    copies = std::max(1, copies);
    const int holders = size_ / copies;  // of different bytes
    switch (writers) {
      case CheckpointWriters::all:
        return held / copies;
      case CheckpointWriters::holders:
        return place < holders ? held : 0;
      case CheckpointWriters::first:
        return place == 0 ? held * holders : 0;
    }
    return 0;
  }

  const StepPlan& plan_;
  const Mesh& mesh_;
  std::vector<int> axes_;
  int size_ = 1;
};

// Returns the mesh of the role whose only axis are its ranks; adds it if there is none.
int rank_mesh(Role& role) {
  for (int mesh = 0; mesh < static_cast<int>(role.meshes.size()); ++mesh)
    if (role.meshes[static_cast<std::size_t>(mesh)].axis("rank") >= 0) return mesh;
  role.meshes.emplace_back(Mesh({{"rank", role.size()}}));
  return static_cast<int>(role.meshes.size()) - 1;
}

// The bytes that each rank of a role writes.
struct Writers {
  int role = kWorkers;
  std::vector<double> bytes;  // by rank
  bool gathers = false;       // the first rank of each group gets the others' shards first
  double gathered = 0;        // bytes of the largest group together
};

// Servers write the state if they hold it, else the workers.
Writers writers_of(const StepPlan& plan) {
  const Schedule& schedule = plan.schedule;
  const Checkpoint& checkpoint = plan.scenario.checkpoint;
  Writers writers;
  for (const Program& program : schedule.programs)
    if (program.role != kWorkers && std::any_of(program.tensors.begin(), program.tensors.end(), is_state))
      writers.role = program.role;
  const Role& role = schedule.roles[static_cast<std::size_t>(writers.role)];
  const Replicas replicas(plan);
  writers.bytes.assign(static_cast<std::size_t>(role.size()), 0);
  for (int rank = 0; rank < role.size(); ++rank) {
    const int number = schedule.program_of(writers.role, rank);
    if (number < 0) continue;
    const bool worker = writers.role == kWorkers;
    const int place = worker ? replicas.place_of(rank) : 0;
    for (const Tensor& tensor : schedule.programs[static_cast<std::size_t>(number)].tensors) {
      if (!is_state(tensor)) continue;
      const double held = tensor.bytes.at(role, rank);
      writers.bytes[static_cast<std::size_t>(rank)] +=
          worker ? replicas.written(tensor, held, checkpoint.writers, place) : held;
      writers.gathers |= worker && checkpoint.writers == CheckpointWriters::first && tensor.shards > 1;
    }
  }
  double total = 0;
  for (const double bytes : writers.bytes) total += bytes;
  if (checkpoint.bytes_per_parameter > 0 && total > 0) {
    const double factor = checkpoint.bytes_per_parameter * parameter_count(plan.scenario.model) / total;
    for (double& bytes : writers.bytes) bytes *= factor;
  }
  if (writers.gathers) writers.gathered = *std::max_element(writers.bytes.begin(), writers.bytes.end());
  return writers;
}

// Returns the amounts of a program's ranks: one number if all are equal.
Quantity amounts(const StepPlan& plan, int program, int role, int rank_mesh,
                 const std::vector<double>& by_rank, double factor) {
  Quantity quantity;
  bool first = true, equal = true;
  for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
    if (plan.schedule.program_of(role, rank) != program) continue;
    const double amount = factor * by_rank[static_cast<std::size_t>(rank)];
    if (first) quantity.base = amount;
    equal = equal && amount == quantity.base;
    first = false;
  }
  if (equal) return quantity;
  quantity.mesh = rank_mesh;
  quantity.axis = 0;
  for (const double bytes : by_rank) quantity.values.push_back(factor * bytes);
  return quantity;
}

// Returns the bytes/s at which a rank copies its state to where it is written from; 0: it writes it from
// where it is.
double copy_bandwidth(const Scenario& scenario, bool on_device) {
  const Checkpoint& checkpoint = scenario.checkpoint;
  const Node& node = scenario.cluster->node();
  if (on_device && node.device.compute_capability > 0) {
    if (checkpoint.copy_bytes_per_s > 0) return checkpoint.copy_bytes_per_s;
    if (node.host_link_bandwidth > 0) return host_copy_bandwidth(node);
    return usual_copy_bandwidth(node.device);
  }
  // A copy in memory reads and writes it.
  return checkpoint.mode == CheckpointMode::asynchronous ? node.cpu_memory_bandwidth / 2 / node.devices : 0;
}

class CheckpointWriter {
public:
  CheckpointWriter(StepPlan& plan, Writers writers, const CheckpointCycle& cycle)
      : plan_(plan),
        checkpoint_(plan.scenario.checkpoint),
        cluster_(*plan.scenario.cluster),
        writers_(std::move(writers)),
        cycle_(cycle) {
    follows_ = cycle_.rounds > 1 || cycle_.repeats || plan_.schedule.crosses_step();
    Role& role = plan_.schedule.roles[static_cast<std::size_t>(writers_.role)];
    rank_mesh_ = rank_mesh(role);
    if (std::count(checkpoint_.tiers.begin(), checkpoint_.tiers.end(), CheckpointTier::peer) > 0) {
      const int per_node = cluster_.node().devices;
      node_mesh_ = static_cast<int>(role.meshes.size());
      role.meshes.emplace_back(Mesh({{"device", per_node}, {"node", role.size() / per_node}}));
    }
    for (const int which : {checkpoint_.storage, checkpoint_.drives})
      if (which >= 0) storage_of_[which] = storage_of_ranks(cluster_, role, which);
  }

  // Writes the ops of one program, and makes its first ops wait for those that block it.
  void write(int number) {
    Program& program = plan_.schedule.programs[static_cast<std::size_t>(number)];
    const auto trained = static_cast<int>(program.ops.size());
    const bool writes = program.role == writers_.role,
               blocking = checkpoint_.mode == CheckpointMode::blocking;
    if (!writes && !blocking) return;
    last_ = blocks_ = -1;
    if (writes) {
      copy(program, number);
      blocks_ = last_;
      for (const CheckpointTier tier : checkpoint_.tiers) add(program, written_to(tier, number));
    }
    if (blocking && program.role == kWorkers) add(program, barrier());
    if (blocking) blocks_ = last_;
    // The state that is copied is that of the end of the last repetition.
    const int first = trained < static_cast<int>(program.ops.size()) ? trained : -1;
    if (first >= 0 && follows_)
      for (int stream = 0; stream < static_cast<int>(program.streams.size()); ++stream)
        wait_for_last(program, first, stream, trained);
    if (first >= 0 && cycle_.repeats && writes)
      program.ops[static_cast<std::size_t>(first)].after.push_back({last_, 1});
    if (blocks_ >= 0) hold_back(program, trained);
  }

private:
  void add(Program& program, Op op) {
    op.stream = stream_named(program, kStream);
    op.pass = Pass::other;
    op.purpose = Purpose::checkpoint;
    if (last_ >= 0) op.after = {{last_}};
    last_ = add_op(program, std::move(op));
  }

  Quantity bytes(int program, double factor = 1) const {
    return amounts(plan_, program, writers_.role, rank_mesh_, writers_.bytes, factor);
  }

  void copy(Program& program, int number) {
    if (writers_.gathers) {
      Op gather;
      gather.name = "gather the state";
      gather.kind = OpKind::collective;
      gather.collective.kind = CollectiveKind::all_gather;
      gather.collective.group.axes = plan_.gradient_axes;
      gather.collective.bytes = writers_.gathered;
      add(program, std::move(gather));
    }
    const double bytes_per_s = copy_bandwidth(plan_.scenario, writers_.role == kWorkers);
    if (bytes_per_s <= 0) return;
    Op op;
    op.name = "copy the state";
    op.kind = OpKind::host;
    op.host_action = HostAction::copy_to_host;
    op.seconds = 1 / bytes_per_s;
    op.share = bytes(number);
    add(program, std::move(op));
  }

  Op written_to(CheckpointTier tier, int number) const {
    Op op;
    op.kind = OpKind::exchange;
    const double share = checkpoint_.mode == CheckpointMode::asynchronous ? cycle_.written_share : 1;
    Message message;
    message.bytes = bytes(number, share);
    if (tier == CheckpointTier::peer) {
      op.name = "copy the state to a peer";
      message.peer = Peer::along(1, 1, true, node_mesh_);
      Message received = message;
      received.direction = Message::Direction::receive;
      received.peer = Peer::along(1, -1, true, node_mesh_);
      std::vector<double> sent = writers_.bytes;
      const int ranks = static_cast<int>(sent.size()), per_node = cluster_.node().devices;
      for (int rank = 0; rank < ranks; ++rank)
        sent[static_cast<std::size_t>((rank + per_node) % ranks)] =
            writers_.bytes[static_cast<std::size_t>(rank)];
      received.bytes = amounts(plan_, number, writers_.role, rank_mesh_, sent, share);
      op.messages = {std::move(message), std::move(received)};
      return op;
    }
    const int which = tier == CheckpointTier::local ? checkpoint_.drives : checkpoint_.storage;
    op.name = tier == CheckpointTier::local ? "write to drives" : "write checkpoint";
    op.host_action = HostAction::write_checkpoint;
    message.peer = Peer::member(storage_role(which), storage_of_.at(which));
    message.access = {true, cluster_.storage(which).servers > 0, checkpoint_.writer_bytes_per_s};
    op.messages = {std::move(message)};
    return op;
  }

  Op barrier() const {
    Op op;
    op.name = "wait for all writers";
    op.kind = OpKind::collective;
    op.collective.kind = CollectiveKind::all_reduce;
    op.collective.bytes = 4;
    const auto axes = static_cast<int>(plan_.schedule.roles.front().meshes.front().axes().size());
    for (int axis = 0; axis < axes; ++axis) op.collective.group.axes.push_back({axis, 0, 1, {}});
    return op;
  }

  void wait_for_last(Program& program, int op, int stream, int trained) const {
    const int last = last_op_of_stream(program, stream);
    if (last >= 0 && last < trained && program.ops[static_cast<std::size_t>(last)].purpose != Purpose::input)
      program.ops[static_cast<std::size_t>(op)].after.push_back({last, 1});
  }

  // Nothing but the input goes on until the checkpoint allows it.
  void hold_back(Program& program, int trained) const {
    std::vector<char> begun(program.streams.size(), 0);
    for (int i = 0; i < trained; ++i) {
      Op& op = program.ops[static_cast<std::size_t>(i)];
      if (op.purpose == Purpose::input || std::exchange(begun[static_cast<std::size_t>(op.stream)], 1) != 0)
        continue;
      op.after.push_back({blocks_});
    }
  }

  StepPlan& plan_;
  const Checkpoint& checkpoint_;
  const Cluster& cluster_;
  const Writers writers_;
  const CheckpointCycle cycle_;
  int rank_mesh_ = 0, node_mesh_ = 0;
  std::map<int, Quantity> storage_of_;
  bool follows_ = false;  // the ops of the previous repetition, which may still run
  int last_ = -1, blocks_ = -1;
};

void check_tiers(const StepPlan& plan, const Writers& writers) {
  const Checkpoint& checkpoint = plan.scenario.checkpoint;
  const Cluster& cluster = *plan.scenario.cluster;
  const auto ranks = static_cast<int>(writers.bytes.size());
  if (plan.schedule.has_control_ops() || plan.schedule.asynchrony)
    refuse(plan, "every", fmt::format("{} with ranks that do not wait for each other", checkpoint.every),
           "no [checkpoint], or a strategy whose ranks have common steps");
  const bool drives =
      checkpoint.drives >= 0 ||
      (checkpoint.storage >= 0 && cluster.storage(checkpoint.storage).kind == Storage::Kind::local);
  if (writers.role != kWorkers && drives)
    refuse(plan, "tiers", "on drives of nodes, with the state on parameter servers",
           "storage of kind \"shared\"");
  const bool peer = std::count(checkpoint.tiers.begin(), checkpoint.tiers.end(), CheckpointTier::peer) > 0;
  if (peer &&
      (writers.role != kWorkers || ranks % cluster.node().devices != 0 || ranks / cluster.node().devices < 2))
    refuse(plan, "tiers", fmt::format("\"peer\" with {} ranks on nodes of {}", ranks, cluster.node().devices),
           "\"peer\" with two or more nodes whose devices all train");
}

// Adds the copy in host memory, which asynchronous writers write from, and those of other nodes.
void add_memory(StepPlan& plan, const Writers& writers) {
  const Checkpoint& checkpoint = plan.scenario.checkpoint;
  const bool peer = std::count(checkpoint.tiers.begin(), checkpoint.tiers.end(), CheckpointTier::peer) > 0;
  const bool staged = checkpoint.mode == CheckpointMode::asynchronous;
  if (!peer && !staged) return;
  Role& role = plan.schedule.roles[static_cast<std::size_t>(writers.role)];
  const int mesh = rank_mesh(role);
  for (int number = 0; number < static_cast<int>(plan.schedule.programs.size()); ++number) {
    Program& program = plan.schedule.programs[static_cast<std::size_t>(number)];
    if (program.role != writers.role) continue;
    Tensor copy;
    copy.kind = TensorKind::buffer;
    copy.name = "checkpoint";
    copy.kept = true;
    copy.memory = TensorMemory::host;
    copy.bytes = amounts(plan, number, writers.role, mesh, writers.bytes, (staged ? 1 : 0) + (peer ? 1 : 0));
    add_tensor(program, std::move(copy));
  }
}

CheckpointBytes sizes_of(const StepPlan& plan, const Writers& writers) {
  const Checkpoint& checkpoint = plan.scenario.checkpoint;
  const Cluster& cluster = *plan.scenario.cluster;
  CheckpointBytes sizes;
  std::map<int, double> of_node;
  for (int rank = 0; rank < static_cast<int>(writers.bytes.size()); ++rank) {
    const double bytes = writers.bytes[static_cast<std::size_t>(rank)];
    sizes.total += bytes;
    sizes.most = std::max(sizes.most, bytes);
    double& node = of_node[cluster.node_of(
        plan.endpoints[static_cast<std::size_t>(plan.schedule.first_rank(writers.role) + rank)])];
    sizes.most_of_node = std::max(sizes.most_of_node, node += bytes);
  }
  if (const double rate = copy_bandwidth(plan.scenario, writers.role == kWorkers); rate > 0)
    sizes.copy_s = sizes.most / rate;
  const Node& node = cluster.node();
  const double cards = node.nics * node.nic_bandwidth;
  for (const CheckpointTier tier : checkpoint.tiers) {
    double seconds = 0;
    if (tier == CheckpointTier::peer) {
      seconds = sizes.most_of_node / cards;
    } else {
      const Storage& storage =
          cluster.storage(tier == CheckpointTier::local ? checkpoint.drives : checkpoint.storage);
      const bool local = storage.kind == Storage::Kind::local;
      seconds = (local ? sizes.most_of_node : sizes.total) / storage.write_bandwidth;
      if (storage.client_bandwidth > 0)
        seconds = std::max(seconds, sizes.most_of_node / storage.client_bandwidth);
      if (storage.servers > 0)
        seconds = std::max({seconds, sizes.most_of_node / cards, sizes.total / (storage.servers * cards)});
      if (checkpoint.writer_bytes_per_s > 0)
        seconds = std::max(seconds, sizes.most / checkpoint.writer_bytes_per_s);
    }
    sizes.least_write_s += seconds;
  }
  return sizes;
}

}  // namespace

CheckpointBytes complete_checkpoint(StepPlan& plan, const CheckpointCycle* cycle) {
  if (!plan.scenario.checkpoint.given) return {};
  Writers writers = writers_of(plan);
  check_tiers(plan, writers);
  const CheckpointBytes sizes = sizes_of(plan, writers);
  add_memory(plan, writers);
  if (cycle == nullptr) return sizes;
  Schedule& schedule = plan.schedule;
  for (Program& program : schedule.programs) repeat_ops(program, cycle->rounds);
  schedule.optimizer_steps *= cycle->rounds;
  schedule.samples *= cycle->rounds;
  schedule.tokens *= cycle->rounds;
  if (!cycle->writes) return sizes;
  CheckpointWriter writer(plan, std::move(writers), *cycle);
  for (int number = 0; number < static_cast<int>(schedule.programs.size()); ++number) writer.write(number);
  return sizes;
}

}  // namespace rehearse
