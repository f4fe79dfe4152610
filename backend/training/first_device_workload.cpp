#include "backend/training/first_device_workload.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "backend/training/perceptron.hpp"
#include "backend/training/workload_parts.hpp"

namespace rehearse {
namespace {

// What the first device keeps of all devices, device after device.
struct Together {
  OwnedArray logits, gradients;
  EqualArrays inputs, labels, losses;  // by kept step and micro-batch
};

class ParallelDevice : public Workload {
public:
  ParallelDevice(const Scenario& scenario, const Schedule& schedule, const Wiring& wiring, int rank,
                 Arithmetic& arithmetic, const TrainingOptions& training)
      : arithmetic_(arithmetic),
        check_replicas_(training.check_replicas),
        program_(schedule.programs[wiring.communication().program_of_rank(rank)]),
        devices_(scenario.strategy.data),
        microbatches_(scenario.microbatches),
        samples_(std::lround(scenario.training.micro_batch)),
        widths_(shape_of(scenario).widths),
        all_layers_{0, static_cast<int>(widths_.size()) - 2},
        data_(scenario.run.seed, std::lround(widths_.front()), std::lround(widths_.back())),
        perceptron_(arithmetic, shape_of(scenario), options(scenario, rank == 0)) {
    number_microbatches();
    if (rank > 0) return;
    is_first_ = true;
    const auto of_all = [&](double per_sample) {
      return OwnedArray(arithmetic, devices_ * elements(per_sample), Precision::fp32);
    };
    together_.logits = of_all(widths_.back());
    together_.gradients = of_all(widths_.back());
    const auto of_step = [&](double per_sample) {
      return static_cast<double>(
          EqualArrays::stride(static_cast<std::size_t>(devices_) * elements(per_sample)));
    };
    kept_ = kept_steps(training, training.repeats,
                       kElementBytes * (of_step(widths_.front()) + 2 * of_step(1)) * microbatches_);
    keeps_all_ = kept_ >= training.repeats;
    const auto of_steps = [&](double per_sample) {
      return EqualArrays(arithmetic, static_cast<std::size_t>(kept_ * microbatches_),
                         static_cast<std::size_t>(devices_) * elements(per_sample), Precision::fp32);
    };
    together_.inputs = of_steps(widths_.front());
    together_.labels = of_steps(1);
    together_.losses = of_steps(1);
    for (long step = 0; keeps_all_ && step < training.repeats; ++step)
      for (int k = 0; k < microbatches_; ++k) load(0, step, k);
    arithmetic.settle(0);
  }

  void prepare(const OpCall& call, const std::function<void()>& settle) override {
    if (call.step != step_) {
      const bool reads = is_first_ && (on_loss || !keeps_all_);
      if (reads) settle();
      if (reads && step_ >= 0) tell_loss(step_);
      step_ = call.step;
      for (int k = 0; is_first_ && !keeps_all_ && k < microbatches_; ++k) load(call.stream, step_, k);
    }
    // Weights have come when the step's first forward pass begins.
    if (!check_replicas_ || hashed_step_ == call.step ||
        program_.ops[call.op].action.kind != Action::Kind::forward)
      return;
    hashed_step_ = call.step;
    settle();
    learned_.weights = hash_of(arithmetic_, call.stream, perceptron_.weights(all_layers_), kHashBegin);
    learned_.gradients.push_back(learned_.weights);
  }

  void compute(const OpCall& call) override {
    const Op& op = program_.ops[call.op];
    const int k = microbatch_[call.op];
    if (op.action.kind == Action::Kind::forward) {
      const Array input = perceptron_.input(call.step, k);  // the others' came as a message
      if (is_first_) arithmetic_.copy(call.stream, of_device(inputs(call.step, k), 0), input);
      perceptron_.forward(call.stream, call.step, k, all_layers_);
    }
    if (op.action.kind == Action::Kind::loss) take_loss(call, k);
    if (op.action.kind == Action::Kind::backward)
      perceptron_.backward(call.stream, call.step, k, all_layers_);
    if (is_update(op)) perceptron_.update(call.stream, all_layers_);
  }

  // The first device's message number m is the one with device m + 1.
  Payload message(const OpCall& call, const ExchangePart& part) override {
    const int k = microbatch_[call.op];
    const auto device = static_cast<std::size_t>(is_first_ ? part.message + 1 : 0);
    const std::string& what = program_.tensors[tensor_of(program_.ops[call.op], part.message)].name;
    if (what == "inputs") {
      if (!is_first_) return payload(perceptron_.input(call.step, k));
      return payload(of_device(inputs(call.step, k), device));
    }
    if (what == "outputs")
      return payload(is_first_ ? of_device(together_.logits, device)
                               : perceptron_.activation(k, all_layers_.last));
    return payload(is_first_ ? of_device(together_.gradients, device)
                             : perceptron_.activation_gradient(k, all_layers_.last));
  }

  Payload collective(const OpCall& call, const CollectiveWiring&) override {
    const Tensor& tensor = program_.tensors[program_.ops[call.op].writes.front()];
    return payload(tensor.kind == TensorKind::weight ? perceptron_.weights(all_layers_)
                                                     : perceptron_.gradients(all_layers_));
  }

  bool tells_losses() const override { return is_first_; }

  Learned learned() override {
    const bool told = on_loss || !keeps_all_;
    for (long step = told ? step_ : 0; is_first_ && step_ >= 0 && step <= step_; ++step) tell_loss(step);
    return std::move(learned_);
  }

private:
  static PerceptronOptions options(const Scenario& scenario, bool first) {
    const int layers = static_cast<int>(shape_of(scenario).widths.size()) - 1;
    PerceptronOptions options = perceptron_options(scenario, {{0, layers - 1}}, scenario.strategy.data);
    options.loss_elsewhere = true;
    options.sum_microbatches = first;  // what others have computed is in the first one's sum already
    return options;
  }

  // Ops of one kind that stand one after the other belong to one micro-batch after the other.
  void number_microbatches() {
    std::map<std::string, int> count;
    for (const Op& op : program_.ops) {
      std::string kind = op.name.substr(0, op.name.rfind(' '));
      microbatch_.push_back(op.microbatch >= 0 ? op.microbatch : count[kind]++);
    }
  }

  std::size_t elements(double per_sample) const {
    return static_cast<std::size_t>(samples_ * std::lround(per_sample));
  }
  Array of_device(const Array& all, std::size_t device) const {
    const std::size_t each = all.elements / static_cast<std::size_t>(devices_);
    return all.part(device * each, each);
  }

  std::size_t slot(long step, int microbatch) const {
    return static_cast<std::size_t>(step % kept_ * microbatches_ + microbatch);
  }
  Array inputs(long step, int microbatch) const { return together_.inputs[slot(step, microbatch)]; }

  void tell_loss(long step) {
    double sum = 0;
    std::vector<float> losses(static_cast<std::size_t>(devices_ * samples_));
    for (int k = 0; k < microbatches_; ++k) {
      arithmetic_.copy_to_host(0, together_.losses[slot(step, k)], losses.data());
      sum = std::accumulate(losses.begin(), losses.end(), sum);
    }
    learned_.losses.push_back(sum);
    if (on_loss) on_loss(sum);
  }

  // The samples of all devices for a micro-batch, numbered as those of data-parallel ranks are.
  void load(int stream, long step, int microbatch) {
    const auto features = static_cast<std::size_t>(std::lround(widths_.front()));
    const auto samples = static_cast<std::size_t>(samples_);
    std::vector<float> inputs(static_cast<std::size_t>(devices_) * samples * features);
    std::vector<float> labels(static_cast<std::size_t>(devices_) * samples);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::uint64_t batch =
          static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(devices_) + i / samples;
      const std::uint64_t sample =
          (batch * static_cast<std::uint64_t>(microbatches_) + static_cast<std::uint64_t>(microbatch)) *
              samples +
          i % samples;
      data_.features(sample, &inputs[i * features]);
      labels[i] = static_cast<float>(data_.label(sample));
    }
    arithmetic_.copy_to_device(stream, inputs.data(), together_.inputs[slot(step, microbatch)]);
    arithmetic_.copy_to_device(stream, labels.data(), together_.labels[slot(step, microbatch)]);
  }

  void take_loss(const OpCall& call, int microbatch) {
    const Array own = perceptron_.activation(microbatch, all_layers_.last);
    arithmetic_.copy(call.stream, own, of_device(together_.logits, 0));
    const double batch = static_cast<double>(devices_) * microbatches_ * static_cast<double>(samples_);
    arithmetic_.softmax_cross_entropy(
        call.stream, together_.logits, together_.labels[slot(call.step, microbatch)],
        static_cast<float>(1 / batch), together_.losses[slot(call.step, microbatch)], together_.gradients);
    arithmetic_.copy(call.stream, of_device(together_.gradients, 0),
                     perceptron_.activation_gradient(microbatch, all_layers_.last));
  }

  Arithmetic& arithmetic_;
  const bool check_replicas_;
  const Program& program_;
  const int devices_, microbatches_;
  const long samples_;  // of a device in a micro-batch
  const std::vector<double> widths_;
  const LayerRange all_layers_;
  const SampleData data_;
  Perceptron perceptron_;
  std::vector<int> microbatch_;  // by op
  bool is_first_ = false;
  Together together_;
  long step_ = -1, hashed_step_ = -1, kept_ = 1;  // kept: steps whose data are on the device
  bool keeps_all_ = true;
  Learned learned_;
};

}  // namespace

std::unique_ptr<Workload> first_device_workload(const Scenario& scenario, const Schedule& schedule,
                                                const Wiring& wiring, int rank, Arithmetic& arithmetic,
                                                const TrainingOptions& options) {
  return std::make_unique<ParallelDevice>(scenario, schedule, wiring, rank, arithmetic, options);
}

}  // namespace rehearse
