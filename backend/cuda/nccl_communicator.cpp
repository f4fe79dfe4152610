#include "backend/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "backend/cuda/check.hpp"
#include "backend/runtime/control.hpp"

namespace rehearse {
namespace {

std::string text_of(ncclResult_t result, ncclComm_t communicator) {
  const char* last = ncclGetLastError(communicator);
  return fmt::format("{}{}{}", ncclGetErrorString(result), last != nullptr && *last != '\0' ? ": " : "",
                     last != nullptr ? last : "");
}

bool is_error(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  CHECKED(ncclGetUniqueId(&id));
  return {id.internal, sizeof id.internal};
}

std::string nccl_version() {
  int version = 0;
  CHECKED(ncclGetVersion(&version));  // 10000 major + 100 minor + patch, from 2.9 on
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

NcclCommunicator::NcclCommunicator(int members, int member, const std::string& id, int most_blocks,
                                   double patience_s)
    : patience_s_(patience_s) {
  ncclUniqueId unique;
  if (id.size() != sizeof unique.internal)
    throw RunError(
        fmt::format("an id of NCCL's has {} bytes; allowed: {}", id.size(), sizeof unique.internal));
  std::memcpy(unique.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (most_blocks > 0) {
    config.minCTAs = 1;
    config.maxCTAs = most_blocks;
  }
  CHECKED(ncclCommInitRankConfig(&communicator_, members, unique, member, &config));
  try {
    wait("ncclCommInitRankConfig");
  } catch (...) {
    abort();
    throw;
  }
}

// Destroying one waits for its other members, to whom anything may have happened; after the patience it is
// aborted instead.
NcclCommunicator::~NcclCommunicator() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  ncclResult_t state = ncclCommFinalize(communicator_);
  const double until_s = monotonic_s() + patience_s_;
  while (state == ncclInProgress && monotonic_s() < until_s) {
    if (const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state); asked != ncclSuccess)
      state = asked;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  (void)(state == ncclSuccess ? ncclCommDestroy(communicator_) : ncclCommAbort(communicator_));
}

void NcclCommunicator::issue(const std::string& name, const std::function<ncclResult_t(ncclComm_t)>& call) {
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) throw RunError(fmt::format("\"{}\": the run was stopped", name));
    const ncclResult_t result = call(communicator_);
    if (is_error(result))
      throw RunError(fmt::format("\"{}\": NCCL: {}", name, text_of(result, communicator_)));
  }
  wait("\"" + name + "\"");
}

// A call that does not block is done by a thread of NCCL's. Most are there within some 10 us: sleeping would
// cost more.
void NcclCommunicator::wait(const std::string& what) {
  constexpr double kAwake_s = 1e-3;
  const double begin_s = monotonic_s();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (communicator_ == nullptr) throw RunError(what + ": the run was stopped");
      ncclResult_t state = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
      if (is_error(asked)) state = asked;
      if (is_error(state)) throw RunError(fmt::format("{}: NCCL: {}", what, text_of(state, communicator_)));
      if (asked == ncclSuccess && state == ncclSuccess) return;
    }
    const double waited_s = monotonic_s() - begin_s;
    if (waited_s > patience_s_)
      throw RunError(fmt::format("{}: not all ranks were there within {:.3g} s", what, patience_s_));
    if (waited_s < kAwake_s)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::string NcclCommunicator::error() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return "";
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (is_error(asked)) state = asked;
  return is_error(state) ? text_of(state, communicator_) : "";
}

void NcclCommunicator::abort() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  (void)ncclCommAbort(communicator_);  // an error is what brought us here
  communicator_ = nullptr;
}

}  // namespace rehearse
