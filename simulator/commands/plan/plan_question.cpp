#include "simulator/commands/plan/plan_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "models/text/document.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/scenario/reading/choose_framework.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/scenario/reading/readers.hpp"

namespace rehearse {
namespace {

TomlValue& table_at(TomlValue& root, std::string_view key) {
  if (!find_table(root, key)) put(root, key, toml_table());
  return *find_table(root, key);
}

// Copies the values of the named strategy into the scenario, unless the scenario sets them itself.
void take_over_preset(TomlValue& root) {
  const TomlValue* strategy = find_table(root, "strategy");
  const TomlEntry* preset = strategy ? find_entry(*strategy, "preset") : nullptr;
  const auto* name = preset ? preset->value.get<std::string>() : nullptr;
  if (!name) return;
  const std::string path = preset_path("simulator/strategies", *name);
  if (path.empty()) return;  // the reader of the scenario reports this
  TomlValue values = Document::parse_file(path).tree();
  erase_key(values, "limits");
  fill_in(root, values);
}

// Copies the value at `path` from one document to the other.
void put_back(TomlValue& to, const TomlValue& from, std::string_view path) {
  TomlValue* table = &to;
  const TomlValue* given = &from;
  for (std::size_t dot; (dot = path.find('.')) != std::string_view::npos; path.remove_prefix(dot + 1)) {
    table = &table_at(*table, path.substr(0, dot));
    given = given ? find_table(*given, path.substr(0, dot)) : nullptr;
  }
  const TomlEntry* entry = given ? find_entry(*given, path) : nullptr;
  if (entry) put(*table, path, entry->value);
}

std::int64_t integer_at(const TomlValue& root, std::string_view table, std::string_view key,
                        std::int64_t fallback) {
  const TomlValue* section = find_table(root, table);
  const TomlEntry* entry = section ? find_entry(*section, key) : nullptr;
  const auto* value = entry ? entry->value.get<std::int64_t>() : nullptr;
  return value ? *value : fallback;
}

// Reduces the scenario to so few devices that it can be read with any split of them, and to one sample for
// each data-parallel rank.
void shrink(TomlValue& root, std::int64_t nodes, std::int64_t samples) {
  TomlValue& cluster = table_at(root, "cluster");
  erase_key(cluster, "slow");
  put(cluster, "nodes", toml_value(nodes));
  put(table_at(root, "training"), "global_batch", toml_value(samples));
}

std::shared_ptr<const Cluster> cluster_of(const TomlValue& root, const std::string& path) {
  TomlValue alone = toml_table();
  put(alone, "cluster", find_table(root, "cluster") ? *find_table(root, "cluster") : toml_table());
  Document document = Document::parse_text(toml_text(alone), path);
  Section section = document.root().section("cluster");
  return read_cluster(section, std::filesystem::path(path).parent_path().string());
}

std::vector<std::string> assignments_of(const PlanQuestion& question, const PlanChoice& plan) {
  std::vector<std::string> assignments;
  for (const auto& [key, value] : settings_of(plan, question.scenario.model))
    assignments.push_back(fmt::format("{}={}", key, value));
  return assignments;
}

}  // namespace

PlanQuestion plan_question(const std::string& text, const std::string& path, const Overrides& overrides) {
  OpenedScenario opened = open_scenario(text, path);
  complete_scenario(opened, path, overrides);
  Document document = std::move(opened.document);
  document.root().section("training").integer("global_batch", 1, 1'000'000'000);  // an error names its place
  TomlValue& root = *document.root().tree();
  take_over_preset(root);
  // All plans are of one framework, whichever strategy they have.
  if (const std::string framework =
          default_framework(root, std::filesystem::path(path).parent_path().string());
      !framework.empty())
    put(table_at(root, "training"), "framework", toml_value(framework));
  for (const std::string& key : searched_keys()) erase_path(root, key);
  erase_path(root, "strategy.title");
  const TomlValue whole_question = root;

  PlanQuestion question;
  question.path = path;
  std::shared_ptr<const Cluster> cluster;
  try {
    cluster = cluster_of(root, path);
  } catch (const InputError&) {
    // The reader of the complete scenario names the place.
  }
  shrink(root, 1, cluster ? cluster->node().devices : 1);
  question.scenario = read_scenario_document(std::move(document), path);
  // Each plan decides for itself which keys apply.
  const std::vector<std::string> ignored = std::exchange(question.scenario.ignored, {});
  question.scenario.notes = opened.job ? job_notes(*opened.job) : std::vector<std::string>();
  if (!cluster) cluster = cluster_of(whole_question, path);
  // The text from the reader refers to no other file. Restore what was changed in order to read it.
  TomlValue whole = parse_toml(question.scenario.text, path);
  TomlValue& section = table_at(whole, "cluster");
  const TomlValue& given = *find_table(whole_question, "cluster");
  erase_key(section, "nodes");
  for (const char* key : {"nodes", "slow"})
    if (const TomlEntry* entry = find_entry(given, key)) put(section, key, entry->value);
  for (const std::string& key : ignored) put_back(whole, whole_question, key);
  const std::int64_t samples = integer_at(whole_question, "training", "global_batch", 1);
  put(table_at(whole, "training"), "global_batch", toml_value(samples));
  question.text = toml_text(whole);
  question.scenario.cluster = cluster;
  question.scenario.training.global_batch = static_cast<double>(samples);
  question.scenario.microbatches = 1;
  return question;
}

Scenario scenario_of(const PlanQuestion& question, const PlanChoice& plan) {
  Scenario scenario = read_scenario_text(question.text, question.path, assignments_of(question, plan));
  if (question.factors.network_links != 1) scenario.cluster = faster(scenario.cluster, question.factors);
  return scenario;
}

std::string scenario_file_text(const PlanQuestion& question, const PlanChoice& plan,
                               const std::string& comment) {
  Document document = Document::parse_text(question.text, question.path);
  for (const std::string& assignment : assignments_of(question, plan)) document.set(assignment);
  return comment + toml_text(document.tree());
}

std::string refusal(const PlanQuestion& question, const CoreChoice& split) {
  const std::int64_t in_node = question.scenario.cluster->node().devices;
  const std::int64_t ranks = std::int64_t{split.tensor} * split.context;
  const std::int64_t devices = std::lcm(
      std::lcm(in_node, ranks), std::int64_t{std::max(split.expert, 1)} * std::max(1, split.expert_tensor));
  TomlValue small = parse_toml(question.text, question.path);
  shrink(small, devices / in_node, devices / ranks);
  PlanChoice plan;
  plan.core = split;
  plan.core.data = static_cast<int>(devices / ranks);
  try {
    read_scenario_text(toml_text(small), question.path, assignments_of(question, plan));
  } catch (const InputError& error) {
    const std::string text = error.what();  // omits its place, which is in a generated text
    return text.substr(text.find(": ") + 2);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace rehearse
