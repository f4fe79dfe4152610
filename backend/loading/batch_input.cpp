#include "backend/loading/batch_input.hpp"

#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/host.hpp"
#include "simulator/input/batch_loader.hpp"
#include "simulator/schedule/program_index.hpp"
#include "simulator/strategies/programs/stage_input.hpp"

namespace rehearse {
namespace {

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Keeps a core busy for some microseconds.
void compute_a_little() {
  volatile float result = 0;
  float x = 1;
  for (int i = 0; i < 4096; ++i) x = x * 0.999f + 0.5f;
  result = x;
  (void)result;
}

std::size_t rows_of(const Scenario& scenario) {
  return static_cast<std::size_t>(std::max(1L, std::lround(scenario.training.micro_batch)));
}

}  // namespace

bool loads_batches(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const Op& op) { return op.purpose == Purpose::input; });
}

BatchInput::BatchInput(const Scenario& scenario, const Schedule& schedule, const Program& program,
                       const BatchReader& reader, std::shared_ptr<const SampleSource> source, long first_step)
    : scenario_(scenario),
      program_(program),
      role_(schedule.roles[static_cast<std::size_t>(program.role)]),
      role_rank_(reader.role_rank),
      timed_(scenario.run.compute == RealRun::Compute::timed),
      loading_(input_rates(scenario).loading),
      source_(std::move(source)),
      queues_(reader.queues),
      path_(storage_path(*scenario.cluster, reader.endpoint,
                         reader.queues != nullptr ? StorageReaders{} : reader.apart)),
      loads_or_copies_(program.ops.size()),
      read_by_(program.ops.size(), -1),
      optimizer_steps_(schedule.optimizer_steps),
      first_step_(static_cast<std::uint64_t>(first_step)),
      samples_(rows_of(scenario)) {
  const Mesh& workers = role_.meshes.front();
  data_rank_ = static_cast<std::uint64_t>(workers.coordinate(role_rank_, workers.axis("data")));
  if (queues_ == nullptr) {
    own_queues_ = std::make_unique<RateQueues>(StoragePath::queues(*scenario.cluster));
    queues_ = own_queues_.get();
  }
  for (const BatchOps& ops : batches_of(program)) {
    loads_or_copies_[static_cast<std::size_t>(ops.load)] = {batches_, false};
    loads_or_copies_[static_cast<std::size_t>(ops.copy)] = {batches_, true};
    if (ops.read >= 0) read_by_[static_cast<std::size_t>(ops.read)] = batches_;
    ++batches_;
  }
  const ProgramIndex index(schedule, program);
  for (std::size_t op = 0; op < program.ops.size(); ++op)
    if (loads_or_copies_[op].number >= 0 && index.per_step[op] != 1)
      throw RunError(fmt::format("op \"{}\" is repeated in a step, which real loaders do not support",
                                 program.ops[op].name));
  loaded_.resize(static_cast<std::size_t>(loading_.in_flight));
  copied_.resize(static_cast<std::size_t>(scenario.data.loader.device_batches));
}

std::uint64_t BatchInput::batch_number(const OpCall& call, int number) const {
  return static_cast<std::uint64_t>(call.step) * static_cast<std::uint64_t>(batches_) +
         static_cast<std::uint64_t>(number);
}

void BatchInput::carry_out(const OpCall& call) {
  const Slot slot = loads_or_copies_[static_cast<std::size_t>(call.op)];
  if (!slot.copies) return load(call, slot.number);
  const Op& op = program_.ops[static_cast<std::size_t>(call.op)];
  const std::uint64_t batch = batch_number(call, slot.number);
  PreparedBatch& from = loaded_[batch % loaded_.size()];
  PreparedBatch& to = copied_[batch % copied_.size()];
  if (op.host_bytes > 0)  // a device with a memory of its own
    to = from;
  else
    std::swap(from, to);
  if (timed_) wait_until(monotonic_s() + host_time_s(op, scenario_.cluster->node()));
}

const PreparedBatch* BatchInput::batch_for(const OpCall& call) const {
  const int number = read_by_[static_cast<std::size_t>(call.op)];
  return number < 0 ? nullptr : &copied_[batch_number(call, number) % copied_.size()];
}

BatchInput::OfSample BatchInput::of_sample(const Op& op) const {
  const auto samples = static_cast<double>(samples_);
  const Data& data = scenario_.data;
  OfSample each;
  const bool reads = op.kind == OpKind::exchange;
  if (reads) each.bytes = op.messages.front().bytes.at(role_, role_rank_) / samples;
  if (reads && each.bytes <= 0) return each;  // another rank of its tensor group reads for it
  if (reads) {
    const double operations =
        data.record_bytes > 0 ? each.bytes / data.record_bytes : each.bytes / data.sample_bytes;
    each.read_s = operations * data.access.latency_s;
    if (data.access.reader_bytes_per_s > 0) each.read_s += each.bytes / data.access.reader_bytes_per_s;
  }
  const bool together = data.loader.kind == LoaderKind::samples;
  // Real preparation is slowed down by whatever else runs on the cores.
  each.prepare_s = timed_ ? loading_.prepare_s * (together ? std::max(1, data.loader.workers) : 1) / samples
                          : data.core_s.value * loading_.samples / samples;
  return each;
}

void BatchInput::load(const OpCall& call, int number) {
  const Op& op = program_.ops[static_cast<std::size_t>(call.op)];
  PreparedBatch& batch = loaded_[batch_number(call, number) % loaded_.size()];
  // Samples are numbered over all data-parallel ranks, and in the order in which one rank would train on
  // them.
  const auto microbatches = static_cast<std::uint64_t>(scenario_.microbatches);
  const std::uint64_t step =
      first_step_ + static_cast<std::uint64_t>(call.step) * static_cast<std::uint64_t>(optimizer_steps_) +
      static_cast<std::uint64_t>(number) / microbatches;
  const std::uint64_t ranks = static_cast<std::uint64_t>(scenario_.strategy.data);
  const std::uint64_t first =
      ((step * ranks + data_rank_) * microbatches + static_cast<std::uint64_t>(std::max(0, op.microbatch))) *
      samples_;
  batch.samples.resize(samples_);
  for (std::size_t i = 0; i < samples_; ++i) batch.samples[i] = first + i;
  if (source_) batch.rows.resize(samples_ * source_->numbers());

  const OfSample each = of_sample(op);
  const bool together = scenario_.data.loader.kind == LoaderKind::samples;
  const std::size_t threads =
      together ? std::min(samples_, static_cast<std::size_t>(std::max(1, scenario_.data.loader.workers))) : 1;
  std::vector<std::exception_ptr> failures(threads);
  const auto part = [&](std::size_t thread) {
    try {
      load_rows(each, thread, threads, batch);
    } catch (...) {
      failures[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(part, thread);
  part(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  const std::lock_guard lock(figures_);
  ++loads_;
}

// Loads every `stride`-th sample. The time is kept as that of a worker that is never woken late, so what
// single sleeps take too long does not add up.
void BatchInput::load_rows(const OfSample& each, std::size_t first, std::size_t stride,
                           PreparedBatch& batch) {
  double time_s = monotonic_s(), files_s = 0, held_s = 0;
  for (std::size_t i = first; i < samples_; i += stride) {
    const double began_s = monotonic_s();
    if (source_) source_->read(batch.samples[i], 0, source_->numbers(), &batch.rows[i * source_->numbers()]);
    const double took_s = source_ ? monotonic_s() - began_s : 0;
    double read_s = time_s + std::max(took_s, each.read_s);
    if (each.bytes > 0)
      for (const StoragePath::Leg& leg : path_.legs)
        read_s = std::max(read_s, queues_->serve(leg.queue, time_s, each.bytes, leg.bytes_per_s));
    files_s += took_s;
    held_s += read_s - time_s - took_s;
    time_s = prepare(each.prepare_s, read_s);
  }
  const std::lock_guard lock(figures_);
  files_s_ += files_s;
  held_s_ += held_s;
}

// Prepares a sample that has been read at `read_s`; returns when that ends. If computing is only timed, so is
// preparation; otherwise it takes that many seconds of a core.
double BatchInput::prepare(double seconds, double read_s) const {
  const double end_s = read_s + (timed_ ? seconds : 0);
  wait_until(end_s);
  if (timed_ || seconds <= 0) return end_s;
  const double until_s = thread_cpu_s() + seconds;
  while (thread_cpu_s() < until_s) {
    compute_a_little();
    refuse_if_stopped();
  }
  return monotonic_s();
}

void BatchInput::refuse_if_stopped() const {
  if (stopped_) throw RunError("loading was stopped because another stream has failed");
}

void BatchInput::wait_until(double time_s) const {
  constexpr double kLongest_s = 0.05;  // until a failure of another stream is noticed
  for (;;) {
    refuse_if_stopped();
    const double left_s = time_s - monotonic_s();
    if (left_s <= 0) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left_s, kLongest_s)));
  }
}

std::vector<std::string> BatchInput::notes() const {
  const std::lock_guard lock(figures_);
  if (loads_ == 0) return {};
  std::vector<std::string> all;
  const Data& data = scenario_.data;
  const auto ms = [&](double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds / loads_); };
  const std::string at = loading_.reads() ? fmt::format(" as fast as {}", data.access.title) : "";
  if (!source_)
    all.push_back(
        fmt::format("no samples are read, since run.data names no folder: loading only takes the time{}",
                    loading_.reads() ? " of the storage and of preparation" : " of preparation"));
  else
    all.push_back(fmt::format(
        "reading took rank 0 {} a batch{}", ms(files_s_),
        held_s_ > 0 ? fmt::format(", and {} more to be no faster than {}", ms(held_s_), data.access.title)
                    : ""));
  if (source_ && loading_.reads() && files_s_ / loads_ > loading_.read_s)
    all.push_back(fmt::format("that is slower than the scenario's storage, which takes {:.3g} ms",
                              1e3 * loading_.read_s));
  if (own_queues_ && !path_.legs.empty())
    all.emplace_back(
        "ranks that were started elsewhere share no bandwidth: each has an equal part of the storage's");
  if (!source_) return all;
  for (std::string& note : source_->notes()) all.push_back(std::move(note));
  if (const double stored = source_->stored_bytes();
      stored > 0 && std::abs(stored / data.sample_bytes - 1) > 0.01)
    all.push_back(
        fmt::format("a sample of {} has {:.4g} kB, and data.sample_kb is {:.4g}: the storage is charged "
                    "with the latter",
                    scenario_.run.data, stored / 1024, data.sample_bytes / 1024));
  return all;
}

}  // namespace rehearse
