#include "simulator/strategies/programs/program_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

class PassWriter {
public:
  PassWriter(StepPlan& plan, StageProgram& stage, const PassHooks& hooks)
      : plan_(plan),
        stage_(stage),
        hooks_(hooks),
        program_(stage.program),
        walk_(plan.walk),
        microbatches_(plan.scenario.microbatches),
        blocking_(plan.scenario.strategy.blocking_p2p) {
    compute_ = stream_named(program_, "compute");
    stage_.forward_of_bucket.assign(stage_.buckets.size(), -1);
    stage_.backward_of_bucket.assign(stage_.buckets.size(), -1);
    add_tensors();
  }

  void write() {
    const PipelineSchedule schedule = plan_.scenario.strategy.schedule;
    const int chunks = static_cast<int>(stage_.chunks.size());
    const std::vector<PassItem> order =
        pipeline_order(schedule, stage_.stages, stage_.stage, microbatches_, chunks);
    if (blocking_ && schedule == PipelineSchedule::interleaved) {
      write_rounds(order, warm_up_passes(schedule, stage_.stages, stage_.stage, microbatches_, chunks));
      return;
    }
    if (stage_.stages > 1 && !blocking_) {
      // Buffers are used again in the next step, so nothing may be received for it before this one is over.
      begin_ = add_op(program_, marker(plan_, stage_, "begin step"));
    }
    program_.ops.reserve(program_.ops.size() + most_ops(order.size()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (blocking_)
        write_blocking(order, i);
      else
        write_overlapped(order[i]);
      last_of_item_.push_back(last_op_of_stream(program_, compute_));
    }
    if (blocking_) return;
    for (const char* name : {"send forward", "send backward"})
      if (const int send = last_op_of_stream(program_, find_stream(program_, name)); send >= 0)
        stage_.sends.push_back(send);
  }

private:
  // That so many items need: a receive, a send and what is computed between changes, each pass on its own.
  std::size_t most_ops(std::size_t items) const {
    std::size_t changes = 0;
    for (const Chunk& chunk : stage_.chunks)
      for (int s = walk_.first_segment[chunk.layers.first]; s <= walk_.first_segment[chunk.layers.last + 1];
           ++s)
        changes +=
            walk_.sites[s].forward.size() + walk_.sites[s].backward.size() + walk_.sites[s].again.size();
    return items * 4 + static_cast<std::size_t>(microbatches_) * 2 * changes;
  }

  // ----- tensors

  int tensor(TensorKind kind, const std::string& name, LayerRange layers, double bytes, int microbatch,
             Precision type) {
    Tensor t;
    t.kind = kind;
    t.name = name;
    t.first_layer = layers.first;
    t.last_layer = layers.last;
    t.microbatch = microbatch;
    t.type = type;
    t.bytes = bytes;
    return add_tensor(program_, std::move(t));
  }

  void add_tensors() {
    const Training& training = plan_.scenario.training;
    double transient = 0, between = 0;
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      const LayerRange layers = stage_.chunks[c].layers;
      double saved = 0;
      for (int i = layers.first; i <= layers.last; ++i) {
        const LayerCost& layer = plan_.layers[i];
        saved += layer.saved_bytes;
        transient = std::max(transient, plan_.transient_bytes[i]);
        recomputes_ = recomputes_ || !layer.recompute.empty();
        between = std::max(between, layer.output_bytes + (i > 0 ? plan_.layers[i - 1].output_bytes : 0));
      }
      tensors_.push_back(add_chunk_tensors(static_cast<int>(c), layers, saved));
    }
    between_ = tensor(TensorKind::activation_gradient, "gradients between layers", stage_.layers, between, -1,
                      training.precision);
    if (recomputes_)
      recomputed_ = tensor(TensorKind::activation, "recomputed activations of a layer", stage_.layers,
                           transient, -1, training.precision);
    if (const double bytes = gathered_bytes(); bytes > 0)
      gathered_ =
          tensor(TensorKind::buffer, "gathered activations", stage_.layers, bytes, -1, training.precision);
  }

  // Of the largest tensor that is gathered from shards: the stage uses the same memory for all.
  double gathered_bytes() const {
    double most = 0;
    for (const Chunk& chunk : stage_.chunks)
      for (int s = walk_.first_segment[chunk.layers.first] + 1;
           s <= walk_.first_segment[chunk.layers.last + 1]; ++s)
        for (const auto* side : {&walk_.sites[s].forward, &walk_.sites[s].backward, &walk_.sites[s].again})
          for (const ValueChange& change : *side)
            if (change.change.kind == Change::Kind::all_gather)
              most = std::max(most, change.change.elements * change.element);
    return most;
  }

  struct ChunkTensors {
    std::vector<int> activations, input, output, output_gradient, input_gradient;  // by micro-batch
  };
  ChunkTensors add_chunk_tensors(int chunk, LayerRange layers, double saved_bytes) {
    using enum TensorKind;
    const Training& training = plan_.scenario.training;
    const bool first = begins_model(chunk), last = ends_model(chunk);
    ChunkTensors tensors;
    for (int k = 0; k < microbatches_; ++k) {
      const std::string of = item_text({true, k, chunk});
      tensors.activations.push_back(
          tensor(activation, "activations " + of, layers, saved_bytes, k, training.precision));
      const auto at_boundary = [&](TensorKind kind, const char* name, bool here, int layer) {
        if (!here) return -1;
        const int number =
            tensor(kind, name + of, layers, boundary_bytes(layer), k, training.activation_precision);
        program_.tensors[number].boundary = layer;
        return number;
      };
      tensors.input.push_back(at_boundary(buffer, "input ", !first, layers.first - 1));
      tensors.output.push_back(at_boundary(buffer, "output ", !last, layers.last));
      tensors.output_gradient.push_back(
          at_boundary(activation_gradient, "output gradient ", !last, layers.last));
      tensors.input_gradient.push_back(
          at_boundary(activation_gradient, "input gradient ", !first, layers.first - 1));
    }
    return tensors;
  }

  bool begins_model(int chunk) const { return stage_.stage == 0 && chunk == 0; }
  bool ends_model(int chunk) const {
    return stage_.stage == stage_.stages - 1 && chunk == static_cast<int>(stage_.chunks.size()) - 1;
  }

  // "3", or "3, chunk 1".
  std::string item_text(const PassItem& item) const {
    std::string text = fmt::format("{}", item.microbatch);
    if (stage_.chunks.size() > 1) text += fmt::format(", chunk {}", item.chunk);
    return text;
  }

  // What layer `layer` hands to the next one, in the precision in which it is sent. A profile tells the bytes
  // as they were sent.
  double boundary_bytes(int layer) const {
    const Training& training = plan_.scenario.training;
    double bytes = plan_.layers[layer].output_bytes;
    if (!walk_.factors.empty()) {
      const Layer& its_layer = plan_.model[static_cast<std::size_t>(layer)];
      const Value& output = its_layer.values[static_cast<std::size_t>(its_layer.output())];
      bytes = output.elements * output.element / walk_.output_shards[static_cast<std::size_t>(layer)];
    }
    if (std::holds_alternative<ProfiledModel>(plan_.scenario.model.shape)) return bytes;
    return bytes * element_bytes(training.activation_precision) / element_bytes(training.precision);
  }

  // ----- computation

  // Neighbouring segments that one op computes.
  struct Piece {
    int first = 0, end = 0;  // segments of the walk
  };

  // The work of one pass over some segments; micro-batches share it.
  int work(Pass pass, const Piece& piece) {
    const auto key = std::make_tuple(pass, piece.first, piece.end);
    if (const auto found = plan_.pass_works.find(key); found != plan_.pass_works.end()) return found->second;
    plan_.schedule.works.push_back(pass_work(plan_, pass, piece.first, piece.end));
    return plan_.pass_works[key] = static_cast<int>(plan_.schedule.works.size()) - 1;
  }

  // `cut`: the pass is several ops, which are told apart by what they compute.
  Op compute_op(Pass pass, const PassItem& item, const Piece& piece, bool cut) {
    Op op;
    op.name = fmt::format("{} {}", kPassNames[static_cast<std::size_t>(pass)], item_text(item));
    if (cut) op.name += ", " + segments_text(plan_, piece.first, piece.end);
    op.stream = compute_;
    op.pass = pass;
    op.first_layer = walk_.layer_of[piece.first];
    op.last_layer = walk_.layer_of[piece.end - 1];
    op.microbatch = item.microbatch;
    op.work = work(pass, piece);
    op.action.kind = pass == Pass::forward     ? Action::Kind::forward
                     : pass == Pass::recompute ? Action::Kind::recompute
                                               : Action::Kind::backward;
    op.action.first_segment = piece.first;
    op.action.end_segment = piece.end;
    return op;
  }

  static void wait_for(Op& op, int& received) {
    if (received >= 0) op.after.push_back({received});
    received = -1;
  }

  // Which changes in front of a segment are this stage's: where it begins or ends there, those of tensors
  // that it reads or makes.
  enum class Side { both, maker, reader };
  Side side_at(int segment, const Chunk& chunk) const {
    if (segment == walk_.first_segment[chunk.layers.first]) return Side::reader;
    return segment == walk_.first_segment[chunk.layers.last + 1] ? Side::maker : Side::both;
  }

  // The collectives of these changes. `received`: waited for by the first of them. Of gradients, who reads a
  // tensor is who makes its gradient.
  void write_changes(const std::vector<ValueChange>& changes, const PassItem& item, Pass pass, Side side,
                     int& received, bool of_gradients = false) {
    const Side gathering = of_gradients ? Side::maker : Side::reader;
    for (const ValueChange& change : changes) {
      if (side != Side::both && (side == gathering) != gathers(change.change.kind)) continue;
      // Micro-batches differ in their names only.
      const auto [known, fresh] = changes_.try_emplace({&change, pass});
      if (fresh) known->second = change_op(plan_, program_, change, pass);
      Op op = known->second;
      op.name = fmt::format("{} {} {}, {}", kCollectiveNames[static_cast<std::size_t>(op.collective.kind)],
                            kPassNames[static_cast<std::size_t>(pass)], item_text(item), change.of);
      op.microbatch = item.microbatch;
      op.action.of_gradient = of_gradients;
      wait_for(op, received);
      if (gathered_ >= 0 && change.change.kind == Change::Kind::all_gather) op.writes = {gathered_};
      add_op(program_, std::move(op));
    }
  }

  static void use(std::vector<int>& uses, int tensor) {
    if (tensor >= 0) uses.push_back(tensor);
  }

  // Buckets whose layers are computed together: one, or all of the chunk.
  struct Part {
    LayerRange layers;
    std::size_t first_bucket, end_bucket;
  };
  std::vector<Part> parts(const Chunk& chunk, bool cut) const {
    if (!cut) return {{chunk.layers, chunk.first_bucket, chunk.end_bucket}};
    std::vector<Part> result;
    for (std::size_t b = chunk.first_bucket; b < chunk.end_bucket; ++b)
      result.push_back({{stage_.buckets[b].first_layer, stage_.buckets[b].last_layer}, b, b + 1});
    return result;
  }

  // The segments of some layers, cut where something stands between them.
  std::vector<Piece> pieces(const LayerRange& layers, const auto& is_cut) const {
    const int first = walk_.first_segment[layers.first], end = walk_.first_segment[layers.last + 1];
    std::vector<Piece> result = {{first, end}};
    for (int s = first + 1; s < end; ++s)
      if (is_cut(walk_.sites[s])) {
        result.back().end = s;
        result.push_back({s, end});
      }
    return result;
  }

  bool covers(const Op& op, std::size_t bucket) const {
    return stage_.buckets[bucket].first_layer <= op.last_layer &&
           stage_.buckets[bucket].last_layer >= op.first_layer;
  }

  using Weights = PassHooks::Weights;
  // By bucket of the part.
  std::vector<Weights> gather_weights(const PassItem& item, const Part& part) const {
    std::vector<Weights> gathered;
    for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
      gathered.push_back(hooks_.gather_weights && stage_.weights[b] >= 0 ? hooks_.gather_weights(item, b)
                                                                         : Weights{-1, stage_.weights[b]});
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
    const ChunkTensors& tensors = tensors_[item.chunk];
    const bool cut = (stage_.cut_every_forward || (stage_.cut_first_forward && k == 0)) &&
                     chunk.end_bucket - chunk.first_bucket > 1;
    if (item.chunk == 0 && hooks_.before_forward) hooks_.before_forward(k);
    std::vector<Part> all = parts(chunk, cut);
    std::reverse(all.begin(), all.end());
    const int begin = walk_.first_segment[chunk.layers.first],
              end = walk_.first_segment[chunk.layers.last + 1];
    for (const Part& part : all) {
      const auto its_pieces = pieces(part.layers, [](const Site& site) { return !site.forward.empty(); });
      std::vector<Weights> gathered = gather_weights(item, part);
      int first_op = -1;
      for (const Piece& piece : its_pieces) {
        write_changes(walk_.sites[piece.first].forward, item, Pass::forward, side_at(piece.first, chunk),
                      received);
        Op op = compute_op(Pass::forward, item, piece, cut || its_pieces.size() > 1);
        read_weights(op, part, gathered);
        if (piece.first == begin) use(op.reads, tensors.input[k]);
        wait_for(op, received);
        use(op.writes, tensors.activations[k]);
        if (piece.end == end) use(op.writes, tensors.output[k]);
        const int number = add_op(program_, std::move(op));
        if (first_op < 0) first_op = number;
      }
      if (k == 0)
        for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
          stage_.forward_of_bucket[b] = first_op;
    }
    write_changes(walk_.sites[end].forward, item, Pass::forward, Side::maker, received);
  }

  // Run again by autograd's engine, so only once the gradient has arrived.
  void recompute(const PassItem& item, const Part& part, bool cut, int received,
                 std::vector<Weights>& gathered) {
    const auto its_pieces =
        pieces(part.layers, [](const Site& site) { return site.repeated && !site.forward.empty(); });
    for (const Piece& piece : its_pieces) {
      if (piece.first > its_pieces.front().first)
        write_changes(walk_.sites[piece.first].forward, item, Pass::recompute, Side::both, received);
      Op op = compute_op(Pass::recompute, item, piece, cut || its_pieces.size() > 1);
      read_weights(op, part, gathered);
      use(op.reads, tensors_[item.chunk].activations[item.microbatch]);
      use(op.writes, recomputed_);
      wait_for(op, received);
      add_op(program_, std::move(op));
    }
  }

  void backward(const PassItem& item, int received) {
    const int k = item.microbatch;
    const Chunk& chunk = stage_.chunks[item.chunk];
    const ChunkTensors& tensors = tensors_[item.chunk];
    const bool last_microbatch = k == microbatches_ - 1;
    const bool sends = last_microbatch || stage_.cut_every_backward;
    const bool cut = (stage_.cut_every_backward || (stage_.cut_last_backward && last_microbatch)) &&
                     chunk.end_bucket - chunk.first_bucket > 1;
    const int begin = walk_.first_segment[chunk.layers.first],
              end = walk_.first_segment[chunk.layers.last + 1];
    if (hooks_.before_backward) hooks_.before_backward(item, received);
    for (const Part& part : parts(chunk, cut)) {
      std::vector<Weights> gathered = gather_weights(item, part);
      std::vector<PassHooks::Gradients> gradients;
      for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
        gradients.push_back(hooks_.gradients_of_pass && stage_.gradients[b] >= 0
                                ? hooks_.gradients_of_pass(item, b)
                                : PassHooks::Gradients{stage_.gradients[b], -1});
      if (recomputes_)
        recompute(item, part, cut, part.layers.last == chunk.layers.last ? received : -1, gathered);
      auto its_pieces =
          pieces(part.layers, [](const Site& site) { return !site.backward.empty() || !site.again.empty(); });
      std::reverse(its_pieces.begin(), its_pieces.end());
      int number = -1;
      for (const Piece& piece : its_pieces) {
        write_changes(walk_.sites[piece.end].backward, item, Pass::backward, side_at(piece.end, chunk),
                      received, true);
        write_changes(walk_.sites[piece.end].again, item, Pass::backward, Side::both, received);
        Op op = compute_op(Pass::backward, item, piece, cut || its_pieces.size() > 1);
        read_weights(op, part, gathered);
        for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b)
          if (covers(op, b)) {
            use(op.writes, gradients[b - part.first_bucket].tensor);
            wait_for(op, gradients[b - part.first_bucket].free);
          }
        use(op.reads, tensors.activations[k]);
        use(op.reads, recomputed_);
        use(op.writes, between_);
        if (piece.end == end) use(op.reads, tensors.output_gradient[k]);
        wait_for(op, received);
        if (piece.first == begin) use(op.writes, tensors.input_gradient[k]);
        number = add_op(program_, std::move(op));
      }
      if (part.layers.first == chunk.layers.first)
        write_changes(walk_.sites[begin].backward, item, Pass::backward, Side::reader, received, true);
      if (!sends) continue;
      for (std::size_t b = part.first_bucket; b < part.end_bucket; ++b) {
        stage_.backward_of_bucket[b] = number;
        const int summed = sum_partial_gradients(plan_, stage_, b, gradients[b - part.first_bucket].tensor);
        if (summed >= 0) stage_.backward_of_bucket[b] = summed;
      }
      for (std::size_t b = part.first_bucket; hooks_.behind_bucket && b < part.end_bucket; ++b)
        hooks_.behind_bucket(item, b);
    }
    if (item.chunk == 0 && hooks_.behind_backward) hooks_.behind_backward(k);
  }

  void compute(const PassItem& item, int received) {
    if (item.forward)
      forward(item, received);
    else
      backward(item, received);
  }

  // ----- transfers

  bool receives(const PassItem& item) const {
    return stage_.stages > 1 && !(item.forward ? begins_model(item.chunk) : ends_model(item.chunk));
  }
  bool sends(const PassItem& item) const {
    return stage_.stages > 1 && !(item.forward ? ends_model(item.chunk) : begins_model(item.chunk));
  }

  static const char* direction(const PassItem& item) { return item.forward ? "forward" : "backward"; }

  // Adds the receive before an item, or the send after it, to an exchange.
  void add_message(Op& op, const PassItem& item, Message::Direction way) {
    const bool send = way == Message::Direction::send;
    const int k = item.microbatch;
    const LayerRange layers = stage_.chunks[item.chunk].layers;
    const ChunkTensors& tensors = tensors_[item.chunk];
    // Behind the last stage's chunk comes the first stage's next one. Of two stages each is then the other's
    // neighbour on both sides, so that the tag tells the directions apart.
    const bool chunked = stage_.chunks.size() > 1;
    Message message;
    message.direction = way;
    message.peer = Peer::along(plan_.pipeline_axis, item.forward == send ? 1 : -1, chunked);
    message.tag = chunked && !item.forward ? 1 : 0;
    message.bytes = boundary_bytes(item.forward == send ? layers.last : layers.first - 1);
    if (!op.name.empty()) op.name += chunked ? "; " : ", ";
    op.name += fmt::format("{} {} {}", send ? "send" : "receive", direction(item), item_text(item));
    if (op.messages.empty()) {
      op.kind = OpKind::exchange;
      op.purpose = Purpose::pipeline;
      op.pass = item.forward ? Pass::forward : Pass::backward;
      op.microbatch = k;
    }
    op.messages.push_back(std::move(message));
    if (send)
      op.reads.push_back((item.forward ? tensors.output : tensors.input_gradient)[k]);
    else
      op.writes.push_back((item.forward ? tensors.input : tensors.output_gradient)[k]);
  }

  // Every direction has its own stream. A receive is posted while the item before its own runs: two buffers.
  void write_overlapped(const PassItem& item) {
    int received = -1;
    if (receives(item)) {
      Op op;
      op.stream = stream_named(program_, fmt::format("receive {}", direction(item)));
      add_message(op, item, Message::Direction::receive);
      const std::size_t done = last_of_item_.size();
      op.after.push_back({done >= 2 ? last_of_item_[done - 2] : begin_});
      received = add_op(program_, std::move(op));
    }
    compute(item, received);
    if (sends(item)) {
      Op op;
      op.after.push_back({last_op_of_stream(program_, compute_)});
      op.stream = stream_named(program_, fmt::format("send {}", direction(item)));
      add_message(op, item, Message::Direction::send);
      add_op(program_, std::move(op));
    }
  }

  // As Megatron-LM's forward_backward_pipelining_without_interleaving: transfers hold up the computation, and
  // a send goes together with the receive that follows it from the same neighbour, or both neighbours would
  // wait to send.
  void write_blocking(const std::vector<PassItem>& order, std::size_t i) {
    if (receives(order[i]) && !(i > 0 && together(order[i - 1], order[i]))) {
      Op op;
      op.stream = compute_;
      add_message(op, order[i], Message::Direction::receive);
      add_op(program_, std::move(op));
    }
    compute(order[i], -1);
    if (sends(order[i])) {
      Op op;
      op.stream = compute_;
      add_message(op, order[i], Message::Direction::send);
      if (i + 1 < order.size() && together(order[i], order[i + 1]))
        add_message(op, order[i + 1], Message::Direction::receive);
      add_op(program_, std::move(op));
    }
  }

  // What `a` sends goes to the neighbour from which `b` receives.
  bool together(const PassItem& a, const PassItem& b) const {
    return a.forward != b.forward && sends(a) && receives(b);
  }

  // As Megatron-LM's forward_backward_pipelining_with_interleaving without overlap: a forward pass alone
  // while the pipeline fills, then one forward and one backward, then backward passes alone; behind each of
  // these goes out what it made, together with what the next one needs.
  void write_rounds(const std::vector<PassItem>& order, int warm_up) {
    const std::size_t filling = warm_up, draining = order.size() - filling;
    Op exchange;
    const auto finish_exchange = [&] {
      exchange.stream = compute_;
      if (!exchange.messages.empty()) add_op(program_, std::move(exchange));
      exchange = {};
    };
    for (std::size_t i = 0; i < order.size();) {
      const std::size_t end = i + (i >= filling && i < draining ? 2 : 1);
      if (i == draining && i == filling) finish_exchange();  // no pairs: the last output leaves alone
      for (std::size_t j = i; j < end; ++j)
        if (receives(order[j])) add_message(exchange, order[j], Message::Direction::receive);
      finish_exchange();
      for (std::size_t j = i; j < end; ++j) compute(order[j], -1);
      for (std::size_t j = i; j < end; ++j)
        if (sends(order[j])) add_message(exchange, order[j], Message::Direction::send);
      i = end;
    }
    finish_exchange();
  }

  StepPlan& plan_;
  StageProgram& stage_;
  const PassHooks& hooks_;
  Program& program_;
  const Walk& walk_;
  const int microbatches_;
  const bool blocking_;
  bool recomputes_ = false;
  int compute_ = 0, begin_ = -1, between_ = -1, recomputed_ = -1, gathered_ = -1;
  std::map<std::pair<const ValueChange*, Pass>, Op> changes_;
  std::vector<ChunkTensors> tensors_;
  std::vector<int> last_of_item_;  // ops that end the items written so far
};

}  // namespace

void write_passes(StepPlan& plan, StageProgram& stage, const PassHooks& hooks) {
  PassWriter(plan, stage, hooks).write();
}

std::vector<StageProgram> write_stages(StepPlan& plan, StageTraffic traffic,
                                       const std::function<void(StageProgram&)>& behind) {
  std::vector<StageProgram> stages;
  for (int s = 0; s < plan.scenario.strategy.pipeline; ++s) {
    StageProgram& stage = stages.emplace_back(begin_stage(plan, s, traffic));
    write_passes(plan, stage);
    behind(stage);
    end_stage(plan, stage);
    plan.schedule.programs.push_back(std::move(stage.program));
  }
  return stages;
}

}  // namespace rehearse
