// Declares a simulation: the layout's rank classes as SimGrid actors, one for each stream, and the state that
// they share. SimGrid runs one actor at a time, so actors access this state without locks.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/collectives/message_table.hpp"
#include "simulator/costs/interference.hpp"
#include "simulator/engine/bell.hpp"
#include "simulator/engine/carrier.hpp"
#include "simulator/engine/layout.hpp"
#include "simulator/engine/platform.hpp"
#include "simulator/engine/simgrid.hpp"
#include "simulator/schedule/stream_cursor.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse {

class Simulation {
public:
  Simulation(const Run& run, const Cluster& cluster, const EngineOptions& options);
  Trace run();

private:
  // The position of a stream in its program, and the state of its current op.
  struct Stream {
    int rank_class = 0, number = 0, phase = 0;
    StreamCursor cursor;      // position in the phase's program
    double local_time_s = 0;  // may be ahead of SimGrid's clock while the stream only computes
    Bell bell;
    int awaited_op = -1;  // op that it waits for (-1: none), and how often that must have ended
    long awaited_count = 0;
    const CounterAddress* awaited_counter = nullptr;
    double awaited_value = 0;
    int outstanding = 0;  // transfers of the current op that are under way or not yet matched
    bool in_op = false, ended = false, endless = false;
    bool computing = false;  // while collectives may begin and end beside it
    double ready_s = 0, begin_s = 0, latency_s = 0, slowed_s = 0;
    double carried_s = 0;  // when the last transfer of the current op that has ended did so
    double host_s = 0;     // first stream: when the process that issues its ops has issued the last one
    Status status = Status::done;
    int last_sender = -1, received_from = -1;
    sg::s4u::ActorPtr actor;
    Spans spans;
  };

  struct ClassState {
    std::vector<std::vector<long>> done;     // by phase and op: how often it has ended
    std::vector<std::vector<char>> awaited;  // by phase and op: another stream depends on it
    // If streams run ahead: by phase and awaited op, when each of its runs ended.
    std::vector<std::vector<std::vector<double>>> ended_s;
    std::vector<int> streams;        // indices into streams_
    double issued_s = 0;             // by the process that issues its ops
    std::vector<int> streams_ended;  // by phase: how many have ended it
    Counters counters;
    std::vector<std::vector<sg::s4u::SemaphorePtr>> turns;  // by phase: the turns of its program
    std::map<int, DeviceLoad> loads;                        // collectives under way, by stream
    // By phase and load: how long each work item takes beside the load; below 0: not known yet.
    std::map<std::pair<int, DeviceLoad>, std::vector<double>> seconds_beside;
  };

  // A call of a transfer that waits for the other sides.
  struct Call {
    Stream* stream = nullptr;
    double bytes = 0;
    CollectiveKind kind = CollectiveKind::all_reduce;
    long order = 0;
    double ready_s = 0;
  };
  struct TableRun;
  struct TransferState {
    std::deque<Call> sends, receives;
    std::vector<std::deque<Call>> members;  // collective: calls by participant
    std::size_t called = 0;                 // how many participants have calls
    sg::s4u::BarrierPtr barrier;            // of the participants; null: not needed yet
    Stream* any = nullptr;                  // stream that waits for whoever sends first
    // A collective schedule at `chunk`: the number of each member's next call, and the calls that have begun.
    std::vector<std::size_t> next_run;
    std::vector<std::shared_ptr<TableRun>> runs;
  };

  // A transfer whose sides have all called, and are ready at `begin_s`: after `delay_s` its flows start or,
  // if it is analytic, it has ended.
  struct Matched {
    double begin_s = 0;
    double delay_s = 0;
    double latency_s = 0;  // startup and latency; `delay_s` may contain more
    double alone_s = 0;    // time alone on the network, of a collective that may slow computation down
    bool analytic = false;
    bool ahead = false;  // its sides may be ahead of SimGrid's clock
    struct FlowBytes {
      int flow = 0;
      double bytes = 0;
    };  // bytes on the wire
    std::vector<FlowBytes> flows;
    // The lanes of a collective schedule: each phase starts its flow `delay_s` after the previous one has
    // ended.
    struct StageBytes {
      double delay_s = 0;
      FlowBytes flow;
    };
    std::vector<std::vector<StageBytes>> lanes;
    std::vector<Stream*> sides;
    std::vector<sg::s4u::SemaphorePtr> turns;  // to acquire before it starts; the sender's first
  };

  struct PositionState {  // of a place in a ring, at `chunk`; pieces are counted over all calls
    long base = 0, sent = 0, received = 0;
    std::vector<double> ready_s;  // by piece of this call: when it could be sent on
    std::vector<double> got_s;    // by place in a step: when the last piece arrived
    Bell bell;
  };
  struct RingPlan {
    int steps = 0, pieces_per_step = 1;
    double startup_s = 0, latency_s = 0, efficiency = 1, piece_bytes = 0;  // piece_bytes: on the wire
    double total_latency_s = 0;  // startup, and the latency of all steps that pieces in flight do not hide
    double payload_per_piece = 0;
    double alone_s = 0;
  };

  struct JobState {
    int recorded_steps = 0;
    bool failed = false;
    double failed_at_s = 0;
    std::set<sg::s4u::Actor*> helpers;
    // By phase and step: whether it begins before the phase's time is over.
    std::map<std::pair<int, int>, bool> step_begins;
    std::vector<std::pair<double, std::string>> failures;
  };

  // streams.cpp: runs one stream
  void start_streams();
  std::int64_t ops_of(const Stream& stream) const;  // in all phases
  std::int64_t ops_to_run() const;                  // without those of endless streams
  void run_stream(Stream& stream);
  void run_step(Stream& stream);
  void run_op(Stream& stream);
  bool step_may_begin(Stream& stream);
  void wait_for_dependencies(Stream& stream);
  void catch_up(Stream& stream);  // sleeps until SimGrid's clock reaches the stream's own time
  // Returns whether an exchange or collective may begin before SimGrid's clock reaches the stream's time.
  bool begins_ahead(const Stream& stream, int number) const;
  void end_op(Stream& stream, double end_s);
  void end_phase(Stream& stream);
  void compute(Stream& stream, const Op& op);
  double jitter_of(const Stream& stream) const;  // factor on the time of the current op
  // is_issued() returns whether a process issues the stream's ops (HostLaunches). issue() returns when the
  // process has issued the current op, which it begins to issue after the previous one.
  bool is_issued(const Stream& stream) const;
  double issue(Stream& stream);
  double compute_end(const Stream& stream, double seconds) const;
  // Returns the seconds of computation between two times, at the device's initial speed.
  double computed_s(const Stream& stream, double begin_s, double end_s) const;
  sg::s4u::SemaphorePtr turn_of(const Stream& stream, const Op& op) const;  // null: no turn to wait for
  void record(Stream& stream, double end_s, Status status);
  void signal(Stream& stream, const Op& op);
  void wait_for_counter(Stream& stream);
  const Program& program(const Stream& stream) const;
  const ClassProgram& does(const Stream& stream) const;
  const ProgramIndex& index(const Stream& stream) const;
  int slot(const Stream& stream, int op, int part) const;  // slot of a message or collective
  double op_share(const Stream& stream, const Op& op) const;
  double amount_here(const Stream& stream, const Quantity& amount) const;  // value at the stream's rank

  // transfers.cpp: matches the sides of transfers and carries them out. `number` is the index of the op in
  // its program; for match_message() and match_collective(), the index of the transfer class.
  void exchange(Stream& stream, int number);
  void collective(Stream& stream, int number);
  void join_collective(Stream& stream, int number);
  static void meet(TransferState& state, const Matched& matched);
  // Handles collectives of ranks that all do the same at the same times, over links that nobody else uses: as
  // for computation, the end is known at the beginning. Returns false for all other collectives.
  bool collective_of_one_class(Stream& stream, int number, double& end_s);
  void call_message(Stream& stream, const Message& message, int own_slot, std::vector<Matched>& matched);
  bool take_any(Stream& stream, int own_slot, std::vector<Matched>& matched);
  void begin_side(Stream& side, const Matched& matched) const;
  Matched match_message(int number, const Call& send, const Call& receive);
  Matched match_access(int number, const Call& call, const Access& access);
  Matched match_collective(int number, double bytes, CollectiveKind kind);
  bool is_analytic(const TransferClass& transfer) const;
  void send_on(int flow, double wire_bytes, Matched& matched);  // as bytes of a flow, or as its time
  double step_latency_s(const TransferClass& transfer, const TransferCost& cost) const;
  double ring_alone_s(const TransferClass& transfer, const TransferCost& cost) const;
  TransferCost at_latency_factor(TransferCost cost) const;
  void drive(int job, std::vector<Matched> matched);
  void drive_in_turn(int job, const Matched& matched);
  // All transfers must have the same begin and delay, or all must be analytic.
  void drive_together(int job, const std::vector<Matched>& matched);
  void complete(const Matched& matched, double end_s);
  void wait_for_transfers(Stream& stream);
  void account(int flow, double payload_bytes, int messages = 1, bool on_network = true);
  void help(int job, const std::function<void()>& code);  // in a separate actor

  // interference.cpp: computation beside collectives
  bool runs_beside(const Stream& stream, int op) const;
  double compute_beside(Stream& stream, int work, double seconds);
  double seconds_beside(const Stream& stream, int work);
  // Sets the load of the collective on `stream`, which takes `alone_s` seconds alone; 0 while it waits for
  // its members.
  void set_load(const Stream& stream, const TransferClass& transfer, double alone_s);
  void end_load(const Stream& stream);
  void change_load(int rank_class);

  // ring.cpp: rings in chunks, piece by piece. `number` is the index of the op in ring() and the
  // position on the ring in run_position().
  void ring(Stream& stream, int number);
  void run_position(Stream& stream, int number, const RingPlan& plan);
  double chunk_messages() const;  // of the entire run, before any is sent
  static void refuse_too_many_messages(double messages);
  RingPlan plan_ring(const TransferClass& transfer, CollectiveKind kind, double bytes) const;

  // lanes.cpp: collective schedules as coupled flows, phase by phase
  Matched match_plan(const TransferClass& transfer, double bytes);
  // Returns the startup plus the latency of all steps that pieces in flight do not hide.
  double stage_latency_s(const StageOnNetwork& stage, const TransferCost& cost) const;
  void drive_lanes(int job, Matched matched);
  void run_lane(int job, const Matched& matched, std::size_t lane);

  // tables.cpp: collective schedules message by message. `number` is the index of the op in table() and of
  // the connection in run_connection().
  void table(Stream& stream, int number, double bytes);
  std::shared_ptr<TableRun> begin_table(const TransferClass& transfer, CollectiveKind kind, double bytes);
  void take_ring_table(TableRun& run, CollectiveKind kind, double bytes) const;
  void take_plan_table(TableRun& run, double bytes) const;
  void run_connection(int job, TableRun& run, std::size_t number);
  Cut cut_of(double bytes) const;

  // events.cpp: events of the cluster and failures of jobs
  void start_events();
  void fail_job(int job, const std::string& reason, const std::vector<Stream*>& failed);
  void finish_trace();

  static double now() { return sg::s4u::Engine::get_clock(); }

  const Run& run_;
  const Cluster& cluster_;
  const EngineOptions& options_;
  Layout layout_;
  const bool runs_ahead_;
  const std::vector<bool> in_time_;  // by transfer class: see called_in_time()
  Platform platform_;
  Carrier carrier_;
  std::deque<Stream> streams_;
  std::vector<ClassState> classes_;
  std::vector<TransferState> transfers_;
  std::vector<PositionState> positions_;
  std::vector<JobState> jobs_;
  std::vector<double> link_bytes_;  // by link class: bytes on one of its links
  std::map<int, std::vector<std::pair<double, double>>> speed_changes_;  // by endpoint: (time, factor)
  double bytes_total_ = 0;
  std::int64_t events_ = 0;
  long calls_ = 0;
  bool used_analytic_ = false, used_flow_ = false, used_chunk_ = false;
};

}  // namespace rehearse
