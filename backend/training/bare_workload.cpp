#include "backend/training/bare_workload.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "backend/runtime/control.hpp"

namespace rehearse {
namespace {

class BareWorkload : public Workload {
public:
  BareWorkload(const Schedule& schedule, const Wiring& wiring, int rank, Arithmetic& arithmetic,
               std::vector<double> timed_s, BatchInput* input)
      : schedule_(schedule),
        arithmetic_(arithmetic),
        timed_s_(std::move(timed_s)),
        input_(input),
        role_(schedule.roles[static_cast<std::size_t>(wiring.place(rank).first)]),
        number_(wiring.place(rank).second) {
    program_ = &schedule.programs[wiring.communication().program_of_rank(rank)];
    // Gives each stream room for its largest op.
    std::vector<std::size_t> most(program_->streams.size(), 0);
    for (std::size_t i = 0; i < program_->ops.size(); ++i) {
      const Op& op = program_->ops[i];
      std::size_t& bytes = most[op.stream];
      if (op.kind == OpKind::exchange)
        for (const ExchangePart& part : wiring.exchange(rank, static_cast<int>(i)))
          bytes = std::max(bytes, part.bytes);
      if (op.kind == OpKind::collective)
        if (const auto collective = wiring.collective(rank, static_cast<int>(i)))
          bytes = std::max(bytes, static_cast<std::size_t>(collective->table.elements) * kElementBytes);
    }
    for (const std::size_t bytes : most) {
      const std::size_t elements = (bytes + kElementBytes - 1) / kElementBytes;
      sent_.emplace_back(arithmetic, std::max<std::size_t>(elements, 1), Precision::fp32);
      received_.emplace_back(arithmetic, std::max<std::size_t>(elements, 1), Precision::fp32);
    }
  }

  void compute(const OpCall& call) override {
    const Op& op = program_->ops[call.op];
    if (op.work < 0) return;
    const double share = op.share.at(role_, number_);
    if (!timed_s_.empty()) return sleep(share * timed_s_[op.work]);
    if (share == 0) return;
    const Work& work = schedule_.works[op.work];
    for (const Kernel& kernel : work.kernels) {
      if (kernel.kind == Kernel::Kind::fixed)
        sleep(share * (kernel.seconds + kernel.wait_s + kernel.data_wait_s) * kernel.count);
      else
        arithmetic_.replay(call.stream, share == 1 ? kernel : part_of(kernel, share), work.precision);
    }
    if (work.optimizer_bytes <= 0) return;
    Kernel update;
    update.bytes = work.optimizer_bytes;
    arithmetic_.replay(call.stream, update, work.precision);
  }

  Payload message(const OpCall& call, const ExchangePart& part) override {
    const OwnedArray& memory = (part.send ? sent_ : received_)[call.stream];
    return {memory->data, part.bytes};
  }

  Payload collective(const OpCall& call, const CollectiveWiring& wiring) override {
    return {sent_[call.stream]->data, static_cast<std::size_t>(wiring.table.elements) * kElementBytes};
  }

  Learned learned() override { return {}; }

  void input(const OpCall& call) override { input_->carry_out(call); }
  void stop_input() override {
    if (input_ != nullptr) input_->stop();
  }

private:
  // Returns the kernel with that share of its rows.
  static Kernel part_of(Kernel kernel, double share) {
    kernel.m = std::max(1.0, std::round(share * kernel.m));
    kernel.bytes *= share;
    return kernel;
  }

  // Sleeps with microsecond accuracy: the system wakes a sleeper late, so the last 60 us are spent awake.
  static void sleep(double seconds) {
    if (seconds <= 0) return;
    constexpr double kAwake_s = 60e-6;
    const double end_s = monotonic_s() + seconds;
    if (seconds > kAwake_s) std::this_thread::sleep_for(std::chrono::duration<double>(seconds - kAwake_s));
    while (monotonic_s() < end_s) std::this_thread::yield();
  }

  const Schedule& schedule_;
  Arithmetic& arithmetic_;
  const std::vector<double> timed_s_;
  BatchInput* const input_;
  const Program* program_ = nullptr;
  const Role& role_;
  const int number_;                         // of the rank in its role
  std::vector<OwnedArray> sent_, received_;  // by stream
};

}  // namespace

std::unique_ptr<Workload> bare_workload(const Schedule& schedule, const Wiring& wiring, int rank,
                                        Arithmetic& arithmetic, std::vector<double> timed_s,
                                        BatchInput* input) {
  return std::make_unique<BareWorkload>(schedule, wiring, rank, arithmetic, std::move(timed_s), input);
}

}  // namespace rehearse
