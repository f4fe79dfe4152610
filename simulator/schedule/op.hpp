// Defines one operation (op) of a rank's program: what it does, on which stream, after which ops, with which
// tensors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/schedule/collective.hpp"
#include "simulator/schedule/mesh.hpp"
#include "simulator/schedule/purpose.hpp"
#include "simulator/schedule/tensor.hpp"

namespace rehearse {

enum class OpKind {
  compute,       // runs `work` on the device
  exchange,      // sends and receives that run together; done when all are done
  collective,    // with all members of a group
  host,          // work of the host for the rank: takes `seconds`, plus the time of `host_bytes`
  signal,        // adds 1 to a counter of this rank or of the peers named
  wait_until,    // waits until a counter has reached a value
  repeat_begin,  // the ops up to the matching repeat_end, `count` times (0: until the job's other ranks are
                 // done)
  repeat_end,
};
inline constexpr std::array<std::string_view, 8> kOpKindNames = {
    "compute", "exchange", "collective", "host", "signal", "wait_until", "repeat_begin", "repeat_end"};

enum class HostAction {
  load_batch,
  write_checkpoint,
  sleep,
  copy_to_host,    // from the device's memory
  copy_to_device,  // from the host's memory
  update,          // an optimizer step on the host's processors
  read_nvme,       // into the host's memory
  write_nvme,
};
inline constexpr std::array<std::string_view, 8> kHostActionNames = {
    "load_batch",     "write_checkpoint", "sleep",     "copy_to_host",
    "copy_to_device", "update",           "read_nvme", "write_nvme"};

// The part of training that an op belongs to, for names, colours and breakdowns.
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

// A read from or a write to storage: the peer takes no part in it.
struct Access {
  bool one_sided = false;
  bool on_network = false;      // the cluster's, not one of the storage's own
  double most_bytes_per_s = 0;  // of the reader or writer; 0: unlimited
  bool operator==(const Access&) const = default;
};

// One message of an exchange. Sends and receives between the same two ranks with the same tag match in order.
struct Message {
  enum class Direction { send, receive } direction = Direction::send;
  Peer peer;
  Quantity bytes;  // of each transfer, equal at both ends
  int tag = 0;
  // The part of the tensor that the op reads or writes. In a tensor with slots, the first rank that the peer
  // names uses this slot, the next one the next slot, and so on. Otherwise each of them uses the entire
  // tensor or, if shared_out, its share, in the order of the ranks.
  int slot = 0;
  bool shared_out = false;
  Access access;
};

// A counter of a rank. Inside a repeat, its number is number + stride * iteration. A counter with a negative
// number belongs to an iteration before the first, and no op waits for it.
struct Counter {
  std::string name;
  int number = 0, stride = 0;
  int at(int iteration) const { return number + stride * iteration; }
};

// A dependency on an op of the same program, in this repetition of the schedule or in the previous one.
struct Dependency {
  int op = 0;
  int steps_back = 0;  // 0 or 1; ignored in the first step
  bool operator==(const Dependency&) const = default;
};

// A resource of a rank that at most `at_once` ops use at a time, on any streams; others queue. A compute op
// joins the queue when it is ready, an exchange when its other side is ready, too.
struct Turn {
  std::string name;
  int at_once = 1;
};

// The arithmetic of an op on its tensors: everything that an executor needs to perform it.
struct Action {
  enum class Kind : std::uint8_t {
    none,             // only takes time, or sends what it reads and writes what it receives
    forward,          // computes its segments' outputs for its micro-batch
    recompute,        // computes them again
    backward,         // computes the gradients of its segments' inputs and weights
    backward_input,   // computes only those of inputs, and what the weights' gradients need
    backward_weight,  // computes those of weights, after backward_input
    loss,             // computes the loss of the outputs it reads, and writes their gradients
    change,           // changes value `part` of layer first_layer to another placement, for its micro-batch
    pass_keys,        // passes keys and values, and the previous ones' gradients, around a ring: step `part`
    sum_shared,       // sums the gradients it reads of weights of which each rank has a partial sum
    sum_tied,         // sums the gradient of the table that the first and the last layer share
    sum_part,         // sums the gradients it reads that belong to part `part`
    add,              // writes the sum of all slots of the tensor it reads
    update,           // an optimizer step on the weights it writes, with the gradients it reads
    scatter_gradients,  // leaves its rank the sum of its shard of the gradients it reads
    gather_weights,     // writes the complete weights, of which each rank has a shard
    swap,               // exchanges the contents of the two tensors of gradients that it writes
    compress,           // part number `part` of the compressed sum of the gradients it reads
  } kind = Kind::none;
  // Ring attention: the step that is computed or passed on. sum_shared: the factors of the sum, one bit each.
  // sum_part, scatter_gradients, gather_weights: 1: experts that are placed on separate ranks, 0: all other
  // weights.
  int part = 0;
  bool of_gradient = false;  // change: of the value's gradient; pass_keys: in a backward pass
  int route = -1, step = 0;  // change: the index of the walk's route, and of the change in it
  // forward, recompute, all kinds of backward, pass_keys: segments [first_segment, end_segment) of the model,
  // counted through all layers (models/segment.hpp).
  int first_segment = 0, end_segment = 0;
};

// The context in which an arithmetic callback runs.
struct OpMoment {
  int job = 0, role = 0, rank = 0, step = 0;
  int sender = -1;  // rank that a receive of kind `any` received from
  double time_s = 0;
};

struct Op {
  std::string name;
  OpKind kind = OpKind::compute;
  int stream = 0;
  std::vector<Dependency> after;  // in addition to the order of its stream
  Pass pass = Pass::other;
  Purpose purpose = Purpose::none;
  bool for_next_step = false;  // can run during the next step, to which its time counts
  Action action;
  int first_layer = -1, last_layer = -1, microbatch = -1;

  int work = -1;       // compute: index into Schedule::works
  Quantity share = 1;  // compute: the share of the work that a rank does; host: of its seconds
  double seconds = 0;  // host
  HostAction host_action = HostAction::load_batch;
  double host_bytes = 0;          // host: copied, read, written, or moved through memory by an update
  std::vector<Message> messages;  // exchange
  Collective collective;
  Counter counter;                                  // signal, wait_until
  double at_least = 0, at_least_per_iteration = 0;  // wait_until: counter >= at_least + this * iteration
  std::vector<Peer> signalled;                      // signal: raises their counters; empty: its own
  int count = 1;                                    // repeat_begin
  int turn = -1;  // compute, exchange of one transfer: waits for this turn of the program

  std::vector<int> reads, writes;                   // tensors of the program
  std::function<void(const OpMoment&)> arithmetic;  // runs when the op ends, in simulated order
};

}  // namespace rehearse
