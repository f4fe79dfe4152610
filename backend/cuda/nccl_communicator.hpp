// Wraps an NCCL communicator so that no call waits forever.
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
int nccl_version_number();   // of the library in use: 10000 major + 100 minor + patch
std::string nccl_version();  // "2.28.9"

// Calls block until NCCL has put their work on its stream, because a non-blocking communicator starts a
// thread for each call. Several threads may call the functions at once.
class NcclCommunicator {
public:
  // Waits until all members have joined; throws RunError if they do not within the patience, or if NCCL
  // fails. A thread that is still waiting for them then lives until the process ends. `most_blocks` limits
  // the thread blocks of its kernels; 0: NCCL chooses. Uses the current device.
  NcclCommunicator(int members, int member, const std::string& id, int most_blocks, double patience_s);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Registers a buffer that is used repeatedly with NCCL, so that NCCL may read and write it in place.
  // Buffers that NCCL cannot register work as well. Only one thread may call it at a time.
  void register_buffer(void* data, std::size_t bytes);
  // Returns when everything that was issued to the stream has ended. If NCCL fails or that takes longer than
  // the patience, aborts this communicator and throws RunError, with `name` in the message.
  void settle(const std::string& name, cudaStream_t stream);
  // Returns an error that has occurred on other threads or at other ranks; empty: none.
  std::string error();
  // Ends what is running on the GPU, and makes every later issue() throw RunError.
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
// Issues the calls to their streams, several calls as one NCCL group, and returns once all are issued. Throws
// RunError, with `name` in the message, if NCCL fails or if one of the communicators is aborted.
void issue(const std::string& name, const std::vector<NcclCall>& calls);

}  // namespace rehearse
