// Lists the names of training frameworks' settings and the scenario keys that they mean: the one table that
// both the writers of launch files and the readers of job files use.
#pragma once

#include <span>
#include <string_view>

namespace rehearse {

// What a setting does to a scenario.
enum class JobUse {
  number,      // its value is that of the key
  flag,        // the key is true where the setting is on
  text,        // its value is a word, which `words` translates to the key's
  read,        // a reader's code combines it with others
  unmodelled,  // it changes the step time, and no key says it
  ignored,     // it does not change the step time: paths, logging, seeds, learning rates
};

struct JobWord {
  std::string_view word, value;  // in the framework, in the scenario
};

struct JobName {
  std::string_view name;  // "tensor-model-parallel-size", "zero_optimization.stage"
  JobUse use = JobUse::read;
  std::string_view key = {};  // "strategy.tensor"
  std::span<const JobWord> words = {};
};

// Arguments of Megatron-LM, without "--" and with "-" between words. Megatron-DeepSpeed's are among them.
std::span<const JobName> megatron_names();
// Paths in DeepSpeed's JSON configuration.
std::span<const JobName> deepspeed_names();
// Paths in torchtitan's TOML configuration, of all releases that have one.
std::span<const JobName> torchtitan_names();
// Fields of Hugging Face's TrainingArguments, keys of accelerate's and of axolotl's YAML.
std::span<const JobName> huggingface_names();

// Returns the table's row of a name; nullptr if it has none.
const JobName* find_job_name(std::span<const JobName> names, std::string_view name);
// Returns the first name whose setting is the scenario's key. There must be one.
std::string_view name_of_key(std::span<const JobName> names, std::string_view key);
// Return the scenario's value of a framework's word, and the reverse; "" if the table has no such row.
std::string_view value_of_word(std::span<const JobWord> words, std::string_view word);
std::string_view word_of_value(std::span<const JobWord> words, std::string_view value);

// The words of which several settings, or writers, make use.
extern const std::span<const JobWord> kMegatronContextKinds;    // --cp-comm-type
extern const std::span<const JobWord> kMegatronShardedStages;   // --data-parallel-sharding-strategy
extern const std::span<const JobWord> kTorchtitanSchedules;     // parallelism.pipeline_parallel_schedule
extern const std::span<const JobWord> kTorchtitanContextKinds;  // context_parallel_rotate_method

}  // namespace rehearse
