#include "backend/cuda/cuda_hardware.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "backend/cuda/check.hpp"
#include "backend/cuda/cuda_clock.hpp"
#include "backend/cuda/nccl_calls.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/runtime/communicators.hpp"
#include "backend/runtime/control.hpp"

namespace rehearse {
namespace {

// Names what a host thread issues, for Nsight Systems, which shows it beside what the GPU makes of it.
class NvtxRange {
public:
  explicit NvtxRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

class OwnedStream {
public:
  OwnedStream() { CHECKED(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnedStream() { (void)cudaStreamDestroy(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

// This rank's end of a communicator. Messages have a stream of their own, so that those of one exchange go at
// the same time, as the schedule has it: kernels of different communicators on one stream follow one another,
// and ranks that all send first would wait for ever.
struct Link {
  Link(const Communicator& c, int rank)
      : members(static_cast<int>(c.ranks.size())), member(c.member_of(rank)) {}
  int members, member;
  OwnedStream stream;
  CudaEvent arrived{cudaEventDisableTiming};
  std::unique_ptr<NcclCommunicator> nccl;
};

class CudaHardware : public Hardware {
public:
  CudaHardware(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
               Workload& workload, CudaArithmetic& arithmetic, const CudaHardwareOptions& options)
      : schedule_(schedule),
        rank_(rank),
        workload_(workload),
        arithmetic_(arithmetic),
        options_(options),
        program_number_(wiring.communication().program_of_rank(rank)),
        program_(schedule.programs[static_cast<std::size_t>(program_number_)]) {
    refuse_unordered(schedule, wiring.communication());
    CHECKED(cudaSetDevice(arithmetic.device()));
    lanes_ = std::vector<Lane>(program_.streams.size());
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      const int n = static_cast<int>(i);
      exchanges_.push_back(op.kind == OpKind::exchange ? wiring.exchange(rank, n)
                                                       : std::vector<ExchangePart>());
      collectives_.push_back(op.kind == OpKind::collective ? wiring.collective(rank, n) : nullptr);
      const Communication& communication = wiring.communication();
      transfer_.push_back(collectives_.back() == nullptr
                              ? -1
                              : communication.at(rank, communication.slot(program_number_, n, 0)).front());
    }
    try {
      connect(communicators(schedule, wiring.communication()), transport);
    } catch (...) {
      for (const auto& [transfer, link] : links_)
        if (link->nccl) link->nccl->abort();  // peers may be gone
      throw;
    }
    CHECKED(cudaDeviceSynchronize());  // nothing of what came before still runs on another stream
    clock_.emplace(arithmetic.stream(0));
    watch_ = std::thread([this] { watch(); });
  }

  ~CudaHardware() override {
    stopped_ = true;
    watch_.join();
    (void)cudaSetDevice(arithmetic_.device());
  }

  Moment mark(int stream) override {
    Lane& lane = lane_of(stream);
    CudaEvent event;
    CHECKED(cudaEventRecord(event.get(), arithmetic_.stream(stream)));
    const std::lock_guard lock(mutex_);
    lane.marks.push_back(std::move(event));
    lane.calls.push_back(lane.call);
    const std::size_t number = (lane.marks.size() - 1) * lanes_.size() + static_cast<std::size_t>(stream);
    return {0, static_cast<int>(number)};
  }

  void wait_for(int stream, const Moment& moment) override {
    lane_of(stream);
    cudaEvent_t event = nullptr;
    {
      const std::lock_guard lock(mutex_);
      event = lanes_[lane_number(moment)].marks[mark_number(moment)].get();
    }
    CHECKED(cudaStreamWaitEvent(arithmetic_.stream(stream), event, 0));
  }

  // The watch ends what hangs, and this with it.
  void settle(int stream) override {
    constexpr double kAwake_s = 1e-3;
    const double begin_s = monotonic_s();
    lane_of(stream);
    for (;;) {
      const cudaError_t status = cudaStreamQuery(arithmetic_.stream(stream));
      if (status == cudaSuccess) break;
      if (status != cudaErrorNotReady) check_status(status, "cudaStreamQuery");
      if (monotonic_s() - begin_s < kAwake_s)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    lane_of(stream);  // what was aborted has ended as well
  }

  double seconds(const Moment& moment) override {
    if (times_.empty()) {
      CHECKED(cudaSetDevice(arithmetic_.device()));
      clock_->end(arithmetic_.stream(0));
      for (const Lane& lane : lanes_) times_.push_back(clock_->seconds(lane.marks));
    }
    return times_[lane_number(moment)][mark_number(moment)];
  }

  // Where the workload looks at results, waiting for them here is bounded and lies outside the op's time.
  void prepare(const OpCall& call) override {
    lane_of(call.stream);
    workload_.prepare(call, [&] { settle(call.stream); });
  }

  void compute(const OpCall& call) override {
    const Op& op = begin(call);
    const NvtxRange range(op.name);
    if (on_host(op)) settle(call.stream);
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
    const cudaStream_t own = arithmetic_.stream(call.stream);
    const cudaEvent_t ready = lanes_[static_cast<std::size_t>(call.stream)].ready.get();
    const std::vector<ExchangePart>& parts = exchanges_[static_cast<std::size_t>(call.op)];
    // The workload may issue to `own` what fills a message, so that `ready` comes after all of them.
    std::vector<Payload> payloads;
    for (const ExchangePart& part : parts) payloads.push_back(workload_.message(call, part));
    CHECKED(cudaEventRecord(ready, own));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Link& link = *links_.at(parts[i].channel);
      CHECKED(cudaStreamWaitEvent(link.stream.get(), ready, 0));
      link.nccl->issue(op.name, [&](ncclComm_t nccl) {
        return nccl_message(nccl, parts[i].send, payloads[i], 1 - link.member, link.stream.get());
      });
      CHECKED(cudaEventRecord(link.arrived.get(), link.stream.get()));
    }
    for (const ExchangePart& part : parts)
      CHECKED(cudaStreamWaitEvent(own, links_.at(part.channel)->arrived.get(), 0));
    return {};
  }

  void collective(const OpCall& call) override {
    const Op& op = begin(call);
    const std::shared_ptr<const CollectiveWiring>& wiring = collectives_[static_cast<std::size_t>(call.op)];
    if (!wiring) return;
    const NvtxRange range(op.name);
    const Link& link = *links_.at(transfer_[static_cast<std::size_t>(call.op)]);
    const Payload payload = workload_.collective(call, *wiring);
    link.nccl->issue(op.name, [&](ncclComm_t nccl) {
      return nccl_collective(nccl, op.collective.kind, payload, link.members, link.member,
                             arithmetic_.stream(call.stream));
    });
  }

  void end_messages() override {}  // schedules with programs that wait for it were refused

  void abort() override { fail("another stream has failed"); }

private:
  struct Lane {
    std::vector<CudaEvent> marks;
    std::vector<OpCall> calls;  // by mark: what was issued last before it
    std::size_t passed = 0;     // marks that the GPU has passed, as far as the watch has seen
    OpCall call{-1, 0, 0, 0};
    CudaEvent ready{cudaEventDisableTiming};
  };

  std::size_t lane_number(const Moment& m) const { return static_cast<std::size_t>(m.event) % lanes_.size(); }
  std::size_t mark_number(const Moment& m) const { return static_cast<std::size_t>(m.event) / lanes_.size(); }

  // For the calling thread, whose current device may be another. RunError if the run has failed.
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

  // Creates the communicators one after the other and sends a little over each, since NCCL connects peers
  // when they first meet: later that would count as the ops' time, and allocate beside running kernels.
  void connect(const std::vector<Communicator>& all, Transport& transport) {
    const std::vector<std::string> ids = share_ids(transport, all, make_nccl_id);
    const int blocks = most_blocks(all, transport.ranks());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].member_of(rank_) < 0) continue;
      Link& link = *links_.emplace(all[i].transfer, std::make_unique<Link>(all[i], rank_)).first->second;
      link.nccl =
          std::make_unique<NcclCommunicator>(link.members, link.member, ids[i], blocks, options_.patience_s);
      meet(link, all[i]);
    }
  }

  void meet(Link& link, const Communicator& c) {
    const auto members = static_cast<std::size_t>(link.members);
    const OwnedArray scratch(arithmetic_, members * members, Precision::fp32);
    const Payload payload{scratch->data, scratch->bytes()};
    const std::string name = fmt::format("first meeting of ranks {} to {}", c.ranks.front(), c.ranks.back());
    for (const CollectiveKind kind : c.kinds)
      link.nccl->issue(name, [&](ncclComm_t nccl) {
        return nccl_collective(nccl, kind, payload, link.members, link.member, link.stream.get());
      });
    if (c.kinds.empty())
      link.nccl->issue(name, [&](ncclComm_t nccl) {
        return nccl_message(nccl, link.member == 0, payload, 1 - link.member, link.stream.get());
      });
    const double until_s = monotonic_s() + options_.patience_s;
    cudaError_t status = cudaErrorNotReady;
    while ((status = cudaStreamQuery(link.stream.get())) == cudaErrorNotReady) {
      const std::string error = link.nccl->error();
      if (!error.empty() || monotonic_s() > until_s) {
        link.nccl->abort();
        throw RunError(error.empty() ? fmt::format("{}: nothing for {:.3g} s", name, options_.patience_s)
                                     : fmt::format("{}: NCCL: {}", name, error));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    check_status(status, "cudaStreamQuery");
  }

  void fail(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_) return;
      failure_ = why;
      failed_ = true;
    }
    // Aborting ends NCCL's kernels and with them all waiting. If it does not end itself, only the end of the
    // process is left.
    constexpr auto kPatience = std::chrono::seconds(5);
    std::promise<void> done;
    std::future<void> aborted = done.get_future();
    std::thread aborting([this, &done] {
      (void)cudaSetDevice(arithmetic_.device());
      for (const auto& [transfer, link] : links_) link->nccl->abort();
      done.set_value();
    });
    if (aborted.wait_for(kPatience) == std::future_status::timeout) {
      std::cerr << "rehearse-run: rank " << rank_ << ": " << why << "; NCCL does not stop\n" << std::flush;
      std::_Exit(1);
    }
    aborting.join();
  }

  // Looks after what no other thread can, for they may all be waiting for the GPU.
  void watch() {
    (void)cudaSetDevice(arithmetic_.device());
    double moved_s = monotonic_s();
    while (!stopped_ && !failed_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (const auto& [transfer, link] : links_) {
        const std::string error = link->nccl->error();
        if (!error.empty()) return fail("NCCL: " + error);
      }
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
    std::string waits_for;  // a message or a collective if there is one; empty: nothing is running
    cudaError_t error = cudaSuccess;
  };
  Progress look() {
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
          lane.calls[lane.passed];  // has not ended, or the next one waits for another stream
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
  const int program_number_;
  const Program& program_;
  std::vector<std::vector<ExchangePart>> exchanges_;                  // by op
  std::vector<std::shared_ptr<const CollectiveWiring>> collectives_;  // by op
  std::vector<int> transfer_;                                         // by op, of a collective
  std::map<int, std::unique_ptr<Link>> links_;                        // by transfer
  std::optional<CudaClock> clock_;
  std::vector<std::vector<double>> times_;  // by stream and mark
  std::mutex mutex_;                        // of the lanes' marks and calls, and of the failure
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
