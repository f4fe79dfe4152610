#include "simulator/strategies/programs/pass_sequence.hpp"

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "simulator/strategies/programs/stage_transfers.hpp"

namespace rehearse {
namespace {

StagePlace place_of_stage(const StepPlan& plan, const StageProgram& stage) {
  return {stage.stages,
          stage.stage,
          plan.scenario.microbatches,
          static_cast<int>(stage.chunks.size()),
          plan.scenario.strategy.overlap_passes,
          plan.scenario.strategy.microbatch_group};
}

class SequenceWriter {
public:
  SequenceWriter(StepPlan& plan, StageProgram& stage, const StageTensors& tensors,
                 const WritePass& write_pass)
      : plan_(plan),
        stage_(stage),
        program_(stage.program),
        write_pass_(write_pass),
        blocking_(plan.scenario.strategy.blocking_p2p),
        compute_(stream_named(program_, "compute")),
        transfers_(plan, stage, tensors) {}

  void write(const std::vector<PassItem>& order) {
    const StagePlace place = place_of_stage(plan_, stage_);
    if (blocking_ && place.chunks > 1) {
      write_rounds(order, order_of(plan_.scenario.strategy.schedule).ahead(place));
      return;
    }
    if (stage_.stages > 1 && !blocking_) {
      // Receive buffers are reused in the next step, so its receives must wait until this step is over.
      begin_ = add_op(program_, marker(plan_, stage_, "begin step"));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      note_pass();
      if (blocking_)
        write_blocking(order, i);
      else
        write_overlapped(order[i]);
      last_of_item_.push_back(last_op_of_stream(program_, compute_));
    }
    note_pass();
    if (blocking_) return;
    for (const auto& [name, send] : sends_) stage_.sends.push_back(send);
  }

private:
  void note_pass() {
    if (!plan_.scenario.strategy.overlap_passes) return;
    plan_.first_ops.resize(static_cast<std::size_t>(stage_.stages));
    plan_.first_ops[static_cast<std::size_t>(stage_.stage)].push_back(static_cast<int>(program_.ops.size()));
  }

  // Each direction has its own streams. A receive is posted while the previous item runs, which takes two
  // buffers.
  void write_overlapped(const PassItem& item) {
    int received = -1;
    if (transfers_.receives(item)) {
      Op op;
      op.stream = stream_named(program_, transfers_.stream_of("receive", item));
      transfers_.add_message(op, item, Message::Direction::receive);
      const std::size_t done = last_of_item_.size();
      op.after.push_back({done >= 2 ? last_of_item_[done - 2] : begin_});
      received = add_op(program_, std::move(op));
    }
    write_pass_(item, received);
    if (transfers_.sends(item)) {
      Op op;
      op.after.push_back({last_op_of_stream(program_, compute_)});
      const std::string stream = transfers_.stream_of("send", item);
      op.stream = stream_named(program_, stream);
      transfers_.add_message(op, item, Message::Direction::send);
      sends_[stream] = add_op(program_, std::move(op));
    }
  }

  // Follows Megatron-LM's forward_backward_pipelining_without_interleaving: transfers block the computation,
  // and a send is combined with the receive that follows it from the same neighbour; otherwise both
  // neighbours would wait to send.
  void write_blocking(const std::vector<PassItem>& order, std::size_t i) {
    if (transfers_.receives(order[i]) && !(i > 0 && transfers_.together(order[i - 1], order[i]))) {
      Op op;
      op.stream = compute_;
      transfers_.add_message(op, order[i], Message::Direction::receive);
      add_op(program_, std::move(op));
    }
    write_pass_(order[i], -1);
    if (transfers_.sends(order[i])) {
      Op op;
      op.stream = compute_;
      transfers_.add_message(op, order[i], Message::Direction::send);
      if (i + 1 < order.size() && transfers_.together(order[i], order[i + 1]))
        transfers_.add_message(op, order[i + 1], Message::Direction::receive);
      add_op(program_, std::move(op));
    }
  }

  // Follows Megatron-LM's forward_backward_pipelining_with_interleaving without overlap: single forward
  // passes while the pipeline fills, then one forward and one backward pass per round, then single backward
  // passes. After each round, its results are sent in one exchange with the receives that the next round
  // needs.
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
      if (i == draining && i == filling)
        finish_exchange();  // there are no pairs: the last output is sent
                            // alone
      for (std::size_t j = i; j < end; ++j)
        if (transfers_.receives(order[j]))
          transfers_.add_message(exchange, order[j], Message::Direction::receive);
      finish_exchange();
      for (std::size_t j = i; j < end; ++j) write_pass_(order[j], -1);
      for (std::size_t j = i; j < end; ++j)
        if (transfers_.sends(order[j])) transfers_.add_message(exchange, order[j], Message::Direction::send);
      i = end;
    }
    finish_exchange();
  }

  StepPlan& plan_;
  StageProgram& stage_;
  Program& program_;
  const WritePass& write_pass_;
  const bool blocking_;
  const int compute_;
  StageTransfers transfers_;
  int begin_ = -1;
  // The last ops of the send streams, forward before backward.
  std::map<std::string, int, std::greater<>> sends_;
  std::vector<int> last_of_item_;  // last ops of the items written so far
};

}  // namespace

std::vector<PassItem> passes_in_order(const StepPlan& plan, const StageProgram& stage) {
  return order_of(plan.scenario.strategy.schedule).order(place_of_stage(plan, stage));
}

void write_sequence(StepPlan& plan, StageProgram& stage, const StageTensors& tensors,
                    const std::vector<PassItem>& passes, const WritePass& write_pass) {
  SequenceWriter(plan, stage, tensors, write_pass).write(passes);
}

}  // namespace rehearse
