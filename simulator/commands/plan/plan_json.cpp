// Writes the answer to a search for plans as JSON and CSV.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/text/toml_value.hpp"
#include "simulator/commands/plan/plan_answer.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TomlValue& value) {
  if (const auto* whole = value.get<std::int64_t>()) return *whole;
  if (const auto* number = value.get<double>()) return *number;
  if (const auto* truth = value.get<bool>()) return *truth;
  if (const auto* text = value.get<std::string>()) return *text;
  Json array = Json::array();
  if (const auto* elements = value.get<TomlValue::Array>())
    for (const TomlValue& element : *elements) array.push_back(json_of(element));
  return array;
}

// Converts a setting's value, which is written in TOML; a bare word is a string.
Json json_of_setting(const std::string& text) {
  try {
    return json_of(parse_toml_value(text, {}));
  } catch (const InputError&) {
    return text;
  }
}

// Returns a string without its quotes.
std::string unquoted(const std::string& value) {
  return value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

Json settings_json(const std::vector<std::pair<std::string, std::string>>& settings) {
  Json json = Json::object();
  for (const auto& [key, value] : settings) json[key] = json_of_setting(value);
  return json;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json plan_json(const PlanAnswer& answer, const AnsweredPlan& plan) {
  const PlanFigures& f = plan.figures;
  Json json;
  json["world"] = answer.worlds.size() > plan.world ? Json(answer.worlds[plan.world]) : Json(nullptr);
  json["words"] = plan.words;
  json["settings"] = settings_json(plan.settings);
  if (!plan.ignored.empty()) json["ignored"] = plan.ignored;
  json["devices"] = plan.devices;
  json["step_time_s"] = f.step_time_s;
  json["time_per_sample_s"] = f.step_time_s / plan.samples;
  json["samples_per_s"] = f.samples_per_s;
  json["tokens_per_s"] = f.tokens_per_s > 0 ? Json(f.tokens_per_s) : Json(nullptr);
  json["mfu"] = f.mfu;
  json["interval_s"] =
      plan.interval_s ? Json({plan.interval_s->first, plan.interval_s->second}) : Json(nullptr);
  json["breakdown_s"] = {{"compute", f.compute_s},
                         {"exposed_communication", f.communication_s},
                         {"pipeline_bubble", f.bubble_s},
                         {"other", f.other_s}};
  json["memory_bytes"] = f.memory_bytes;
  json["reserved_bytes"] = f.reserved_bytes;
  json["memory_capacity_bytes"] = plan.capacity_bytes;
  json["fits"] = plan.fits;
  json["cost_per_step"] = optional_json(plan.cost.money);
  json["currency"] = answer.currency.empty() ? Json(nullptr) : Json(answer.currency);
  json["energy_wh_per_step"] = optional_json(plan.cost.energy_wh);
  json["carbon_g_per_step"] = optional_json(plan.cost.carbon_g);
  json["target"] = nullptr;
  if (const auto& training = plan.training)
    json["target"] = {{"steps", training->steps},
                      {"seconds", training->seconds},
                      {"device_hours", training->device_hours},
                      {"cost", optional_json(training->money)},
                      {"energy_kwh", optional_json(training->energy_kwh)},
                      {"carbon_kg", optional_json(training->carbon_kg)}};
  json["slower"] = plan.slower;
  json["why"] = plan.why;
  json["indistinguishable"] =
      std::any_of(answer.open.begin(), answer.open.end(), [&](const OpenDecision& open) {
        return &plan == &answer.plans[open.first] || &plan == &answer.plans[open.second];
      });
  json["basis"] = kPlanBasisNames[static_cast<std::size_t>(plan.basis)];
  if (plan.basis == PlanBasis::extended) json["simulated_microbatches"] = f.simulated_microbatches;
  json["file"] = plan.file.empty() ? Json(nullptr) : Json(plan.file);
  if (!f.result.empty()) json["result"] = Json::parse(f.result);
  return json;
}

}  // namespace

void write_plan_json(const PlanAnswer& answer, std::ostream& out) {
  Json json;
  json["scenario"] = answer.scenario;
  json["framework"] = answer.framework.empty() ? "none" : answer.framework;
  json["objective"] = answer.objective;
  json["tolerance"] = answer.tolerance;
  json["plans"] = Json::array();
  for (const AnsweredPlan& plan : answer.plans) json["plans"].push_back(plan_json(answer, plan));
  json["pareto"] = answer.pareto;
  json["base"] = answer.own ? plan_json(answer, *answer.own) : Json(nullptr);
  json["near"] = Json::array();
  for (const NearPlan& near : answer.near)
    json["near"].push_back(
        {{"words", near.words},
         {"settings", settings_json(near.settings)},
         {"step_time_s_bound", near.least_step_s},
         {"memory_bytes", near.least_bytes},
         {"memory_capacity_bytes", near.capacity_bytes},
         {"sets", near.sets},
         {"fitting_step_time_s", near.sets.empty() ? Json(nullptr) : Json(near.fitting_step_s)}});
  json["decide"] = Json::array();
  for (const OpenDecision& open : answer.open)
    json["decide"].push_back({{"between", {open.first, open.second}},
                              {"difference", open.decision.difference},
                              {"uncertainty", open.decision.uncertainty},
                              {"constant", open.decision.constant},
                              {"sentence", decision_sentence(open)},
                              {"measure", open.decision.measure}});
  json["what_if"] = Json::array();
  for (const ChangedWorld& changed : answer.changed) {
    Json one = {{"name", changed.name}, {"same_plan", changed.same_plan}};
    one["plan"] = changed.best ? plan_json(answer, *changed.best) : Json(nullptr);
    if (changed.best) one["plan"].erase("result");
    json["what_if"].push_back(std::move(one));
  }
  json["launch"] = Json::array();
  for (const PlanLaunch& launch : answer.launches)
    json["launch"].push_back(
        {{"framework", launch.framework}, {"file", launch.file}, {"cannot", launch.cannot}});
  json["space"] = {{"plans", answer.space},
                   {"ruled_out",
                    {{"impossible", answer.impossible},
                     {"memory", answer.too_large},
                     {"bound", answer.slower},
                     {"constraint", answer.beyond_limits},
                     {"failed", answer.failed}}},
                   {"bounded", answer.bounded},
                   {"simulated", answer.simulated}};
  json["binding"] = answer.binding;
  out << json_text(json, 2) << '\n';
}

void write_plan_csv(const PlanAnswer& answer, std::ostream& out) {
  // One column for each key that any plan sets.
  std::vector<std::string> keys;
  for (const AnsweredPlan& plan : answer.plans)
    for (const auto& [key, value] : plan.settings)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  out << "rank,world,devices,step_time_s,samples_per_s,tokens_per_s,mfu,memory_bytes,fits,cost_per_step,"
         "energy_wh_per_step,slower,pareto,basis";
  for (const std::string& key : keys) out << ',' << key;
  out << '\n';
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const AnsweredPlan& plan = answer.plans[i];
    const PlanFigures& f = plan.figures;
    const auto number = [](const std::optional<double>& value) {
      return value ? fmt::format("{}", *value) : "";
    };
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", i + 1,
                       csv_field(answer.worlds[plan.world]), plan.devices, f.step_time_s, f.samples_per_s,
                       f.tokens_per_s > 0 ? fmt::format("{}", f.tokens_per_s) : "", f.mfu, f.memory_bytes,
                       plan.fits, number(plan.cost.money), number(plan.cost.energy_wh), plan.slower,
                       std::count(answer.pareto.begin(), answer.pareto.end(), i) > 0,
                       kPlanBasisNames[static_cast<std::size_t>(plan.basis)]);
    for (const std::string& key : keys) {
      const auto its = std::find_if(plan.settings.begin(), plan.settings.end(),
                                    [&](const auto& setting) { return setting.first == key; });
      out << ',' << (its == plan.settings.end() ? "" : csv_field(unquoted(its->second)));
    }
    out << '\n';
  }
}

}  // namespace rehearse
