#include "backend/cuda/kernel_recorder.hpp"

#include "models/text/error.hpp"

#ifdef REHEARSE_HAVE_CUPTI
#include <cuda_runtime_api.h>
#include <cupti_activity.h>
#include <cupti_result.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "backend/runtime/control.hpp"
#endif

namespace rehearse {

#ifdef REHEARSE_HAVE_CUPTI

namespace {

constexpr auto kOpCorrelation = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
// Kernels may run concurrently; external correlations are only reported along with CUDA calls.
constexpr std::array kActivities = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                                    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// CUPTI's functions; all pointers are set.
struct Cupti {
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;

  // The library stays loaded because CUPTI runs threads.
  Cupti() {
    const std::string versioned = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
    void* handle = dlopen(versioned.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* error = handle == nullptr ? dlerror() : nullptr;
    const std::string why = error == nullptr ? "" : error;
    if (handle == nullptr) handle = dlopen("libcupti.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      throw RunError(why + " (it is in extras/CUPTI/lib64 of the CUDA Toolkit: add that to LD_LIBRARY_PATH)");
    find(handle, "cuptiActivityEnable", enable);
    find(handle, "cuptiActivityDisable", disable);
    find(handle, "cuptiActivityRegisterCallbacks", register_callbacks);
    find(handle, "cuptiActivityFlushAll", flush_all);
    find(handle, "cuptiActivityGetNextRecord", next_record);
    find(handle, "cuptiActivityGetNumDroppedRecords", dropped_records);
    find(handle, "cuptiActivityPushExternalCorrelationId", push_id);
    find(handle, "cuptiActivityPopExternalCorrelationId", pop_id);
    find(handle, "cuptiGetTimestamp", timestamp);
    find(handle, "cuptiGetResultString", result_string);
  }

  void check(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    (void)result_string(result, &text);
    throw RunError(fmt::format("{} failed: {}", call, text != nullptr ? text : "unknown cause"));
  }

private:
  template <class Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) throw RunError(fmt::format("libcupti.so lacks {}", name));
  }
};

const Cupti& cupti() {
  static const Cupti library;
  return library;
}

// The records received from CUPTI. Its callbacks carry no user pointer and may run at any time.
struct Told {
  struct Kernel {
    std::string name;
    std::uint64_t begin_ns, end_ns;
    std::uint32_t stream, correlation;
  };
  std::mutex mutex;
  std::vector<Kernel> kernels;
  std::map<std::uint32_t, std::uint64_t> ids;  // external ids by correlation
  long dropped = 0;
};
Told& told() {
  static auto* const records = new Told;  // never destroyed, as CUPTI's threads are not
  return *records;
}

// Reads a record. The first members of a kernel's record have been the same since CUDA 9; newer records are
// longer.
void take(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel4*>(record);
    told().kernels.push_back({kernel->name != nullptr ? kernel->name : "", kernel->start, kernel->end,
                              kernel->streamId, kernel->correlationId});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto* external = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
    if (external->externalKind == kOpCorrelation) told().ids[external->correlationId] = external->externalId;
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  constexpr std::size_t kBytes = std::size_t{4} << 20, kAlignment = 8;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
  *bytes = *buffer == nullptr ? 0 : kBytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  const std::lock_guard lock(told().mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti().next_record(buffer, valid, &record) == CUPTI_SUCCESS) take(record);
  std::size_t dropped = 0;
  if (cupti().dropped_records(context, stream, &dropped) == CUPTI_SUCCESS)
    told().dropped += static_cast<long>(dropped);
  std::free(buffer);
}

// One time on both CUPTI's clock and this machine's monotonic clock; read_clocks() takes the fastest of
// several tries.
struct ClockPoint {
  double host_s = 0;
  std::uint64_t cupti_ns = 0;
};
ClockPoint read_clocks() {
  constexpr int kTries = 30;
  ClockPoint best;
  double best_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t ns = 0;
    const double before_s = monotonic_s();
    cupti().check(cupti().timestamp(&ns), "cuptiGetTimestamp");
    const double after_s = monotonic_s();
    if (after_s - before_s >= best_s) continue;
    best_s = after_s - before_s;
    best = {(before_s + after_s) / 2, ns};
  }
  return best;
}

std::string readable(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

}  // namespace

struct KernelRecorder::Recording {
  ClockPoint begin;
  std::mutex mutex;
  std::vector<OpCall> calls;  // the external id of call i is i + 1
  long dropped = 0;
  bool ended = false;

  void stop() {
    if (std::exchange(ended, true)) return;
    (void)cupti().flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (const CUpti_ActivityKind kind : kActivities) (void)cupti().disable(kind);
  }
};

KernelRecorder::KernelRecorder() {
  const Cupti& library = cupti();
  {
    const std::lock_guard lock(told().mutex);
    told().kernels.clear();
    told().ids.clear();
    told().dropped = 0;
  }
  library.check(library.register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  recording_ = std::make_unique<Recording>();
  try {
    for (const CUpti_ActivityKind kind : kActivities)
      library.check(library.enable(kind), "cuptiActivityEnable");
    recording_->begin = read_clocks();
  } catch (const RunError&) {
    recording_->stop();
    throw;
  }
}

KernelRecorder::~KernelRecorder() {
  recording_->stop();
}

void KernelRecorder::enter(const OpCall& call) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(recording_->mutex);
    recording_->calls.push_back(call);
    id = recording_->calls.size();
  }
  (void)cupti().push_id(kOpCorrelation, id);
}

void KernelRecorder::leave() {
  (void)cupti().pop_id(kOpCorrelation, nullptr);
}

std::vector<KernelSpan> KernelRecorder::end() {
  // Over a shorter time, the uncertainty of the readings outweighs the drift of the clocks.
  constexpr double kLongEnough_s = 1;
  const ClockPoint begin = recording_->begin, end = read_clocks();
  recording_->stop();
  const auto since_begin_s = [&](std::uint64_t ns) {  // a double cannot hold the ns since 1970
    return 1e-9 * static_cast<double>(static_cast<std::int64_t>(ns - begin.cupti_ns));
  };
  const double cupti_s = since_begin_s(end.cupti_ns);
  const double speed = cupti_s > kLongEnough_s ? (end.host_s - begin.host_s) / cupti_s : 1;
  const auto host_s = [&](std::uint64_t ns) { return begin.host_s + speed * since_begin_s(ns); };
  const std::lock_guard lock(told().mutex);
  recording_->dropped = told().dropped;
  std::map<std::string, std::string> names;
  std::vector<KernelSpan> kernels;
  for (const Told::Kernel& from : told().kernels) {
    if (from.begin_ns == 0 || from.end_ns < from.begin_ns) continue;  // CUPTI could not time it
    const auto [name, fresh] = names.try_emplace(from.name);
    if (fresh) name->second = readable(from.name);
    KernelSpan& kernel = kernels.emplace_back();
    kernel.name = name->second;
    kernel.stream = static_cast<int>(from.stream);
    kernel.correlation = from.correlation;
    kernel.begin_s = host_s(from.begin_ns);
    kernel.end_s = host_s(from.end_ns);
    const auto id = told().ids.find(from.correlation);
    if (id == told().ids.end() || id->second == 0 || id->second > recording_->calls.size()) continue;
    const OpCall& call = recording_->calls[static_cast<std::size_t>(id->second) - 1];
    kernel.op = call.op;
    kernel.step = call.step;
  }
  return kernels;
}

long KernelRecorder::dropped() const {
  return recording_->dropped;
}

#else

struct KernelRecorder::Recording {};
KernelRecorder::KernelRecorder() {
  throw RunError("this rehearse-run was built without CUPTI's headers");
}
KernelRecorder::~KernelRecorder() = default;
void KernelRecorder::enter(const OpCall&) {}
void KernelRecorder::leave() {}
std::vector<KernelSpan> KernelRecorder::end() {
  return {};
}
long KernelRecorder::dropped() const {
  return 0;
}

#endif

}  // namespace rehearse
