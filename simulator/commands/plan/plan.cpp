// Implements `rehearse plan`: reads the question, and writes the answer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <istream>
#include <ostream>
#include <sstream>

#include "models/text/document.hpp"
#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "models/text/text.hpp"
#include "models/text/text_hash.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/commands/plan/plan_answer.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/tasks/shared_results.hpp"
#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/terminal/progress_line.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Maximum ops of a step that is simulated in full if its rounds of micro-batches differ, unless --exact is
// given: some 0.2 s on one core.
constexpr double kMostOps = 150'000;

std::pair<std::string, std::vector<std::string>> parse_limit(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  const std::vector<std::string> known = limited_keys();
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    const std::string near = nearest_name(key, known);
    throw InputError({"--vary"},
                     fmt::format("names the key {}; allowed: {}{}", in_quotes(key), fmt::join(known, ", "),
                                 near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
  }
  std::vector<std::string> values;
  if (equals != std::string::npos)
    for (std::size_t begin = equals + 1; begin <= assignment.size();) {
      const std::size_t end = std::min(assignment.find(',', begin), assignment.size());
      values.push_back(assignment.substr(begin, end - begin));
      begin = end + 1;
    }
  if (values.empty() || std::find(values.begin(), values.end(), "") != values.end())
    throw InputError({"--vary " + key}, "has no value; allowed: key=a,b,c");
  return {key, values};
}

// Returns the value that the scenario file gives a key. Throws InputError for a key that the file leaves out.
std::string own_value(const std::string& key,
                      const std::vector<std::pair<std::string, std::string>>& values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == key; });
  if (found != values.end()) return found->second;
  throw InputError(
      {"--keep " + key},
      "names a key that is not in the scenario; allowed: a key in the scenario, or --vary with a value");
}

PlanLimits limits_of(const PlanArguments& arguments, const std::string& text, const std::string& path) {
  PlanLimits limits;
  limits.tolerance = arguments.tolerance;
  limits.most_ops = arguments.exact ? 0 : kMostOps;
  limits.budget = arguments.budget;
  limits.deadline_s = arguments.deadline_days * 86400;
  limits.least_mfu = arguments.least_mfu;
  const auto add = [&](const char* option, const std::string& assignment) {
    const auto [limit, fresh] = limits.space.insert(parse_limit(assignment));
    if (!fresh)
      throw InputError({option}, fmt::format("repeats the key {}; allowed: each key once in --vary and "
                                             "--keep together",
                                             in_quotes(limit->first)));
  };
  for (const std::string& assignment : arguments.vary) add("--vary", assignment);
  if (!arguments.keep.empty()) {
    OpenedScenario opened = open_scenario(text, path);
    complete_scenario(opened, path, arguments.overrides);
    const Document& document = opened.document;
    const auto values = document.values();
    for (const std::string& key : arguments.keep)
      add("--keep", fmt::format("{}={}", key, own_value(key, values)));
  }
  if (!arguments.reserve.empty()) {
    const std::string& reserve = arguments.reserve;
    double number = 0;
    const auto [stop, error] = std::from_chars(reserve.data(), reserve.data() + reserve.size(), number);
    const std::string unit(stop, reserve.data() + reserve.size());
    const bool share = unit == "%", bytes = unit == "GiB";
    if (error != std::errc() || !std::isfinite(number) || number < 0 || !(share || bytes) ||
        (share && number >= 100))
      throw InputError({"--reserve"}, fmt::format("is {}; allowed: such as 4GiB, or a share below 100%",
                                                  in_quotes(reserve)));
    if (share)
      limits.reserve_share = number / 100;
    else
      limits.reserve_bytes = number * 1073741824.0;
  }
  return limits;
}

void refuse_unknown_rates(PlanObjective objective, const SearchedWorld& world) {
  const bool cost = objective == PlanObjective::cost;
  if (cost ? world.rates.money_per_s.has_value() : world.rates.power.has_value()) return;
  throw InputError(
      {"--objective"},
      fmt::format("is \"{}\", but the {} of {} is not known; allowed: with {}",
                  kPlanObjectiveNames[static_cast<std::size_t>(objective)], cost ? "price" : "power",
                  world.world.name, cost ? world.rates.missing_price : world.rates.missing_power));
}

std::string progress_text(const PlanProgress& progress) {
  std::string text = fmt::format("plan: bounded {} of {}; simulated {}", progress.bounded, progress.plans,
                                 progress.simulated);
  if (progress.best_s > 0)
    text += fmt::format("; best {} ({})", human_time_s(progress.best_s), progress.best);
  return text;
}

// Must change whenever the content of a file of simulated plans, or the way in which plans are simulated,
// changes.
constexpr const char* kSimulatedAs = "1";

// Returns the name of the search for a file of results: a hash of everything that determines the answer,
// except the presets.
std::string identity_of(const PlanArguments& arguments, const std::vector<SearchedWorld>& worlds) {
  TextHash hash;
  hash.add(kSimulatedAs);
  for (const SearchedWorld& world : worlds) {
    hash.add(world.world.question.text);
    hash.add(fmt::format("{} {}", world.world.memory_factor, world.world.question.factors.network_links));
  }
  for (const auto* list : {&arguments.vary, &arguments.keep, &arguments.overrides})
    for (const std::string& text : *list) hash.add(text);
  hash.add(fmt::format("{} {} {} {} {} {}", arguments.reserve, arguments.budget, arguments.deadline_days,
                       arguments.least_mfu, arguments.tolerance, arguments.exact));
  return "plan-" + hash.hex();
}

// Creates the folder for plans before the search, which may take long. Refuses to overwrite a file that was
// read.
void make_folder(const PlanArguments& arguments, const std::vector<std::string>& files_read) {
  std::error_code error;
  fs::create_directories(arguments.out, error);
  if (error || !fs::is_directory(arguments.out))
    throw InputError({"--out"}, fmt::format("is {}, which cannot be created{}{}; allowed: a folder",
                                            in_quotes(arguments.out), error ? ": " : "", error.message()));
  for (const std::string& file : files_read) {
    const fs::path there = fs::path(arguments.out) / fs::path(file).filename();
    if (there.filename().string().rfind("plan-", 0) == 0)
      refuse_to_overwrite("--out", there.string(), {file});
  }
}

// Writes a scenario file for each plan, launch files for the best one, and the answer as plan.json. Adds the
// names of these files to the answer.
void write_files(const PlanArguments& arguments, const std::vector<SearchedWorld>& worlds,
                 PlanAnswer& answer) {
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    AnsweredPlan& plan = answer.plans[i];
    plan.file = fmt::format("plan-{}.toml", i + 1);
    const std::string comment =
        fmt::format("# {}: {} a step.\n", plan.words, human_time_s(plan.figures.step_time_s));
    write_whole_file((fs::path(arguments.out) / plan.file).string(),
                     scenario_file_text(worlds[plan.world].world.question, plan.plan, comment));
    if (i > 0) continue;
    const Scenario scenario = scenario_of(worlds[plan.world].world.question, plan.plan);
    for (const LaunchFramework& framework : launch_frameworks()) {
      const LaunchFile launch = framework.write(scenario);
      if (!launch.possible) continue;
      const std::string name =
          fmt::format("plan-1-{}{}", framework.name, fs::path(launch.name).extension().string());
      write_whole_file((fs::path(arguments.out) / name).string(), launch.text);
      answer.launches.push_back({std::string(framework.title), name, launch.cannot});
    }
  }
  std::ostringstream json;
  write_plan_json(answer, json);
  write_whole_file((fs::path(arguments.out) / "plan.json").string(), json.str());
}

}  // namespace

int run_plan(PlanArguments arguments, std::istream& in, std::ostream& out, std::ostream& err) {
  const bool piped = arguments.scenario == "-";
  const FilesRead files_read;
  const std::string text =
      piped ? read_text(in, "<stdin>", "scenario") : read_text_file(arguments.scenario, "scenario file");
  arguments.text = text;
  const std::string path = piped ? "<stdin>" : arguments.scenario;
  const PlanLimits limits = limits_of(arguments, text, path);
  const Ranks ranks = ranks_of_this_run();
  if (ranks.size > 1 && arguments.results.empty())
    throw InputError({}, "several ranks need a shared file; allowed: --results FILE");

  std::vector<SearchedWorld> worlds;
  for (PlanWorld& world : plan_worlds(arguments, text, path))
    worlds.push_back(limited(std::move(world), limits));
  if (arguments.objective != PlanObjective::time)
    for (const SearchedWorld& world : worlds) refuse_unknown_rates(arguments.objective, world);
  const std::vector<std::string>& files = files_read.paths();
  if (!arguments.results.empty()) refuse_to_overwrite("--results", arguments.results, files);
  if (!arguments.out.empty() && ranks.rank == 0) make_folder(arguments, files);
  std::unique_ptr<SharedResults> results;
  if (!arguments.results.empty())
    results = std::make_unique<SharedResults>(arguments.results, identity_of(arguments, worlds),
                                              arguments.force_new);

  ProgressLine line;
  Clock::time_point told{};
  const auto progress = [&](const PlanProgress& now) {
    if (!line.is_shown() && !arguments.progress_lines) return;
    const Clock::time_point time = Clock::now();
    if (time - told < std::chrono::milliseconds(100)) return;
    told = time;
    if (arguments.progress_lines)
      err << progress_text(now) << std::endl;
    else
      line.show(progress_text(now));
  };
  const int jobs = arguments.jobs > 0 ? arguments.jobs : processors();
  simulate(worlds, limits, jobs, results.get(), progress);
  PlanAnswer answer = plan_answer(arguments, worlds, limits, jobs, results.get());
  line.clear();
  if (ranks.rank > 0) return answer.plans.empty() ? 1 : 0;  // rank 0 writes the answer
  if (!arguments.out.empty()) write_files(arguments, worlds, answer);
  switch (arguments.format) {
    case Format::text:
      write_plan_text(answer, out);
      break;
    case Format::json:
      write_plan_json(answer, out);
      break;
    case Format::csv:
      write_plan_csv(answer, out);
      break;
  }
  return answer.plans.empty() ? 1 : 0;
}

}  // namespace rehearse
