#include "backend/training/training_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "backend/training/perceptron.hpp"
#include "backend/training/shard_optimizer.hpp"
#include "models/base/error.hpp"

namespace rehearse {
namespace {

const MultiLayerPerceptron& shape_of(const Scenario& scenario) {
  return std::get<MultiLayerPerceptron>(scenario.model.shape);
}

OptimizerSettings optimizer_of(const Scenario& scenario) {
  OptimizerSettings settings = default_settings(scenario.training.optimizer);
  if (scenario.run.learning_rate > 0) settings.learning_rate = static_cast<float>(scenario.run.learning_rate);
  return settings;
}

// FNV-1a (Fowler, Noll, Vo), eight bytes at a time.
std::uint64_t hash_of(const std::vector<float>& numbers, std::uint64_t hash) {
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    std::uint64_t word = 0;
    std::memcpy(&word, numbers.data() + i, std::min<std::size_t>(2, numbers.size() - i) * sizeof(float));
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}
constexpr std::uint64_t kHashBegin = 14695981039346656037ULL;

Payload payload(const Array& array) {
  return {array.data, array.bytes(), array.precision};
}

// The tensor that a message carries: sends carry what the op reads, receives what it writes, in order; one
// tensor may be cut over several ranks.
int tensor_of(const Op& op, int message) {
  const bool send = op.messages[message].direction == Message::Direction::send;
  const std::vector<int>& tensors = send ? op.reads : op.writes;
  std::size_t number = 0;
  for (int m = 0; m < message; ++m)
    if (op.messages[m].direction == op.messages[message].direction) ++number;
  if (tensors.empty()) return -1;
  return tensors[std::min(number, tensors.size() - 1)];
}

bool is_update(const Op& op) {
  return op.kind == OpKind::compute && op.pass == Pass::optimizer;
}

class Worker : public Workload {
public:
  Worker(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
         Arithmetic& arithmetic, bool check_replicas)
      : scenario_(scenario),
        arithmetic_(arithmetic),
        check_replicas_(check_replicas),
        program_(schedule.programs[wiring.communication().program_of_rank(rank)]) {
    const Mesh& mesh = schedule.roles.front().meshes.front();
    data_rank_ = mesh.coordinate(rank, mesh.axis("data"));
    PerceptronOptions options;
    options.held = held_layers();
    options.micro_batch = std::lround(scenario.training.micro_batch);
    options.microbatches = scenario.microbatches;
    const long replicas = schedule.asynchrony ? 1 : scenario.strategy.data;
    options.batch_samples = static_cast<double>(options.micro_batch * options.microbatches * replicas);
    options.optimizer = optimizer_of(scenario);
    options.precision = scenario.training.precision;
    options.gradient_precision = scenario.training.gradient_precision;
    options.seed = scenario.run.seed;
    held_ = options.held;
    batch_ = static_cast<std::uint64_t>(options.micro_batch * options.microbatches);
    perceptron_.emplace(arithmetic, shape_of(scenario), std::move(options));
    has_loss_ = perceptron_->holds(perceptron_->layers() - 1);
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    const LayerRange layers{op.first_layer, op.last_layer};
    if (op.pass == Pass::forward || op.pass == Pass::recompute || op.pass == Pass::backward) begin_step(call);
    if (op.pass == Pass::forward || op.pass == Pass::recompute)
      perceptron_->forward(call.stream, call.step, op.microbatch, layers);
    if (op.pass == Pass::backward) perceptron_->backward(call.stream, call.step, op.microbatch, layers);
    if (!is_update(op)) return;
    std::uint64_t hash = kHashBegin;
    for (const LayerRange& held : held_) {
      if (check_replicas_) hash = hash_of(on_host(call.stream, perceptron_->gradients(held)), hash);
      perceptron_->update(call.stream, held);
    }
    if (check_replicas_) learned_.gradients.push_back(hash);
  }

  Payload message(const OpCall& call, const ExchangePart& part) override {
    const Op& op = program_.ops[call.op];
    const Tensor& tensor = program_.tensors[tensor_of(op, part.message)];
    if (tensor.boundary >= 0) {
      const bool gradient = tensor.kind == TensorKind::activation_gradient;
      return payload(gradient ? perceptron_->activation_gradient(tensor.microbatch, tensor.boundary)
                              : perceptron_->activation(tensor.microbatch, tensor.boundary));
    }
    return payload(share(parameters(tensor), part.number, part.of));
  }

  Payload collective(const OpCall& call, const CollectiveWiring&) override {
    return payload(parameters(program_.tensors[program_.ops[call.op].reads.front()]));
  }

  Learned learned() override {
    end_step();
    if (!check_replicas_) return std::move(learned_);
    learned_.weights = kHashBegin;
    for (const LayerRange& held : held_)
      learned_.weights = hash_of(on_host(0, perceptron_->weights(held)), learned_.weights);
    return std::move(learned_);
  }

private:
  // The layers whose forward passes the program computes, in ranges without gaps.
  std::vector<LayerRange> held_layers() const {
    std::set<int> layers;
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::compute && op.pass == Pass::forward)
        for (int i = op.first_layer; i <= op.last_layer; ++i) layers.insert(i);
    std::vector<LayerRange> ranges;
    for (const int layer : layers) {
      if (ranges.empty() || ranges.back().last + 1 < layer) ranges.push_back({layer, layer});
      ranges.back().last = layer;
    }
    return ranges;
  }

  Array parameters(const Tensor& tensor) const {
    const LayerRange layers{tensor.first_layer, tensor.last_layer};
    return tensor.kind == TensorKind::gradient ? perceptron_->gradients(layers)
                                               : perceptron_->weights(layers);
  }

  // The samples of a step are numbered through all data-parallel ranks.
  void begin_step(const OpCall& call) {
    if (call.step == step_) return;
    end_step();
    step_ = call.step;
    std::vector<std::uint64_t> samples(batch_);
    const auto first =
        (static_cast<std::uint64_t>(step_) * static_cast<std::uint64_t>(scenario_.strategy.data) +
         static_cast<std::uint64_t>(data_rank_)) *
        batch_;
    for (std::uint64_t i = 0; i < batch_; ++i) samples[i] = first + i;
    perceptron_->set_batch(call.stream, step_, samples);
  }

  void end_step() {
    if (step_ >= 0 && has_loss_) learned_.losses.push_back(perceptron_->take_loss(0, step_));
  }

  std::vector<float> on_host(int stream, const Array& array) {
    std::vector<float> numbers(array.elements);
    arithmetic_.copy_to_host(stream, array, numbers.data());
    return numbers;
  }

  const Scenario& scenario_;
  Arithmetic& arithmetic_;
  const bool check_replicas_;
  const Program& program_;
  std::optional<Perceptron> perceptron_;
  std::vector<LayerRange> held_;
  std::uint64_t batch_ = 0;  // samples of this rank in a step
  int data_rank_ = 0;
  long step_ = -1;
  bool has_loss_ = false;
  Learned learned_;
};

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
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      const Tensor& tensor = program_.tensors[t];
      if (tensor.kind != TensorKind::weight) continue;
      const std::vector<float> whole = initial_weights(shape_of(scenario), scenario.run.seed,
                                                       LayerRange{tensor.first_layer, tensor.last_layer});
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
      const int slots = asynchronous_ ? 1 : scenario.strategy.data;
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
    arithmetic_.settle(call.stream);
    if (!asynchronous_) return;
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

  int weights_of(const Op& update) const {
    return *std::find_if(update.writes.begin(), update.writes.end(),
                         [&](int t) { return program_.tensors[t].kind == TensorKind::weight; });
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

}  // namespace

std::string why_not_trained(const Scenario& scenario, const Schedule& schedule, bool fp32_only) {
  if (!std::holds_alternative<MultiLayerPerceptron>(scenario.model.shape))
    return fmt::format("{} is no multi-layer perceptron", scenario.model.title);
  const Precision precision = scenario.training.precision;
  const auto name = [](Precision p) { return kPrecisionNames[static_cast<std::size_t>(p)]; };
  const bool known = precision == Precision::fp32 || (!fp32_only && precision == Precision::bf16);
  if (!known || scenario.training.gradient_precision != Precision::fp32)
    return fmt::format("training in {} with gradients in {}", name(precision),
                       name(scenario.training.gradient_precision));
  if (scenario.training.activation_precision != precision)
    return fmt::format("activations are sent in {}", name(scenario.training.activation_precision));
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      const auto of_kind = [&](const std::vector<int>& tensors, TensorKind kind) {
        return !tensors.empty() && program.tensors[tensors.front()].kind == kind;
      };
      const bool moves_gradients = of_kind(op.reads, TensorKind::gradient) && op.reads == op.writes;
      if (op.kind == OpKind::collective &&
          (op.collective.kind != CollectiveKind::all_reduce || !moves_gradients))
        return fmt::format("\"{}\" sums up something else than gradients", op.name);
      for (std::size_t m = 0; op.kind == OpKind::exchange && m < op.messages.size(); ++m) {
        const int t = tensor_of(op, static_cast<int>(m));
        const bool server = program.role != 0 && t >= 0;
        const bool worker =
            t >= 0 && (program.tensors[t].boundary >= 0 || program.tensors[t].kind == TensorKind::weight ||
                       program.tensors[t].kind == TensorKind::gradient);
        if (!server && !worker)
          return fmt::format("\"{}\" carries something else than layers' numbers", op.name);
      }
    }
  if (scenario.strategy.gradients != "all-reduce" && scenario.strategy.gradients != "parameter-server")
    return fmt::format("gradients = \"{}\" is carried out with the right sizes only",
                       scenario.strategy.gradients);
  return "";
}

std::unique_ptr<Workload> training_workload(const Scenario& scenario, const Schedule& schedule,
                                            const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                            bool check_replicas) {
  if (wiring.place(rank).first == 0)
    return std::make_unique<Worker>(scenario, schedule, wiring, rank, arithmetic, check_replicas);
  return std::make_unique<Server>(scenario, schedule, wiring, rank, arithmetic);
}

}  // namespace rehearse
