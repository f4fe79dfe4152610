#include "backend/runs/real_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "backend/loading/batch_input.hpp"
#include "backend/runs/checkpoints.hpp"
#include "backend/runtime/binding.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/placement.hpp"
#include "backend/training/bare_workload.hpp"
#include "backend/training/layer_shard.hpp"
#include "backend/training/sample_sources.hpp"
#include "backend/training/training_workload.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"

namespace rehearse {
namespace {

std::vector<double> timed_seconds(const Scenario& scenario, const Schedule& schedule, int endpoint) {
  const Device device = device_at(*scenario.cluster, endpoint);
  const double speed = scenario.cluster->device_factor(endpoint);
  std::vector<double> seconds;
  for (const Work& work : schedule.works) seconds.push_back(work_time_s(work, device, speed));
  return seconds;
}

std::vector<double> mean_losses(const std::vector<RankReport>& reports, const Scenario& scenario) {
  std::vector<double> losses;
  for (const RankReport& report : reports) {
    if (losses.size() < report.learned.losses.size()) losses.resize(report.learned.losses.size(), 0);
    for (std::size_t step = 0; step < report.learned.losses.size(); ++step)
      losses[step] += report.learned.losses[step];
  }
  const double samples = scenario.training.micro_batch * scenario.microbatches * scenario.strategy.data;
  for (double& loss : losses) loss /= samples;
  return losses;
}

bool is_forward(const Op& op) {
  return op.action.kind == Action::Kind::forward;
}

std::set<int> layers_held(const Program& program) {
  std::set<int> layers;
  for (const Op& op : program.ops)
    for (int i = op.first_layer; is_forward(op) && i <= op.last_layer; ++i) layers.insert(i);
  return layers;
}

// What workers that hold the same shards of the same layers learned.
struct Replicas {
  bool compared = false;  // there are such workers
  bool equal = true;      // bit for bit: gradients, if they are known, and final weights
  std::string differ;     // the first two ranks whose final weights differ, where they must not
};

// `same_order`: all ranks sum in the same order, so that they also agree on weights of which each computes a
// copy from equal values.
Replicas compare_replicas(const Scenario& scenario, const std::vector<RankReport>& reports,
                          const Schedule& schedule, const Wiring& wiring, bool same_order) {
  using Shards =
      std::pair<std::set<int>, std::vector<int>>;  // layers; coordinates on the factors that split them
  std::map<Shards, std::size_t> first_with_shards;
  std::map<std::set<int>, std::size_t> first_with_layers;
  const Mesh& mesh = schedule.roles.front().meshes.front();
  Replicas found;
  const auto differ = [&](std::size_t first, std::size_t other) {
    found.equal = false;
    if (found.differ.empty())
      found.differ =
          fmt::format("ranks {} and {} hold the same weights and ended with different ones", first, other);
  };
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const auto [role, rank] = wiring.place(static_cast<int>(r));
    if (role != 0) continue;
    const Workload::Learned& own = reports[r].learned;
    const Program& program = schedule.programs[schedule.program_of(role, rank)];
    const std::set<int> layers = layers_held(program);
    const auto [same_layers, first] = first_with_layers.try_emplace(layers, r);
    found.compared = found.compared || !first;
    if (const std::size_t other = same_layers->second; own.replicated != reports[other].learned.replicated) {
      found.equal = false;
      if (same_order) differ(other, r);
    }
    const auto [it, fresh] =
        first_with_shards.try_emplace({layers, factor_coordinates(scenario, mesh, place_of(mesh, rank))}, r);
    if (fresh) continue;
    const Workload::Learned& same = reports[it->second].learned;
    if (own.weights != same.weights) differ(it->second, r);
    found.equal = found.equal && own.gradients == same.gradients;
  }
  return found;
}

bool is_timed(const Scenario& scenario) {
  return scenario.run.compute == RealRun::Compute::timed;
}

std::string not_trained_because(const Scenario& scenario, const Schedule& schedule, bool on_processors) {
  return is_timed(scenario) ? "computation is timed" : why_not_trained(scenario, schedule, on_processors);
}

// Runs a program's computation once, without communication.
void compute_once(const Program& program, Workload& workload, Arithmetic& arithmetic) {
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    if (program.ops[i].kind == OpKind::compute) {
      const OpCall call{static_cast<int>(i), program.ops[i].stream, 0, 0};
      workload.prepare(call, [&] { arithmetic.settle(call.stream); });
      workload.compute(call);
    }
  for (int s = 0; s < arithmetic.streams(); ++s) arithmetic.settle(s);
}

// Returns when the rank's first step began, followed by the times when its steps ended.
std::vector<double> step_bounds(const std::vector<RankSpan>& spans, double begin_s, int steps) {
  std::vector<double> bounds_s(static_cast<std::size_t>(steps) + 1, begin_s);
  for (const RankSpan& span : spans) {
    double& end_s = bounds_s.at(static_cast<std::size_t>(span.call.step) + 1);
    end_s = std::max(end_s, span.end_s);
  }
  for (std::size_t i = 1; i < bounds_s.size(); ++i) bounds_s[i] = std::max(bounds_s[i], bounds_s[i - 1]);
  return bounds_s;
}

// Loads the checkpoint that the run continues from, and returns the object that writes further ones; null
// without checkpoints. Throws InputError if the training has state that checkpoints do not contain.
std::unique_ptr<CheckpointKeeper> begin_checkpoints(const CheckpointPlan* plan, const Scenario& scenario,
                                                    const std::string& not_trained, Transport& transport,
                                                    Workload& workload, Arithmetic& arithmetic) {
  if (plan == nullptr) return nullptr;
  TrainState* state = workload.state();
  const std::string why = state == nullptr ? not_trained : state->why_not_saved();
  if (!why.empty())
    throw InputError({},
                     fmt::format("{}: --checkpoints is given, but {}; allowed: a training whose weights and "
                                 "optimizer state are all that it continues from",
                                 scenario.name, why));
  if (plan->first() > 0) load_checkpoint(*plan, *state, arithmetic);
  return std::make_unique<CheckpointKeeper>(*plan, scenario, transport, *state, arithmetic);
}

// Runs all repetitions, and writes a checkpoint whenever one is due.
std::vector<RankSpan> execute_between_checkpoints(const Schedule& schedule, int role, int rank, int repeats,
                                                  Hardware& hardware,
                                                  const std::function<void(const RankSpan&)>& on_span,
                                                  const CheckpointPlan* plan, CheckpointKeeper* keeper) {
  if (plan == nullptr) return execute_rank(schedule, role, rank, repeats, hardware, on_span);
  std::vector<RankSpan> spans;
  const long before = plan->first();
  for (int first = 0, end = 0; first < repeats; first = end) {
    const long due = ((before + first) / plan->every + 1) * plan->every - before;
    end = static_cast<int>(std::min<long>(due, repeats));
    for (RankSpan& span :
         execute_rank(schedule, role, rank, Repetitions{first, end, end == repeats}, hardware, on_span))
      spans.push_back(span);
    if (end == due) keeper->save(before + end);
  }
  keeper->finish();
  std::stable_sort(spans.begin(), spans.end(),
                   [](const RankSpan& a, const RankSpan& b) { return a.call.stream < b.call.stream; });
  return spans;
}

constexpr const char* kNoInputOnGpus =
    "[data] is given; allowed with --device cpu: loaders of ranks on GPUs are only predicted";

// Returns the object that loads the rank's batches; null if no ops do.
std::unique_ptr<BatchInput> begin_input(const Scenario& scenario, const Plan& plan, const Wiring& wiring,
                                        int rank, const RealRunOptions& options,
                                        const std::shared_ptr<const SampleSource>& samples, long before) {
  const Schedule& schedule = *plan.schedule;
  const int program = wiring.communication().program_of_rank(rank);
  if (program < 0 || !loads_batches(schedule.programs[program])) return nullptr;
  BatchReader reader;
  reader.role_rank = wiring.place(rank).second;
  reader.endpoint = plan.endpoints[rank];
  reader.queues = options.queues;
  const auto loads = [&](int other) {
    const int its = wiring.communication().program_of_rank(other);
    return its >= 0 && loads_batches(schedule.programs[its]);
  };
  const int node = scenario.cluster->node_of(reader.endpoint);
  reader.apart = {0, 0};
  for (int other = 0; other < process_ranks(schedule); ++other) {
    if (!loads(other)) continue;
    ++reader.apart.of_all;
    if (scenario.cluster->node_of(plan.endpoints[other]) == node) ++reader.apart.of_node;
  }
  return std::make_unique<BatchInput>(scenario, schedule, schedule.programs[program], reader, samples,
                                      before * schedule.optimizer_steps);
}

// Describes what checkpoints did to the run.
std::vector<std::string> checkpoint_notes(const CheckpointPlan& plan,
                                          const std::vector<double>& held_back_s) {
  std::vector<std::string> notes;
  if (plan.first() > 0)
    notes.push_back(fmt::format("continues after step {} from {}", plan.first(), plan.from.folder));
  for (const std::string& why : plan.from.damaged)
    notes.push_back("a newer checkpoint was passed over: " + why);
  if (held_back_s.empty()) return notes;
  double sum_s = 0;
  for (const double seconds : held_back_s) sum_s += seconds;
  const double mean_ms = 1000 * sum_s / static_cast<double>(held_back_s.size());
  notes.push_back(
      held_back_s.size() == 1
          ? fmt::format("1 checkpoint held training back for {:.1f} ms", mean_ms)
          : fmt::format("{} checkpoints held training back for {:.1f} ms each", held_back_s.size(), mean_ms));
  return notes;
}

}  // namespace

void refuse_offload(const Scenario& scenario) {
  const OffloadTo to = scenario.strategy.offload.optimizer;
  if (to == OffloadTo::none) return;
  throw InputError(
      {}, fmt::format("{}: strategy.offload is \"{}\"; allowed: \"none\", because real ranks store optimizer "
                      "state and weights where they compute (rehearse simulate predicts the others)",
                      scenario.name, kOffloadNames[static_cast<std::size_t>(to)]));
}

void refuse_what_is_only_predicted(const Scenario& scenario) {
  if (scenario.data.given && scenario.cluster->storage().servers > 0)
    throw InputError(
        {},
        fmt::format("{}: data.storage.servers is {}; allowed: 0, because real ranks read files where they "
                    "run, and not from nodes of the cluster's fabric (rehearse simulate predicts that)",
                    scenario.name, scenario.cluster->storage().servers));
  const Framework& framework = scenario.framework;
  const auto refuse = [&](const char* key, const char* what) {
    throw InputError(
        {}, fmt::format("{}: framework.{} is true; allowed: false, because real ranks {} (rehearse simulate "
                        "predicts the others)",
                        scenario.name, key, what));
  };
  if (framework.narrow_gathers && casts_operands(scenario.training.precision))
    refuse("narrow_gathers", "gather tensors as they are stored");
  if (framework.expanded_keys && scenario.strategy.context > 1)
    refuse("expanded_keys", "send each key and value once");
}

void count_in_repetitions(Scenario& scenario, const Schedule& schedule) {
  if (!schedule.loads_ahead) return;
  const int rounds = steps_in_schedule(scenario);
  for (int* steps : {&scenario.run.steps, &scenario.run.warmup}) *steps = (*steps + rounds - 1) / rounds;
}

int real_repeats(const Scenario& scenario, const Schedule& schedule) {
  if (schedule.asynchrony) return schedule.repeats(scenario.run.steps);
  return scenario.run.warmup + scenario.run.steps;
}

std::optional<RealRunResult> run_rank(const Scenario& scenario, const Plan& plan, Transport& transport,
                                      const Executor& executor, const RealRunOptions& options) {
  const Schedule& schedule = *plan.schedule;
  const int needed = process_ranks(schedule), workers = schedule.roles[0].size();
  if (transport.ranks() != needed)
    throw RunError(fmt::format(
        "{} needs {} ranks{}; {} were started", scenario.name, needed,
        needed > workers ? fmt::format(" ({} workers, {} servers)", workers, needed - workers) : "",
        transport.ranks()));
  if (scenario.run.bind == RealRun::Bind::core) bind_to_core(transport);
  const int rank = transport.rank();
  const Wiring wiring(schedule, *scenario.cluster, plan.endpoints, scenario.engine.chunk_bytes);
  const int program = wiring.communication().program_of_rank(rank);
  const std::size_t streams = program < 0 ? 1 : schedule.programs[program].streams.size();
  const std::unique_ptr<Arithmetic> arithmetic = executor.arithmetic(static_cast<int>(streams));

  const bool timed = is_timed(scenario);
  const std::string not_trained = not_trained_because(scenario, schedule, executor.on_processors);
  const int repeats = real_repeats(scenario, schedule);
  const long repeated_before = options.checkpoints ? options.checkpoints->first() : 0;
  const std::shared_ptr<const SampleSource> samples =
      not_trained.empty() ? training_samples(scenario) : samples_to_read(scenario);
  const std::unique_ptr<BatchInput> input =
      begin_input(scenario, plan, wiring, rank, options, samples, repeated_before);
  if (input && !executor.on_processors) throw RunError(kNoInputOnGpus);
  const auto make_workload = [&](int planned_repeats) {
    if (not_trained.empty())
      return training_workload(scenario, schedule, wiring, rank, *arithmetic,
                               {options.check_replicas, repeated_before, planned_repeats,
                                executor.on_processors, samples, input.get()});
    return bare_workload(
        schedule, wiring, rank, *arithmetic,
        timed ? timed_seconds(scenario, schedule, plan.endpoints[rank]) : std::vector<double>(), input.get());
  };
  if (executor.rehearse && program >= 0 && !timed)
    compute_once(schedule.programs[program], *make_workload(1), *arithmetic);
  const std::unique_ptr<Workload> workload = make_workload(repeats);
  const std::unique_ptr<CheckpointKeeper> keeper =
      begin_checkpoints(options.checkpoints, scenario, not_trained, transport, *workload, *arithmetic);
  transport.open(wiring.channels_of(rank));
  const std::unique_ptr<Hardware> hardware =
      executor.hardware(schedule, wiring, rank, transport, *workload, *arithmetic);

  EndSampling end_sampling;
  if (executor.sample_gpu) end_sampling = executor.sample_gpu(*arithmetic);
  const ClockReading before = read_clock(transport);
  barrier(transport);
  const double begin_s = monotonic_s();
  const auto [role, own] = wiring.place(rank);
  RankReport report;
  // An asynchronous device reports times only at the end, and asking it for losses earlier would stall it.
  Journal* const journal = executor.on_processors ? options.journal : nullptr;
  if (journal && workload->tells_losses()) {
    journal->expect_losses(rank);
    workload->on_loss = [&](double loss) { journal->write_loss(rank, loss); };
  }
  std::function<void(const RankSpan&)> on_span;
  if (journal) on_span = [&](const RankSpan& span) { journal->write(rank, span); };
  report.spans = execute_between_checkpoints(schedule, role, own, repeats, *hardware, on_span,
                                             options.checkpoints, keeper.get());
  if (end_sampling) report.gpu = end_sampling(step_bounds(report.spans, begin_s, repeats));
  report.kernels = hardware->kernels();
  report.gpu.collectives = hardware->chosen_collectives();
  const CommonClock clock(before, read_clock(transport));
  for (RankSpan& span : report.spans)
    for (double* s : {&span.ready_s, &span.begin_s, &span.end_s}) *s = clock(*s);
  for (KernelSpan& kernel : report.kernels)
    for (double* s : {&kernel.begin_s, &kernel.end_s}) *s = clock(*s);
  report.learned = workload->learned();
  report.host = machine_name();
  report.clock_error_s = clock.error_s() + hardware->clock_error_s();

  const std::vector<std::string> packed = gather(transport, pack(report));
  if (rank != 0) {
    broadcast(transport, "");  // no rank leaves before rank 0 has everything
    return {};
  }
  RealRunResult result;
  for (const std::string& text : packed) result.reports.push_back(unpack(text));
  if (options.journal) options.journal->close();
  broadcast(transport, "");
  result.trace = record(scenario.name, plan.schedule, plan.endpoints, real_repeats(scenario, schedule),
                        *scenario.cluster, wiring, result.reports);
  result.not_trained = not_trained;
  if (not_trained.empty()) {
    result.losses = mean_losses(result.reports, scenario);
    if (!schedule.asynchrony) {
      const bool one_machine = std::all_of(result.reports.begin(), result.reports.end(),
                                           [&](const RankReport& each) { return each.host == report.host; });
      const bool same_order =
          executor.on_processors && one_machine && scenario.run.collectives != RealRun::Collectives::library;
      const Replicas replicas = compare_replicas(scenario, result.reports, schedule, wiring, same_order);
      if (options.check_replicas && replicas.compared) result.replicas_equal = replicas.equal;
      result.replicas_differ = replicas.differ;
    }
  }
  result.device = arithmetic->device_name();
  result.executor = executor.name;
  result.notes = executor.notes;
  result.versions = executor.versions;
  for (std::string& note : hardware->notes()) result.notes.push_back(std::move(note));
  if (input)
    for (std::string& note : input->notes()) result.notes.push_back(std::move(note));
  if (keeper)
    for (std::string& note : checkpoint_notes(*options.checkpoints, keeper->held_back_s()))
      result.notes.push_back(std::move(note));
  if (scenario.run.bind == RealRun::Bind::core) result.notes.emplace_back("each rank was bound to a core");
  for (const RankReport& each : result.reports)
    result.clock_error_s = std::max(result.clock_error_s, each.clock_error_s);
  return result;
}

std::optional<UnfinishedRun> unfinished_run(const Scenario& scenario, const Plan& plan,
                                            const Journal& journal) {
  const Schedule& schedule = *plan.schedule;
  UnfinishedRun run;
  run.of = real_repeats(scenario, schedule);
  std::vector<std::vector<RankSpan>> done;
  for (int rank = 0; rank < schedule.ranks(); ++rank) done.push_back(journal.read(rank));
  FinishedSteps finished = finished_steps(schedule, std::move(done), run.of);
  run.finished = finished.steps;
  if (journal.closed() || run.finished == 0) return {};
  for (std::vector<RankSpan>& spans : finished.spans) {
    run.reports.emplace_back().spans = std::move(spans);
    run.reports.back().host = machine_name();
  }
  const Wiring wiring(schedule, *scenario.cluster, plan.endpoints, scenario.engine.chunk_bytes);
  run.trace = record(scenario.name, plan.schedule, plan.endpoints, run.finished, *scenario.cluster, wiring,
                     run.reports);
  run.not_trained = not_trained_because(scenario, schedule, true);  // runs on GPUs have no journal
  const std::vector<std::vector<double>> losses = journal.losses();
  const std::size_t most = static_cast<std::size_t>(run.finished * schedule.optimizer_steps);
  for (std::size_t rank = 0; rank < losses.size(); ++rank) {
    RankReport& report = run.reports[rank];
    report.spans.clear();
    report.learned.losses = losses[rank];
    if (losses[rank].size() > most) report.learned.losses.resize(most);
  }
  run.losses = mean_losses(run.reports, scenario);
  return run;
}

}  // namespace rehearse
