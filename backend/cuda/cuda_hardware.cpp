#include "backend/cuda/cuda_hardware.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define REHEARSE_HAVE_NVTX
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "backend/cuda/check.hpp"
#include "backend/cuda/cuda_clock.hpp"
#include "backend/cuda/kernel_recorder.hpp"
#include "backend/cuda/nccl_calls.hpp"
#include "backend/cuda/rank_links.hpp"
#include "backend/cuda/step_graphs.hpp"
#include "backend/runtime/control.hpp"

namespace rehearse {
namespace {

// Names what a host thread issues; Nsight Systems shows the name beside the GPU's operations.
class NvtxRange {
public:
#ifdef REHEARSE_HAVE_NVTX
  explicit NvtxRange(const std::string& name) {
    nvtxRangePushA(name.c_str());
  }
  ~NvtxRange() {
    nvtxRangePop();
  }
#else
  explicit NvtxRange(const std::string&) {}
#endif
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

constexpr std::string_view kNoGraph =
    "which a CUDA graph cannot do; allowed: cuda_graphs = false, or a run without --check-replicas, timed "
    "computation and measured kernels, whose data fit into memory";

// Returns a note on NCCL's choices for the first few kinds and sizes of collectives.
std::string choices_note(const std::vector<ChosenCollective>& chosen) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> told;
  for (const ChosenCollective& c : chosen) {
    std::string text = fmt::format("{} of {:.4g} MB by {}, {}, {} channels", c.kind, 1e-6 * c.bytes,
                                   c.algorithm, c.protocol, c.channels);
    if (std::find(told.begin(), told.end(), text) == told.end()) told.push_back(std::move(text));
  }
  if (told.empty()) return "NCCL reported no choices for its collectives";
  std::string note = "NCCL chose";
  for (std::size_t i = 0; i < std::min(kMost, told.size()); ++i) note += (i == 0 ? ": " : "; ") + told[i];
  if (told.size() > kMost) note += fmt::format("; and {} others", told.size() - kMost);
  return note;
}

class CudaHardware : public Hardware {
public:
  CudaHardware(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
               Workload& workload, CudaArithmetic& arithmetic, const CudaHardwareOptions& options)
      : schedule_(schedule),
        rank_(rank),
        workload_(workload),
        arithmetic_(arithmetic),
        options_(options),
        program_(schedule.programs[static_cast<std::size_t>(wiring.communication().program_of_rank(rank))]),
        lanes_(program_.streams.size()) {
    refuse_unordered(schedule, wiring.communication());
    CHECKED(cudaSetDevice(arithmetic.device()));
    if (options_.graphs) refuse_graphs();
    links_.emplace(schedule, wiring, rank, transport, arithmetic, options);
    CHECKED(cudaDeviceSynchronize());  // earlier work on other streams has ended
    if (options_.kernels) record_kernels();
    clock_.emplace(arithmetic.stream(0));
    if (options_.graphs) {
      std::vector<cudaStream_t> streams;
      for (std::size_t i = 0; i < lanes_.size(); ++i)
        streams.push_back(arithmetic.stream(static_cast<int>(i)));
      graphs_.emplace(streams);
    }
    watch_ = std::thread([this] { watch(); });
  }

  ~CudaHardware() override {
    stopped_ = true;
    watch_.join();
    (void)cudaSetDevice(arithmetic_.device());
  }

  void begin_step(int stream) override {
    lane_of(stream);
    if (graphs_) graphs_->begin(stream);
  }

  void end_step(int stream) override {
    lane_of(stream);
    if (graphs_) graphs_->end(stream);
  }

  // Records two events per mark when capturing graphs: there, an event either measures time or orders
  // streams, not both.
  Moment mark(int stream) override {
    Lane& lane = lane_of(stream);
    CudaEvent event;
    CHECKED(cudaEventRecordWithFlags(event.get(), arithmetic_.stream(stream),
                                     graphs_ ? cudaEventRecordExternal : cudaEventRecordDefault));
    std::optional<CudaEvent> order;
    if (graphs_)
      CHECKED(cudaEventRecord(order.emplace(cudaEventDisableTiming).get(), arithmetic_.stream(stream)));
    const std::lock_guard lock(mutex_);
    lane.marks.push_back(std::move(event));
    if (graphs_) lane.orders.push_back({std::move(*order), graphs_->step()});
    lane.calls.push_back(lane.call);
    const std::size_t number = (lane.marks.size() - 1) * lanes_.size() + static_cast<std::size_t>(stream);
    return {0, static_cast<int>(number)};
  }

  void wait_for(int stream, const Moment& moment) override {
    lane_of(stream);
    cudaEvent_t event = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const Lane& other = lanes_[lane_number(moment)];
      event =
          graphs_ ? other.orders[mark_number(moment)].event.get() : other.marks[mark_number(moment)].get();
      // The graphs of earlier steps have ended before this step's graph begins.
      if (graphs_ && other.orders[mark_number(moment)].step < graphs_->step()) return;
    }
    CHECKED(cudaStreamWaitEvent(arithmetic_.stream(stream), event, 0));
  }

  // The watchdog aborts hung kernels, which ends this loop.
  void settle(int stream) override {
    constexpr double kAwake_s = 1e-3;
    const double begin_s = monotonic_s();
    lane_of(stream);
    if (graphs_) graphs_->launch();
    for (;;) {
      const cudaError_t status = cudaStreamQuery(arithmetic_.stream(stream));
      if (status == cudaSuccess) break;
      if (status != cudaErrorNotReady) check_status(status, "cudaStreamQuery");
      if (monotonic_s() - begin_s < kAwake_s)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    lane_of(stream);  // throws if the work ended because the run failed
  }

  double seconds(const Moment& moment) override {
    if (times_.empty()) {
      CHECKED(cudaSetDevice(arithmetic_.device()));
      clock_->end(arithmetic_.stream(0));
      for (const Lane& lane : lanes_) times_.push_back(clock_->seconds(lane.marks));
    }
    return times_[lane_number(moment)][mark_number(moment)];
  }

  // Where the workload reads results, it waits for them here, so that the wait is bounded and not part of the
  // op's time.
  void prepare(const OpCall& call) override {
    lane_of(call.stream);
    workload_.prepare(call, [&] {
      if (graphs_) throw RunError("the workload looks at results during a step, " + std::string(kNoGraph));
      settle(call.stream);
    });
  }

  void compute(const OpCall& call) override {
    const Op& op = begin(call);
    const NvtxRange range(op.name);
    if (on_host(op)) settle(call.stream);
    const LaunchedBy launched(kernels_.get(), call);
    workload_.compute(call);
  }

  void host(const OpCall& call) override {
    const Op& op = begin(call);
    const NvtxRange range(op.name);
    settle(call.stream);
    std::this_thread::sleep_for(std::chrono::duration<double>(op.seconds));
  }

  Exchanged exchange(const OpCall& call, int, const std::function<void()>&) override {
    const Op& op = begin(call);
    const NvtxRange range(op.name);
    const LaunchedBy launched(kernels_.get(), call);
    const cudaStream_t own = arithmetic_.stream(call.stream);
    const cudaEvent_t ready = lanes_[static_cast<std::size_t>(call.stream)].ready.get();
    const std::vector<ExchangePart>& parts = links_->exchange(call.op);
    // The workload may issue work to `own` that fills a message, so `ready` is recorded after all of them.
    std::vector<Payload> payloads;
    for (const ExchangePart& part : parts) payloads.push_back(workload_.message(call, part));
    CHECKED(cudaEventRecord(ready, own));
    std::vector<NcclCall> calls;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const RankLink& link = links_->link(parts[i]);
      CHECKED(cudaStreamWaitEvent(link.stream.get(), ready, 0));
      calls.push_back(
          {link.nccl.get(), [&link, send = parts[i].send, payload = payloads[i]](ncclComm_t nccl) {
             return nccl_message(nccl, send, payload, 1 - link.member, link.stream.get());
           }});
    }
    issue(op.name, calls);
    for (const ExchangePart& part : parts) {
      const RankLink& link = links_->link(part);
      CHECKED(cudaEventRecord(link.arrived.get(), link.stream.get()));
      CHECKED(cudaStreamWaitEvent(own, link.arrived.get(), 0));
    }
    return {};
  }

  void collective(const OpCall& call) override {
    const Op& op = begin(call);
    const CollectiveWiring* wiring = links_->collective(call.op);
    if (wiring == nullptr) return;
    const NvtxRange range(op.name);
    const LaunchedBy launched(kernels_.get(), call);
    links_->issue_collective(call.op, call.stream, workload_.collective(call, *wiring));
    workload_.after_collective(call);
  }

  double clock_error_s() const override { return clock_->error_s(); }
  std::vector<KernelSpan> kernels() override {
    return kernels_ ? kernels_->end() : std::vector<KernelSpan>();
  }

  std::vector<ChosenCollective> chosen_collectives() const override { return links_->chosen_collectives(); }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = links_->notes();
    for (std::string& note : arithmetic_.notes()) notes.push_back(std::move(note));
    if (options_.choices)
      if (std::string choices = choices_note(chosen_collectives()); !choices.empty())
        notes.push_back(std::move(choices));
    if (!kernels_unknown_.empty()) notes.push_back("GPU kernels are not recorded: " + kernels_unknown_);
    if (kernels_)
      notes.emplace_back("GPU kernels were recorded by CUPTI, which slows down their launch by the host");
    if (kernels_ && kernels_->dropped() > 0)
      notes.push_back(fmt::format("CUPTI had no room for {} records of kernels", kernels_->dropped()));
    return notes;
  }

  void end_messages() override {}  // schedules with programs that need it were refused

  void abort(const std::string& why) override { fail(why); }

private:
  struct Lane {
    std::vector<CudaEvent> marks;
    struct Order {
      CudaEvent event;
      int step = 0;
    };
    std::vector<Order> orders;  // by mark, for graphs: what other streams wait for
    std::vector<OpCall> calls;  // by mark: the last call issued before it
    std::size_t passed = 0;     // marks that the watchdog has seen the GPU pass
    OpCall call{-1, 0, 0, 0};
    CudaEvent ready{cudaEventDisableTiming};
  };

  std::size_t lane_number(const Moment& m) const { return static_cast<std::size_t>(m.event) % lanes_.size(); }
  std::size_t mark_number(const Moment& m) const { return static_cast<std::size_t>(m.event) / lanes_.size(); }

  // Selects the device for the calling thread, whose current device may differ. Throws RunError if the run
  // has failed.
  Lane& lane_of(int stream) {
    CHECKED(cudaSetDevice(arithmetic_.device()));
    if (failed_) {
      const std::lock_guard lock(mutex_);
      throw RunError(failure_);
    }
    return lanes_[static_cast<std::size_t>(stream)];
  }

  const Op& begin(const OpCall& call) {
    Lane& lane = lane_of(call.stream);
    const std::lock_guard lock(mutex_);
    lane.call = call;
    return program_.ops[static_cast<std::size_t>(call.op)];
  }

  bool on_host(const Op& op) const {
    if (options_.timed) return true;
    if (op.work < 0) return false;
    const std::vector<Kernel>& kernels = schedule_.works[static_cast<std::size_t>(op.work)].kernels;
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const Kernel& k) { return k.kind == Kernel::Kind::fixed; });
  }

  // If recording fails, the run goes on without it.
  void record_kernels() {
    try {
      kernels_ = std::make_unique<KernelRecorder>();
    } catch (const RunError& error) {
      kernels_unknown_ = error.what();
    }
  }

  void refuse_graphs() const {
    for (const Op& op : program_.ops)
      if (op.kind == OpKind::host || op.kind == OpKind::signal || op.kind == OpKind::wait_until ||
          on_host(op))
        throw RunError(fmt::format("op \"{}\" is carried out by the host, {}", op.name, kNoGraph));
  }

  void fail(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_) return;
      failure_ = why;
      failed_ = true;
    }
    if (graphs_) graphs_->abort();
    // If NCCL's kernels do not stop, ending the process is the only way out.
    if (links_->abort()) return;
    std::cerr << "rehearse-run: rank " << rank_ << ": " << why << "; NCCL does not stop\n" << std::flush;
    std::_Exit(1);
  }

  // Runs in a separate thread as a watchdog, since all other threads may be waiting for the GPU: fails the
  // run on errors and when nothing moves for too long.
  void watch() {
    (void)cudaSetDevice(arithmetic_.device());
    double moved_s = monotonic_s();
    while (!stopped_ && !failed_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (const std::string error = links_->error(); !error.empty()) return fail("NCCL: " + error);
      const Progress progress = look();
      if (progress.error != cudaSuccess)
        return fail(fmt::format("{}: {}", progress.waits_for, cudaGetErrorString(progress.error)));
      if (progress.moved || progress.waits_for.empty()) moved_s = monotonic_s();
      if (monotonic_s() - moved_s > options_.patience_s)
        return fail(fmt::format("{} has not ended for {:.3g} s: a peer has failed or hangs",
                                progress.waits_for, options_.patience_s));
    }
  }

  struct Progress {
    bool moved = false;
    std::string waits_for;  // prefers messages and collectives; empty: nothing is running
    cudaError_t error = cudaSuccess;
  };
  Progress look_at_graphs() {
    const StepGraphs::Progress now = graphs_->progress();
    Progress progress;
    progress.moved = now.ended > graphs_ended_;
    graphs_ended_ = now.ended;
    progress.error = now.error;
    if (now.ended < now.launched) progress.waits_for = fmt::format("the CUDA graph of step {}", now.ended);
    return progress;
  }

  Progress look() {
    if (graphs_) return look_at_graphs();
    Progress progress;
    bool communicates = false;
    const std::lock_guard lock(mutex_);
    for (Lane& lane : lanes_) {
      cudaError_t status = cudaSuccess;
      while (lane.passed < lane.marks.size() &&
             (status = cudaEventQuery(lane.marks[lane.passed].get())) == cudaSuccess) {
        ++lane.passed;
        progress.moved = true;
      }
      if (status == cudaSuccess) continue;
      if (status != cudaErrorNotReady) progress.error = status;
      const OpCall& call =
          lane.calls[lane.passed];  // has not ended, or the next call waits for another stream
      const Op* op = call.op < 0 ? nullptr : &program_.ops[static_cast<std::size_t>(call.op)];
      const bool its =
          op != nullptr && (op->kind == OpKind::exchange || op->kind == OpKind::collective) && !communicates;
      if (its || progress.waits_for.empty())
        progress.waits_for = op == nullptr ? "the first op of a stream"
                                           : fmt::format("op \"{}\" of step {}", op->name, call.step);
      communicates = communicates || its;
    }
    return progress;
  }

  const Schedule& schedule_;
  const int rank_;
  Workload& workload_;
  CudaArithmetic& arithmetic_;
  const CudaHardwareOptions options_;
  const Program& program_;
  std::optional<RankLinks> links_;
  std::optional<CudaClock> clock_;
  std::unique_ptr<KernelRecorder> kernels_;  // null: kernels are not recorded
  std::string kernels_unknown_;              // why they are not, if recording was requested
  std::optional<StepGraphs> graphs_;
  std::size_t graphs_ended_ = 0;
  std::vector<std::vector<double>> times_;  // by stream and mark
  std::mutex mutex_;                        // guards the lanes' marks and calls, and the failure
  std::vector<Lane> lanes_;
  std::string failure_;
  std::atomic<bool> failed_{false}, stopped_{false};
  std::thread watch_;
};

}  // namespace

std::unique_ptr<Hardware> cuda_hardware(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Transport& transport, Workload& workload, CudaArithmetic& arithmetic,
                                        const CudaHardwareOptions& options) {
  return std::make_unique<CudaHardware>(schedule, wiring, rank, transport, workload, arithmetic, options);
}

}  // namespace rehearse
