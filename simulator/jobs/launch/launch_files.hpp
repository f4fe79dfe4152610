// Writes a scenario as the file that starts the real job: one writer for each framework, and a table of all
// of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

struct LaunchFile {
  std::string name;  // "gpt3-175b-megatron.sh"
  std::string text;  // empty if the job is not possible
  // Complete sentences: the settings that the framework lacks or handles differently from the scenario; if
  // the job is not possible, why.
  std::vector<std::string> cannot;
  bool possible = true;
};

// Writes a bash script: torchrun and the arguments of Megatron-LM's pretrain_gpt.py.
LaunchFile megatron_launch(const Scenario& scenario);
// Writes DeepSpeed's JSON configuration. The sentences include what belongs in the training program.
LaunchFile deepspeed_launch(const Scenario& scenario);
// Writes torchtitan's job configuration, in TOML.
LaunchFile torchtitan_launch(const Scenario& scenario);

struct LaunchFramework {
  std::string_view name;     // on the command line
  std::string_view title;    // in sentences
  std::string_view release;  // for which the settings were checked
  LaunchFile (*write)(const Scenario& scenario);
};
inline constexpr LaunchFramework kMegatron = {"megatron", "Megatron-LM",
                                              "Megatron-LM core_v0.19.0 (August 2026)", megatron_launch};
inline constexpr LaunchFramework kDeepspeed = {"deepspeed", "DeepSpeed", "DeepSpeed 0.19.5 (August 2026)",
                                               deepspeed_launch};
inline constexpr LaunchFramework kTorchtitan = {"torchtitan", "torchtitan",
                                                "torchtitan 0.2.2 (February 2026)", torchtitan_launch};

std::span<const LaunchFramework> launch_frameworks();

}  // namespace rehearse
