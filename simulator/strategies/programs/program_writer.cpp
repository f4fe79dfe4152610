#include "simulator/strategies/programs/program_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/schedule/huge_pages.hpp"
#include "simulator/strategies/programs/expert_exchange.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_sequence.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"
#include "simulator/strategies/programs/ring_attention.hpp"

namespace rehearse {
namespace {

class PassWriter {
public:
  explicit PassWriter(StageHooks& hooks)
      : plan_(hooks.plan()),
        stage_(hooks.stage()),
        hooks_(hooks),
        program_(stage_.program),
        walk_(plan_.walk),
        microbatches_(plan_.scenario.microbatches),
        uneven_experts_(uneven_experts(plan_)),
        compute_(stream_named(program_, "compute")),
        tensors_(add_pass_tensors(plan_, stage_)),
        ring_(plan_, stage_) {
    stage_.forward_of_bucket.assign(stage_.buckets.size(), -1);
    stage_.backward_of_bucket.assign(stage_.buckets.size(), -1);
  }

  void write() {
    const std::vector<PassItem> passes = passes_in_order(plan_, stage_);
    reserve_in_huge_pages(program_.ops, program_.ops.size() + most_ops(passes.size()));
    write_sequence(plan_, stage_, tensors_, passes,
                   [&](const PassItem& item, int received) { write_pass(item, received); });
  }

private:
  // Returns the most ops that `items` passes need: a receive, a send and the pieces between changes, each
  // written separately.
  std::size_t most_ops(std::size_t items) const {
    std::size_t changes = 0;
    for (const Chunk& chunk : stage_.chunks)
      for (int s = walk_.first_segment[chunk.layers.first]; s <= walk_.first_segment[chunk.layers.last + 1];
           ++s)
        changes += walk_.sites[s].forward.size() + walk_.sites[s].backward.size() +
                   walk_.sites[s].again.size() + walk_.sites[s].again_for_inputs.size();
    return items * 4 + static_cast<std::size_t>(microbatches_) * 2 * changes;
  }

  // Neighbouring segments that one op computes.
  struct Piece {
    int first = 0, end = 0;  // segments of the walk
    int ring_step = -1;      // step of ring attention; -1: none
  };

  // Returns the index of the work of one pass over some segments; micro-batches share it.
  int work(Pass pass, const Piece& piece) {
    return shared_work(plan_, {pass, piece.first, piece.end, piece.ring_step}, [&] {
      return piece.ring_step < 0 ? pass_work(plan_, pass, piece.first, piece.end)
                                 : ring_work(plan_, pass, piece.first, piece.ring_step);
    });
  }

  static Action::Kind action_of(Pass pass) {
    switch (pass) {
      case Pass::forward:
        return Action::Kind::forward;
      case Pass::recompute:
        return Action::Kind::recompute;
      case Pass::backward_input:
        return Action::Kind::backward_input;
      case Pass::backward_weight:
        return Action::Kind::backward_weight;
      default:
        return Action::Kind::backward;
    }
  }

  // Returns ", layer 3 up to down"; micro-batches share the string.
  const std::string& piece_text(const Piece& piece) {
    const auto [known, fresh] = piece_texts_.try_emplace({piece.first, piece.end});
    if (fresh) known->second = ", " + segments_text(plan_, piece.first, piece.end);
    return known->second;
  }

  // `cut`: the pass consists of several ops, whose names say what they compute.
  Op compute_op(Pass pass, const PassItem& item, const Piece& piece, bool cut) {
    Op op;
    op.name = fmt::format("{} {}", kPassNames[static_cast<std::size_t>(pass)], item_text(stage_, item));
    if (cut) op.name += piece_text(piece);
    op.stream = compute_;
    op.pass = pass;
    op.first_layer = walk_.layer_of[piece.first];
    op.last_layer = walk_.layer_of[piece.end - 1];
    op.microbatch = item.microbatch;
    op.work = work(pass, piece);
    if (uneven_experts_ && walk_.segments[piece.first]->kind == SegmentKind::expert_up)
      op.share = expert_share(plan_, op.first_layer);
    op.action.kind = action_of(pass);
    op.action.first_segment = piece.first;
    op.action.end_segment = piece.end;
    return op;
  }

  static void wait_for(Op& op, int& received) {
    if (received >= 0) op.after.push_back({received});
    received = -1;
  }

  // Which changes in front of a segment belong to this stage: at its boundaries, only those of tensors that
  // it reads or only those of tensors that it makes.
  enum class Side { both, maker, reader };
  Side side_at(int segment, const Chunk& chunk) const {
    if (segment == walk_.first_segment[chunk.layers.first]) return Side::reader;
    return segment == walk_.first_segment[chunk.layers.last + 1] ? Side::maker : Side::both;
  }

  // Writes the collectives of these changes. The first one waits for `received`. For gradients, the reader of
  // a tensor is the maker of its gradient.
  void write_changes(const std::vector<ValueChange>& changes, const PassItem& item, Pass pass, Side side,
                     int& received, bool of_gradients = false) {
    const Side gathering = of_gradients ? Side::maker : Side::reader;
    for (const ValueChange& change : changes) {
      if (side != Side::both && (side == gathering) != gathers(change.change.kind)) continue;
      // Micro-batches differ only in their names.
      const auto [known, fresh] = changes_.try_emplace({&change, pass});
      if (fresh)
        known->second = uneven_experts_ && is_expert_exchange(change)
                            ? expert_exchange(plan_, program_, change, pass, of_gradients)
                            : change_op(plan_, program_, change, pass);
      Op op = known->second;
      op.name = fmt::format("{} {} {}, {}", kChangeNames[static_cast<std::size_t>(change.change.kind)],
                            kPassNames[static_cast<std::size_t>(pass)], item_text(stage_, item), change.of);
      op.microbatch = item.microbatch;
      op.action.of_gradient = of_gradients;
      wait_for(op, received);
      if (const int gathered = tensors_.gathered[pass == Pass::forward ? 0 : 1];
          gathered >= 0 && change.change.kind == Change::Kind::all_gather)
        op.writes = {gathered};
      add_op(program_, std::move(op));
    }
  }

  static void use(std::vector<int>& uses, int tensor) {
    if (tensor >= 0) uses.push_back(tensor);
  }

  // Writes the ops that compute some segments: one op, or several if they are ring attention. Returns the
  // last one.
  int compute_piece(Pass pass, const PassItem& item, const Piece& piece, bool cut, int& received,
                    const std::function<void(Op&)>& complete) {
    if (walk_.sites[piece.first].ring)
      return ring_.write(pass, item, piece.first, received, [&](int step) {
        Op op = compute_op(pass, item, {piece.first, piece.end, step}, true);
        complete(op);
        return op;
      });
    Op op = compute_op(pass, item, piece, cut);
    complete(op);
    return add_op(program_, std::move(op));
  }

  // Buckets whose segments are computed together: one bucket, or all buckets of the model chunk.
  struct Part {
    int first, end;  // segments
    std::size_t first_bucket, end_bucket;
  };
  Part part_of_layers(const LayerRange& layers, std::size_t first_bucket, std::size_t end_bucket) const {
    return {walk_.first_segment[layers.first], walk_.first_segment[layers.last + 1], first_bucket,
            end_bucket};
  }
  std::vector<Part> parts(const Chunk& chunk, bool cut) const {
    if (!cut) return {part_of_layers(chunk.layers, chunk.first_bucket, chunk.end_bucket)};
    std::vector<Part> result;
    for (std::size_t b = chunk.first_bucket; b < chunk.end_bucket; ++b) {
      const Bucket& bucket = stage_.buckets[b];
      result.push_back(bucket.whole_layers()
                           ? part_of_layers({bucket.first_layer, bucket.last_layer}, b, b + 1)
                           : Part{bucket.first_segment, bucket.end_segment, b, b + 1});
    }
    return result;
  }

  // Splits segments [first, end) at the sites for which `is_cut` is true.
  static std::vector<Piece> pieces(int first, int end, const std::vector<Site>& sites, const auto& is_cut) {
    std::vector<Piece> result = {{first, end}};
    for (int s = first + 1; s < end; ++s)
      if (is_cut(sites[s])) {
        result.back().end = s;
        result.push_back({s, end});
      }
    return result;
  }

  bool covers(const Op& op, std::size_t bucket) const {
    return stage_.buckets[bucket].first_layer <= op.last_layer &&
           stage_.buckets[bucket].last_layer >= op.first_layer;
  }

  using Weights = StageHooks::Weights;
  // Returns the gathered weights by bucket of the part.
  std::vector<Weights> gather_weights(const PassItem& item, const Part& part) {
    std::vector<Weights> gathered;
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
      gathered.push_back(stage_.weights[b] >= 0 ? hooks_.weights_for(item, b) : Weights{});
    return gathered;
  }

  // The first op that reads gathered weights waits for them.
  void read_weights(Op& op, const Part& part, std::vector<Weights>& gathered) const {
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b) {
      if (!covers(op, b)) continue;
      Weights& weights = gathered[b - part.first_bucket];
      wait_for(op, weights.ready);
      use(op.reads, weights.tensor);
    }
  }

  void forward(const PassItem& item, int received) {
    const int k = item.microbatch;
    const Chunk& chunk = stage_.chunks[item.chunk];
    const ChunkTensors& tensors = tensors_.chunks[item.chunk];
    const bool cut = (stage_.cut_every_forward || (stage_.cut_first_forward && k == 0)) &&
                     chunk.end_bucket - chunk.first_bucket > 1;
    if (item.chunk == 0) hooks_.before_forward(k);
    LoadedBatch batch;
    if (plan_.input && chunk.layers.first == 0) {
      batch = load_batch(program_, *plan_.input, k);
      received = batch.op;
    }
    std::vector<Part> all = parts(chunk, cut);
    std::reverse(all.begin(), all.end());
    const int begin = walk_.first_segment[chunk.layers.first],
              end = walk_.first_segment[chunk.layers.last + 1];
    for (const Part& part : all) {
      const auto its_pieces = pieces(part.first, part.end, walk_.sites, [](const Site& site) {
        return !site.forward.empty() || site.at_ring();
      });
      std::vector<Weights> gathered = gather_weights(item, part);
      int first_op = -1;
      for (const Piece& piece : its_pieces) {
        write_changes(walk_.sites[piece.first].forward, item, Pass::forward, side_at(piece.first, chunk),
                      received);
        const auto complete = [&](Op& op) {
          read_weights(op, part, gathered);
          if (piece.first == begin) {
            use(op.reads, tensors.input[k]);
            use(op.reads, batch.tensor);
          }
          wait_for(op, received);
          use(op.writes, tensors.activations[k]);
          use(op.writes, tensors.input_activations[k]);
          if (piece.end == end) use(op.writes, tensors.output[k]);
        };
        const int number =
            compute_piece(Pass::forward, item, piece, cut || its_pieces.size() > 1, received, complete);
        if (first_op < 0) first_op = number;
      }
      if (k == 0)
        for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
          stage_.forward_of_bucket[b] = first_op;
    }
    write_changes(walk_.sites[end].forward, item, Pass::forward, Side::maker, received);
  }

  int left_recomputed(const PassItem& item) const {
    return tensors_.chunks[item.chunk].kept_recomputed[item.microbatch];
  }

  // Drops trailing layers that are not recomputed, if only some layers are.
  LayerRange recomputed_layers(LayerRange layers) const {
    if (plan_.scenario.training.recompute_layers == 0) return layers;
    while (layers.last >= layers.first && plan_.layers[layers.last].recompute.empty()) --layers.last;
    return layers;
  }

  // Returns the layers that the backward pass enters in this part; these are recomputed completely.
  LayerRange layers_ended_in(const Part& part) const {
    LayerRange layers{walk_.layer_of[part.first], walk_.layer_of[part.end - 1]};
    if (walk_.first_segment[layers.last + 1] > part.end) --layers.last;
    return layers;
  }

  // Autograd's engine recomputes, so this runs only after the gradient has arrived.
  void recompute(const PassItem& item, const Part& part, bool cut, int received,
                 std::vector<Weights>& gathered) {
    const LayerRange layers = recomputed_layers(layers_ended_in(part));
    if (layers.last < layers.first) return;
    const auto its_pieces =
        pieces(walk_.first_segment[layers.first], walk_.first_segment[layers.last + 1], walk_.sites,
               [](const Site& site) { return site.repeated && (!site.forward.empty() || site.at_ring()); });
    for (const Piece& piece : its_pieces) {
      if (piece.first > its_pieces.front().first)
        write_changes(walk_.sites[piece.first].forward, item, Pass::recompute, Side::both, received);
      compute_piece(Pass::recompute, item, piece, cut || its_pieces.size() > 1, received, [&](Op& op) {
        read_weights(op, part, gathered);
        use(op.reads, tensors_.chunks[item.chunk].activations[item.microbatch]);
        use(op.reads, tensors_.chunks[item.chunk].input_activations[item.microbatch]);
        use(op.writes, tensors_.recomputed);
        use(op.writes, left_recomputed(item));
        wait_for(op, received);
      });
    }
  }

  // Returns whether gradients are sent, bucket by bucket, after this pass.
  bool sends_gradients(const PassItem& item) const {
    return stage_.cut_every_backward || item.microbatch == microbatches_ - 1;
  }
  bool cut_in_buckets(const PassItem& item, const Chunk& chunk) const {
    return (stage_.cut_every_backward || stage_.cut_last_backward) && sends_gradients(item) &&
           chunk.end_bucket - chunk.first_bucket > 1;
  }

  using Gradients = StageHooks::Gradients;
  // Returns where the pass writes its gradients, by bucket of the part.
  std::vector<Gradients> gradients_of(const PassItem& item, const Part& part) {
    std::vector<Gradients> gradients;
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
      gradients.push_back(stage_.gradients[b] >= 0 ? hooks_.gradients_for(item, b) : Gradients{});
    return gradients;
  }

  void write_gradients(Op& op, const Part& part, std::vector<Gradients>& gradients) const {
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b) {
      if (!covers(op, b)) continue;
      use(op.writes, gradients[b - part.first_bucket].tensor);
      wait_for(op, gradients[b - part.first_bucket].free);
    }
  }

  // Records that the pass's gradients of `part` are complete after op `number`, and calls the bucket hooks.
  void end_part(const PassItem& item, const Part& part, const std::vector<Gradients>& gradients, int number) {
    if (!sends_gradients(item)) return;
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b) {
      const int summed = sum_partial_gradients(plan_, stage_, b, gradients[b - part.first_bucket].tensor);
      stage_.backward_of_bucket[b] = summed >= 0 ? summed : number;
    }
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
      if (stage_.buckets[b].parameters > 0) hooks_.on_bucket_complete(item, b);
  }

  // Writes a complete backward pass, or only its input part.
  void backward(const PassItem& item, int received) {
    const int k = item.microbatch;
    const bool whole = item.pass == Pass::backward;
    const Chunk& chunk = stage_.chunks[item.chunk];
    const ChunkTensors& tensors = tensors_.chunks[item.chunk];
    // An input part is cut only if its weights are gathered bucket by bucket.
    const bool cut = whole ? cut_in_buckets(item, chunk)
                           : stage_.cut_every_forward && chunk.end_bucket - chunk.first_bucket > 1;
    const int begin = walk_.first_segment[chunk.layers.first],
              end = walk_.first_segment[chunk.layers.last + 1];
    hooks_.before_backward(item, received);
    for (const Part& part : parts(chunk, cut)) {
      std::vector<Weights> gathered = gather_weights(item, part);
      std::vector<Gradients> gradients;
      if (whole) gradients = gradients_of(item, part);
      if (tensors_.recomputes) recompute(item, part, cut, part.end == end ? received : -1, gathered);
      auto its_pieces = pieces(part.first, part.end, walk_.sites, [&](const Site& site) {
        return !site.backward.empty() || !site.again_for_inputs.empty() || site.at_ring() ||
               (whole && !site.again.empty());
      });
      std::reverse(its_pieces.begin(), its_pieces.end());
      int number = -1;
      for (const Piece& piece : its_pieces) {
        write_changes(walk_.sites[piece.end].backward, item, item.pass, side_at(piece.end, chunk), received,
                      true);
        if (whole) write_changes(walk_.sites[piece.end].again, item, item.pass, Side::both, received);
        write_changes(walk_.sites[piece.end].again_for_inputs, item, item.pass, Side::both, received);
        number = compute_piece(item.pass, item, piece, cut || its_pieces.size() > 1, received, [&](Op& op) {
          read_weights(op, part, gathered);
          if (whole)
            write_gradients(op, part, gradients);
          else
            use(op.writes, tensors.kept_gradients[k]);
          use(op.reads, tensors.activations[k]);
          use(op.reads, tensors.input_activations[k]);
          use(op.reads, tensors_.recomputed);
          use(op.reads, left_recomputed(item));
          use(op.writes, tensors_.between);
          if (piece.end == end) use(op.reads, tensors.output_gradient[k]);
          wait_for(op, received);
          if (piece.first == begin) use(op.writes, tensors.input_gradient[k]);
        });
      }
      if (part.first == begin)
        write_changes(walk_.sites[begin].backward, item, item.pass, Side::reader, received, true);
      if (whole) end_part(item, part, gradients, number);
    }
    if (whole && item.chunk == 0) hooks_.behind_backward(k);
  }

  // Writes the weight part of a split backward pass. Sharded inputs of products are gathered again; the
  // gradients of their outputs were retained as the products read them.
  void backward_weight(const PassItem& item) {
    const int k = item.microbatch;
    const Chunk& chunk = stage_.chunks[item.chunk];
    const ChunkTensors& tensors = tensors_.chunks[item.chunk];
    const bool cut = cut_in_buckets(item, chunk);
    int received = -1;
    for (const Part& part : parts(chunk, cut)) {
      auto its_pieces =
          pieces(part.first, part.end, walk_.sites, [](const Site& site) { return !site.again.empty(); });
      std::vector<Gradients> gradients = gradients_of(item, part);
      std::reverse(its_pieces.begin(), its_pieces.end());
      int number = -1;
      for (const Piece& piece : its_pieces) {
        write_changes(walk_.sites[piece.end].again, item, item.pass, Side::both, received);
        Op op = compute_op(item.pass, item, piece, cut || its_pieces.size() > 1);
        write_gradients(op, part, gradients);
        use(op.reads, tensors.activations[k]);
        use(op.reads, tensors.kept_gradients[k]);
        use(op.reads, left_recomputed(item));
        number = add_op(program_, std::move(op));
      }
      end_part(item, part, gradients, number);
    }
    if (item.chunk == 0) hooks_.behind_backward(k);
  }

  void write_pass(const PassItem& item, int received) {
    if (item.forward())
      forward(item, received);
    else if (item.pass == Pass::backward_weight)
      backward_weight(item);
    else
      backward(item, received);
  }

  StepPlan& plan_;
  StageProgram& stage_;
  StageHooks& hooks_;
  Program& program_;
  const Walk& walk_;
  const int microbatches_;
  const bool uneven_experts_;
  const int compute_;
  StageTensors tensors_;
  RingAttention ring_;
  std::map<std::pair<const ValueChange*, Pass>, Op> changes_;
  std::map<std::pair<int, int>, std::string> piece_texts_;
};

}  // namespace

void write_passes(StageHooks& hooks) {
  PassWriter(hooks).write();
}

}  // namespace rehearse
