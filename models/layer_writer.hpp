// Writes a layer segment by segment.
#pragma once

#include <utility>
#include <vector>

#include "models/segment.hpp"

namespace rehearse {

class LayerWriter {
public:
  // Makes the layer's input value 0.
  LayerWriter(std::string name, Value input) {
    layer_.name = std::move(name);
    layer_.values.push_back(input);
  }

  // Adds a segment with one output per element of `outputs`. The caller must fill in its cost before the next
  // segment is added.
  LayerCost& add(SegmentKind kind, std::vector<int> inputs, const std::vector<Value>& outputs) {
    Segment& segment = layer_.segments.emplace_back();
    segment.kind = kind;
    segment.inputs = std::move(inputs);
    for (const Value& value : outputs) {
      segment.outputs.push_back(static_cast<int>(layer_.values.size()));
      layer_.values.push_back(value);
    }
    return segment.cost;
  }
  int last() const { return static_cast<int>(layer_.values.size()) - 1; }  // the last value written

  Layer take(double output_bytes) {
    layer_.output_bytes = output_bytes;
    return std::move(layer_);
  }
  Layer& layer() { return layer_; }

private:
  Layer layer_;
};

}  // namespace rehearse
