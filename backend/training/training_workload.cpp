#include "backend/training/training_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "backend/training/compressed_bucket.hpp"
#include "backend/training/first_device_workload.hpp"
#include "backend/training/perceptron.hpp"
#include "backend/training/server_workload.hpp"
#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

bool has(const Schedule& schedule, const auto& is_so) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), is_so);
  });
}

bool compresses(const Schedule& schedule) {
  return has(schedule, [](const Op& op) { return op.action.kind == Action::Kind::compress; });
}

// Weights of ranks that took steps of their own.
bool averages(const Schedule& schedule) {
  return has(schedule, [](const Op& op) {
    return op.kind == OpKind::collective && op.collective.reduction == Collective::Reduction::mean;
  });
}

// The loss of all ranks' outputs is computed in one place.
bool gathers_outputs(const Schedule& schedule) {
  return has(schedule, [](const Op& op) { return op.action.kind == Action::Kind::loss; });
}

class Worker : public Workload {
public:
  Worker(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
         Arithmetic& arithmetic, const TrainingOptions& training)
      : scenario_(scenario),
        arithmetic_(arithmetic),
        check_replicas_(training.check_replicas),
        program_(schedule.programs[wiring.communication().program_of_rank(rank)]),
        averages_(averages(schedule)),
        steps_at_once_(schedule.optimizer_steps) {
    const Mesh& mesh = schedule.roles.front().meshes.front();
    data_rank_ = mesh.coordinate(rank, mesh.axis("data"));
    const std::vector<int> coordinates = factor_coordinates(scenario, mesh, place_of(mesh, rank));
    const bool alone = schedule.asynchrony || averages_;
    PerceptronOptions options =
        perceptron_options(scenario, held_layers(), alone ? 1 : scenario.strategy.data);
    options.shards = layer_shards(scenario, coordinates);
    held_ = options.held;
    batch_ = static_cast<std::uint64_t>(options.micro_batch * options.microbatches);
    steps_ = training.repeats * steps_at_once_;
    const double bytes = bytes_of_step(options);
    options.kept_steps = bytes > 0 ? kept_steps(training, steps_, bytes) : 1;
    keeps_all_ = bytes == 0 || options.kept_steps >= steps_;
    perceptron_.emplace(arithmetic, shape_of(scenario), std::move(options));
    // Of the ranks that share the last layer, which all know the losses, the first one tells them.
    has_loss_ = perceptron_->holds(perceptron_->layers() - 1) &&
                std::all_of(coordinates.begin(), coordinates.end(), [](int c) { return c == 0; });
    number_steps();
    if (compresses(schedule)) number_parts(training.on_processors);
    for (long step = 0; bytes > 0 && keeps_all_ && step < steps_; ++step) set_batch(0, step);
    arithmetic.settle(0);
  }

  void prepare(const OpCall& call, const std::function<void()>& settle) override {
    const Op& op = program_.ops[call.op];
    using Kind = Action::Kind;
    if (op.action.kind == Kind::forward || op.action.kind == Kind::recompute ||
        op.action.kind == Kind::backward)
      begin_step(call, step_of(call), settle);
    if (!is_update(op) || !check_replicas_ || averages_) return;
    settle();
    learned_.gradients.push_back(hash_of_all(call.stream, &Perceptron::gradients));
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    const SegmentRange segments{op.action.first_segment, op.action.end_segment};
    const long step = step_of(call);
    switch (op.action.kind) {
      case Action::Kind::forward:
      case Action::Kind::recompute:
        perceptron_->forward_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::backward:
        perceptron_->backward_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::compress:
        bucket_of(op).compute(call.stream, op.action.part, parameters(program_.tensors[op.reads.front()]));
        break;
      case Action::Kind::update:
        for (const LayerRange& held : held_) perceptron_->update(call.stream, held);
        break;
      case Action::Kind::none:
      case Action::Kind::loss:
      case Action::Kind::change:
      case Action::Kind::sum_shared:
      case Action::Kind::add:
        break;
    }
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

  Payload collective(const OpCall& call, const CollectiveWiring& wiring) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind == Action::Kind::change || op.action.kind == Action::Kind::sum_shared) {
      const Array buffer = op.action.kind == Action::Kind::change
                               ? perceptron_->begin_transfer(call.stream, transfer_of(op))
                               : perceptron_->begin_sum(call.stream, {op.first_layer, op.last_layer});
      Payload exchanged = payload(buffer);
      exchanged.reduction = op.collective.reduction;
      return expect_bytes(op, wiring, exchanged);
    }
    if (op.collective.reduction == Collective::Reduction::mean) {  // the sum of shares
      arithmetic_.scale(call.stream, 1 / static_cast<float>(wiring.ranks.size()), perceptron_->all_weights());
      return payload(perceptron_->all_weights());
    }
    if (op.action.kind != Action::Kind::compress)
      return payload(parameters(program_.tensors[op.reads.front()]));
    return expect_bytes(op, wiring, bucket_of(op).collective(op.action.part));
  }

  void after_collective(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind == Action::Kind::change) perceptron_->end_transfer(call.stream, transfer_of(op));
    if (op.action.kind == Action::Kind::sum_shared)
      perceptron_->end_sum(call.stream, {op.first_layer, op.last_layer});
  }

  bool tells_losses() const override { return has_loss_; }

  Learned learned() override {
    if (on_loss || !keeps_all_)
      end_step();
    else
      for (long step = 0; has_loss_ && step <= step_; ++step)
        learned_.losses.push_back(perceptron_->take_loss(0, step));
    if (!check_replicas_) return std::move(learned_);
    learned_.weights = hash_of_all(0, &Perceptron::weights);
    learned_.replicated = kHashBegin;
    for (const LayerRange& held : held_)
      for (const Array& array : perceptron_->replicated_weights(held))
        learned_.replicated = hash_of(arithmetic_, 0, array, learned_.replicated);
    return std::move(learned_);
  }

private:
  static ValueTransfer transfer_of(const Op& op) {
    return {op.first_layer, op.action.part, op.microbatch, op.action.of_gradient, op.collective.kind};
  }

  // The last element of the table may reach beyond a buffer of 16-bit numbers.
  static Payload expect_bytes(const Op& op, const CollectiveWiring& wiring, const Payload& buffer) {
    const std::size_t bytes = static_cast<std::size_t>(wiring.table.elements) * kElementBytes;
    if (buffer.bytes + kElementBytes <= bytes)
      throw RunError(fmt::format("op \"{}\" exchanges {} bytes; its numbers here have {}", op.name, bytes,
                                 buffer.bytes));
    return buffer;
  }

  // The layers whose forward passes the program computes, in ranges without gaps.
  std::vector<LayerRange> held_layers() const {
    std::set<int> layers;
    for (const Op& op : program_.ops)
      if (op.action.kind == Action::Kind::forward)
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

  // Which optimizer step of the schedule each op belongs to.
  void number_steps() {
    int step = 0;
    for (const Op& op : program_.ops) {
      step_in_round_.push_back(step);
      if (is_update(op)) ++step;
    }
  }

  // All parts of a bucket's sync read its gradients first.
  void number_parts(bool on_processors) {
    std::map<int, std::vector<int>> parts;  // by tensor of gradients: ops
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      if (const Op& op = program_.ops[i]; op.action.kind == Action::Kind::compress)
        parts[op.reads.front()].push_back(static_cast<int>(i));
    for (const auto& [tensor, ops] : parts) {
      const Op& first = program_.ops[ops.front()];
      std::vector<DenseLayer> layers;
      for (int l = first.first_layer; l <= first.last_layer; ++l)
        layers.push_back({perceptron_->matrix(l).m, perceptron_->matrix(l).n});
      buckets_[tensor] = std::make_unique<CompressedBucket>(
          arithmetic_, on_processors,
          CompressionTask{scenario_.strategy.compression, std::move(layers), data_rank_,
                          scenario_.strategy.data, scenario_.run.seed, first.first_layer});
    }
  }

  CompressedBucket& bucket_of(const Op& op) { return *buckets_.at(op.reads.front()); }

  long step_of(const OpCall& call) const { return call.step * steps_at_once_ + step_in_round_[call.op]; }

  // Inputs, labels and losses, where this rank has them.
  double bytes_of_step(const PerceptronOptions& options) const {
    const std::vector<double>& widths = shape_of(scenario_).widths;
    const auto samples = static_cast<std::size_t>(options.micro_batch);
    std::size_t elements = 0;  // of a micro-batch
    for (const LayerRange& range : options.held) {
      if (range.first == 0)
        elements += EqualArrays::stride(samples * static_cast<std::size_t>(std::lround(widths.front())));
      if (range.last == static_cast<int>(widths.size()) - 2) elements += 2 * EqualArrays::stride(samples);
    }
    return static_cast<double>(kElementBytes * elements) * options.microbatches;
  }

  // Reads the step before, if its losses are wanted now or its data give way to those of this step.
  void begin_step(const OpCall& call, long step, const std::function<void()>& settle) {
    if (step == step_) return;
    const bool looks = check_replicas_ && averages_ && step % steps_at_once_ == 0;
    if (looks || on_loss || !keeps_all_) settle();
    if (on_loss || !keeps_all_) end_step();
    step_ = step;
    if (looks) learned_.gradients.push_back(hash_of_all(call.stream, &Perceptron::weights));
    if (!keeps_all_) set_batch(call.stream, step);
  }

  // The samples of a step are numbered through all data-parallel ranks.
  void set_batch(int stream, long step) {
    std::vector<std::uint64_t> samples(batch_);
    const auto first =
        (static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(scenario_.strategy.data) +
         static_cast<std::uint64_t>(data_rank_)) *
        batch_;
    for (std::uint64_t i = 0; i < batch_; ++i) samples[i] = first + i;
    perceptron_->set_batch(stream, step, samples);
  }

  void end_step() {
    if (step_ < 0 || !has_loss_) return;
    learned_.losses.push_back(perceptron_->take_loss(0, step_));
    if (on_loss) on_loss(learned_.losses.back());
  }

  std::uint64_t hash_of_all(int stream, Array (Perceptron::*what)(LayerRange) const) {
    std::uint64_t hash = kHashBegin;
    for (const LayerRange& held : held_)
      hash = hash_of(arithmetic_, stream, ((*perceptron_).*what)(held), hash);
    return hash;
  }

  const Scenario& scenario_;
  Arithmetic& arithmetic_;
  const bool check_replicas_;
  const Program& program_;
  const bool averages_;  // weights, once in a schedule
  const int steps_at_once_;
  std::vector<int> step_in_round_;                            // by op
  std::map<int, std::unique_ptr<CompressedBucket>> buckets_;  // by tensor of gradients
  std::optional<Perceptron> perceptron_;
  std::vector<LayerRange> held_;
  std::uint64_t batch_ = 0;  // samples of this rank in a step
  int data_rank_ = 0;
  long step_ = -1, steps_ = 1;
  bool keeps_all_ = false;  // the data of all steps
  bool has_loss_ = false;
  Learned learned_;
};

}  // namespace

namespace {

// What all-reduce and parameter servers move must be numbers that a perceptron has.
std::string moves_other_numbers(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      const auto of_kind = [&](const std::vector<int>& tensors, TensorKind kind) {
        return !tensors.empty() && program.tensors[tensors.front()].kind == kind;
      };
      const bool moves_gradients = of_kind(op.reads, TensorKind::gradient) && op.reads == op.writes;
      if (op.kind == OpKind::collective && op.action.kind != Action::Kind::change &&
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
  return "";
}

}  // namespace

std::string why_not_trained(const Scenario& scenario, const Schedule& schedule, bool on_processors) {
  if (!std::holds_alternative<MultiLayerPerceptron>(scenario.model.shape))
    return fmt::format("{} is no multi-layer perceptron", scenario.model.title);
  const Precision precision = scenario.training.precision;
  const auto name = [](Precision p) { return kPrecisionNames[static_cast<std::size_t>(p)]; };
  const bool on_gpus = precision == Precision::bf16 || precision == Precision::tf32;
  const bool known = precision == Precision::fp32 || (!on_processors && on_gpus);
  if (!known || scenario.training.gradient_precision != Precision::fp32)
    return fmt::format("training in {} with gradients in {}", name(precision),
                       name(scenario.training.gradient_precision));
  const Precision stored = precision == Precision::tf32 ? Precision::fp32 : precision;
  if (scenario.training.activation_precision != stored)
    return fmt::format("activations are sent in {}", name(scenario.training.activation_precision));
  if (compresses(schedule)) {
    const Compression kind = scenario.strategy.compression.kind;
    const std::string_view compression = kCompressionNames[static_cast<std::size_t>(kind)];
    if (precision != Precision::fp32)
      return fmt::format("gradients are compressed ({}) with weights in {}", compression, name(precision));
    if (!on_processors && kind == Compression::fp16 &&
        scenario.run.collectives == RealRun::Collectives::schedule)
      return "gradients are added up in fp16, and messages between GPUs are added up in fp32";
    if (kind == Compression::fp16 && on_processors &&
        scenario.run.collectives == RealRun::Collectives::library)
      return "gradients are added up in fp16, and the library's all-reduce adds in fp32";
    return "";
  }
  if (averages(schedule))
    return precision == Precision::bf16 ? "weights are averaged, of which bf16 has two copies" : "";
  if (gathers_outputs(schedule))
    return precision == Precision::fp32 ? "" : fmt::format("DataParallel in {}", name(precision));
  return moves_other_numbers(schedule);
}

std::unique_ptr<Workload> training_workload(const Scenario& scenario, const Schedule& schedule,
                                            const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                            const TrainingOptions& options) {
  const int role = wiring.place(rank).first;
  if (gathers_outputs(schedule))
    return first_device_workload(scenario, schedule, wiring, rank, arithmetic, options);
  if (role == kWorkers)
    return std::make_unique<Worker>(scenario, schedule, wiring, rank, arithmetic, options);
  const Program& program = schedule.programs[schedule.program_of(role, wiring.place(rank).second)];
  if (std::any_of(program.ops.begin(), program.ops.end(),
                  [](const Op& op) { return op.action.kind == Action::Kind::add; }))
    return aggregator_workload(scenario, schedule, wiring, rank, arithmetic);
  return server_workload(scenario, schedule, wiring, rank, arithmetic);
}

}  // namespace rehearse
