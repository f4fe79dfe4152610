#include "backend/host/mpi_transport.hpp"

#include <fmt/format.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "backend/runtime/combine_numbers.hpp"
#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kBite = 256 * 1024;  // larger messages are split, to be summed as they arrive

void check(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw RunError(fmt::format("{}: {}", call, text));
}

// Sends a message as its header (its size), then as pieces of at most kBite bytes; only one piece is in
// transit at a time.
class MpiTransport : public Transport {
public:
  explicit MpiTransport(double patience_s) : patience_s_(patience_s) {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_MULTIPLE)
      throw RunError("this MPI does not support calls from several threads (MPI_THREAD_MULTIPLE)");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    int most = 0, known = 0;
    void* value = nullptr;
    check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &known), "MPI_Comm_get_attr");
    if (known != 0) most = *static_cast<int*>(value);
    most_tag_ = most;
  }

  ~MpiTransport() override {
    if (failed_)
      MPI_Abort(MPI_COMM_WORLD, 1);
    else
      MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string kind() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string all(text, static_cast<std::size_t>(length));
    return all.substr(0, all.find(','));
  }

  void open(const std::vector<Channel>& channels) override {
    for (const Channel& channel : channels)
      if (tag(channel.number) > most_tag_)
        throw RunError(
            fmt::format("the schedule needs {} channels; this MPI has {}", channel.number, most_tag_));
  }

  void progress(const std::vector<Parcel*>& parcels) override {
    double last_s = monotonic_s();
    for (int idle = 0;; ++idle) {
      stop_if_aborted();
      bool ended = false, moved = false, waiting = false;
      for (std::size_t i = 0; i < parcels.size(); ++i) {
        Parcel& p = *parcels[i];
        if (p.done || behind_another(parcels, i)) continue;
        waiting = true;
        const std::size_t before = p.moved;
        advance(p);
        moved = moved || p.moved != before || p.done;
        ended = ended || p.done;
      }
      if (ended || !waiting) return;
      if (moved) {
        last_s = monotonic_s();
        idle = 0;
      }
      rest(idle, last_s, parcels);
    }
  }

  std::size_t wait_any(const std::vector<Parcel*>& receives) override {
    const double begin_s = monotonic_s();
    for (int idle = 0;; ++idle) {
      stop_if_aborted();
      for (std::size_t i = 0; i < receives.size(); ++i) {
        int there = 0;
        check(MPI_Iprobe(receives[i]->peer, tag(receives[i]->channel), MPI_COMM_WORLD, &there,
                         MPI_STATUS_IGNORE),
              "MPI_Iprobe");
        if (there != 0) return i;
      }
      rest(idle, begin_s, receives);
    }
  }

  bool reduces() const override { return true; }

  void all_reduce(const std::vector<int>& ranks, int number, Collective::Reduction reduction, float* buffer,
                  std::int64_t elements) override {
    constexpr std::int64_t kMost = 1 << 30;  // counts are of type int
    MPI_Comm group = communicator(ranks, number);
    MPI_Op operation = reduction == Collective::Reduction::maximum ? MPI_MAX : MPI_SUM;
    for (std::int64_t at = 0; at < elements; at += kMost) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, buffer + at, static_cast<int>(std::min(kMost, elements - at)),
                           MPI_FLOAT, operation, group, &request),
            "MPI_Iallreduce");
      const double begin_s = monotonic_s();
      for (int idle = 0, done = 0;; ++idle) {
        stop_if_aborted();
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) break;
        if (!rested(idle, begin_s))
          throw RunError(fmt::format("no progress for {} s; waiting for MPI_Iallreduce", patience_s_));
      }
    }
  }

  void abort() override { failed_ = aborted_ = true; }

private:
  static int tag(int channel) { return channel + 1; }  // the number of control channels is -1

  void stop_if_aborted() const {
    if (aborted_) throw RunError("stopped because another part of the run failed");
  }

  // Returns the communicator of the ranks that all-reduce under this number; creates it at the first call.
  MPI_Comm communicator(const std::vector<int>& ranks, int number) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = communicators_.find(number);
      if (found != communicators_.end()) return found->second;
    }
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group), "MPI_Group_incl");
    check(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag(number), &made), "MPI_Comm_create_group");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    const std::lock_guard lock(mutex_);
    return communicators_[number] = made;
  }

  void rest(int idle, double since_s, const std::vector<Parcel*>& parcels) {
    if (rested(idle, since_s)) return;
    int peer = -1;
    for (const Parcel* p : parcels)
      if (!p->done) peer = p->peer;
    throw RunError(fmt::format("no progress for {} s; waiting for rank {}", patience_s_, peer));
  }

  // Waits without taking a core from ranks that compute on it; returns false if nothing arrived for too long.
  bool rested(int idle, double since_s) {
    constexpr int kYields = 200;
    if (idle < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (idle % 1024 != 1023 || monotonic_s() - since_s < patience_s_) return true;
    failed_ = true;
    return false;
  }

  struct UnderWay {
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t bytes = 0;
    bool header = false;
    std::vector<std::byte> came;  // data to be combined
  };

  // Posts the next piece, or processes the one that has arrived.
  void advance(Parcel& p) {
    UnderWay& now = under_way(p);
    if (now.request == MPI_REQUEST_NULL) post(p, now);
    int done = 0;
    check(MPI_Test(&now.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) return;
    now.request = MPI_REQUEST_NULL;
    if (now.header) {
      p.moved = sizeof p.header;
      if (p.kind != Parcel::Kind::send) {
        p.over = p.header == 0;
        if (!p.over && p.header != p.bytes)
          throw RunError(
              fmt::format("rank {} sent {} bytes where {} were expected", p.peer, p.header, p.bytes));
      }
      if (p.over || p.bytes == 0) return finish(p);
    } else {
      if (p.kind == Parcel::Kind::receive_combine)
        combine_numbers(p.type, p.reduction, p.data + p.moved - sizeof p.header, now.came.data(), now.bytes);
      p.moved += now.bytes;
      if (p.moved == sizeof p.header + p.bytes) return finish(p);
    }
    post(p, now);
  }

  void post(Parcel& p, UnderWay& now) {
    now.header = p.moved == 0;
    void* data = &p.header;
    now.bytes = sizeof p.header;
    if (now.header) {
      p.header = p.kind == Parcel::Kind::send ? p.bytes : 0;
    } else {
      const std::size_t at = p.moved - sizeof p.header;
      now.bytes = std::min(kBite, p.bytes - at);
      data = p.data + at;
      if (p.kind == Parcel::Kind::receive_combine) {
        now.came.resize(kBite);
        data = now.came.data();
      }
    }
    const int count = static_cast<int>(now.bytes);
    const bool last = !now.header && p.moved - sizeof p.header + now.bytes == p.bytes;
    if (p.kind == Parcel::Kind::send &&
        (p.rendezvous || (p.until_arrived && last)))  // completes once the receiver has begun to receive
      check(MPI_Issend(data, count, MPI_BYTE, p.peer, tag(p.channel), MPI_COMM_WORLD, &now.request),
            "MPI_Issend");
    else if (p.kind == Parcel::Kind::send)
      check(MPI_Isend(data, count, MPI_BYTE, p.peer, tag(p.channel), MPI_COMM_WORLD, &now.request),
            "MPI_Isend");
    else
      check(MPI_Irecv(data, count, MPI_BYTE, p.peer, tag(p.channel), MPI_COMM_WORLD, &now.request),
            "MPI_Irecv");
  }

  UnderWay& under_way(Parcel& p) {
    const std::lock_guard lock(mutex_);
    if (p.handle < 0) p.handle = next_++;
    return parts_[p.handle];
  }

  void finish(Parcel& p) {
    p.done = true;
    const std::lock_guard lock(mutex_);
    parts_.erase(p.handle);
  }

  const double patience_s_;
  int rank_ = 0, ranks_ = 1, most_tag_ = 0;
  std::atomic<bool> aborted_{false}, failed_{false};
  std::mutex mutex_;
  std::map<int, MPI_Comm> communicators_;
  std::map<long, UnderWay> parts_;
  long next_ = 0;
};

}  // namespace

std::unique_ptr<Transport> join_mpi(double patience_s) {
  return std::make_unique<MpiTransport>(patience_s);
}

}  // namespace rehearse
