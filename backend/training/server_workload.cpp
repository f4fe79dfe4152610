#include "backend/training/server_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "backend/training/shard_optimizer.hpp"
#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

// A parameter server: a share of each bucket's weights.
class Server : public Workload {
public:
  Server(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
         Arithmetic& arithmetic)
      : arithmetic_(arithmetic),
        program_(schedule.programs[wiring.communication().program_of_rank(rank)]),
        number_(wiring.place(rank).second),
        servers_(schedule.roles[wiring.place(rank).first].size()),
        asynchronous_(schedule.asynchrony.has_value()) {
    const Mesh& workers = schedule.roles[kWorkers].meshes.front();
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      const Tensor& tensor = program_.tensors[t];
      if (tensor.kind != TensorKind::weight) continue;
      const std::vector<int> coordinates =
          factor_coordinates(scenario, workers, readers_of(static_cast<int>(t)));
      const std::vector<float> whole =
          initial_weights(shape_of(scenario), scenario.run.seed, {tensor.first_layer, tensor.last_layer},
                          layer_shards(scenario, coordinates));
      const std::vector<float> own(
          whole.begin() + static_cast<std::ptrdiff_t>(share_begin(whole.size(), number_, servers_)),
          whole.begin() + static_cast<std::ptrdiff_t>(share_begin(whole.size(), number_ + 1, servers_)));
      Shard shard{{arithmetic, 0, own, optimizer_of(scenario), scenario.training.precision}, own.size()};
      last_weights_ = static_cast<int>(t);
      shards_.emplace(static_cast<int>(t), std::move(shard));
    }
    // What is pushed, worker by worker; of the tensors that weights are updated from.
    for (const Op& op : program_.ops) {
      if (!is_update(op)) continue;
      const Shard& shard = shards_.at(weights_of(op));
      const int slots = asynchronous_ ? 1 : senders_of(wiring, rank, op.reads.front());
      pushed_.try_emplace(op.reads.front(),
                          OwnedArray(arithmetic, shard.elements * static_cast<std::size_t>(slots),
                                     scenario.training.gradient_precision));
    }
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    if (!is_update(op)) return;
    const int weights = weights_of(op);
    Shard& shard = shards_.at(weights);
    const Array& pushed = pushed_.at(op.reads.front());
    const Array sum = pushed.part(0, shard.elements);
    for (std::size_t at = shard.elements; at < pushed.elements; at += shard.elements)
      arithmetic_.add(call.stream, pushed.part(at, shard.elements), sum);
    const std::lock_guard lock(mutex_);
    shard.optimizer.apply(call.stream, sum);
    if (!asynchronous_) return;
    arithmetic_.settle(call.stream);
    const int worker = worker_of(op);
    // Of the pushes since this worker was answered last, its own is none.
    if (weights == last_weights_) learned_.staleness.push_back(shard.applied - shard.answered[worker]);
    ++shard.applied;
  }

  Payload message(const OpCall& call, const ExchangePart& part) override {
    const Op& op = program_.ops[call.op];
    const int tensor = tensor_of(op, part.message);
    if (!part.send) {
      const Array& slots = pushed_.at(tensor);
      const std::size_t elements = slots.elements / static_cast<std::size_t>(asynchronous_ ? 1 : part.of);
      return payload(
          slots.part(static_cast<std::size_t>(asynchronous_ ? 0 : part.number) * elements, elements));
    }
    const std::lock_guard lock(mutex_);
    Shard& shard = shards_.at(tensor);
    if (!asynchronous_) return payload(shard.optimizer.weights());
    // The weights of this moment; others go on to change them.
    shard.answered[part.peer] = shard.applied;
    const auto [answer, fresh] = answers_.try_emplace({tensor, part.peer});
    if (fresh) answer->second = OwnedArray(arithmetic_, shard.elements, shard.optimizer.weights().precision);
    arithmetic_.copy(call.stream, shard.optimizer.weights(), answer->second);
    arithmetic_.settle(call.stream);
    return payload(answer->second);
  }

  Payload collective(const OpCall& call, const CollectiveWiring&) override {
    throw RunError(fmt::format("op \"{}\": servers train without collectives", program_.ops[call.op].name));
  }

  Learned learned() override { return std::move(learned_); }

private:
  struct Shard {
    ShardOptimizer optimizer;
    std::size_t elements = 0;
    int applied = 0;              // pushes
    std::map<int, int> answered;  // by worker: how many had been applied when it was answered last
  };

  // The workers that these weights are sent to.
  std::vector<At> readers_of(int weights) const {
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::exchange && !op.reads.empty() && op.reads.front() == weights)
        return op.messages.front().peer.where;
    return {};
  }

  int weights_of(const Op& update) const {
    return *std::find_if(update.writes.begin(), update.writes.end(),
                         [&](int t) { return program_.tensors[t].kind == TensorKind::weight; });
  }

  int senders_of(const Wiring& wiring, int rank, int tensor) const {
    int senders = 0;
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      if (const Op& op = program_.ops[i];
          op.kind == OpKind::exchange && !op.writes.empty() && op.writes.front() == tensor)
        senders += static_cast<int>(wiring.exchange(rank, static_cast<int>(i)).size());
    return senders;
  }

  // Whose push an update applies: the worker that the tensor is received from.
  int worker_of(const Op& update) const {
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::exchange && !op.writes.empty() && op.writes.front() == update.reads.front())
        return static_cast<int>(op.messages.front().peer.index.base);
    return -1;
  }

  Arithmetic& arithmetic_;
  const Program& program_;
  const int number_, servers_;
  const bool asynchronous_;
  std::mutex mutex_;
  std::map<int, Shard> shards_;                        // by tensor of weights
  std::map<int, OwnedArray> pushed_;                   // by tensor
  std::map<std::pair<int, int>, OwnedArray> answers_;  // by tensor of weights and worker
  int last_weights_ = -1;
  Learned learned_;
};

// Tensors are whole buckets, but for the gradients that come in, which have a slot for each worker.
class Aggregator : public Workload {
public:
  Aggregator(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
             Arithmetic& arithmetic)
      : arithmetic_(arithmetic), program_(schedule.programs[wiring.communication().program_of_rank(rank)]) {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      if (op.kind != OpKind::exchange) continue;
      const auto [tensor, received] =
          op.writes.empty() ? std::pair(op.reads.front(), false) : std::pair(op.writes.front(), true);
      const std::size_t elements = parameters_of(shape_of(scenario), {op.first_layer, op.last_layer});
      const bool weights = program_.tensors[tensor].kind == TensorKind::weight;
      const std::size_t slots = received && !weights ? wiring.exchange(rank, static_cast<int>(i)).size() : 1;
      const Precision type = weights ? scenario.training.precision : scenario.training.gradient_precision;
      if (arrays_.count(tensor) == 0)
        arrays_.emplace(tensor, Slots{OwnedArray(arithmetic, elements * slots, type), elements});
    }
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind != Action::Kind::add) return;
    const Slots &collected = arrays_.at(op.reads.front()), &sum = arrays_.at(op.writes.front());
    arithmetic_.copy(call.stream, collected.array->part(0, sum.elements), sum.array);
    for (std::size_t at = sum.elements; at < collected.array->elements; at += sum.elements)
      arithmetic_.add(call.stream, collected.array->part(at, sum.elements), sum.array);
  }

  // A worker's slot is its message's; servers, whom one message names all, have shares.
  Payload message(const OpCall& call, const ExchangePart& part) override {
    const Slots& slots = arrays_.at(tensor_of(program_.ops[call.op], part.message));
    const std::size_t first =
        slots.array->elements > slots.elements ? static_cast<std::size_t>(part.message) * slots.elements : 0;
    return payload(share(slots.array->part(first, slots.elements), part.number, part.of));
  }

  Payload collective(const OpCall& call, const CollectiveWiring&) override {
    throw RunError(
        fmt::format("op \"{}\": aggregators train without collectives", program_.ops[call.op].name));
  }

  Learned learned() override { return {}; }

private:
  struct Slots {
    OwnedArray array;
    std::size_t elements = 0;  // of a slot
  };
  Arithmetic& arithmetic_;
  const Program& program_;
  std::map<int, Slots> arrays_;  // by tensor
};

}  // namespace

std::unique_ptr<Workload> server_workload(const Scenario& scenario, const Schedule& schedule,
                                          const Wiring& wiring, int rank, Arithmetic& arithmetic) {
  return std::make_unique<Server>(scenario, schedule, wiring, rank, arithmetic);
}

std::unique_ptr<Workload> aggregator_workload(const Scenario& scenario, const Schedule& schedule,
                                              const Wiring& wiring, int rank, Arithmetic& arithmetic) {
  return std::make_unique<Aggregator>(scenario, schedule, wiring, rank, arithmetic);
}

}  // namespace rehearse
