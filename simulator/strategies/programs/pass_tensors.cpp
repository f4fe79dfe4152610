#include "simulator/strategies/programs/pass_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

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
      double saved = 0;
      for (int i = layers.first; i <= layers.last; ++i) {
        const LayerCost& layer = plan_.layers[i];
        saved += layer.saved_bytes;
        transient = std::max(transient, plan_.transient_bytes[i]);
        tensors.recomputes = tensors.recomputes || !layer.recompute.empty();
        between = std::max(between, layer.output_bytes + (i > 0 ? plan_.layers[i - 1].output_bytes : 0));
      }
      add_chunk(tensors, static_cast<int>(c), saved);
    }
    tensors.between = add(TensorKind::activation_gradient, "gradients between layers", stage_.layers, between,
                          -1, training.precision);
    if (tensors.recomputes && !splits_backward_)
      tensors.recomputed = add(TensorKind::activation, "recomputed activations of a layer", stage_.layers,
                               transient, -1, training.precision);
    if (const double bytes = gathered_bytes(); bytes > 0)
      tensors.gathered =
          add(TensorKind::buffer, "gathered activations", stage_.layers, bytes, -1, training.precision);
    return tensors;
  }

private:
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

  void add_chunk(StageTensors& all, int number, double saved_bytes) {
    using enum TensorKind;
    const Training& training = plan_.scenario.training;
    const Chunk& chunk = stage_.chunks[static_cast<std::size_t>(number)];
    const LayerRange layers = chunk.layers;
    const bool first = chunk.before < 0, last = chunk.behind < 0;
    // The part before is the chunk before on this stage: what that one gives is read where it stands.
    const bool continues = !first && chunk.before == stage_.stage;
    double kept = 0, recomputed = 0;
    for (int i = layers.first; splits_backward_ && i <= layers.last; ++i) {
      kept += weight_gradient_inputs(i);
      recomputed += plan_.transient_bytes[i];
    }
    ChunkTensors tensors;
    for (int k = 0; k < plan_.scenario.microbatches; ++k) {
      const std::string of = item_text(stage_, {Pass::forward, k, number});
      tensors.activations.push_back(
          add(activation, "activations " + of, layers, saved_bytes, k, training.precision));
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
      const auto kept_for_weights = [&](TensorKind kind, const char* name, double bytes) {
        return splits_backward_ && bytes > 0 ? add(kind, name + of, layers, bytes, k, training.precision)
                                             : -1;
      };
      tensors.kept_gradients.push_back(kept_for_weights(activation_gradient, "gradients for weights ", kept));
      tensors.kept_recomputed.push_back(kept_for_weights(activation, "recomputed activations ", recomputed));
    }
    all.chunks.push_back(std::move(tensors));
  }

  // Gradients of what a layer's segments with weights give, in the placement in which products read them. A
  // block of a convolutional network does not tell what lies between its kernels: the gradient of its output
  // stands for it. A profile tells nothing of what it keeps.
  double weight_gradient_inputs(int number) const {
    if (std::holds_alternative<ProfiledModel>(plan_.scenario.model.shape)) return 0;
    const Layer& layer = plan_.model[static_cast<std::size_t>(number)];
    double bytes = 0;
    for (const Segment& segment : layer.segments) {
      // The bias of a row product needs what the product needs.
      if (segment.cost.backward_weight.empty() || segment.kind == SegmentKind::residual) continue;
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

  // Of the largest tensor that is gathered from shards: the stage uses the same memory for all.
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
  if (std::holds_alternative<ProfiledModel>(plan.scenario.model.shape)) return bytes;
  return bytes * element_bytes(training.activation_precision) / element_bytes(training.precision);
}

std::string item_text(const StageProgram& stage, const PassItem& item) {
  std::string text = fmt::format("{}", item.microbatch);
  if (stage.chunks.size() > 1) text += fmt::format(", chunk {}", item.chunk);
  return text;
}

}  // namespace rehearse
