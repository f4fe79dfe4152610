#include "backend/training/training_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "backend/training/compressed_bucket.hpp"
#include "backend/training/gathered_batch.hpp"
#include "backend/training/layer_shard.hpp"
#include "backend/training/sample_sources.hpp"
#include "backend/training/server_weights.hpp"
#include "backend/training/sharded_weights.hpp"
#include "backend/training/state_slice.hpp"
#include "backend/training/trained_network.hpp"
#include "backend/training/weight_runs.hpp"
#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {
namespace {

// Returns whether gradients are scattered after each micro-batch, so that the ranks hold only shards of them.
bool shares_out_gradients(const Program& program) {
  return std::any_of(program.tensors.begin(), program.tensors.end(), [](const Tensor& tensor) {
    return tensor.kind == TensorKind::gradient && tensor.shards > 1;
  });
}

// Applies a rank's program to its tensors. A TrainedNetwork has the layers that the rank computes,
// ServerWeights the weights that it updates without computing layers, and a GatheredBatch the inputs and
// outputs of several ranks; all other tensors are plain arrays.
class TrainingWorkload : public Workload, public TrainState {
public:
  TrainingWorkload(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
                   Arithmetic& arithmetic, const TrainingOptions& training)
      : scenario_(scenario),
        arithmetic_(arithmetic),
        check_replicas_(training.check_replicas),
        input_(training.input),
        rank_(rank),
        workers_(schedule.roles[kWorkers].meshes.front()),
        program_(schedule.programs[wiring.communication().program_of_rank(rank)]),
        averages_(averages(schedule)),
        gathers_(gathers_outputs(schedule)),
        steps_at_once_(schedule.optimizer_steps),
        steps_(training.repeats * steps_at_once_) {
    number_steps();
    first_step_ = training.first * steps_at_once_;
    if (schedule.asynchrony || process_ranks(schedule) > schedule.roles[kWorkers].size())
      unsaved_ = "servers hold the weights";
    if (!computes(program_, Action::Kind::forward)) {
      const auto [role, number] = wiring.place(rank);
      hold_tensors(workers_, {number, schedule.roles[static_cast<std::size_t>(role)].size()});
      return;
    }
    const bool alone = schedule.asynchrony || averages_;
    hold_layers(workers_, rank, alone ? 1 : scenario.strategy.data, training);
    if (computes(program_, Action::Kind::scatter_gradients))
      shards_.emplace(schedule.roles[kWorkers], rank, program_, *network_, optimizer_of(scenario),
                      arithmetic);
    if (!shards_ && computes(program_, Action::Kind::sum_part))
      part_sums_.emplace(program_, *network_, arithmetic);
    for (const int tensor : gradients_apart(program_)) hold_apart(tensor);
    if (compresses(schedule)) number_parts(training.on_processors);
    make_batches(0, 0);
    arithmetic.settle(0);
  }

  void prepare(const OpCall& call, const std::function<void()>& settle) override {
    const Op& op = program_.ops[call.op];
    if (is_pass(op) || carries_batch(op)) begin_step(call, step_of(call), settle);
    if (input_ != nullptr) take_batch(call);
    if (!check_replicas_ || !network_) return;
    if (averages_ || gathers_) {
      // Ranks have no common gradients here, but they have the same weights at the start of a round.
      const long round = call.step;
      if (op.action.kind != Action::Kind::forward || hashed_round_ == round) return;
      hashed_round_ = round;
      settle();
      learned_.gradients.push_back(hash_of_all(call.stream, &TrainedNetwork::weights));
    } else if (is_update(op)) {
      settle();
      // Ranks that shard gradients have only the step's weights in common.
      learned_.gradients.push_back(
          hash_of_all(call.stream, shards_ ? &TrainedNetwork::weights : &TrainedNetwork::gradients));
    }
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    const SegmentRange segments{op.action.first_segment, op.action.end_segment, op.action.part};
    const long step = step_of(call);
    switch (op.action.kind) {
      case Action::Kind::forward:
        if (gathers_) take_inputs(call.stream, step, op);
        network_->forward_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::recompute:
        network_->recompute_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::backward:
        network_->backward_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::backward_input:
        network_->backward_input_segments(call.stream, op.microbatch, segments);
        break;
      case Action::Kind::backward_weight:
        network_->backward_weight_segments(call.stream, step, op.microbatch, segments);
        break;
      case Action::Kind::loss:
        take_loss(call.stream, step, op);
        break;
      case Action::Kind::add:
        add_up(call.stream, op.reads.front(), arrays_.at(op.writes.front()));
        break;
      case Action::Kind::swap:
        swap(call.stream, array_of(op.writes.front()), array_of(op.writes.back()));
        break;
      case Action::Kind::compress:
        bucket_of(op).compute(call.stream, op.action.part, parameters(program_.tensors[op.reads.front()]));
        break;
      case Action::Kind::update:
        if (servers_) servers_->update(call.stream, op, arrays_.at(op.reads.front()));
        if (shards_)
          shards_->update(call.stream);
        else
          for (const LayerRange& held : held_) network_->update(call.stream, held);
        break;
      case Action::Kind::scatter_gradients:
      case Action::Kind::gather_weights:
      case Action::Kind::none:
      case Action::Kind::change:
      case Action::Kind::sum_shared:
      case Action::Kind::sum_tied:
      case Action::Kind::sum_part:
      case Action::Kind::pass_keys:
        break;
    }
  }

  Payload message(const OpCall& call, const ExchangePart& part) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind == Action::Kind::pass_keys)
      return payload(network_->ring_message(
          call.stream, op.action.first_segment, op.microbatch,
          {op.action.part, scenario_.strategy.context, op.action.of_gradient, op.pass == Pass::forward},
          part.send));
    const Message& message = op.messages[part.message];
    const int number = tensor_of(op, part.message);
    const Tensor& tensor = program_.tensors[number];
    const Array whole = numbers_of(call, part, number);
    if (tensor.slot_count > 1) {
      const std::size_t each = whole.elements / static_cast<std::size_t>(tensor.slot_count);
      return payload(whole.part(static_cast<std::size_t>(message.slot + part.number) * each, each));
    }
    if (tensor.boundary >= 0 && whole.bytes() != part.bytes) refuse_size(op, part.bytes, whole.bytes());
    return payload(message.shared_out ? share(whole, part.number, part.of) : whole);
  }

  Payload collective(const OpCall& call, const CollectiveWiring& wiring) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind == Action::Kind::change || op.action.kind == Action::Kind::sum_shared) {
      Payload exchanged = payload(op.action.kind == Action::Kind::change
                                      ? network_->begin_transfer(call.stream, transfer_of(call, wiring))
                                      : network_->begin_sum(call.stream, sum_of(op)));
      exchanged.reduction = op.collective.reduction;
      return expect_bytes(op, wiring, exchanged, true);
    }
    if (op.action.kind == Action::Kind::sum_tied)
      return expect_bytes(op, wiring,
                          payload(shards_ ? shards_->tied_gradient(op.first_layer)
                                          : network_->tied_gradient(op.first_layer)));
    if (op.collective.reduction == Collective::Reduction::mean) {  // the sum of these shares is the mean
      arithmetic_.scale(call.stream, 1 / static_cast<float>(wiring.ranks.size()), network_->all_weights());
      return payload(network_->all_weights());
    }
    if (op.action.kind == Action::Kind::sum_part && part_sums_)
      return expect_bytes(op, wiring, payload(part_sums_->begin(call.stream, op)));
    if (is_of_shards(op)) return expect_bytes(op, wiring, payload(shards_->begin(call.stream, op)));
    if (shards_ && program_.tensors[op.writes.front()].shards > 1) return payload(shards_->gradients(op));
    if (op.action.kind != Action::Kind::compress) return payload(array_of(op.writes.front()));
    return expect_bytes(op, wiring, bucket_of(op).collective(op.action.part));
  }

  void after_collective(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    if (op.action.kind == Action::Kind::change) network_->end_transfer(call.stream, under_way_);
    if (op.action.kind == Action::Kind::sum_part && part_sums_) part_sums_->end(call.stream, op);
    if (is_of_shards(op)) shards_->end(call.stream, op);
    if (op.action.kind == Action::Kind::sum_shared) network_->end_sum(call.stream, sum_of(op));
  }

  bool tells_losses() const override { return has_loss_; }

  TrainState* state() override { return this; }

  void input(const OpCall& call) override { input_->carry_out(call); }
  void stop_input() override {
    if (input_ != nullptr) input_->stop();
  }

  std::string why_not_saved() const override {
    if (!unsaved_.empty()) return unsaved_;
    if (!buckets_.empty()) return "compressed gradients carry what was not sent over to the next step";
    if (spare_) return "gradients are applied one step later than they are computed";
    return "";
  }

  std::vector<HeldState> held() override {
    std::vector<HeldState> all;
    const std::string place = place_of(false), experts = place_of(true);
    // Ranks that update nothing get their weights from one that does.
    const bool copies = shards_ || !computes(program_, Action::Kind::update);
    for (const HeldState& layer : network_->state()) {
      const int number = layer.slice.layer;
      if (shards_ && layer.slice.kind != StateKind::weights) continue;  // the shards have their own
      for (const int part : {0, 1})
        for (const WeightRun& run : network_->runs({number, number}, part)) {
          HeldState piece{layer.slice, layer.array.part(run.first, run.count), copies};
          piece.slice.place = part == 1 ? experts : place;
          piece.slice.first = run.first;
          piece.slice.count = run.count;
          all.push_back(std::move(piece));
        }
    }
    if (shards_)
      for (HeldState& shard : shards_->state(place, experts)) all.push_back(std::move(shard));
    return all;
  }

  void restored(long rounds) override {
    network_->restored(0, rounds * steps_at_once_);
    if (shards_) shards_->set_steps(rounds * steps_at_once_);
    arithmetic_.settle(0);
  }

  Learned learned() override {
    if (servers_) learned_.staleness = servers_->take_staleness();
    if (!network_) return std::move(learned_);
    if (on_loss || !keeps_all_)
      end_step();
    else
      for (long step = 0; has_loss_ && step <= step_; ++step) learned_.losses.push_back(loss_of(step));
    if (gathers_) {  // only the first rank's weights are final
      if (!learned_.gradients.empty()) learned_.weights = learned_.gradients.back();
      return std::move(learned_);
    }
    learned_.weights = hash_of_all(0, &TrainedNetwork::weights);
    learned_.replicated = kHashBegin;
    for (const LayerRange& held : held_)
      for (const Array& array : network_->replicated_weights(held))
        learned_.replicated = hash_of(arithmetic_, 0, array, learned_.replicated);
    return std::move(learned_);
  }

private:
  // ----- tensors that the rank holds

  void hold_layers(const Mesh& workers, int rank, int summed, const TrainingOptions& training) {
    data_rank_ = workers.coordinate(rank, workers.axis("data"));
    NetworkPart part;
    part.held = held_ = held_layers();
    part.coordinates = coordinates_ =
        factor_coordinates(scenario_, workers, rehearse::place_of(workers, rank));
    part.summed = summed;
    part.loss_elsewhere = gathers_;
    part.splits_backward = computes(program_, Action::Kind::backward_input);
    std::set<int> streams;
    for (const Op& op : program_.ops)
      if (op.action.kind == Action::Kind::change) streams.insert(op.stream);
    part.change_streams.assign(streams.begin(), streams.end());
    const bool takes_loss = computes(program_, Action::Kind::loss);
    // Gradients that another rank sums start anew with each micro-batch.
    part.sum_microbatches = (!gathers_ || takes_loss) && !shares_out_gradients(program_);
    samples_ = static_cast<std::uint64_t>(std::lround(scenario_.training.micro_batch)) *
               static_cast<std::uint64_t>(scenario_.microbatches);
    const double bytes = takes_loss ? GatheredBatch::bytes_of_step(scenario_)
                         : gathers_ ? 0
                                    : batch_bytes(scenario_, held_);
    kept_ = bytes > 0 ? kept_steps(training, steps_, bytes) : 1;
    makes_batch_ = bytes > 0 && input_ == nullptr;
    keeps_all_ = kept_ >= steps_ || bytes <= 0;
    part.samples = training.samples ? training.samples : training_samples(scenario_);
    if (takes_loss) batch_.emplace(scenario_, part.samples, arithmetic_, kept_);
    network_ = make_network(scenario_, std::move(part), gathers_ ? 1 : kept_, arithmetic_);
    has_loss_ = takes_loss || (!gathers_ && network_->tells_loss());
  }

  // `share` is this rank's share of the tensors that its role shares.
  void hold_tensors(const Mesh& workers, Part share) {
    if (computes(program_, Action::Kind::update))
      servers_.emplace(scenario_, workers, program_, share, arithmetic_);
    for (const Op& op : program_.ops)
      for (const std::vector<int>* used : {&op.reads, &op.writes})
        for (const int number : *used) {
          const Tensor& tensor = program_.tensors[number];
          const bool elsewhere = servers_ && tensor.kind != TensorKind::buffer;
          if (elsewhere || arrays_.count(number) > 0) continue;
          const std::size_t whole =
              parameters_of(scenario_, {tensor.first_layer, tensor.last_layer},
                            factor_coordinates(scenario_, workers, far_side(program_, number).where));
          const std::size_t own = tensor.shards > 1 ? share_begin(whole, share.number + 1, share.of) -
                                                          share_begin(whole, share.number, share.of)
                                                    : whole;
          arrays_.try_emplace(
              number,
              OwnedArray(arithmetic_, own * static_cast<std::size_t>(tensor.slot_count), tensor.type));
        }
  }

  // Returns the layers whose forward passes the program computes, as ranges without gaps.
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

  // ----- memory of the tensors

  Array parameters(const Tensor& tensor) const {
    const LayerRange layers{tensor.first_layer, tensor.last_layer};
    return tensor.kind == TensorKind::gradient ? network_->gradients(layers) : network_->weights(layers);
  }

  Array array_of(int tensor) const {
    const auto own = arrays_.find(tensor);
    return own == arrays_.end() ? parameters(program_.tensors[tensor]) : Array(own->second);
  }

  // Gradients that no pass writes are arrays of their own, zero at first; the network has the others.
  void hold_apart(int tensor) {
    const Array beside = parameters(program_.tensors[tensor]);
    arrays_.try_emplace(tensor, OwnedArray(arithmetic_, beside.elements, beside.precision));
    if (!spare_ || (*spare_)->elements < beside.elements)
      spare_.emplace(arithmetic_, beside.elements, beside.precision);
  }

  void swap(int stream, const Array& a, const Array& b) {
    const Array spare = Array(*spare_).part(0, a.elements);
    arithmetic_.copy(stream, a, spare);
    arithmetic_.copy(stream, b, a);
    arithmetic_.copy(stream, spare, b);
  }

  // Returns all slots of the tensor that a message carries.
  Array numbers_of(const OpCall& call, const ExchangePart& part, int number) {
    const Tensor& tensor = program_.tensors[number];
    const int microbatch = tensor.microbatch >= 0 ? tensor.microbatch : program_.ops[call.op].microbatch;
    if (!network_)
      return servers_ && servers_->has(number) ? servers_->sent(call.stream, number, part.peer)
                                               : Array(arrays_.at(number));
    if (tensor.kind == TensorKind::batch)
      return batch_ ? batch_->inputs(step_of(call), microbatch) : network_->input(step_of(call), microbatch);
    if (tensor.boundary < 0) return parameters(tensor);
    const bool gradient = tensor.kind == TensorKind::activation_gradient;
    if (part.send && tensor.slot_count <= 1)
      network_->begin_send(call.stream, microbatch, tensor.boundary, gradient);
    if (batch_) return gradient ? batch_->gradients() : batch_->outputs();
    return gradient ? network_->activation_gradient(microbatch, tensor.boundary)
                    : network_->activation(microbatch, tensor.boundary);
  }

  void add_up(int stream, int from, const Array& sum) {
    const Array collected = arrays_.at(from);
    arithmetic_.copy(stream, collected.part(0, sum.elements), sum);
    add_further_slots(arithmetic_, stream, collected, sum);
  }

  // Copies this rank's inputs from the gathered batch; other ranks have received theirs as a message.
  void take_inputs(int stream, long step, const Op& op) {
    const Array inputs = network_->input(step, op.microbatch);
    if (batch_) arithmetic_.copy(stream, batch_->first_slot(batch_->inputs(step, op.microbatch)), inputs);
  }

  void take_loss(int stream, long step, const Op& op) {
    const int last = network_->layers() - 1;
    arithmetic_.copy(stream, network_->activation(op.microbatch, last),
                     batch_->first_slot(batch_->outputs()));
    batch_->take_loss(stream, step, op.microbatch);
    arithmetic_.copy(stream, batch_->first_slot(batch_->gradients()),
                     network_->activation_gradient(op.microbatch, last));
  }

  // Only one transfer is in progress at a time.
  const ValueTransfer& transfer_of(const OpCall& call, const CollectiveWiring& wiring) {
    const Op& op = program_.ops[call.op];
    auto [members, fresh] = members_.try_emplace(&wiring);
    for (std::size_t m = 0; fresh && m < wiring.ranks.size(); ++m)
      members->second.push_back(
          factor_coordinates(scenario_, workers_, rehearse::place_of(workers_, wiring.ranks[m])));
    under_way_ = {op.first_layer,        op.action.part,     op.microbatch,
                  op.action.of_gradient, op.collective.kind, op.action.route,
                  op.action.step,        &members->second,   wiring.member_of(rank_)};
    return under_way_;
  }
  static SharedSum sum_of(const Op& op) {
    return {{op.first_layer, op.last_layer}, static_cast<unsigned>(op.action.part)};
  }

  [[noreturn]] static void refuse_size(const Op& op, std::size_t bytes, std::size_t here) {
    throw RunError(
        fmt::format("op \"{}\" exchanges {} bytes; its numbers here have {}", op.name, bytes, here));
  }
  // Throws RunError if the buffer is too small or, if `exactly`, too large. The table's last element may
  // extend beyond a buffer of 16-bit numbers.
  static Payload expect_bytes(const Op& op, const CollectiveWiring& wiring, const Payload& buffer,
                              bool exactly = false) {
    const std::size_t bytes = static_cast<std::size_t>(wiring.table.elements) * kElementBytes;
    if (buffer.bytes + kElementBytes <= bytes || (exactly && buffer.bytes > bytes))
      refuse_size(op, bytes, buffer.bytes);
    return buffer;
  }

  bool carries_batch(const Op& op) const {
    return op.kind == OpKind::exchange && op.action.kind != Action::Kind::pass_keys &&
           op.purpose != Purpose::input && program_.tensors[tensor_of(op, 0)].kind == TensorKind::batch;
  }

  // Computes to which optimizer step of the schedule each op belongs. A schedule that loads ahead is several
  // equal ones in a row.
  void number_steps() {
    const auto times = static_cast<std::size_t>(steps_in_schedule(scenario_));
    const std::size_t ops = program_.ops.size() / times;
    const int steps = steps_at_once_ / static_cast<int>(times);
    int step = 0;
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      if (op % ops == 0) step = static_cast<int>(op / ops) * steps;
      step_in_round_.push_back(step);
      if (is_update(program_.ops[op])) ++step;
    }
  }

  // Groups the ops of a bucket's synchronization by the gradients that they read first.
  void number_parts(bool on_processors) {
    std::map<int, std::vector<int>> parts;  // ops, by tensor of gradients
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      if (const Op& op = program_.ops[i]; op.action.kind == Action::Kind::compress)
        parts[op.reads.front()].push_back(static_cast<int>(i));
    for (const auto& [tensor, ops] : parts) {
      const Op& first = program_.ops[ops.front()];
      std::vector<DenseLayer> layers;
      for (int l = first.first_layer; l <= first.last_layer; ++l)
        layers.push_back({network_->matrix(l).m, network_->matrix(l).n});
      buckets_[tensor] = std::make_unique<CompressedBucket>(
          arithmetic_, on_processors,
          CompressionTask{scenario_.strategy.compression, std::move(layers), data_rank_,
                          scenario_.strategy.data, scenario_.run.seed, first.first_layer});
    }
  }

  CompressedBucket& bucket_of(const Op& op) { return *buckets_.at(op.reads.front()); }

  // Names the part of each layer that the rank holds: of its experts on ranks of their own, or of all else.
  std::string place_of(bool experts) const {
    const std::vector<Factor> factors = factors_of(scenario_);
    std::string place;
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const bool divides = factors[f].axis == "tensor" ||
                           (experts && factors[f].table.of(SegmentKind::expert_up).kind == Split::Kind::by);
      if (divides)
        place += fmt::format("{}{} {}", place.empty() ? "" : ", ", factors[f].axis, coordinates_[f]);
    }
    // Ranks that average their weights train on their own in between.
    if (averages_) place += fmt::format("{}rank {}", place.empty() ? "" : ", ", rank_);
    return place;
  }

  long step_of(const OpCall& call) const { return call.step * steps_at_once_ + step_in_round_[call.op]; }

  // ----- data of the steps

  // Finishes the previous step if its losses are wanted now or if its data have to make room for this step's.
  void begin_step(const OpCall& call, long step, const std::function<void()>& settle) {
    if (step == step_) return;
    const bool reads = has_loss_ && on_loss;
    if (reads || !keeps_all_) {
      settle();
      end_step();
    }
    step_ = step;
    if (step > 0 && step % kept_ == 0 && !keeps_all_) make_batches(call.stream, step);
  }

  // Generates the data of `kept_` steps, beginning with step `first`.
  void make_batches(int stream, long first) {
    for (long step = first; step < std::min(first + kept_, steps_); ++step) make_batch(stream, step);
  }

  void make_batch(int stream, long step) {
    if (!makes_batch_) return;
    if (batch_) return batch_->load(stream, step, first_step_);
    // The samples of a step are numbered across all data-parallel ranks.
    std::vector<std::uint64_t> samples(samples_);
    const auto first = (static_cast<std::uint64_t>(first_step_ + step) *
                            static_cast<std::uint64_t>(scenario_.strategy.data) +
                        static_cast<std::uint64_t>(data_rank_)) *
                       samples_;
    for (std::uint64_t i = 0; i < samples_; ++i) samples[i] = first + i;
    network_->set_batch(stream, step, samples);
  }

  // Gives the network the batch that the op is the first to read.
  void take_batch(const OpCall& call) {
    if (const PreparedBatch* batch = input_->batch_for(call))
      network_->take_batch(call.stream, step_of(call), program_.ops[call.op].microbatch, batch->samples,
                           batch->rows);
  }

  double loss_of(long step) { return batch_ ? batch_->loss(step) : network_->take_loss(0, step); }

  void end_step() {
    if (step_ < 0 || !has_loss_) return;
    learned_.losses.push_back(loss_of(step_));
    if (on_loss) on_loss(learned_.losses.back());
  }

  std::uint64_t hash_of_all(int stream, Array (TrainedNetwork::*what)(LayerRange) const) {
    std::uint64_t hash = kHashBegin;
    for (const LayerRange& held : held_) hash = hash_of(arithmetic_, stream, ((*network_).*what)(held), hash);
    return hash;
  }

  const Scenario& scenario_;
  Arithmetic& arithmetic_;
  std::vector<int> coordinates_;  // of the rank on each factor
  std::string unsaved_;           // see why_not_saved()
  const bool check_replicas_;
  BatchInput* const input_;  // null: no ops load batches
  const int rank_;
  const Mesh& workers_;
  const Program& program_;
  const bool averages_;  // averages weights, once per schedule
  const bool gathers_;   // gathers outputs, for the loss of all ranks
  const int steps_at_once_;
  const long steps_;
  std::vector<int> step_in_round_;                            // by op
  std::map<int, std::unique_ptr<CompressedBucket>> buckets_;  // by tensor of gradients
  std::unique_ptr<TrainedNetwork> network_;
  // Coordinates of the members of a group on each factor.
  std::map<const CollectiveWiring*, std::vector<std::vector<int>>> members_;
  ValueTransfer under_way_;
  std::optional<ServerWeights> servers_;
  std::optional<ShardedWeights> shards_;
  std::optional<PartSums> part_sums_;
  std::optional<GatheredBatch> batch_;
  std::map<int, OwnedArray> arrays_;  // by tensor
  std::optional<OwnedArray> spare_;   // as large as the largest that is swapped
  std::vector<LayerRange> held_;
  std::uint64_t samples_ = 0;  // of this rank per step
  int data_rank_ = 0;
  long first_step_ = 0;                            // optimizer steps that were done before this run
  long step_ = -1, hashed_round_ = -1, kept_ = 1;  // kept_: number of steps whose data are stored
  bool makes_batch_ = false, keeps_all_ = true;    // keeps_all_: stores the data of all steps
  bool has_loss_ = false;
  Learned learned_;
};

}  // namespace

std::unique_ptr<Workload> training_workload(const Scenario& scenario, const Schedule& schedule,
                                            const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                            const TrainingOptions& options) {
  return std::make_unique<TrainingWorkload>(scenario, schedule, wiring, rank, arithmetic, options);
}

}  // namespace rehearse
