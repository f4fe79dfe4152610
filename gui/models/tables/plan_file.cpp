#include "gui/models/tables/plan_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "simulator/report/json_reader.hpp"

namespace rehearse::gui {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kMost = 1e300;
constexpr std::size_t kBeginning = 1 << 16;  // bytes of a plans file that contain its first keys

bool is_told(const JsonReader& object, const char* key) {
  return object.has(key) && !object.at(key).value().is_null();
}

double number_or_none(const JsonReader& object, const char* key, double least = 0) {
  return is_told(object, key) ? object.at(key).number(least, kMost) : kNotTold;
}

std::string text_or_none(const JsonReader& object, const char* key) {
  return is_told(object, key) ? object.at(key).text() : std::string();
}

std::map<std::string, PlanSetting> settings_in(const JsonReader& object) {
  object.object();
  std::map<std::string, PlanSetting> settings;
  for (const auto& [key, value] : object.value().items()) {
    PlanSetting setting;
    setting.text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_number()) setting.number = value.get<double>();
    settings[key] = std::move(setting);
  }
  return settings;
}

std::string in_folder(const std::string& file, const std::string& folder) {
  return file.empty() || fs::path(file).is_absolute() ? file : (fs::path(folder) / file).string();
}

FoundPlan plan_in(const JsonReader& object, const std::string& folder) {
  FoundPlan plan;
  plan.settings = settings_in(object.at("settings"));
  plan.step_time_s = object.at("step_time_s").number(0, kMost);
  for (const auto& [key, figure] :
       {std::pair("devices", &FoundPlan::devices),
        std::pair("time_per_sample_s", &FoundPlan::time_per_sample_s),
        std::pair("samples_per_s", &FoundPlan::samples_per_s), std::pair("mfu", &FoundPlan::mfu),
        std::pair("memory_bytes", &FoundPlan::memory_bytes),
        std::pair("memory_capacity_bytes", &FoundPlan::memory_capacity_bytes),
        std::pair("cost_per_step", &FoundPlan::cost_per_step),
        std::pair("energy_wh_per_step", &FoundPlan::energy_wh_per_step)})
    plan.*figure = number_or_none(object, key);
  plan.slower = number_or_none(object, "slower", -kMost);
  if (is_told(object, "interval_s")) {
    const JsonReader interval = object.at("interval_s");
    if (interval.size() != 2) interval.refuse("the lowest and the highest step time, in seconds");
    plan.interval_s = {interval.item(0).number(0, kMost), interval.item(1).number(0, kMost)};
  }
  plan.fits = !is_told(object, "fits") || object.at("fits").boolean();
  plan.indistinguishable = is_told(object, "indistinguishable") && object.at("indistinguishable").boolean();
  // "extended" plans were simulated with only some of their micro-batches.
  const std::string basis = text_or_none(object, "basis");
  plan.simulated = basis == "simulated" || basis == "extended";
  plan.why = text_or_none(object, "why");
  plan.file = in_folder(text_or_none(object, "file"), folder);
  return plan;
}

FoundPlan too_large_in(const JsonReader& object) {
  FoundPlan plan;
  plan.origin = FoundPlan::Origin::too_large;
  plan.settings = settings_in(object.at("settings"));
  plan.step_time_s = object.at("step_time_s_bound").number(0, kMost);
  plan.memory_bytes = number_or_none(object, "memory_bytes");
  plan.memory_capacity_bytes = number_or_none(object, "memory_capacity_bytes");
  plan.fits = false;
  plan.why = text_or_none(object, "remedy");
  if (is_told(object, "sets")) {
    const JsonReader sets = object.at("sets");
    for (std::size_t i = 0; i < sets.size(); ++i)
      plan.why += (i == 0 ? (plan.why.empty() ? "" : ": ") : ", ") + sets.item(i).text();
  }
  return plan;
}

bool same_settings(const FoundPlan& a, const FoundPlan& b) {
  return std::equal(
      a.settings.begin(), a.settings.end(), b.settings.begin(), b.settings.end(),
      [](const auto& x, const auto& y) { return x.first == y.first && x.second.text == y.second.text; });
}

void read_own(const JsonReader& file, const std::string& folder, PlanFile& into) {
  if (!is_told(file, "base")) return;
  FoundPlan own = plan_in(file.at("base"), folder);
  const auto ranked = std::find_if(into.plans.begin(), into.plans.end(),
                                   [&](const FoundPlan& plan) { return same_settings(plan, own); });
  own.origin = FoundPlan::Origin::own;
  own.is_base = true;
  if (ranked != into.plans.end())
    ranked->is_base = true;
  else
    into.plans.push_back(std::move(own));
}

void read_space(const JsonReader& file, PlanFile& into) {
  if (!is_told(file, "space")) return;
  const JsonReader space = file.at("space");
  const auto count = [&](const char* key) {
    return is_told(space, key) ? std::optional(space.at(key).number(0, kMost)) : std::nullopt;
  };
  into.searched = count("plans");
  into.bounded = count("bounded");
  into.simulated = count("simulated");
  if (!is_told(space, "ruled_out")) return;
  const JsonReader ruled_out = space.at("ruled_out");
  ruled_out.object();
  for (const auto& [why, number] : ruled_out.value().items())
    into.ruled_out.emplace_back(why, ruled_out.at(why.c_str()).number(0, kMost));
}

void read_advice(const JsonReader& file, PlanFile& into) {
  if (is_told(file, "decide")) {
    const JsonReader decide = file.at("decide");
    for (std::size_t i = 0; i < decide.size(); ++i) {
      const JsonReader item = decide.item(i);
      PlanDecision& decision = into.decisions.emplace_back();
      decision.sentence = item.at("sentence").text();
      if (!is_told(item, "measure")) continue;
      const JsonReader measure = item.at("measure");
      for (std::size_t m = 0; m < measure.size(); ++m) decision.measure.push_back(measure.item(m).text());
    }
  }
  if (is_told(file, "binding")) {
    const JsonReader binding = file.at("binding");
    for (std::size_t i = 0; i < binding.size(); ++i)
      into.binding.push_back(binding.item(i).value().is_object() ? binding.item(i).at("sentence").text()
                                                                 : binding.item(i).text());
  }
}

// SAX handler that reads the keys of the outermost object until the kind of file is known.
struct FirstKeys : json::json_sax_t {
  int depth = 0;
  bool plans = false;

  bool key(string_t& name) override {
    if (depth != 1) return true;
    plans = name == "plans";
    return !plans && name != "traceEvents";
  }
  bool start_object(std::size_t) override { return ++depth > 0; }
  bool end_object() override { return --depth > 0; }
  // Stops at an outermost array, which is a trace.
  bool start_array(std::size_t) override { return ++depth > 1; }
  bool end_array() override { return --depth > 0; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;  // the excerpt usually ends in the middle of the document
  }
};

}  // namespace

PlanFile plans_in(std::string_view text, const std::string& name, const std::string& folder) {
  const json document = parse_json(text, name);
  const JsonReader file(document, name);
  PlanFile found;
  found.name = name;
  found.scenario = text_or_none(file, "scenario");
  found.objective = text_or_none(file, "objective");
  const JsonReader plans = file.at("plans");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    found.plans.push_back(plan_in(plans.item(i), folder));
    if (found.currency.empty()) found.currency = text_or_none(plans.item(i), "currency");
  }
  if (is_told(file, "pareto")) {
    const JsonReader pareto = file.at("pareto");
    const auto last = static_cast<std::int64_t>(found.plans.size()) - 1;
    for (std::size_t i = 0; i < pareto.size(); ++i)
      found.plans[static_cast<std::size_t>(pareto.item(i).integer(0, last))].pareto = true;
  }
  read_own(file, folder, found);
  if (is_told(file, "near")) {
    const JsonReader near = file.at("near");
    for (std::size_t i = 0; i < near.size(); ++i) found.plans.push_back(too_large_in(near.item(i)));
  }
  read_space(file, found);
  read_advice(file, found);
  return found;
}

PlanFile read_plans(const std::string& path) {
  return plans_in(read_packed_file(path, "file of plans"), path, fs::absolute(path).parent_path().string());
}

bool is_plan_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string beginning(kBeginning, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  FirstKeys keys;
  json::sax_parse(beginning, &keys);
  return keys.plans;
}

}  // namespace rehearse::gui
