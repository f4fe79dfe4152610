// Asynchronous servers apply each worker's gradients as they arrive and reply with the weights of that moment
// (Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012: Downpour SGD; Li et al., OSDI 2014).
// Stale-synchronous servers delay the reply to a worker that would be too far ahead of the slowest one (Ho et
// al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/gradients/parameter_server.hpp"
#include "simulator/strategies/gradients/starting_phases.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

// ----- the number of simulations and of their rounds

// Equal workers repeat the same round forever, and its speed depends on when each of them began. Workers that
// begin together push together: the server's card receives while it sends nothing, and then the other way
// round, so neither direction is ever full. Workers that happen to be spread over the round use both
// directions at once and can be a quarter faster. Which of the two a real cluster shows is chance, and a
// single worker that is only slightly slower already drifts from one to the other. One simulation therefore
// says little: results are means over several, in each of which every worker begins at some point of a round
// (starting_phases.hpp).
constexpr int kSimulations = 8, kLeastSimulations = 2;
// Within a few rounds, workers that meet at a server are spread out because they are served one after
// another; a worker that is ahead of a slower one first uses up its allowed staleness.
constexpr int kWarmup = 8, kWindow = 8, kMostWarmup = 200;
// Many transfers per round make rounds expensive, and many workers give a good average with few rounds. All
// simulations together have at most this many transfers (windows are shortened first, then there are fewer
// simulations), but each simulation has at least the number of rounds below.
constexpr double kTransfers = 50'000;
constexpr int kLeastWarmup = 2, kLeastWindow = 3;
// For all workers and simulations together; bounds the cost of a very slow worker while the others continue.
constexpr int kMostRounds = 20'000;

// Returns the rounds in which the other workers use up their allowed lead over the slowest: during r rounds
// of the slowest worker, the fastest one does r fastest / slowest rounds.
int rounds_until_held(const StepPlan& plan) {
  double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
  for (int worker = 0; worker < plan.schedule.roles.front().size(); ++worker) {
    const double factor = plan.scenario.cluster->device_factor(plan.endpoints[worker]);
    slowest = std::min(slowest, factor);
    fastest = std::max(fastest, factor);
  }
  if (!(slowest < fastest)) return 0;
  const double used_up = plan.scenario.strategy.parameter_server.staleness * slowest / (fastest - slowest);
  return static_cast<int>(std::min<double>(kMostWarmup, std::ceil(used_up)));
}

// Returns the seconds of a round of a worker that never waits for another: it computes, sends and receives.
// In a pipeline, the slowest stage sets the pace, and p - 1 additional micro-batches fill and drain it.
double round_alone_s(const StepPlan& plan) {
  const Cluster& cluster = *plan.scenario.cluster;
  const Device& device = cluster.node().device;
  std::vector<LinkId> route;
  const int workers = plan.schedule.roles.front().size();
  cluster.route(plan.endpoints[0], plan.endpoints[workers], -1, route);
  double bandwidth = std::numeric_limits<double>::infinity();
  for (const LinkId link : route) bandwidth = std::min(bandwidth, cluster.bandwidth(link));
  double slowest_s = 0;
  for (const Program& worker : plan.schedule.programs) {
    double seconds = 0;
    for (const Op& op : worker.ops) {
      if (op.kind == OpKind::compute && op.work >= 0)
        seconds += work_time_s(plan.schedule.works[op.work], device);
      for (const Message& message : op.messages)
        if (message.peer.kind == Peer::Kind::each)
          seconds += message.bytes.at(plan.schedule.roles[0], 0) *
                     plan.scenario.strategy.parameter_server.servers / bandwidth;
    }
    slowest_s = std::max(slowest_s, seconds);
  }
  const double microbatches = plan.scenario.microbatches, stages = plan.scenario.strategy.pipeline;
  return slowest_s * ((microbatches + stages - 1) / microbatches);
}

// Returns how many rounds to simulate. `buckets`: of all stages together.
Asynchrony rounds(const StepPlan& plan, std::size_t buckets) {
  const Scenario& scenario = plan.scenario;
  const Role& role = plan.schedule.roles.front();
  const int workers = role.size();
  const double transfers = 2.0 * scenario.strategy.data * scenario.strategy.parameter_server.servers *
                           static_cast<double>(buckets);
  const int held = rounds_until_held(plan);
  const double affordable = kTransfers / transfers;  // rounds
  const double shortened = held + (kWarmup + 1.0 * scenario.steps * kWindow) / 2;
  const int simulations =
      static_cast<int>(std::clamp<double>(affordable / shortened, kLeastSimulations, kSimulations));
  const double afford = std::min(1.0, affordable / simulations / (kWarmup + kWindow));
  Asynchrony result;
  result.warmup_rounds = std::max(kLeastWarmup, static_cast<int>(afford * kWarmup)) + held;
  result.window_rounds = std::max(kLeastWindow, static_cast<int>(afford * kWindow));
  result.most_rounds = std::max(2 * (result.warmup_rounds + scenario.steps * result.window_rounds),
                                kMostRounds / simulations / workers);
  result.server_role = kServerRole;
  // All stages of a pipeline replica start at the same time; servers start at 0.
  for (const std::vector<double>& replicas_s :
       starting_phases(simulations, scenario.strategy.data, round_alone_s(plan), scenario.seed)) {
    std::vector<double>& starts_s = result.starts_s.emplace_back();
    for (int worker = 0; worker < workers; ++worker)
      starts_s.push_back(
          replicas_s[static_cast<std::size_t>(role.meshes.front().coordinate(worker, plan.data_axis))]);
    starts_s.resize(static_cast<std::size_t>(plan.schedule.ranks()), 0);
  }
  return result;
}

// ----- the number of concurrent transfers

// By link: the number of routes between workers and servers that use it, of workers on them, and of servers
// on them.
struct LinkCounts {
  std::vector<int> pairs, workers, servers;
};

// Returns how many pushes a server accepts at once: as many as fill its card if all workers push to all
// servers. More would only slow each other down, and all of them would end, and be answered, at the same
// time. The same number applies to its replies.
int transfers_at_once(const StepPlan& plan) {
  const Cluster& cluster = *plan.scenario.cluster;
  const int workers = plan.schedule.roles.front().size();
  const int servers = plan.scenario.strategy.parameter_server.servers;
  const auto links = static_cast<std::size_t>(cluster.links());
  LinkCounts count{std::vector<int>(links, 0), std::vector<int>(links, 0), std::vector<int>(links, 0)};
  std::vector<int> last_worker(links, -1), last_server(links, -1);
  std::vector<LinkId> route;
  const auto visit = [&](int worker, int server) -> const std::vector<LinkId>& {
    route.clear();
    cluster.route(plan.endpoints[worker], plan.endpoints[workers + server], -1, route);
    return route;
  };
  for (int w = 0; w < workers; ++w)
    for (int s = 0; s < servers; ++s)
      for (const LinkId link : visit(w, s)) {
        ++count.pairs[link];
        if (std::exchange(last_worker[link], w) != w) ++count.workers[link];
      }
  for (int s = 0; s < servers; ++s)
    for (int w = 0; w < workers; ++w)
      for (const LinkId link : visit(w, s))
        if (std::exchange(last_server[link], s) != s) ++count.servers[link];
  double most = 1;
  for (int s = 0; s < servers; ++s) {
    double share = std::numeric_limits<double>::infinity(), capacity = share;
    for (int w = 0; w < workers; ++w)
      for (const LinkId link : visit(w, s)) {
        // On the workers' side, a link connects few workers to many servers.
        const bool workers_side = static_cast<std::int64_t>(count.workers[link]) * servers <
                                  static_cast<std::int64_t>(count.servers[link]) * workers;
        if (workers_side)
          share = std::min(share, cluster.bandwidth(link) / count.pairs[link]);
        else
          capacity = std::min(capacity, cluster.bandwidth(link) / count.servers[link]);
      }
    if (std::isfinite(share) && std::isfinite(capacity)) most = std::max(most, capacity / share);
  }
  return static_cast<int>(std::min<double>(workers, std::ceil(most * (1 - 1e-9))));
}

// ----- the program

class ServerWriter {
public:
  ServerWriter(StepPlan& plan, const std::vector<StageProgram>& stages)
      : plan_(plan),
        stages_(stages),
        training_(plan.scenario.training),
        choice_(plan.scenario.strategy.parameter_server),
        state_(state_bytes(training_.optimizer, training_.precision, training_.gradient_precision)) {
    program_.name = "server";
    program_.role = kServerRole;
  }

  Program write() {
    const int at_once = transfers_at_once(plan_);
    program_.turns = {{"take pushes", at_once}, {"update", 1}, {"send weights", at_once}};
    std::size_t buckets = 0;
    for (const StageProgram& stage : stages_) {
      parts_.emplace_back();
      for (std::size_t b = 0; b < stage.buckets.size(); ++b)
        if (stage.buckets[b].parameters > 0) add_bucket(stage, b);
      buckets += parts_.back().size();
    }
    asynchrony_ = rounds(plan_, buckets);
    const Role& workers = plan_.schedule.roles.front();
    for (int w = 0; w < workers.size(); ++w)
      serve(w, workers.meshes.front().coordinate(w, plan_.pipeline_axis));
    plan_.schedule.asynchrony = std::move(asynchrony_);
    const bool devices = choice_.placement == ParameterServer::Placement::devices;
    plan_.notes.push_back(
        fmt::format("A server takes pushes as they come, {} at once, and applies one at a time{}.", at_once,
                    devices ? ", at the same time as the GPU's other work and as fast as without it"
                            : " with all its cores"));
    return std::move(program_);
  }

private:
  // The state of a bucket that the streams of all of a stage's workers share.
  struct Part {
    Bucket layers;
    std::string name;
    int weights, optimizer, work;
  };

  void add_bucket(const StageProgram& stage, std::size_t b) {
    const Bucket& bucket = stage.buckets[b];
    const double share = bucket.parameters / choice_.servers;
    const std::string what =
        fmt::format("bucket {}{}", b, stages_.size() > 1 ? fmt::format(" of stage {}", stage.stage) : "");
    const auto shared = [&](TensorKind kind, const char* name, Precision type, double per_parameter) {
      Tensor t = server_tensor(kind, fmt::format("{}, {}", name, what), bucket, type, share * per_parameter,
                               {choice_.servers});
      t.shared = true;  // weights are sent while others' gradients are applied to them
      return add_tensor(program_, std::move(t));
    };
    Part part{bucket, what, shared(TensorKind::weight, "weights", training_.precision, state_.weight), -1,
              -1};
    if (state_.optimizer > 0)
      part.optimizer =
          shared(TensorKind::optimizer_state, "optimizer state", Precision::fp32, state_.optimizer);
    Work work = update_work(plan_, bucket, plan_.scenario.strategy.parameter_server.servers);
    work.name += " " + what;
    plan_.schedule.works.push_back(std::move(work));
    part.work = static_cast<int>(plan_.schedule.works.size()) - 1;
    parts_.back().push_back(part);
  }

  // Writes everything that serves one worker, repeated for each of its rounds: receives and updates all
  // buckets in the order in which the worker pushes them. Each worker has its own streams, so one worker's
  // wait does not delay another.
  void serve(int worker, int stage) {
    const Peer peer = Peer::member(0, worker);
    const std::string of = fmt::format(" {}", worker);
    const std::string receive_stream = "receive" + of, update_stream = "update" + of,
                      send_stream = "send" + of;
    for (const std::string& stream : {receive_stream, update_stream, send_stream})
      repeat(stream, OpKind::repeat_begin);
    const std::vector<Part>& parts = parts_[static_cast<std::size_t>(stage)];
    asynchrony_.weights_of.push_back(stage);
    for (const Part& part : parts) {
      const Bucket& bucket = part.layers;
      const std::string &what = part.name, whose = fmt::format(" of worker {}", worker);
      const int pushed =
          add_tensor(program_, server_tensor(TensorKind::buffer, "pushed gradients, " + what + whose, bucket,
                                             training_.gradient_precision,
                                             push_bytes(plan_, bucket, choice_.servers), {choice_.servers}));
      Op receive =
          bucket_exchange(program_, "receive " + what + whose, receive_stream, bucket,
                          Message::Direction::receive, {peer}, push_bytes(plan_, bucket, choice_.servers));
      receive.turn = 0;
      receive.writes = {pushed};
      const int received = add_op(program_, std::move(receive));

      Op update = update_op(program_, "update " + what + whose, update_stream, bucket, part.work);
      update.turn = 1;
      update.after = {{received}};
      update.reads = {pushed};
      update.writes = {part.weights};
      if (part.optimizer >= 0) update.writes.push_back(part.optimizer);
      const int updated = add_op(program_, std::move(update));
      program_.ops[received].after = {{updated, 1}};
      int sent_after = updated;
      if (choice_.mode == ParameterServer::Mode::stale_synchronous) {
        add_op(program_, told_of(what, update_stream));
        sent_after = add_op(program_, not_too_far_ahead(what, send_stream, updated));
      }
      Op send = bucket_exchange(program_, "send " + what + whose, send_stream, bucket,
                                Message::Direction::send, {peer}, pull_bytes(plan_, bucket, choice_.servers));
      send.turn = 2;
      if (sent_after == updated) send.after = {{updated}};
      send.reads = {part.weights};
      const int sent = add_op(program_, std::move(send));
      if (&part == &parts.back()) {
        asynchrony_.applies.push_back(updated);
        asynchrony_.sends.push_back(sent);
      }
    }
    for (const std::string& stream : {receive_stream, update_stream, send_stream})
      repeat(stream, OpKind::repeat_end);
  }

  // Counter r of a bucket counts the workers whose gradients of round r have been applied.
  Op told_of(const std::string& what, const std::string& stream) {
    Op op;
    op.name = "count " + what;
    op.kind = OpKind::signal;
    op.stream = stream_named(program_, stream);
    op.counter = {what, 0, 1};
    return op;
  }

  // After round r, a worker's clock is r + 1. The worker can continue if all others' clocks are at least r +
  // 1 - staleness, that is, if they have finished round r - staleness.
  Op not_too_far_ahead(const std::string& what, const std::string& stream, int updated) {
    Op op;
    op.name = "hold " + what;
    op.kind = OpKind::wait_until;
    op.stream = stream_named(program_, stream);
    op.counter = {what, -choice_.staleness, 1};
    op.at_least = plan_.scenario.strategy.data;
    op.after = {{updated}};
    return op;
  }

  void repeat(const std::string& stream, OpKind kind) {
    Op op;
    op.name = "rounds";
    op.kind = kind;
    op.stream = stream_named(program_, stream);
    op.count = 0;  // repeats until the workers stop
    add_op(program_, std::move(op));
  }

  StepPlan& plan_;
  const std::vector<StageProgram>& stages_;
  const Training& training_;
  const ParameterServer& choice_;
  const StateBytes state_;
  Program program_;
  Asynchrony asynchrony_;
  std::vector<std::vector<Part>> parts_;  // by stage
};

// The schedule's checks compare every op with every stream, and both numbers grow with the workers. Every
// round has one transfer per bucket between each worker and each server.
constexpr double kMostOpStreams = 1 << 20, kMostTransfersARound = 1 << 16;

}  // namespace

Program asynchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages) {
  const double workers = plan.schedule.roles.front().size();
  const double servers = plan.scenario.strategy.parameter_server.servers;
  std::size_t most_of_stage = 0;
  for (const StageProgram& stage : stages) most_of_stage = std::max(most_of_stage, stage.buckets.size());
  const auto buckets = static_cast<double>(most_of_stage);
  const double most =
      std::floor(std::min(kMostOpStreams / (workers * workers), kMostTransfersARound / (workers * servers)));
  if (buckets > most)
    throw InputError(
        {plan.scenario.name, 0, 0},
        fmt::format("strategy.bucket_mb makes {} buckets; allowed: at most {}, for {} workers of {} "
                    "asynchronous servers (buckets of more MB are fewer)",
                    buckets, most, workers, servers));
  return ServerWriter(plan, stages).write();
}

}  // namespace rehearse
