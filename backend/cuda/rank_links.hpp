// A rank's communicators of NCCL: which op uses which, all connected before anything runs.
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

// This rank's end of a communicator, and a stream for its messages, so that those of one exchange go at the
// same time, as the schedule has it: kernels of different communicators on one stream follow one another, and
// ranks that all send first would wait for ever. Collectives go on the stream of their op.
struct RankLink {
  RankLink(const Communicator& c, int rank)
      : members(static_cast<int>(c.ranks.size())), member(c.member_of(rank)) {}
  int members, member;
  OwnedStream stream;
  CudaEvent arrived{cudaEventDisableTiming};
  std::unique_ptr<NcclCommunicator> nccl;
  const NcclChoices* choices = nullptr;  // what NCCL chose for its collectives; null: it was not asked
};

class RankLinks {
public:
  // All ranks call it. RunError if not all of them are there within the patience, or if a GPU has no room for
  // the kernels or streams that wait side by side.
  RankLinks(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
            CudaArithmetic& arithmetic, const CudaHardwareOptions& options);

  // An exchange's messages, in the op's order.
  const std::vector<ExchangePart>& exchange(int op) const { return exchanges_[static_cast<std::size_t>(op)]; }
  const RankLink& link(const ExchangePart& part) const { return *links_.at(part.channel); }
  // Null if the rank is alone in the collective's group.
  const CollectiveWiring* collective(int op) const {
    return collectives_[static_cast<std::size_t>(op)].get();
  }
  // Issues a collective to the stream: as NCCL's, or as its table's messages.
  void issue_collective(int op, int stream, const Payload& payload);

  // What NCCL chose for the collectives that were issued, in order of their ops.
  std::vector<ChosenCollective> chosen_collectives() const;

  // What has gone wrong on the way; empty: nothing.
  std::string error() const;
  // Ends NCCL's kernels and with them all waiting; false if they have not ended after some seconds.
  bool abort();
  const std::vector<std::string>& notes() const { return notes_; }

private:
  // A collective's messages, where it goes as such.
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
  std::vector<int> transfer_;                                         // by op, of a collective
  std::vector<Payload> issued_;                                       // by op, of collectives, the last one
  std::vector<Table> tables_;                                         // by op
  std::map<int, std::unique_ptr<RankLink>> links_;                    // by transfer
  std::vector<std::string> notes_;
};

}  // namespace rehearse
