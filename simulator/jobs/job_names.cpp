#include "simulator/jobs/job_names.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace rehearse {
namespace {

// megatron/core/model_parallel_config.py (cp_comm_type); the inverse takes the first of a value.
constexpr JobWord kContextKinds[] = {{"p2p", "ring"},
                                     {"all_gather", "all-gather"},
                                     {"a2a", "all-to-all"},
                                     {"allgather", "all-gather"},
                                     {"a2a+p2p", "ring"}};
// megatron/core/distributed/distributed_data_parallel_config.py: the ZeRO stage of a sharding strategy.
constexpr JobWord kShardedStages[] = {
    {"no_shard", "0"}, {"optim", "1"}, {"optim_grads", "2"}, {"optim_grads_params", "3"}};
// Schedules of torch.distributed.pipelining (schedules.py, get_schedule_class).
constexpr JobWord kSchedules[] = {{"GPipe", "gpipe"},
                                  {"1F1B", "1f1b"},
                                  {"Interleaved1F1B", "interleaved"},
                                  {"LoopedBFS", "breadth-first"},
                                  {"ZBVZeroBubble", "zb-v"},
                                  {"DualPipeV", "dualpipe-v"}};
constexpr JobWord kRotateMethods[] = {{"allgather", "all-gather"}, {"alltoall", "ring"}};

}  // namespace

const std::span<const JobWord> kMegatronContextKinds = kContextKinds;
const std::span<const JobWord> kMegatronShardedStages = kShardedStages;
const std::span<const JobWord> kTorchtitanSchedules = kSchedules;
const std::span<const JobWord> kTorchtitanContextKinds = kRotateMethods;

const JobName* find_job_name(std::span<const JobName> names, std::string_view name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const JobName& one) { return one.name == name; });
  return found == names.end() ? nullptr : &*found;
}

std::string_view name_of_key(std::span<const JobName> names, std::string_view key) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const JobName& one) { return one.key == key; });
  if (found == names.end()) throw std::logic_error("no setting for " + std::string(key));
  return found->name;
}

std::string_view value_of_word(std::span<const JobWord> words, std::string_view word) {
  for (const JobWord& one : words)
    if (one.word == word) return one.value;
  return {};
}

std::string_view word_of_value(std::span<const JobWord> words, std::string_view value) {
  for (const JobWord& one : words)
    if (one.value == value) return one.word;
  return {};
}

}  // namespace rehearse
