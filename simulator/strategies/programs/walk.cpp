#include "simulator/strategies/programs/walk.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse {
namespace {

// The readers of a tensor that read it in the same placement.
struct Target {
  Placements as, gradient;
  int first = 0, last = 0;  // the range of these segments of the walk
  bool trains = false;      // one of them has weights, whose gradients need the tensor again
  bool attends = false;     // one of them is attention, whose inputs' gradients need the tensor again
};

class WalkWriter {
public:
  WalkWriter(const std::vector<Layer>& layers, std::vector<Factor> factors,
             const std::vector<int>& last_of_stage)
      : layers_(layers), leaves_stage_(layers.size(), false) {
    for (const int layer : last_of_stage) leaves_stage_[static_cast<std::size_t>(layer)] = true;
    walk_.factors = std::move(factors);
    for (const Factor& factor : walk_.factors) sizes_.push_back(factor.size);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      walk_.first_segment.push_back(static_cast<int>(walk_.segments.size()));
      for (const Segment& segment : layers[l].segments) {
        walk_.segments.push_back(&segment);
        walk_.layer_of.push_back(static_cast<int>(l));
      }
    }
    walk_.first_segment.push_back(static_cast<int>(walk_.segments.size()));
    walk_.sites.resize(walk_.segments.size() + 1);
    walk_.output_shards.assign(layers.size(), 1);
  }

  Walk write() {
    if (walk_.factors.empty()) return std::move(walk_);
    for (int l = 0; l < static_cast<int>(layers_.size()); ++l)
      for (int s = walk_.first_segment[l]; s < walk_.first_segment[l + 1]; ++s) {
        const Segment& segment = *walk_.segments[s];
        for (std::size_t o = 0; o < segment.outputs.size(); ++o) add_output(l, s, static_cast<int>(o));
        add_partial_gradient(l, segment);
      }
    return std::move(walk_);
  }

private:
  Placements by_factor(const auto& use) const {
    Placements placements;
    for (const Factor& factor : walk_.factors) placements.push_back(use(factor.table));
    return placements;
  }

  // Adds the layer's readers of a value, starting at segment `from`.
  void add_readers(int layer, int from, int value, std::vector<Target>& targets) const {
    for (int s = std::max(from, walk_.first_segment[layer]); s < walk_.first_segment[layer + 1]; ++s) {
      const Segment& segment = *walk_.segments[s];
      for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
        if (segment.inputs[i] != value) continue;
        const auto use = [&](const AxisTable& table) {
          return input_use(layers_[layer], segment, static_cast<int>(i), table);
        };
        Target target{by_factor([&](const AxisTable& t) { return use(t).as; }),
                      by_factor([&](const AxisTable& t) { return use(t).gradient; }),
                      s,
                      s,
                      segment.cost.parameters > 0 || !segment.cost.backward_weight.empty(),
                      segment.kind == SegmentKind::attention};
        const auto same = std::find_if(targets.begin(), targets.end(),
                                       [&](const Target& other) { return other.as == target.as; });
        if (same == targets.end()) {
          targets.push_back(std::move(target));
          continue;
        }
        same->last = s;
        same->trains = same->trains || target.trains;
        same->attends = same->attends || target.attends;
        // Gradients are added in the weakest placement: a gradient that is replicated counts as a partial sum
        // on one rank.
        for (std::size_t f = 0; f < same->gradient.size(); ++f)
          if (target.gradient[f].kind == Placement::Kind::partial) same->gradient[f] = target.gradient[f];
      }
    }
  }

  void add_output(int layer, int segment_number, int output) {
    const Layer& its_layer = layers_[layer];
    const Segment& segment = *walk_.segments[segment_number];
    const int number = segment.outputs[static_cast<std::size_t>(output)];
    const Value& value = its_layer.values[static_cast<std::size_t>(number)];
    const auto use = [&](const AxisTable& table) { return output_use(its_layer, segment, output, table); };
    const Placements as = by_factor([&](const AxisTable& t) { return use(t).as; });
    const Placements gradient = by_factor([&](const AxisTable& t) { return use(t).gradient; });

    std::vector<Target> targets;
    add_readers(layer, segment_number + 1, number, targets);
    const bool leaves = number == its_layer.output() && layer + 1 < static_cast<int>(layers_.size());
    const int next_layer = walk_.first_segment[layer + 1];
    if (leaves) add_readers(layer + 1, 0, 0, targets);
    bool told_shards = false;
    for (const Target& target : targets) {
      const bool between = target.first >= next_layer;
      const bool to_stage = between && leaves_stage_[static_cast<std::size_t>(layer)];
      const Placements sent = sent_as(as, target.as, to_stage, value);
      for (std::size_t f = 0; between && !told_shards && f < as.size(); ++f)
        if (sent[f].kind == Placement::Kind::sharded) walk_.output_shards[layer] *= sizes_[f];
      told_shards = told_shards || between;
      const int at = between ? next_layer : target.first;
      const int route = static_cast<int>(walk_.routes.size());
      const bool in_any_order = value.dims.has(Dim::routed);
      const auto told = [&](std::vector<ValueChange>& where, const std::vector<Change>& all) {
        for (std::size_t step = 0; step < all.size(); ++step) {
          const Change& change = all[step];
          if (costs_nothing(change.kind)) continue;
          where.push_back(
              {change, layer, number, value.element, segment.kind,
               fmt::format("layer {} {}", layer, kSegmentNames[static_cast<std::size_t>(segment.kind)]),
               route, static_cast<int>(step)});
        }
      };
      walk_.routes.push_back({layer,
                              number,
                              as,
                              target.as,
                              target.gradient,
                              gradient,
                              target.first,
                              target.last,
                              {},
                              {},
                              {},
                              {}});
      ValueRoute& way = walk_.routes.back();
      ByWayOf there = changes_by_way_of(sent, as, target.as, value, in_any_order);
      way.forward = std::move(there.changes);
      way.forward_by_way_of = std::move(there.by_way_of);
      way.forward_before = there.before;
      if (value.has_gradient) {
        ByWayOf back = changes_by_way_of(sent_as(target.gradient, gradient, to_stage, value), target.gradient,
                                         gradient, value, in_any_order);
        way.backward = std::move(back.changes);
        way.backward_by_way_of = std::move(back.by_way_of);
        way.backward_before = back.before;
      }
      Site& site = walk_.sites[static_cast<std::size_t>(at)];
      const std::size_t before = site.forward.size();
      told(site.forward, way.forward);
      site.repeated = site.repeated || (!between && its_layer.recomputed);
      const bool gathered =
          site.forward.size() > before && site.forward.back().change.kind == Change::Kind::all_gather;
      const bool keeps = gathered && keeps_shards(site.forward.back().change);
      const bool reader_again = !walk_.segments[target.first]->cost.recompute.empty();
      if (keeps && target.attends && reader_again) site.repeated = true;
      // Recomputation gathers the input of a product once, and it is held for the gradients of the weights.
      const bool held = keeps && !between && its_layer.holds_gathered && target.trains &&
                        again_in(target.first, target.last);
      if (held) site.repeated = true;
      if (gathered && target.attends && in_ring(site.forward.back().change)) {
        site.ring = std::move(site.forward.back());
        site.forward.pop_back();
        Site& behind = walk_.sites[static_cast<std::size_t>(at) + 1];
        behind.behind_ring = true;
        behind.repeated = behind.repeated || site.repeated;
        continue;
      }
      if (keeps && !held && value.has_gradient) {
        Site& again = walk_.sites[static_cast<std::size_t>(target.last) + 1];
        if (target.attends)
          again.again_for_inputs.push_back(site.forward.back());
        else if (target.trains)
          again.again.push_back(site.forward.back());
      }
      told(site.backward, way.backward);
    }
  }

  // Returns the placement in which a tensor is passed on: its producer reduces terms, its consumer gathers
  // shards.
  Placements sent_as(const Placements& made, const Placements& read, bool to_stage,
                     const Value& value) const {
    Placements sent;
    for (std::size_t f = 0; f < made.size(); ++f) {
      sent.push_back(made[f].kind == Placement::Kind::partial ? read[f] : made[f]);
      if (to_stage && walk_.factors[f].scatters_between_stages && value.dims.has(Dim::sequence) &&
          sent[f].kind == Placement::Kind::replicated)
        sent[f] = {Placement::Kind::sharded, Dim::sequence};
    }
    return sent;
  }

  // As in ValueRoute.
  struct ByWayOf {
    std::vector<Change> changes;
    Placements by_way_of;
    int before = 0;
  };
  ByWayOf changes_by_way_of(const Placements& sent, const Placements& made, const Placements& read,
                            const Value& value, bool in_any_order) const {
    bool scattered = false;
    for (std::size_t f = 0; f < sent.size(); ++f)
      scattered = scattered || !(sent[f] == made[f] || sent[f] == read[f]);
    if (!scattered) return {changes(made, read, sizes_, value.elements, in_any_order), {}, 0};
    ByWayOf way{changes(made, sent, sizes_, value.elements, in_any_order), sent, 0};
    way.before = static_cast<int>(way.changes.size());
    for (Change& change : changes(sent, read, sizes_, value.elements, in_any_order))
      way.changes.push_back(std::move(change));
    return way;
  }

  // Returns whether recomputation repeats a part of one of these segments.
  bool again_in(int first, int last) const {
    return std::any_of(walk_.segments.begin() + first, walk_.segments.begin() + last + 1,
                       [](const Segment* segment) { return !segment->cost.recompute.empty(); });
  }

  bool keeps_shards(const Change& change) const {
    return std::all_of(change.factors.begin(), change.factors.end(),
                       [&](int f) { return walk_.factors[static_cast<std::size_t>(f)].keeps_shards; });
  }
  bool in_ring(const Change& change) const {
    return std::all_of(change.factors.begin(), change.factors.end(),
                       [&](int f) { return walk_.factors[static_cast<std::size_t>(f)].ring; });
  }

  void add_partial_gradient(int layer, const Segment& segment) {
    if (segment.cost.parameters <= 0) return;
    std::vector<int> partial;
    for (std::size_t f = 0; f < walk_.factors.size(); ++f)
      if (!walk_.factors[f].sums_gradients &&
          parameter_use(layers_[layer], segment, walk_.factors[f].table).gradient.kind ==
              Placement::Kind::partial)
        partial.push_back(static_cast<int>(f));
    if (partial.empty()) return;
    for (PartialGradient& known : walk_.partial_gradients)
      if (known.layer == layer && known.factors == partial) {
        known.parameters += segment.cost.parameters;
        return;
      }
    walk_.partial_gradients.push_back({layer, partial, segment.cost.parameters});
  }

  const std::vector<Layer>& layers_;
  std::vector<bool> leaves_stage_;  // by layer
  std::vector<int> sizes_;
  Walk walk_;
};

}  // namespace

Walk walk(const std::vector<Layer>& layers, std::vector<Factor> factors,
          const std::vector<int>& last_of_stage) {
  return WalkWriter(layers, std::move(factors), last_of_stage).write();
}

}  // namespace rehearse
