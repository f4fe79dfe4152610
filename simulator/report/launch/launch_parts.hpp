// What the writers of launch files share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/report/launch/launch_files.hpp"

namespace rehearse {

// A part of a transformer: a pipeline stage, or one of its virtual stages.
struct ModelPart {
  bool embedding = false, head = false;
  int first_layer = 0, layers = 0;  // transformer layers
  bool operator==(const ModelPart&) const = default;
};
// In the model's order, cut as the schedule cuts them.
std::vector<ModelPart> model_parts(const Scenario& scenario);
// The parts differ in more than what the first and the last one hold beside their layers.
bool uneven(const std::vector<ModelPart>& parts);

double sequence_tokens(const Scenario& scenario);
// Gradients that a bucket holds: frameworks count elements, the scenario bytes.
double bucket_elements(const Scenario& scenario);

// Whether ranks lie in this order of axes, given the innermost first. Axes with one rank lie anywhere.
bool placed_as(const StrategyChoice& strategy, std::initializer_list<std::string_view> order);

// "GPT-3 175B on 96 x dgx-a100 (768 GPUs): data 16 x pipeline 48", printable.
std::string job_title(const Scenario& scenario);
// "gpt3-175b-megatron.sh": the scenario's name with what no file name should have replaced.
std::string launch_name(const Scenario& scenario, const LaunchFramework& framework, std::string_view ending);
// Lines of a comment in a language that begins them with "#".
std::string commented(const std::string& text);
// What the job is and the release that its settings were checked against, `more`, and the sentences.
std::string head_comment(const Scenario& scenario, const LaunchFramework& framework,
                         const std::vector<std::string>& more, const std::vector<std::string>& cannot);

// Why none of these frameworks can run the job.
std::vector<std::string> common_refusals(const Scenario& scenario, const LaunchFramework& framework);
// What none of them has a setting for.
void add_common_sentences(const Scenario& scenario, const LaunchFramework& framework,
                          std::vector<std::string>& cannot);

}  // namespace rehearse
