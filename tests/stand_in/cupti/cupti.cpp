// A stand-in for CUPTI's Activity API, which reports the kernels that the stand-in for CUDA runs.
// CUPTI_STAND_IN_FAULT names the function that fails.
#include <cupti_activity.h>
#include <cupti_result.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/stand_in/observed.hpp"

namespace {

bool fails(const char* function) {
  const char* fault = std::getenv("CUPTI_STAND_IN_FAULT");
  return fault != nullptr && std::strcmp(fault, function) == 0;
}

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Converts the monotonic time of the stand-in for CUDA to CUPTI's timestamps: nanoseconds since 1970.
std::uint64_t real_ns(double monotonic_s) {
  const std::uint64_t since = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
  return since + static_cast<std::uint64_t>(1e9 * monotonic_s);
}

// Lives until the process ends, as CUPTI's threads do; never destroyed.
struct State {
  std::mutex mutex;
  std::set<CUpti_ActivityKind> enabled;
  std::set<std::string> names;  // kernel names; a set, so that pointers to them stay valid
  std::vector<CUpti_ActivityKernel4> kernels;
  std::vector<CUpti_ActivityExternalCorrelation> correlations;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
};
State& state() {
  static auto* const one = new State;
  return *one;
}
std::atomic<std::uint32_t> launches{0};
thread_local std::vector<std::uint64_t> ids;  // of the calling thread's open regions, innermost last

// Like CUPTI, records external correlations only where records of runtime and driver calls are enabled, too.
std::uint32_t launched() {
  const std::uint32_t launch = ++launches;
  const std::lock_guard lock(state().mutex);
  const bool told = state().enabled.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) &&
                    state().enabled.contains(CUPTI_ACTIVITY_KIND_RUNTIME) &&
                    state().enabled.contains(CUPTI_ACTIVITY_KIND_DRIVER);
  if (ids.empty() || !told) return launch;
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  record.externalId = ids.back();
  record.correlationId = launch;
  state().correlations.push_back(record);
  return launch;
}

void ended(const char* name, std::uint32_t launch, std::uint32_t stream, double begin_s, double end_s) {
  const std::lock_guard lock(state().mutex);
  if (!state().enabled.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  CUpti_ActivityKernel4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = real_ns(begin_s);
  record.end = real_ns(end_s);
  record.streamId = stream;
  record.correlationId = launch;
  record.name = state().names.insert(name).first->c_str();
  state().kernels.push_back(record);
}

constexpr stand_in::Observer kObserver{launched, ended};

// Delivers all records of one kind in buffers that it requests from the client.
template <class Record>
void deliver(std::vector<Record>& records) {
  for (std::size_t first = 0; first < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most = 0;
    state().request(&buffer, &bytes, &most);
    if (buffer == nullptr) break;
    const std::size_t count = std::min(bytes / sizeof(Record), records.size() - first);
    std::memcpy(buffer, &records[first], count * sizeof(Record));
    state().complete(nullptr, 0, buffer, bytes, count * sizeof(Record));
    first += count;
  }
  records.clear();
}

std::size_t bytes_of(const CUpti_Activity* record) {
  return record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ? sizeof(CUpti_ActivityExternalCorrelation)
                                                                  : sizeof(CUpti_ActivityKernel4);
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  const std::lock_guard lock(state().mutex);
  state().request = request;
  state().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (fails("cuptiActivityEnable")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  using Observe = decltype(&stand_in_observe);
  const auto observe = reinterpret_cast<Observe>(dlsym(RTLD_DEFAULT, "stand_in_observe"));
  if (observe == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(state().mutex);
  state().enabled.insert(kind);
  observe(&kObserver);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(state().mutex);
  return state().enabled.erase(kind) == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::vector<CUpti_ActivityKernel4> kernels;
  std::vector<CUpti_ActivityExternalCorrelation> correlations;
  {
    const std::lock_guard lock(state().mutex);
    kernels.swap(state().kernels);
    correlations.swap(state().correlations);
  }
  deliver(kernels);
  deliver(correlations);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  const auto* const before = reinterpret_cast<const std::uint8_t*>(*record);
  const std::size_t next =
      before == nullptr ? 0 : static_cast<std::size_t>(before - buffer) + bytes_of(*record);
  if (next >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t id) {
  ids.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t*) {
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  ids.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* ns) {
  *ns = nanoseconds(CLOCK_REALTIME);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                        : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}

}  // extern "C"
