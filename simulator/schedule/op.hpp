// One operation of a rank: what it does, on which stream, after which others, with which tensors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"
#include "models/precision.hpp"
#include "simulator/schedule/mesh.hpp"

namespace rehearse {

// What is computed on, moved and kept: memory and races follow from these.
enum class TensorKind { weight, gradient, activation, activation_gradient, optimizer_state, batch, buffer };
inline constexpr std::array<std::string_view, 7> kTensorKindNames = {
    "weight", "gradient", "activation", "activation_gradient", "optimizer_state", "batch", "buffer"};
struct Tensor {
  TensorKind kind = TensorKind::activation;
  std::string name;
  int first_layer = 0, last_layer = -1;  // inclusive
  int microbatch = -1;                   // -1: not of one micro-batch
  int shards = 1;      // each rank of the program's role holds its share of so many; 1: the whole
  int slot_count = 1;  // parts of equal size, which messages fill and carry one by one
  int boundary = -1;   // the output of this layer, or its gradient, that stages exchange
  Precision type = Precision::fp32;
  Quantity bytes;
  bool shared = false;  // used in no order on purpose, as asynchronous servers use their weights: no race
  // Persistent tensors (weights, optimizer state, gradient buffers) live throughout; others from their first
  // write to their last use in a step.
  bool persistent() const {
    return kind == TensorKind::weight || kind == TensorKind::optimizer_state || kind == TensorKind::gradient;
  }
};

enum class OpKind {
  compute,       // `work` on the device
  exchange,      // sends and receives that go together; done when all are done
  collective,    // with all members of a group
  host,          // load a batch, write a checkpoint: takes `seconds`
  signal,        // adds 1 to a counter, here or at the peers named
  wait_until,    // waits until a counter has reached a value
  repeat_begin,  // the ops up to the matching repeat_end, `count` times (0: until the job's other ranks are
                 // done)
  repeat_end,
};
inline constexpr std::array<std::string_view, 8> kOpKindNames = {
    "compute", "exchange", "collective", "host", "signal", "wait_until", "repeat_begin", "repeat_end"};

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce };
inline constexpr std::array<std::string_view, 6> kCollectiveNames = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"};
// Which way its bytes go: around the ring of its members, along it away from the first member (the root) or
// towards it, or from each to each.
enum class Course { ring, from_root, to_root, pairs };
constexpr Course course_of(CollectiveKind kind) {
  if (kind == CollectiveKind::broadcast) return Course::from_root;
  if (kind == CollectiveKind::reduce) return Course::to_root;
  return kind == CollectiveKind::all_to_all ? Course::pairs : Course::ring;
}
// How an all-reduce goes (simulator/collectives/plan.hpp); the other kinds go around a ring, or from each to
// each. `automatic` stands in scenarios only: a schedule's ops name what was chosen.
enum class Algorithm { ring, tree, halving_doubling, hierarchical, torus, automatic };
inline constexpr std::array<std::string_view, 6> kAlgorithmNames = {
    "ring", "tree", "halving-doubling", "hierarchical", "torus", "auto"};

enum class HostAction { load_batch, write_checkpoint, sleep };

// Which part of training an op belongs to; for names, colours and breakdowns.
enum class Pass {
  forward,
  recompute,
  backward,
  backward_input,
  backward_weight,
  gradient_sync,
  optimizer,
  data,
  other
};
inline constexpr std::array<std::string_view, 9> kPassNames = {
    "forward",       "recompute", "backward", "backward_input", "backward_weight",
    "gradient_sync", "optimizer", "data",     "other"};

// What an op serves, and how time that a rank waits for it is called.
enum class Purpose : std::uint8_t {
  none,  // nothing that is told apart from others
  data,
  fusion_cycle,
  gradient_sync,
  pipeline,
  servers,
  tensor,
};
struct PurposeTraits {
  std::string_view waiting;            // "exposed tensor communication"
  bool late_side_is_a_bubble = false;  // while a side is not ready, the pipeline has a bubble
};
inline constexpr std::array<PurposeTraits, 7> kPurposes = {{{"communication"},
                                                            {"data communication"},
                                                            {"fusion cycle"},
                                                            {"gradient sync"},
                                                            {"pipeline transfer", true},
                                                            {"server transfer"},
                                                            {"tensor communication"}}};
inline std::string waiting(Purpose purpose) {
  return std::string(kPurposes[static_cast<std::size_t>(purpose)].waiting);
}
constexpr const PurposeTraits& traits_of(Purpose purpose) {
  return kPurposes[static_cast<std::size_t>(purpose)];
}

// One part of an exchange. Send and receive match in order among those with the same two ends and the same
// tag.
struct Message {
  enum class Direction { send, receive } direction = Direction::send;
  Peer peer;
  Quantity bytes;  // of each transfer; both ends must agree
  int tag = 0;
  // Of what the op reads or writes. Of a tensor with slots, the first rank that the peer names has this slot,
  // the next one the next. Else each of them has the whole, or its share of it, in their order.
  int slot = 0;
  bool shared_out = false;
};

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Group group;
  // all-reduce, broadcast, reduce: bytes of the buffer; reduce-scatter, all-gather: of the concatenated
  // buffer; all-to-all: bytes each member sends to each other member.
  Quantity bytes;
  int channels = 0;  // 0: as many as the node has NICs
  // What reductions compute of the members' numbers.
  enum class Reduction : std::uint8_t { sum, mean, maximum } reduction = Reduction::sum;

  Algorithm used_algorithm() const {
    return kind == CollectiveKind::all_reduce ? algorithm : Algorithm::ring;
  }
};

// A counter of a rank. Inside a repeat its number moves on with the iteration: number + stride * iteration.
// One with a number below 0, of an iteration before the first, never makes an op wait.
struct Counter {
  std::string name;
  int number = 0, stride = 0;
  int at(int iteration) const { return number + stride * iteration; }
};

// Waits for an op of the same program: of this repetition of the schedule, or of the one before.
struct Dependency {
  int op = 0;
  int steps_back = 0;  // 0 or 1; before the first step there is nothing to wait for
  bool operator==(const Dependency&) const = default;
};

// Something of a rank that few ops may use at once, whatever their streams: the others wait, first come first
// served. A compute op comes when it is ready, an exchange when the other side is there too.
struct Turn {
  std::string name;
  int at_once = 1;
};

// What an op with arithmetic does to its tensors: all that an executor needs to compute it.
struct Action {
  enum class Kind : std::uint8_t {
    none,        // lets time pass, or sends what it reads and writes what it receives
    forward,     // its segments' outputs, for its micro-batch
    recompute,   // the same again
    backward,    // the gradients of its segments' inputs and weights
    loss,        // of the outputs it reads, whose gradients it writes
    change,      // carries value `part` of layer first_layer, for its micro-batch, to another placement
    sum_shared,  // sums the gradients it reads of those weights whose ranks each have a summand
    add,         // writes the sum of all slots of what it reads
    update,      // an optimizer step on the weights it writes, with the gradients it reads
    compress,    // part number `part` of the compressed sum of the gradients it reads
  } kind = Kind::none;
  int part = 0;
  bool of_gradient = false;  // change: of the value's gradient
  // forward, recompute, backward: segments [first_segment, end_segment) of the model, counted through all
  // layers (models/segment.hpp).
  int first_segment = 0, end_segment = 0;
};

// What an arithmetic callback learns about the moment it runs in.
struct OpMoment {
  int job = 0, role = 0, rank = 0, step = 0;
  int sender = -1;  // rank that a receive of kind `any` received from
  double time_s = 0;
};

struct Op {
  std::string name;
  OpKind kind = OpKind::compute;
  int stream = 0;
  std::vector<Dependency> after;  // besides the order of its stream
  Pass pass = Pass::other;
  Purpose purpose = Purpose::none;
  Action action;
  int first_layer = -1, last_layer = -1, microbatch = -1;

  int work = -1;       // compute: index into Schedule::works
  double seconds = 0;  // host
  HostAction host_action = HostAction::load_batch;
  std::vector<Message> messages;  // exchange
  Collective collective;
  Counter counter;                                  // signal, wait_until
  double at_least = 0, at_least_per_iteration = 0;  // wait_until: counter >= at_least + this * iteration
  std::vector<Peer> signalled;                      // signal: these ranks' counters; empty: the own
  int count = 1;                                    // repeat_begin
  int turn = -1;  // compute, exchange of one transfer: waits for this turn of the program

  std::vector<int> reads, writes;                   // tensors of the program
  std::function<void(const OpMoment&)> arithmetic;  // runs when the op ends, in simulated order
};

}  // namespace rehearse
