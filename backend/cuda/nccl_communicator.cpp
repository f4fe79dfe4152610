#include "backend/cuda/nccl_communicator.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "backend/cuda/check.hpp"
#include "backend/cuda/nccl_calls.hpp"
#include "backend/runtime/control.hpp"

namespace rehearse {
namespace {

std::string text_of(ncclResult_t result, ncclComm_t communicator) {
  const char* last = ncclGetLastError(communicator);
  return fmt::format("{}{}{}", ncclGetErrorString(result), last != nullptr && *last != '\0' ? ": " : "",
                     last != nullptr ? last : "");
}

// The result of creating a communicator in a separate thread, because NCCL's call never returns if a member
// does not join.
struct Started {
  ncclResult_t result = ncclSuccess;
  ncclComm_t communicator = nullptr;
  std::string error;
};
Started start(int device, int members, int member, const ncclUniqueId& id, int most_blocks) {
  Started started;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  if (most_blocks > 0) {
    config.minCTAs = 1;
    config.maxCTAs = most_blocks;
  }
  if (const cudaError_t status = cudaSetDevice(device); status != cudaSuccess) {
    started.result = ncclUnhandledCudaError;
    started.error = cudaGetErrorString(status);
    return started;
  }
  started.result = ncclCommInitRankConfig(&started.communicator, members, id, member, &config);
  if (started.result != ncclSuccess) started.error = text_of(started.result, started.communicator);
  return started;
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  CHECKED(ncclGetUniqueId(&id));
  return {id.internal, sizeof id.internal};
}

int nccl_version_number() {
  int version = 0;
  CHECKED(ncclGetVersion(&version));
  return version;
}

std::string nccl_version() {
  const int version = nccl_version_number();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

NcclCommunicator::NcclCommunicator(int members, int member, const std::string& id, int most_blocks,
                                   double patience_s)
    : patience_s_(patience_s) {
  ncclUniqueId unique;
  if (id.size() != sizeof unique.internal)
    throw RunError(fmt::format("an NCCL id has {} bytes; allowed: {}", id.size(), sizeof unique.internal));
  std::memcpy(unique.internal, id.data(), id.size());
  int device = 0;
  CHECKED(cudaGetDevice(&device));
  auto promise = std::make_shared<std::promise<Started>>();
  std::future<Started> future = promise->get_future();
  std::thread([promise, device, members, member, unique, most_blocks] {
    promise->set_value(start(device, members, member, unique, most_blocks));
  }).detach();
  if (future.wait_for(std::chrono::duration<double>(patience_s)) == std::future_status::timeout)
    throw RunError(fmt::format("ncclCommInitRankConfig: not all of {} ranks joined within {:.3g} s", members,
                               patience_s));
  const Started started = future.get();
  if (started.result != ncclSuccess)
    throw RunError(fmt::format("ncclCommInitRankConfig: NCCL: {}", started.error));
  communicator_ = started.communicator;
}

// Destroying a communicator waits for the other members, which may have failed; after the patience it is
// aborted instead.
NcclCommunicator::~NcclCommunicator() {
  if (communicator_ == nullptr || aborted_) return;
  int device = 0;
  (void)cudaGetDevice(&device);
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> future = ended->get_future();
  std::thread([ended, device, communicator = communicator_, registered = registered_] {
    (void)cudaSetDevice(device);
    for (const auto& [buffer, handle] : registered)
      if (handle != nullptr) (void)ncclCommDeregister(communicator, handle);
    (void)ncclCommFinalize(communicator);
    (void)ncclCommDestroy(communicator);
    ended->set_value();
  }).detach();
  if (future.wait_for(std::chrono::duration<double>(patience_s_)) == std::future_status::timeout)
    (void)ncclCommAbort(communicator_);
}

void NcclCommunicator::register_buffer(void* data, std::size_t bytes) {
  const auto [entry, fresh] = registered_.try_emplace({data, bytes}, nullptr);
  if (!fresh) return;
  const std::lock_guard lock(mutex_);
  if (!aborted_) (void)ncclCommRegister(communicator_, data, bytes, &entry->second);
}

void NcclCommunicator::settle(const std::string& name, cudaStream_t stream) {
  const double until_s = monotonic_s() + patience_s_;
  cudaError_t status = cudaErrorNotReady;
  while ((status = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    const std::string failed = error();
    if (!failed.empty() || monotonic_s() > until_s) {
      abort();
      throw RunError(failed.empty() ? fmt::format("{}: no progress for {:.3g} s", name, patience_s_)
                                    : fmt::format("{}: NCCL: {}", name, failed));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  check_status(status, "cudaStreamQuery");
}

std::string NcclCommunicator::error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || aborted_) return "";  // a call in progress reports its error itself
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (is_error(asked)) state = asked;
  return is_error(state) ? text_of(state, communicator_) : "";
}

// Also ends a call that does not return; it is made in another thread.
void NcclCommunicator::abort() {
  constexpr auto kPatience = std::chrono::seconds(1);
  if (aborted_.exchange(true)) return;
  const std::unique_lock lock(mutex_, kPatience);
  (void)ncclCommAbort(communicator_);  // its error is ignored: the run has already failed
}

void issue(const std::string& name, const std::vector<NcclCall>& calls) {
  std::vector<NcclCommunicator*> used;
  for (const NcclCall& call : calls) used.push_back(call.communicator);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::vector<std::unique_lock<std::timed_mutex>> locks;  // in a fixed order, to avoid deadlock
  for (NcclCommunicator* communicator : used) locks.emplace_back(communicator->mutex_);
  for (const NcclCommunicator* communicator : used)
    if (communicator->aborted_) throw RunError(fmt::format("\"{}\": the run was stopped", name));

  const bool group = calls.size() > 1;
  ncclResult_t result = group ? ncclGroupStart() : ncclSuccess;
  ncclComm_t failed = nullptr;
  for (const NcclCall& call : calls) {
    if (is_error(result)) break;
    result = call.call(call.communicator->communicator_);
    if (is_error(result)) failed = call.communicator->communicator_;
  }
  if (group)
    // The group is ended in any case.
    if (const ncclResult_t ended = ncclGroupEnd(); !is_error(result)) result = ended;
  if (is_error(result)) throw RunError(fmt::format("\"{}\": NCCL: {}", name, text_of(result, failed)));
}

}  // namespace rehearse
