// A layer as a list of segments: runs of kernels between two points where a parallel axis may change how the
// tensors between them lie on devices.
#pragma once

#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/segment_kind.hpp"

namespace rehearse {

// A tensor between segments, for one micro-batch.
struct Value {
  Dims dims;
  double elements = 0;       // of the whole tensor, before any axis splits it
  double element = 2;        // bytes of one
  bool has_gradient = true;  // token numbers and the loss' maximum have none
};

// Attention to the keys and values of one rank of the ring.
struct RingStep {
  std::vector<Kernel> forward, backward;
  double seen = 0;    // keys that a query sees, at most
  double masked = 1;  // the model's FLOPs, which count masked scores, are so many times those computed
  // Ranks with a lower number in the ring have nothing to compute: the keys are behind all their queries.
  int first_rank = 0;
};

struct Segment {
  SegmentKind kind = SegmentKind::block;
  std::vector<int> inputs, outputs;  // values of the layer
  // What one device of the splits computes and keeps. Its name is empty, output_bytes are 0.
  LayerCost cost;
  // Attention in a ring: its parts, one for each rank's keys and values, the own ones first. `cost` is what
  // they add up to, a mean over the ranks.
  std::vector<RingStep> steps = {};
};

// Value 0 is the layer's input (the batch, in the first layer); the last segment's first output is its
// output.
struct Layer {
  std::string name;
  std::vector<Value> values;
  std::vector<Segment> segments;
  double output_bytes = 0;  // on one device
  bool recomputed = false;  // all of it runs again before the backward pass
  // Inputs that recomputation gathers from shards are held until the backward pass has read them.
  bool holds_gathered = false;

  int output() const { return segments.back().outputs.empty() ? -1 : segments.back().outputs.front(); }
};

// The layers of one micro-batch, in order of the forward pass, on one device of `pass.splits`.
std::vector<Layer> model_layers(const Model& model, const PassShape& pass);

// Whether a backward pass that is split leaves the gradients of the segment's weights to its second part.
// Those that are products are left, since only they take long and can wait with little kept: the gradients of
// norms, biases and look-ups stand in the first part, as in the code of Qi et al., "Zero Bubble Pipeline
// Parallelism" (arXiv 2401.10241), which splits linear layers only. Measured times are split as measured.
bool leaves_weights(const Segment& segment);

// All segments of a layer as one: kernels pass by pass, in the order of the segments.
LayerCost merged(const Layer& layer);

}  // namespace rehearse
