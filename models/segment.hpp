// Represents a layer as a list of segments: sequences of kernels between two points where a parallel axis can
// change the placement of the tensors between them.
#pragma once

#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/segment_kind.hpp"

namespace rehearse {

// A tensor between segments, for one micro-batch.
struct Value {
  Dims dims;
  double elements = 0;       // of the complete tensor, before any axis splits it
  double element = 2;        // bytes per element
  bool has_gradient = true;  // false for token numbers and the maximum of the loss
};

// Attention to the keys and values of one rank of the ring.
struct RingStep {
  std::vector<Kernel> forward, backward;
  double seen = 0;    // maximum number of keys that a query attends to
  double masked = 1;  // ratio of the model's FLOPs, which count masked scores, to the computed ones
  // Ranks before this one in the ring have nothing to compute: these keys come after all their queries.
  int first_rank = 0;
};

struct Segment {
  SegmentKind kind = SegmentKind::block;
  std::vector<int> inputs, outputs;  // numbers of the layer's values
  // What one device computes and saves under the given splits. Its name is empty and output_bytes is 0.
  LayerCost cost;
  // For ring attention: one step for each rank's keys and values, its own first. `cost` is their sum,
  // averaged over the ranks.
  std::vector<RingStep> steps = {};
};

// Value 0 is the layer's input (in the first layer, the batch); its output is the first output of the last
// segment.
struct Layer {
  std::string name;
  std::vector<Value> values;
  std::vector<Segment> segments;
  double output_bytes = 0;  // on one device
  bool recomputed = false;  // all of it is repeated before the backward pass
  // Inputs that recomputation gathers from shards are held until the backward pass has read them.
  bool holds_gathered = false;

  int output() const { return segments.back().outputs.empty() ? -1 : segments.back().outputs.front(); }
};

// Returns the layers of one micro-batch, in the order of the forward pass, on one device of `pass.splits`.
std::vector<Layer> model_layers(const Model& model, const PassShape& pass);

// Whether a split backward pass leaves the gradients of the segment's weights to its second part. It does so
// for products, because only they take long and can wait while little memory is held. The gradients of norms,
// biases and look-ups are in the first part, as in the code of Qi et al., "Zero Bubble Pipeline Parallelism"
// (arXiv 2401.10241), which splits only linear layers. Measured times are split as measured.
bool leaves_weights(const Segment& segment);

// Merges all segments of a layer, pass by pass, in the order of the segments.
LayerCost merged(const Layer& layer);

}  // namespace rehearse
