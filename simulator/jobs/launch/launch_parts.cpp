#include "simulator/jobs/launch/launch_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "models/text/printable.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/programs/model_cut.hpp"

namespace rehearse {

std::span<const LaunchFramework> launch_frameworks() {
  static constexpr std::array kFrameworks = {kMegatron, kDeepspeed, kTorchtitan};
  return kFrameworks;
}

std::vector<ModelPart> model_parts(const Scenario& scenario) {
  const ModelCut cut = cut_model(scenario);
  const int last = static_cast<int>(cut.layers.size()) - 1;  // the head; the embedding is the first layer
  std::vector<ModelPart> parts;
  for (const LayerRange& range : layer_ranges(cut.stage_layers)) {
    ModelPart part;
    part.embedding = range.first == 0;
    part.head = range.last == last;
    part.first_layer = std::max(0, range.first - 1);
    part.layers = range.last - range.first + 1 - part.embedding - part.head;
    parts.push_back(part);
  }
  return parts;
}

bool uneven(const std::vector<ModelPart>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const ModelPart& part) { return part.layers != parts.front().layers; });
}

double sequence_tokens(const Scenario& scenario) {
  return tokens_per_sample(scenario.model, scenario.training.sequence_length);
}

double bucket_elements(const Scenario& scenario) {
  return std::floor(scenario.strategy.bucket_bytes / element_bytes(scenario.training.gradient_precision));
}

std::string megatron_argument(std::string_view key, double value) {
  return fmt::format("--{} {}", name_of_key(megatron_names(), key), value);
}

std::string_view torchtitan_entry(std::string_view key) {
  const std::string_view path = name_of_key(torchtitan_names(), key);
  return path.substr(path.rfind('.') + 1);
}

bool placed_as(const StrategyChoice& strategy, std::initializer_list<std::string_view> order) {
  const auto* next = order.begin();
  for (const Axis& axis : worker_axes(strategy)) {
    if (axis.size == 1) continue;
    next = std::find(next, order.end(), axis.name);
    if (next == order.end()) return false;
  }
  return true;
}

std::string job_title(const Scenario& scenario) {
  return printable(fmt::format("{} on {}: {}", scenario.model.title, scenario.cluster->title,
                               degrees_text(scenario.strategy)));
}

std::string launch_name(const Scenario& scenario, const LaunchFramework& framework, std::string_view ending) {
  std::string name = scenario.name.empty() ? "job" : scenario.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_') c = '_';
  return fmt::format("{}-{}.{}", name, framework.name, ending);
}

std::string commented(const std::string& text) {
  constexpr std::size_t kIndent = 2;  // of wrapped text
  std::string lines = wrapped(printable(text));
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    lines.replace(at, kIndent, "# ");
    if (lines.find('\n', at) == std::string::npos) break;
  }
  if (lines.back() != '\n') lines += '\n';
  return lines;
}

std::string head_comment(const Scenario& scenario, const LaunchFramework& framework,
                         const std::vector<std::string>& more, const std::vector<std::string>& cannot) {
  std::string text = commented(job_title(scenario) + ".") +
                     commented(fmt::format("The settings were checked against {}.", framework.release));
  for (const std::string& sentence : more) text += commented(sentence);
  if (!cannot.empty())
    text += "#\n" + commented(fmt::format("What {} does differently from the scenario, or leaves to you:",
                                          framework.title));
  for (const std::string& sentence : cannot) text += commented("* " + sentence);
  return text;
}

std::vector<std::string> common_refusals(const Scenario& scenario, const LaunchFramework& framework) {
  const StrategyChoice& strategy = scenario.strategy;
  std::vector<std::string> reasons;
  if (scenario.cluster->node().device.compute_capability == 0)
    reasons.push_back(fmt::format("{} is not an NVIDIA GPU; the settings of {} are for NVIDIA GPUs.",
                                  printable(scenario.cluster->node().device.title), framework.title));
  if (strategy.gradients != "all-reduce")
    reasons.push_back(fmt::format(
        "{} combines gradients by collectives of all ranks in each step, and has no gradients = \"{}\".",
        framework.title, strategy.gradients));
  if (is_profiled(scenario.model))
    reasons.emplace_back("The scenario gives measured times of its model, and no shape.");
  return reasons;
}

void add_common_sentences(const Scenario& scenario, const LaunchFramework& framework,
                          std::vector<std::string>& cannot) {
  const StrategyChoice& strategy = scenario.strategy;
  if (strategy.batch_by == BatchBy::speed && strategy.data > 1)
    cannot.push_back(
        fmt::format("{} gives all replicas as many samples (batch_by = \"equal\").", framework.title));
  const bool asks_for_algorithm =
      std::any_of(scenario.settings.begin(), scenario.settings.end(),
                  [](const auto& setting) { return setting.first == "strategy.all_reduce"; });
  if (asks_for_algorithm && strategy.all_reduce != Algorithm::automatic)
    cannot.push_back(fmt::format(
        "NCCL chooses the algorithm of each all-reduce, not {}: all_reduce = \"{}\" is left to its "
        "environment variable NCCL_ALGO.",
        framework.title, kAlgorithmNames[static_cast<std::size_t>(strategy.all_reduce)]));
  if (strategy.expert_imbalance > 0)
    cannot.push_back(
        fmt::format("How unevenly tokens are spread over experts (expert_imbalance = {}) is decided by the "
                    "router and the data, and is not a setting.",
                    strategy.expert_imbalance));
}

}  // namespace rehearse
