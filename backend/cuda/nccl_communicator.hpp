// One of NCCL's communicators, without a call that waits for ever.
#pragma once

#include <nccl.h>

#include <functional>
#include <mutex>
#include <string>

namespace rehearse {

std::string make_nccl_id();
std::string nccl_version();  // of the library that runs, "2.28.9"

// All calls may come from several threads at once.
class NcclCommunicator {
public:
  // Waits until all members are there; RunError if they are not within the patience, or NCCL fails.
  // `most_blocks`: thread blocks that its kernels use at most; 0: as NCCL chooses. The current device is its
  // device.
  NcclCommunicator(int members, int member, const std::string& id, int most_blocks, double patience_s);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Issues what `call` calls to a stream, and returns once NCCL has put it there. RunError, with `name`, if
  // NCCL fails or takes longer than the patience, and after abort().
  void issue(const std::string& name, const std::function<ncclResult_t(ncclComm_t)>& call);
  // What has gone wrong since, on other threads or at other ranks; empty: nothing.
  std::string error();
  // Ends what is running on the GPU, and every issue() from now on with RunError.
  void abort();

private:
  void wait(const std::string& what);
  const double patience_s_;
  std::mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // null: aborted
};

}  // namespace rehearse
