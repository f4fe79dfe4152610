// Helpers that the writers of launch files share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/jobs/job_names.hpp"
#include "simulator/jobs/launch/launch_files.hpp"

namespace rehearse {

// A part of a transformer: a pipeline stage, or one of its virtual stages.
struct ModelPart {
  bool embedding = false, head = false;
  int first_layer = 0, layers = 0;  // transformer layers
  bool operator==(const ModelPart&) const = default;
};
// Returns the parts in the model's order, cut as the schedule cuts them.
std::vector<ModelPart> model_parts(const Scenario& scenario);
// Returns whether the parts differ in more than the embedding and the head.
bool uneven(const std::vector<ModelPart>& parts);

double sequence_tokens(const Scenario& scenario);
// Returns the number of gradients in a bucket: frameworks count elements, the scenario counts bytes.
double bucket_elements(const Scenario& scenario);

// Writes a key's value as an argument of Megatron-LM: "--tensor-model-parallel-size 8". The table of names
// must have the key.
std::string megatron_argument(std::string_view key, double value);
// Returns the last part of torchtitan's path for a key: "expert_parallel_degree".
std::string_view torchtitan_entry(std::string_view key);

// Returns whether ranks are placed in this order of axes, given the innermost first. Axes with one rank can
// be anywhere.
bool placed_as(const StrategyChoice& strategy, std::initializer_list<std::string_view> order);

// Returns "GPT-3 175B on 96 x dgx-a100 (768 GPUs): data 16 x pipeline 48", for example, printable.
std::string job_title(const Scenario& scenario);
// Returns "gpt3-175b-megatron.sh", for example: the scenario's name, with characters replaced that a file
// name should not have.
std::string launch_name(const Scenario& scenario, const LaunchFramework& framework, std::string_view ending);
// Turns the text into comment lines of a language whose comments begin with "#".
std::string commented(const std::string& text);
// Returns a comment on the job, the release for which its settings were checked, `more`, and the sentences.
std::string head_comment(const Scenario& scenario, const LaunchFramework& framework,
                         const std::vector<std::string>& more, const std::vector<std::string>& cannot);

// Returns the reasons why none of these frameworks can run the job.
std::vector<std::string> common_refusals(const Scenario& scenario, const LaunchFramework& framework);
// Adds sentences on the settings that none of them has.
void add_common_sentences(const Scenario& scenario, const LaunchFramework& framework,
                          std::vector<std::string>& cannot);

}  // namespace rehearse
