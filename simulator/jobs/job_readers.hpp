// Declares one reader for each kind of job file, and the functions that they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/jobs/job_settings.hpp"
#include "simulator/jobs/shell_script.hpp"

namespace rehearse {

// The command of a script that starts the training, with its options.
struct LaunchCommand {
  JobSettings options;  // names without "--"; a value is the words up to the next option
  std::string program;  // "pretrain_gpt.py"
};
// Returns the command of the script with the most options that the table knows. `separator`: the character
// between the words of an option's name, '-' or '_'.
LaunchCommand launch_command(const ShellScript& script, std::span<const JobName> names, char separator,
                             const std::string& path);
// Returns how many of the command's options the table knows.
int known_options(const LaunchCommand& command, std::span<const JobName> names);
// Sets nodes and devices a node from torchrun's, srun's or deepspeed's options and "#SBATCH" lines.
void read_launcher(JobDraft& draft, const ShellScript& script);

void read_megatron(JobFile& job, const JobSettings& settings, const ShellScript& script);
void read_deepspeed(JobFile& job, const JobSettings& settings);
void read_torchtitan(JobFile& job, const JobSettings& settings);
// Reads Hugging Face's TrainingArguments, from JSON or from the options of a command.
void read_training_arguments(JobFile& job, const JobSettings& settings, const ShellScript* script);
void read_accelerate(JobFile& job, const JobSettings& settings);
void read_axolotl(JobFile& job, const JobSettings& settings);
// Reads a model's config.json as the model of a job; the user must give everything else.
void read_model_config(JobFile& job, const std::string& path);

// Sets the model that a name on the Hugging Face hub means, or a config.json beside the job; otherwise it is
// asked.
void set_named_model(JobDraft& draft, std::string_view setting);
// Sets the keys of a DeepSpeed configuration that a job's script writes or names.
void read_deepspeed_part(JobDraft& outer, const JobSettings& settings);

}  // namespace rehearse
