#include "backend/training/value_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

// If maker and reader of a tensor are on different stages, the sending stage computes sums, because it has
// the partial sums. Returns whether a change is such a sum.
bool by_sender(const Change& change) {
  return change.kind == Change::Kind::all_reduce || change.kind == Change::Kind::reduce_scatter;
}

// `before`: see ValueRoute.
int steps_of_sender(const std::vector<Change>& changes, int before) {
  if (before > 0) return before;
  const auto end = std::find_if_not(changes.begin(), changes.end(), by_sender);
  if (std::any_of(end, changes.end(), by_sender))
    throw RunError("a tensor between stages would have to be summed after another change");
  return static_cast<int>(end - changes.begin());
}

}  // namespace

ValueStore::ValueStore(Arithmetic& arithmetic, TransformerArithmetic& pieces, const std::vector<Layer>& model,
                       const Walk& walk, const Shards& shards, const DimSizes& sizes,
                       const std::vector<LayerRange>& held, int microbatches,
                       const std::vector<int>& change_streams)
    : arithmetic_(arithmetic),
      pieces_(pieces),
      model_(model),
      walk_(walk),
      shards_(shards),
      sizes_(sizes),
      held_(model.size(), 0),
      microbatches_(microbatches),
      outputs_(walk.segments.size()),
      readers_(walk.segments.size()) {
  for (const LayerRange& range : held)
    for (int layer = range.first; layer <= range.last; ++layer) held_[static_cast<std::size_t>(layer)] = 1;
  const auto here = [&](int segment) {
    return held_[static_cast<std::size_t>(walk.layer_of[static_cast<std::size_t>(segment)])] != 0;
  };
  const int segments = static_cast<int>(walk.segments.size());
  for (int s = 0; s < segments; ++s)
    if (here(s)) add_made(s);
  add_paths();
  for (int s = 0; s < segments; ++s)
    if (here(s)) add_readers(s);
  allocate_packed(change_streams);
}

void ValueStore::allocate(std::vector<OwnedArray>& arrays, std::size_t elements) const {
  for (int m = 0; m < microbatches_; ++m) arrays.emplace_back(arithmetic_, elements, Precision::fp32);
}

void ValueStore::add_made(int number) {
  const auto s = static_cast<std::size_t>(number);
  const Layer& layer = model_[static_cast<std::size_t>(walk_.layer_of[s])];
  const Segment& segment = *walk_.segments[s];
  for (std::size_t o = 0; o < segment.outputs.size(); ++o) {
    Placements placements;
    for (const Factor& factor : shards_.factors())
      placements.push_back(output_use(layer, segment, static_cast<int>(o), factor.table).as);
    Made made;
    made.layout = shards_.local(
        whole_layout(layer.values[static_cast<std::size_t>(segment.outputs[o])], sizes_), placements);
    allocate(made.value, made.layout.elements());
    outputs_[s].push_back(static_cast<int>(made_.size()));
    made_.push_back(std::move(made));
  }
}

void ValueStore::lay_out(Way& way, const Value& value, Placements from, const Placements& by_way_of,
                         const Placements& to) const {
  const TensorLayout whole = whole_layout(value, sizes_);
  way.placements = {from};
  way.layouts = {shards_.local(whole, from)};
  for (std::size_t k = 0; k < way.changes.size(); ++k) {
    const bool before = k < static_cast<std::size_t>(way.before);
    from = after(std::move(from), way.changes[k], before ? by_way_of : to);
    way.placements.push_back(from);
    way.layouts.push_back(shards_.local(whole, from));
  }
  way.here.resize(way.layouts.size());
  way.end = static_cast<int>(way.changes.size());
}

void ValueStore::add_paths() {
  for (std::size_t r = 0; r < walk_.routes.size(); ++r) {
    const ValueRoute& route = walk_.routes[r];
    Path path;
    const auto maker_layer = static_cast<std::size_t>(route.layer);
    const auto reader_layer = static_cast<std::size_t>(walk_.layer_of[static_cast<std::size_t>(route.first)]);
    path.made_here = held_[maker_layer] != 0;
    path.read_here = held_[reader_layer] != 0;
    if (!path.made_here && !path.read_here) {
      paths_.push_back(std::move(path));
      continue;
    }
    const Value& value = model_[maker_layer].values[static_cast<std::size_t>(route.value)];
    path.forward.changes = route.forward;
    path.backward.changes = route.backward;
    path.forward.before = route.forward_before;
    path.backward.before = route.backward_before;
    Placements gradient_made = route.gradient_made;
    const std::optional<ValueChange>& ring = walk_.sites[static_cast<std::size_t>(route.first)].ring;
    if (ring && ring->route == static_cast<int>(r)) {
      // Keys and values travel around the ring instead of being gathered and scattered.
      if (route.forward.size() != 1 || route.backward.size() != 1)
        throw RunError("keys and values of a ring would need more than one change of placement");
      gradient_made = after(std::move(gradient_made), route.backward.front(), route.gradient_read);
      path.forward.changes.clear();
      path.backward.changes.clear();
    }
    lay_out(path.forward, value, route.made, route.forward_by_way_of, route.read);
    lay_out(path.backward, value, gradient_made, route.backward_by_way_of, route.gradient_read);
    const bool between_stages = !path.made_here || !path.read_here;
    const int sent = between_stages ? steps_of_sender(path.forward.changes, path.forward.before) : 0,
              returned = between_stages ? steps_of_sender(path.backward.changes, path.backward.before) : 0;
    if (!path.read_here) {
      path.forward.end = sent;
      path.backward.first = returned;
    }
    if (!path.made_here) {
      path.forward.first = sent;
      path.backward.end = returned;
    }
    path.empty.assign(static_cast<std::size_t>(microbatches_), 1);
    const auto allocate_states = [&](Way& way, bool first_elsewhere) {
      for (int k = way.first; k <= way.end; ++k)
        if (k > way.first || !first_elsewhere)
          allocate(way.here[static_cast<std::size_t>(k)],
                   way.layouts[static_cast<std::size_t>(k)].elements());
    };
    allocate_states(path.forward, path.made_here);  // a tensor that is made here is in made_
    if (value.has_gradient) allocate_states(path.backward, false);
    if (path.made_here) {
      for (int s = walk_.first_segment[maker_layer]; s < walk_.first_segment[maker_layer + 1]; ++s) {
        const std::vector<int>& outputs = walk_.segments[static_cast<std::size_t>(s)]->outputs;
        const auto found = std::find(outputs.begin(), outputs.end(), route.value);
        if (found == outputs.end()) continue;
        path.maker = outputs_[static_cast<std::size_t>(s)][static_cast<std::size_t>(found - outputs.begin())];
      }
      made_[static_cast<std::size_t>(path.maker)].paths.push_back(static_cast<int>(r));
    }
    paths_.push_back(std::move(path));
  }
  for (Made& made : made_) {
    made.summed.assign(static_cast<std::size_t>(microbatches_), 0);
    if (made.paths.size() < 2) continue;
    const Way& way = paths_[static_cast<std::size_t>(made.paths.front())].backward;
    allocate(made.sum, way.layouts.back().elements());
  }
}

void ValueStore::add_readers(int number) {
  const auto s = static_cast<std::size_t>(number);
  const auto l = static_cast<std::size_t>(walk_.layer_of[s]);
  const Segment& segment = *walk_.segments[s];
  for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
    Reader reader;
    const bool from_before = segment.inputs[i] == 0;
    if (from_before && l == 0) {
      readers_[s].push_back(reader);
      continue;
    }
    const int layer = static_cast<int>(l) - (from_before ? 1 : 0);
    const int value = from_before ? model_[l - 1].output() : segment.inputs[i];
    std::vector<Use> uses;
    Placements as;
    for (const Factor& factor : shards_.factors()) {
      uses.push_back(input_use(model_[l], segment, static_cast<int>(i), factor.table));
      as.push_back(uses.back().as);
    }
    for (std::size_t r = 0; r < walk_.routes.size(); ++r) {
      const ValueRoute& route = walk_.routes[r];
      const bool its_layer = walk_.layer_of[static_cast<std::size_t>(route.first)] == static_cast<int>(l);
      if (route.layer != layer || route.value != value || !its_layer || !(route.read == as)) continue;
      reader.path = static_cast<int>(r);
      for (std::size_t f = 0; f < uses.size(); ++f)
        if (!(uses[f].gradient == route.gradient_made[f]) && shards_.coordinates()[f] > 0)
          reader.kept_apart = true;
    }
    if (reader.path < 0)
      throw RunError(fmt::format("input {} of layer {}'s {} has no source", i, l,
                                 kSegmentNames[static_cast<std::size_t>(segment.kind)]));
    readers_[s].push_back(reader);
  }
}

// Returns the only route from a layer to the next one.
int ValueStore::boundary(int layer) const {
  int found = -1;
  for (std::size_t r = 0; r < walk_.routes.size(); ++r) {
    const ValueRoute& route = walk_.routes[r];
    if (route.layer != layer || walk_.layer_of[static_cast<std::size_t>(route.first)] == layer) continue;
    if (found >= 0)
      throw RunError(
          fmt::format("layer {} is read in several placements by the next one, on another stage", layer));
    found = static_cast<int>(r);
  }
  if (found < 0 || (!paths_[static_cast<std::size_t>(found)].made_here &&
                    !paths_[static_cast<std::size_t>(found)].read_here))
    throw std::out_of_range(fmt::format("the output of layer {} is not here", layer));
  return found;
}

Array ValueStore::state(const Path& path, const Way& way, int state, int microbatch) const {
  const auto k = static_cast<std::size_t>(state), m = static_cast<std::size_t>(microbatch);
  if (&way == &path.forward && state == 0 && path.made_here)
    return made_[static_cast<std::size_t>(path.maker)].value.at(m);
  return way.here.at(k).at(m);
}

// Factors can cut a tensor along several dimensions, for example routed rows along batch and sequence.
void ValueStore::copy_block(int stream, const TensorLayout& whole, const Change& change,
                            const Placements& sharded, const std::vector<int>& coordinates, const Array& all,
                            const Array& block, bool into_block) const {
  const std::vector<long>& sizes = whole.sizes;
  std::vector<long> box = sizes, begin(sizes.size(), 0);
  std::size_t first = sizes.size(), inner = 0;  // outermost and innermost dimension that is cut
  for (const int f : change.factors) {
    const auto at = static_cast<std::size_t>(whole.find(sharded[static_cast<std::size_t>(f)].dim));
    const int size = shards_.factors()[static_cast<std::size_t>(f)].size;
    box.at(at) /= size;
    begin[at] += coordinates[static_cast<std::size_t>(f)] * box[at];
    first = std::min(first, at);
    inner = std::max(inner, at);
  }
  const auto behind = [](const std::vector<long>& of, std::size_t dim) {
    return std::accumulate(of.begin() + static_cast<std::ptrdiff_t>(dim), of.end(), 1L, std::multiplies<>());
  };
  const long rows = behind(sizes, 0) / behind(sizes, first), width = behind(box, inner);
  // Visits all positions in the dimensions from the outermost one that is cut up to, but excluding, the
  // innermost.
  for (std::vector<long> index(sizes.size(), 0);;) {
    long in_whole = 0, in_block = 0;
    for (std::size_t i = first; i <= inner; ++i) {
      in_whole = in_whole * sizes[i] + begin[i] + index[i];
      in_block = in_block * box[i] + index[i];
    }
    const Strips of_whole{all, in_whole * behind(sizes, inner + 1), behind(sizes, first)},
        of_block{block, in_block * behind(sizes, inner + 1), behind(box, first)};
    pieces_.copy_pieces(stream, rows, width, into_block ? of_whole : of_block,
                        into_block ? of_block : of_whole);
    std::size_t i = inner;
    while (i > first && ++index[i - 1] == box[i - 1]) index[--i] = 0;
    if (i == first) return;
  }
}

void ValueStore::run_free(int stream, const Path& path, const Way& way, int begin, int end, int microbatch) {
  for (int k = begin; k < end; ++k) {
    const Change& change = way.changes[static_cast<std::size_t>(k)];
    const Array from = state(path, way, k, microbatch), to = state(path, way, k + 1, microbatch);
    const int number = shards_.number(change, shards_.coordinates());
    if (change.kind == Change::Kind::slice) {
      copy_block(stream, way.layouts[static_cast<std::size_t>(k)], change,
                 way.placements[static_cast<std::size_t>(k) + 1], shards_.coordinates(), from, to, true);
    } else {
      arithmetic_.copy(stream, from, to);
      if (number > 0) arithmetic_.scale(stream, 0, to);
    }
  }
}

void ValueStore::run_trailing(int stream, const Path& path, const Way& way, int microbatch) {
  int begin = way.end;
  while (begin > way.first && costs_nothing(way.changes[static_cast<std::size_t>(begin - 1)].kind)) --begin;
  run_free(stream, path, way, begin, way.end, microbatch);
}

void ValueStore::begin_forward(int segment, int microbatch) {
  const auto s = static_cast<std::size_t>(segment), m = static_cast<std::size_t>(microbatch);
  for (const int number : outputs_[s]) {
    Made& made = made_[static_cast<std::size_t>(number)];
    made.summed[m] = 0;
    for (const int path : made.paths) paths_[static_cast<std::size_t>(path)].empty[m] = 1;
  }
  for (const Reader& reader : readers_[s])
    if (reader.path >= 0 && !paths_[static_cast<std::size_t>(reader.path)].made_here)
      paths_[static_cast<std::size_t>(reader.path)].empty[m] = 1;
}

Array ValueStore::output(int segment, int output, int microbatch) const {
  const int number = outputs_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(output)];
  return made_[static_cast<std::size_t>(number)].value.at(static_cast<std::size_t>(microbatch));
}

Array ValueStore::input(int stream, int segment, int input, int microbatch) {
  const Reader& reader = readers_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(input)];
  const Path& path = paths_.at(static_cast<std::size_t>(reader.path));
  run_trailing(stream, path, path.forward, microbatch);
  return state(path, path.forward, path.forward.end, microbatch);
}

Array ValueStore::output_gradient(int stream, int segment, int output, int microbatch) {
  const int number = outputs_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(output)];
  Made& made = made_[static_cast<std::size_t>(number)];
  const auto m = static_cast<std::size_t>(microbatch);
  const auto of_path = [&](int number_of_path) {
    const Path& path = paths_[static_cast<std::size_t>(number_of_path)];
    if (made.summed[m] == 0) run_trailing(stream, path, path.backward, microbatch);
    return state(path, path.backward, path.backward.end, microbatch);
  };
  if (made.paths.empty())
    throw RunError(
        fmt::format("nothing reads output {} of segment {}, so it has no gradient", output, segment));
  if (made.paths.size() > 1 && made.summed[m] == 0) {
    const Array& sum = made.sum[m];
    arithmetic_.copy(stream, of_path(made.paths.front()), sum);
    for (std::size_t p = 1; p < made.paths.size(); ++p) arithmetic_.add(stream, of_path(made.paths[p]), sum);
  }
  const Array result = made.paths.size() > 1 ? Array(made.sum[m]) : of_path(made.paths.front());
  made.summed[m] = 1;
  return result;
}

GradientTarget ValueStore::input_gradient(int stream, int segment, int input, int microbatch) {
  const Reader& reader = readers_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(input)];
  if (reader.path < 0) return {{}, false, false};
  Path& path = paths_[static_cast<std::size_t>(reader.path)];
  char& empty = path.empty[static_cast<std::size_t>(microbatch)];
  GradientTarget target{state(path, path.backward, 0, microbatch), empty == 0, !reader.kept_apart};
  if (reader.kept_apart && empty != 0) arithmetic_.scale(stream, 0, target.array);
  empty = 0;
  return target;
}

// Allocates the buffers for transfers in progress, of which each stream has at most one.
void ValueStore::allocate_packed(const std::vector<int>& streams) {
  std::size_t most = 0;
  for (const Path& path : paths_)
    for (const Way* way : {&path.forward, &path.backward})
      for (std::size_t k = 0; k < way->changes.size(); ++k) {
        const Change& change = way->changes[k];
        const std::size_t elements = way->layouts[k].elements();
        if (change.kind == Change::Kind::reduce_scatter) most = std::max(most, elements);
        if (gathers(change.kind))
          most = std::max(most, elements * static_cast<std::size_t>(shards_.members(change)));
      }
  for (const int stream : streams) packed_[stream] = OwnedArray(arithmetic_, most, Precision::fp32);
}

std::size_t ValueStore::largest() const {
  std::size_t most = 0;
  for (const Made& made : made_) most = std::max(most, made.layout.elements());
  for (const Path& path : paths_)
    for (const Way* way : {&path.forward, &path.backward})
      for (const TensorLayout& layout : way->layouts) most = std::max(most, layout.elements());
  return most;
}

Array ValueStore::begin_transfer(int stream, const ValueTransfer& t) {
  const Path& path = paths_.at(static_cast<std::size_t>(t.route));
  const Way& way = t.of_gradient ? path.backward : path.forward;
  int free = t.step;
  while (free > way.first && costs_nothing(way.changes[static_cast<std::size_t>(free - 1)].kind)) --free;
  run_free(stream, path, way, free, t.step, t.microbatch);
  const auto k = static_cast<std::size_t>(t.step);
  const Change& change = way.changes.at(k);
  const Array from = state(path, way, t.step, t.microbatch);
  const auto self = static_cast<std::size_t>(t.self);
  const auto parts = static_cast<std::size_t>(shards_.members(change));
  switch (change.kind) {
    case Change::Kind::all_reduce: {
      const Array to = state(path, way, t.step + 1, t.microbatch);
      arithmetic_.copy(stream, from, to);
      return to;
    }
    case Change::Kind::all_gather: {
      const Array all = packed(stream, from.elements * parts);
      arithmetic_.copy(stream, from, all.part(self * from.elements, from.elements));
      return all;
    }
    case Change::Kind::reduce_scatter:
    case Change::Kind::all_to_all: {
      const bool to_all = change.kind == Change::Kind::all_to_all;
      const std::size_t each = from.elements / parts;
      const Array all = packed(stream, to_all ? from.elements * parts : from.elements);
      for (std::size_t m = 0; m < parts; ++m)
        copy_block(stream, way.layouts[k], change, way.placements[k + 1], t.members->at(m), from,
                   all.part(((to_all ? self * parts : 0) + m) * each, each), true);
      return all;
    }
    case Change::Kind::slice:
    case Change::Kind::keep_one:
      break;
  }
  throw RunError(fmt::format("value {} of layer {} is not exchanged here", t.value, t.layer));
}

void ValueStore::end_transfer(int stream, const ValueTransfer& t) {
  const Path& path = paths_.at(static_cast<std::size_t>(t.route));
  const Way& way = t.of_gradient ? path.backward : path.forward;
  const auto k = static_cast<std::size_t>(t.step);
  const Change& change = way.changes.at(k);
  if (change.kind == Change::Kind::all_reduce) return;
  const Array to = state(path, way, t.step + 1, t.microbatch);
  const auto parts = static_cast<std::size_t>(shards_.members(change)),
             self = static_cast<std::size_t>(t.self);
  if (change.kind == Change::Kind::reduce_scatter) {
    const Array all = packed(stream, to.elements * parts);
    arithmetic_.copy(stream, all.part(self * to.elements, to.elements), to);
    return;
  }
  const bool to_all = change.kind == Change::Kind::all_to_all;
  const std::size_t each = to.elements / parts;
  const Array all = packed(stream, to_all ? to.elements * parts : to.elements);
  for (std::size_t m = 0; m < parts; ++m)
    copy_block(stream, way.layouts[k + 1], change, way.placements[k], t.members->at(m), to,
               all.part((to_all ? m * parts + self : m) * each, each), false);
}

void ValueStore::begin_send(int stream, int microbatch, int layer, bool of_gradient) {
  const Path& path = paths_[static_cast<std::size_t>(boundary(layer))];
  run_trailing(stream, path, of_gradient ? path.backward : path.forward, microbatch);
}

Array ValueStore::activation(int microbatch, int layer) const {
  const Path& path = paths_[static_cast<std::size_t>(boundary(layer))];
  return state(path, path.forward, path.made_here ? path.forward.end : path.forward.first, microbatch);
}

Array ValueStore::activation_gradient(int microbatch, int layer) const {
  const Path& path = paths_[static_cast<std::size_t>(boundary(layer))];
  return state(path, path.backward, path.read_here ? path.backward.end : path.backward.first, microbatch);
}

}  // namespace rehearse
