#include "simulator/strategies/programs/pass_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace rehearse {
namespace {

class TensorWriter {
public:
  TensorWriter(const StepPlan& plan, StageProgram& stage)
      : plan_(plan),
        stage_(stage),
        walk_(plan.walk),
        splits_backward_(order_of(plan.scenario.strategy.schedule).splits_backward) {}

  StageTensors write() {
    const Training& training = plan_.scenario.training;
    StageTensors tensors;
    double transient = 0, between = 0;
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      const LayerRange layers = stage_.chunks[c].layers;
      // What the loss saved is free when the backward pass comes to the layers before it.
      double saved = 0, copies = 0;
      const double free = plan_.layers[layers.last].loss_saved_bytes;
      for (int i = layers.first; i <= layers.last; ++i) {
        const LayerCost& layer = plan_.layers[i];
        transient = std::max(transient, plan_.transient_bytes[i] - left_to_weights(i).recomputed);
        tensors.recomputes = tensors.recomputes || !layer.recompute.empty();
        const double working = layer.logits > 0 ? layer.working_bytes : layer.working_bytes - free;
        between = std::max(between, layer.output_bytes + std::max(0.0, working) +
                                        (i > 0 ? plan_.layers[i - 1].output_bytes : 0));
        saved += layer.saved_bytes;
        copies += gradient_copy_bytes(i);
      }
      // Copies of gradients grow while what was saved is given free.
      between = std::max(between, copies - saved);
      add_chunk(tensors, static_cast<int>(c));
    }
    tensors.between = add(TensorKind::activation_gradient, "gradients between layers", stage_.layers, between,
                          -1, training.precision);
    if (tensors.recomputes)
      tensors.recomputed = add(TensorKind::activation, "recomputed activations of a layer", stage_.layers,
                               transient, -1, training.precision);
    if (const double bytes = gathered_bytes(); bytes > 0) {
      const auto buffer = [&](const char* name) {
        return add(TensorKind::buffer, name, stage_.layers, bytes, -1, training.precision);
      };
      tensors.gathered.fill(buffer("gathered activations"));
      if (plan_.scenario.strategy.overlap_passes)
        tensors.gathered[1] = buffer("gathered activations (backward)");
      if (plan_.scenario.framework.held_gather_buffers) {
        for (const int gathered : tensors.gathered)
          stage_.program.tensors[static_cast<std::size_t>(gathered)].kept = true;
        stage_.program.tensors[static_cast<std::size_t>(buffer("gathered gradients"))].kept = true;
      }
    }
    return tensors;
  }

private:
  // Returns the bytes of a layer's gradients that a backward pass makes and that are gone after it, because
  // they were added to sums. DistributedDataParallel's buckets take those of the last micro-batch.
  double gradient_copy_bytes(int layer) const {
    const Scenario& scenario = plan_.scenario;
    if (gradient_ranks(plan_) > 1 && scenario.microbatches == 1) return 0;
    return scenario.framework.gradient_copy_bytes.value * plan_.layers[layer].parameters;
  }

  int add(TensorKind kind, const std::string& name, LayerRange layers, double bytes, int microbatch,
          Precision type) {
    Tensor t;
    t.kind = kind;
    t.name = name;
    t.first_layer = layers.first;
    t.last_layer = layers.last;
    t.microbatch = microbatch;
    t.type = type;
    t.bytes = bytes;
    return add_tensor(stage_.program, std::move(t));
  }

  void add_chunk(StageTensors& all, int number) {
    using enum TensorKind;
    const Training& training = plan_.scenario.training;
    const Chunk& chunk = stage_.chunks[static_cast<std::size_t>(number)];
    const LayerRange layers = chunk.layers;
    const bool first = chunk.before < 0, last = chunk.behind < 0;
    // If this stage also holds the part before, its output is read in place.
    const bool continues = !first && chunk.before == stage_.stage;
    double saved = 0, saved_for_inputs = 0, kept = 0, recomputed = 0;
    for (int i = layers.first; i <= layers.last; ++i) {
      if (!splits_backward_) {
        saved += plan_.layers[i].saved_bytes;
        continue;
      }
      const LeftToWeights left = left_to_weights(i);
      saved += left.saved;
      saved_for_inputs += plan_.layers[i].saved_bytes - left.saved;
      kept += weight_gradient_inputs(i);
      recomputed += left.recomputed;
    }
    ChunkTensors tensors;
    for (int k = 0; k < plan_.scenario.microbatches; ++k) {
      const std::string of = item_text(stage_, {Pass::forward, k, number});
      tensors.activations.push_back(
          add(activation, "activations " + of, layers, saved, k, training.precision));
      const auto at_boundary = [&](TensorKind kind, const char* name, bool here, int layer, bool sent) {
        if (!here) return -1;
        const int tensor =
            add(kind, name + of, layers, boundary_bytes(plan_, layer), k, training.activation_precision);
        if (sent) stage_.program.tensors[tensor].boundary = layer;
        return tensor;
      };
      const ChunkTensors* before = continues ? &all.chunks.back() : nullptr;
      const bool goes_on = !last && chunk.behind == stage_.stage;
      tensors.input.push_back(before ? before->output[k]
                                     : at_boundary(buffer, "input ", !first, layers.first - 1, true));
      tensors.output.push_back(at_boundary(buffer, "output ", !last, layers.last, !goes_on));
      tensors.output_gradient.push_back(
          at_boundary(activation_gradient, "output gradient ", !last, layers.last, !goes_on));
      tensors.input_gradient.push_back(
          before ? before->output_gradient[k]
                 : at_boundary(activation_gradient, "input gradient ", !first, layers.first - 1, true));
      const auto if_split = [&](TensorKind kind, const char* name, double bytes) {
        return splits_backward_ && bytes > 0 ? add(kind, name + of, layers, bytes, k, training.precision)
                                             : -1;
      };
      tensors.input_activations.push_back(
          if_split(activation, "activations of the input part ", saved_for_inputs));
      tensors.kept_gradients.push_back(if_split(activation_gradient, "gradients for weights ", kept));
      tensors.kept_recomputed.push_back(if_split(activation, "recomputed activations ", recomputed));
    }
    all.chunks.push_back(std::move(tensors));
  }

  bool is_profiled() const { return rehearse::is_profiled(plan_.scenario.model); }

  // Returns the bytes of the gradients of the outputs of a layer's products with weights, in the placement in
  // which they are read. A block of a convolutional network does not say what is between its kernels: the
  // gradient of its output is used instead. A profile does not say what it retains, so it counts 0.
  double weight_gradient_inputs(int number) const {
    if (is_profiled()) return 0;
    const Layer& layer = plan_.model[static_cast<std::size_t>(number)];
    double bytes = 0;
    for (const Segment& segment : layer.segments) {
      if (!leaves_weights(segment)) continue;
      for (std::size_t o = 0; o < segment.outputs.size(); ++o) {
        const Value& value = layer.values[static_cast<std::size_t>(segment.outputs[o])];
        if (!value.has_gradient) continue;
        double elements = value.elements;
        for (const Factor& factor : walk_.factors)
          if (output_use(layer, segment, static_cast<int>(o), factor.table).gradient.kind ==
              Placement::Kind::sharded)
            elements /= factor.size;
        bytes += elements * value.element;
      }
    }
    return bytes;
  }

  // Returns the retained bytes of the inputs of a layer's products with weights, each counted once, no matter
  // how many segments read it. A block does not say which of its saved bytes these are, so all of them count
  // (infinity).
  double inputs_of_products(int number) const {
    const Layer& layer = plan_.model[static_cast<std::size_t>(number)];
    std::vector<bool> counted(layer.values.size(), false);
    double bytes = 0;
    for (const Segment& segment : layer.segments) {
      if (!leaves_weights(segment)) continue;
      if (segment.kind == SegmentKind::block) return std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
        const auto input = static_cast<std::size_t>(segment.inputs[i]);
        if (counted[input]) continue;
        counted[input] = true;
        double elements = layer.values[input].elements;
        for (const Factor& factor : walk_.factors)
          if (is_kept_in_shards(layer, segment, static_cast<int>(i), factor)) elements /= factor.size;
        bytes += elements * layer.values[input].element;
      }
    }
    return bytes;
  }

  // A product that gathers its input from shards can retain only its own shard.
  static bool is_kept_in_shards(const Layer& layer, const Segment& reader, int input, const Factor& factor) {
    if (input_use(layer, reader, input, factor.table).as.kind == Placement::Kind::sharded) return true;
    if (!factor.keeps_shards) return false;
    const int value = reader.inputs[static_cast<std::size_t>(input)];
    for (const Segment& maker : layer.segments)
      for (std::size_t o = 0; o < maker.outputs.size(); ++o)
        if (maker.outputs[o] == value)
          return output_use(layer, maker, static_cast<int>(o), factor.table).as.kind ==
                 Placement::Kind::sharded;
    return false;
  }

  // What the weight part of a layer's split backward pass reads of the saved and of the recomputed
  // activations, in bytes.
  struct LeftToWeights {
    double saved = 0, recomputed = 0;
  };
  LeftToWeights left_to_weights(int number) const {
    if (!splits_backward_) return {};
    const double saved = plan_.layers[number].saved_bytes, again = plan_.transient_bytes[number];
    const double wanted = is_profiled() ? saved : inputs_of_products(number);
    const Layer& layer = plan_.model[static_cast<std::size_t>(number)];
    if (layer.recomputed || layer.holds_gathered) return {0, std::min(wanted, again)};
    return {std::min(wanted, saved), 0};
  }

  // Returns the bytes of the largest tensor that is gathered from shards: the stage uses the same memory for
  // all of them.
  double gathered_bytes() const {
    double most = 0;
    for (const Chunk& chunk : stage_.chunks)
      for (int s = walk_.first_segment[chunk.layers.first] + 1;
           s <= walk_.first_segment[chunk.layers.last + 1]; ++s)
        for (const auto* side : {&walk_.sites[s].forward, &walk_.sites[s].backward, &walk_.sites[s].again,
                                 &walk_.sites[s].again_for_inputs})
          for (const ValueChange& change : *side)
            if (change.change.kind == Change::Kind::all_gather)
              most = std::max(most, change.change.elements * change.element);
    return most;
  }

  const StepPlan& plan_;
  StageProgram& stage_;
  const Walk& walk_;
  const bool splits_backward_;
};

}  // namespace

StageTensors add_pass_tensors(const StepPlan& plan, StageProgram& stage) {
  return TensorWriter(plan, stage).write();
}

double boundary_bytes(const StepPlan& plan, int layer) {
  const Training& training = plan.scenario.training;
  const Walk& walk = plan.walk;
  double bytes = plan.layers[layer].output_bytes;
  if (!walk.factors.empty()) {
    const Layer& its_layer = plan.model[static_cast<std::size_t>(layer)];
    const Value& output = its_layer.values[static_cast<std::size_t>(its_layer.output())];
    bytes = output.elements * output.element / walk.output_shards[static_cast<std::size_t>(layer)];
  }
  if (is_profiled(plan.scenario.model)) return bytes;
  return bytes * element_bytes(training.activation_precision) / element_bytes(training.precision);
}

std::string item_text(const StageProgram& stage, const PassItem& item) {
  std::string text = fmt::format("{}", item.microbatch);
  if (stage.chunks.size() > 1) text += fmt::format(", chunk {}", item.chunk);
  return text;
}

std::string bucket_text(std::string_view what, const PassItem& item, const Bucket& bucket) {
  return fmt::format("{} {} {}, {}", what, kPassNames[static_cast<std::size_t>(item.pass)], item.microbatch,
                     layers_text(bucket));
}

}  // namespace rehearse
