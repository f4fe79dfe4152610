#include "backend/cuda/nccl_profiler.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "backend/cuda/nccl_communicator.hpp"
#include "backend/cuda/nccl_profiler_v2.hpp"

namespace rehearse {
namespace {

// "STATIC_PLUGIN" makes NCCL look for the plugin in the program itself.
constexpr const char *kPluginVariable = "NCCL_PROFILER_PLUGIN", *kThisProgram = "STATIC_PLUGIN";

// Communicators are created one at a time.
std::atomic<NcclChoices*> next_communicator{nullptr};

std::size_t bytes_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 10> kTypes = {{{"ncclInt8", 1},
                                                                                {"ncclUint8", 1},
                                                                                {"ncclFloat16", 2},
                                                                                {"ncclBfloat16", 2},
                                                                                {"ncclInt32", 4},
                                                                                {"ncclUint32", 4},
                                                                                {"ncclFloat32", 4},
                                                                                {"ncclInt64", 8},
                                                                                {"ncclUint64", 8},
                                                                                {"ncclFloat64", 8}}};
  for (const auto& [name, bytes] : kTypes)
    if (name == type) return bytes;
  return 0;
}

std::string text_of(const char* text) {
  return text == nullptr ? "" : text;
}

ncclResult_t init(void** context, int* mask) {
  NcclChoices* const listening = next_communicator.exchange(nullptr);
  *context = listening;
  if (listening != nullptr) *mask = kNcclProfileColl;  // a mask for all communicators
  return ncclSuccess;
}

// NCCL reports collectives as children of groups; NCCL up to 2.27 needs a handle for the group.
ncclResult_t start_event(void* context, void** handle, NcclProfilerEvent* event) {
  *handle = context;
  if (context == nullptr || event->type != kNcclProfileColl) return ncclSuccess;
  const NcclProfilerEvent::Collective& told = event->collective;
  static_cast<NcclChoices*>(context)->add(
      text_of(told.function), told.count * bytes_of(text_of(told.type)),
      {text_of(told.algorithm), text_of(told.protocol), told.most_channels});
  return ncclSuccess;
}

ncclResult_t stop_event(void*) {
  return ncclSuccess;
}
ncclResult_t record_event_state(void*, int, void*) {
  return ncclSuccess;
}
ncclResult_t finalize(void*) {
  return ncclSuccess;
}

// Returns NCCL's name of the collective; all-to-all is sent as messages and has none.
const char* function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "AllReduce";
    case CollectiveKind::reduce_scatter:
      return "ReduceScatter";
    case CollectiveKind::all_gather:
      return "AllGather";
    case CollectiveKind::broadcast:
      return "Broadcast";
    case CollectiveKind::reduce:
      return "Reduce";
    case CollectiveKind::all_to_all:
      break;
  }
  return "";
}

}  // namespace

void NcclChoices::add(const std::string& function, std::size_t bytes, const NcclChoice& choice) {
  const std::lock_guard lock(mutex_);
  ++calls_[{function, bytes}][choice];
}

std::map<NcclChoice, long> NcclChoices::of(CollectiveKind kind, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find({function_of(kind), bytes});
  return found == calls_.end() ? std::map<NcclChoice, long>() : found->second;
}

std::string become_nccl_profiler() {
  constexpr int kNamesChoices = 22400;  // from plugin interface 2 on; earlier, choices are numbers
  if (nccl_version_number() < kNamesChoices)
    return fmt::format("NCCL {} does not name them; NCCL 2.24 and later do", nccl_version());
  const char* const given = std::getenv(kPluginVariable);
  if (given != nullptr && std::string_view(given) != kThisProgram)
    return fmt::format("{}={} in the environment names another plugin", kPluginVariable, given);
  setenv(kPluginVariable, kThisProgram, 1);
  return "";
}

NcclChoices& listen_to_next_communicator() {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<NcclChoices>>;  // NCCL may still add to them
  const std::lock_guard lock(mutex);
  NcclChoices& choices = *all->emplace_back(std::make_unique<NcclChoices>());
  next_communicator = &choices;
  return choices;
}

}  // namespace rehearse

// NCCL looks up the plugin by this name.
extern "C" {
extern const rehearse::NcclProfiler ncclProfiler_v2;
const rehearse::NcclProfiler ncclProfiler_v2 = {"rehearse",
                                                rehearse::init,
                                                rehearse::start_event,
                                                rehearse::stop_event,
                                                rehearse::record_event_state,
                                                rehearse::finalize};
}
