// Declares the readers of the kinds of job files, and what they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/jobs/job_settings.hpp"
#include "simulator/jobs/shell_script.hpp"

namespace rehearse {

// One command of a script that trains, as its options.
struct LaunchCommand {
  JobSettings options;  // names without "--"; a value is the words up to the next option
  std::string program;  // "pretrain_gpt.py"
};
// Returns the script's command that has most of the table's options, spelt with `separator` between words.
LaunchCommand launch_command(const ShellScript& script, std::span<const JobName> names, char separator,
                             const std::string& path);
int known_options(const LaunchCommand& command, std::span<const JobName> names);
// Sets nodes and devices a node from torchrun's, srun's or deepspeed's options and "#SBATCH" lines.
void read_launcher(JobDraft& draft, const ShellScript& script);

void read_megatron(JobFile& job, const JobSettings& settings, const ShellScript& script);
void read_deepspeed(JobFile& job, const JobSettings& settings);
void read_torchtitan(JobFile& job, const JobSettings& settings);
// TrainingArguments, in JSON or as the options of a command.
void read_training_arguments(JobFile& job, const JobSettings& settings, const ShellScript* script);
void read_accelerate(JobFile& job, const JobSettings& settings);
void read_axolotl(JobFile& job, const JobSettings& settings);
// A config.json of a model: everything else is asked.
void read_model_config(JobFile& job, const std::string& path);

// Sets the model that a name on the Hugging Face hub means, or a config.json beside the job; otherwise it is
// asked.
void set_named_model(JobDraft& draft, std::string_view setting);
// Sets the keys of a DeepSpeed configuration that a job's script writes or names.
void read_deepspeed_part(JobDraft& outer, const JobSettings& settings);

}  // namespace rehearse
