#include "simulator/commands/plan/plan_worlds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "models/text/document.hpp"
#include "models/text/number_in.hpp"
#include "models/text/toml_text.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

// Share of its speed at which a slow node computes, as in [[cluster.slow]].
constexpr double kSlowNode = 0.8;
constexpr double kFasterNetwork = 2, kMoreMemory = 2;
constexpr int kMostNumbers = 64;

// Parses "8", "8,12,16" or "8..512": powers of 2 times the first number, up to the last one, which is
// included.
std::vector<std::int64_t> numbers(const std::string& option, const std::string& text) {
  const auto refuse = [&]() -> std::int64_t {
    throw InputError({option},
                     fmt::format("is {}; allowed: a whole number from 1 on, several with commas, or "
                                 "FROM..TO for FROM, 2 x FROM, 4 x FROM, ... and TO",
                                 in_quotes(text)));
  };
  const auto number = [&](std::string_view part) {
    const auto value = number_in<std::int64_t>(part);
    return value && *value > 0 && *value <= 1'000'000'000 ? *value : refuse();
  };
  std::vector<std::int64_t> found;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    if (const std::size_t dots = part.find(".."); dots != std::string_view::npos) {
      const std::int64_t first = number(part.substr(0, dots)), last = number(part.substr(dots + 2));
      if (first > last) refuse();
      for (std::int64_t value = first; value < last; value *= 2) found.push_back(value);
      found.push_back(last);
    } else {
      found.push_back(number(part));
    }
    begin = end + 1;
  }
  if (found.size() > kMostNumbers)
    throw InputError({option},
                     fmt::format("names {} numbers; allowed: at most {}", found.size(), kMostNumbers));
  return found;
}

// Returns "preset=NAME" or "file=PATH".
std::string cluster_setting(const std::string& name) {
  return is_cluster_preset(name)
             ? fmt::format("preset={}", name)
             : fmt::format("file={}", toml_string(std::filesystem::absolute(name).string()));
}

PlanWorld world_of(const PlanArguments& arguments, const std::string& text, const std::string& path,
                   const std::vector<std::string>& settings) {
  PlanWorld world;
  world.question = plan_question(text, path, {arguments.overrides, settings});
  const Cluster& cluster = *world.question.scenario.cluster;
  world.name = fmt::format("{} x {}", cluster.nodes(), cluster.name);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    world.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return world;
}

void add_what_ifs(std::vector<PlanWorld>& worlds, const PlanArguments& arguments, const std::string& text,
                  const std::string& path) {
  const PlanWorld& first = worlds.front();
  const Cluster& cluster = *first.question.scenario.cluster;
  std::vector<PlanWorld> more;
  const auto add = [&](std::string name, std::vector<std::string> settings) {
    for (const auto& [key, value] : first.settings) settings.push_back(fmt::format("{}={}", key, value));
    PlanWorld world = world_of(arguments, text, path, settings);
    world.name = std::move(name);
    world.what_if = true;
    more.push_back(std::move(world));
  };
  if (cluster.nodes() > 1) {
    add("network twice as fast", {});
    PlanQuestion& question = more.back().question;
    question.factors.network_links = kFasterNetwork;
    question.scenario.cluster = faster(question.scenario.cluster, question.factors);
    if (cluster.fabric().oversubscription > 1) add("no oversubscription", {"cluster.oversubscription=1"});
  }
  add("devices with twice the memory", {});
  more.back().memory_factor = kMoreMemory;
  if (cluster.nodes() > 1 && cluster.slow_parts.empty()) {
    std::string slow;
    for (int device = 0; device < cluster.node().devices; ++device)
      slow += fmt::format("{}{{device = {}, factor = {}}}", slow.empty() ? "" : ", ", device, kSlowNode);
    add("one node at 80 % of its speed", {fmt::format("cluster.slow=[{}]", slow)});
    more.back().searched = false;  // bounds do not take slow devices into account
  }
  worlds.insert(worlds.end(), more.begin(), more.end());
}

}  // namespace

std::vector<PlanWorld> plan_worlds(const PlanArguments& arguments, const std::string& text,
                                   const std::string& path) {
  const auto settings = [](const std::string& option, const std::string& key, const std::string& values) {
    std::vector<std::string> all;
    if (values.empty()) return std::vector<std::string>{""};
    for (const std::int64_t value : numbers(option, values)) all.push_back(fmt::format("{}={}", key, value));
    return all;
  };
  std::vector<std::string> clusters = {""};
  if (!arguments.clusters.empty()) clusters.clear();
  for (const std::string& name : arguments.clusters)
    clusters.push_back(fmt::format("cluster.{}", cluster_setting(name)));
  std::vector<PlanWorld> worlds;
  for (const std::string& cluster : clusters)
    for (const std::string& nodes : settings("--nodes", "cluster.nodes", arguments.nodes))
      for (const std::string& batch :
           settings("--global-batch", "training.global_batch", arguments.global_batches)) {
        std::vector<std::string> changes;
        for (const std::string* change : {&cluster, &nodes, &batch})
          if (!change->empty()) changes.push_back(*change);
        worlds.push_back(world_of(arguments, text, path, changes));
        if (!batch.empty()) worlds.back().name += ", batch of " + batch.substr(batch.find('=') + 1);
      }
  if (arguments.what_if) add_what_ifs(worlds, arguments, text, path);
  return worlds;
}

}  // namespace rehearse
