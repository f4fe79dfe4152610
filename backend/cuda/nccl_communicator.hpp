// One of NCCL's communicators, without a call that waits for ever.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rehearse {

std::string make_nccl_id();
int nccl_version_number();   // of the library that runs: 10000 major + 100 minor + patch
std::string nccl_version();  // "2.28.9"

// Calls block until NCCL has put their work on its stream: a communicator that does not block starts a thread
// for each of them. All functions may be called by several threads at once.
class NcclCommunicator {
public:
  // Waits until all members are there; RunError if they are not within the patience, or NCCL fails. A thread
  // that still waits for them then ends with the process. `most_blocks`: thread blocks that its kernels use
  // at most; 0: as NCCL chooses. The current device is its device.
  NcclCommunicator(int members, int member, const std::string& id, int most_blocks, double patience_s);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Tells NCCL of a buffer that is used again and again, so that it may read and write it in place. Buffers
  // that it cannot register work as well. By one thread at a time.
  void register_buffer(void* data, std::size_t bytes);
  // Returns when all that was issued to the stream has ended. RunError, with `name`, if NCCL fails or that
  // takes longer than the patience; then this is aborted.
  void settle(const std::string& name, cudaStream_t stream);
  // What has gone wrong since, on other threads or at other ranks; empty: nothing.
  std::string error();
  // Ends what is running on the GPU, and every issue() from now on with RunError.
  void abort();

private:
  friend void issue(const std::string& name, const std::vector<struct NcclCall>& calls);
  const double patience_s_;
  std::timed_mutex mutex_;  // held while NCCL is called
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> aborted_{false};
  std::map<std::pair<void*, std::size_t>, void*> registered_;  // NCCL's handles
};

struct NcclCall {
  NcclCommunicator* communicator = nullptr;
  std::function<ncclResult_t(ncclComm_t)> call;
};
// Issues the calls to their streams, several of them as one group of NCCL's, and returns once all are there.
// RunError, with `name`, if NCCL fails, and after abort() of one of the communicators.
void issue(const std::string& name, const std::vector<NcclCall>& calls);

}  // namespace rehearse
