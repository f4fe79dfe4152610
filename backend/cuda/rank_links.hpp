// Manages a rank's NCCL communicators: which op uses which, all connected before anything runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_clock.hpp"
#include "backend/cuda/cuda_hardware.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/cuda/nccl_profiler.hpp"
#include "backend/runtime/communicators.hpp"
#include "backend/runtime/table_rounds.hpp"
#include "simulator/trace/gpu_record.hpp"

namespace rehearse {

// A stream whose operations begin before those of computation.
class OwnedStream {
public:
  OwnedStream();
  ~OwnedStream() { (void)cudaStreamDestroy(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

// This rank's end of a communicator and a stream for its messages, so that the messages of an exchange run
// concurrently, as in the schedule: kernels of different communicators on one stream run one after the other,
// and ranks that all send first would deadlock. Collectives run on the stream of their op.
struct RankLink {
  RankLink(const Communicator& c, int rank)
      : members(static_cast<int>(c.ranks.size())), member(c.member_of(rank)) {}
  int members, member;
  OwnedStream stream;
  CudaEvent arrived{cudaEventDisableTiming};
  std::unique_ptr<NcclCommunicator> nccl;
  const NcclChoices* choices = nullptr;  // NCCL's choices for its collectives; null: not recorded
};

class RankLinks {
public:
  // All ranks must call it. Throws RunError if not all of them join within the patience, or if a GPU has no
  // room for all kernels or streams that wait at the same time.
  RankLinks(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
            CudaArithmetic& arithmetic, const CudaHardwareOptions& options);

  // Returns the messages of an exchange in the op's order.
  const std::vector<ExchangePart>& exchange(int op) const { return exchanges_[static_cast<std::size_t>(op)]; }
  const RankLink& link(const ExchangePart& part) const { return *links_.at(part.channel); }
  // Returns null if the rank is alone in the collective's group.
  const CollectiveWiring* collective(int op) const {
    return collectives_[static_cast<std::size_t>(op)].get();
  }
  // Issues a collective to the stream, as an NCCL collective or as the messages of its message table.
  void issue_collective(int op, int stream, const Payload& payload);

  // Returns NCCL's choices for the collectives that were issued, in order of their ops.
  std::vector<ChosenCollective> chosen_collectives() const;

  // Returns an error that has occurred since; empty: none.
  std::string error() const;
  // Aborts NCCL's kernels and thereby everything that waits for them; returns false if they have not ended
  // after 5 s.
  bool abort();
  const std::vector<std::string>& notes() const { return notes_; }

private:
  // The messages of a collective that is not an NCCL collective.
  struct Table {
    std::vector<TableRound> rounds;
    OwnedArray scratch;
  };
  void make_tables();
  void connect(const std::vector<Communicator>& all, Transport& transport);
  int least_multiprocessors(Transport& transport) const;
  void refuse_more_queues(const std::vector<Communicator>& all) const;
  std::vector<std::vector<NcclCall>> first_calls(const RankLink& link, const Communicator& c,
                                                 const Payload& payload) const;
  void meet(RankLink& link, const Communicator& c);
  void carry_out(int op, int stream, const RankLink& link, const Payload& payload);

  const int rank_;
  CudaArithmetic& arithmetic_;
  const CudaHardwareOptions options_;
  const Program& program_;
  std::vector<std::vector<ExchangePart>> exchanges_;                  // by op
  std::vector<std::shared_ptr<const CollectiveWiring>> collectives_;  // by op
  std::vector<int> transfer_;                                         // by op: the transfer of a collective
  std::vector<Payload> issued_;                     // by op: the last payload of a collective
  std::vector<Table> tables_;                       // by op
  std::map<int, std::unique_ptr<RankLink>> links_;  // by transfer
  std::vector<std::string> notes_;
};

}  // namespace rehearse
