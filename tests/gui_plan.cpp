// Tests files of plans: read, put into words and rows, filtered, and placed on axes.
#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include "gui/models/tables/plan_words.hpp"
#include "gui/models/tables/result_file.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

const std::string kFile = REHEARSE_TESTS_DIR "/plans/gpt3-175b.json";

PlanFile gpt3() {
  return read_plans(kFile);
}

std::string error_of(const std::string& text) {
  try {
    plans_in(text, "p.json", "");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> titles(const TableData& rows) {
  std::vector<std::string> titles;
  for (const Column& column : rows.columns) titles.push_back(column.title.toStdString());
  return titles;
}

std::vector<std::size_t> numbers_of(const std::vector<bool>& shown) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (shown[i]) numbers.push_back(i);
  return numbers;
}

const PlanAxis& axis_of(const std::vector<PlanAxis>& axes, const char* tip) {
  for (const PlanAxis& axis : axes)
    if (axis.tip == tip) return axis;
  FAIL("no axis " << tip);
  return axes.front();
}

// Returns a file with these plans, which have one setting each.
PlanFile plans_with(const std::string& values) {
  return plans_in("{\"plans\": [" + values + "]}", "p.json", "/plans");
}
std::string plan_with(const std::string& setting, double step_time_s, double memory = 1) {
  return "{\"settings\": {\"a.b\": " + setting + "}, \"step_time_s\": " + std::to_string(step_time_s) +
         ", \"memory_bytes\": " + std::to_string(memory) + ", \"basis\": \"simulated\"}";
}

}  // namespace

TEST_CASE("A file of plans is read: those found, the scenario's own, and those too large") {
  const PlanFile file = gpt3();
  CHECK(file.scenario == "gpt3-175b");
  CHECK(file.currency == "USD");
  REQUIRE(file.plans.size() == 19);
  const FoundPlan& best = file.plans[0];
  CHECK(best.origin == FoundPlan::Origin::ranked);
  CHECK(best.simulated);
  CHECK(best.pareto);
  CHECK(best.settings.at("strategy.tensor").number == 8);
  CHECK(best.settings.at("training.recompute").text == "none");
  CHECK(best.step_time_s == 20.1);
  CHECK(best.interval_s->second == 21.21);
  CHECK(best.file == std::string(REHEARSE_TESTS_DIR) + "/plans/plan-1.toml");
  CHECK_FALSE(file.plans[2].pareto);
  CHECK_FALSE(file.plans[14].simulated);
  CHECK(std::isnan(file.plans[14].mfu));
  CHECK(file.plans[14].file.empty());
  CHECK(file.plans[16].origin == FoundPlan::Origin::own);
  CHECK(file.plans[16].is_base);
  CHECK(file.plans[17].origin == FoundPlan::Origin::too_large);
  CHECK(file.plans[17].step_time_s == 18.2);
  CHECK_FALSE(file.plans[17].fits);
  CHECK(file.plans[17].why == "smaller micro-batches keep less: training.micro_batch=1");
  CHECK(file.searched == 123456);
  CHECK(file.ruled_out.size() == 3);
  REQUIRE(file.decisions.size() == 1);
  CHECK(file.decisions[0].measure.size() == 1);
}

TEST_CASE("The scenario's own plan is marked where it is among those found") {
  const std::string one = plan_with("1", 2);
  const PlanFile file = plans_in("{\"plans\": [" + plan_with("2", 1) + "," + one + "], \"base\": " + one +
                                     ", \"near\": null, \"pareto\": []}",
                                 "p.json", "");
  REQUIRE(file.plans.size() == 2);
  CHECK_FALSE(file.plans[0].is_base);
  CHECK(file.plans[1].is_base);
  CHECK(plans_with("").plans.empty());
}

TEST_CASE("What is wrong with a file of plans is told with its place") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "p.json: is empty; allowed: JSON"},
      {"{\"plans\": [", "p.json:1:12: the JSON ends too early"},
      {"[]", "p.json: the file is an array; allowed: an object"},
      {"{}", "p.json: plans is missing"},
      {"{\"plans\": {}}", "p.json: plans is an object; allowed: an array"},
      {"{\"plans\": [{}]}", "p.json: plans[0].settings is missing"},
      {"{\"plans\": [{\"settings\": 1}]}", "p.json: plans[0].settings is 1; allowed: an object"},
      {"{\"plans\": [{\"settings\": {}}]}", "p.json: plans[0].step_time_s is missing"},
      {"{\"plans\": [{\"settings\": {}, \"step_time_s\": \"1\"}]}",
       "p.json: plans[0].step_time_s is \"1\"; allowed: a number from 0 to 1e+300"},
      {"{\"plans\": [{\"settings\": {}, \"step_time_s\": 1, \"interval_s\": [1]}]}",
       "p.json: plans[0].interval_s is an array; allowed: the lowest and the highest step time, in "
       "seconds"},
      {"{\"plans\": [{\"settings\": {}, \"step_time_s\": 1, \"fits\": 1}]}",
       "p.json: plans[0].fits is 1; allowed: true or false"},
      {"{\"plans\": [" + plan_with("1", 1) + "], \"pareto\": [1]}",
       "p.json: pareto[0] is 1; allowed: an integer from 0 to 0"},
      {"{\"plans\": [], \"near\": [{\"settings\": {}}]}", "p.json: near[0].step_time_s_bound is missing"},
      {"{\"plans\": [], \"decide\": [{}]}", "p.json: decide[0].sentence is missing"}};
  for (const auto& [text, told] : cases) {
    CAPTURE(text);
    CHECK(error_of(text) == told);
  }
  CHECK_THROWS_AS(read_plans("/no/such/plan.json"), InputError);
}

TEST_CASE("Files of plans are told from traces by their first keys") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/x.json";
  const std::string filler(200'000, ' ');
  const std::vector<std::pair<std::string, bool>> cases = {
      {"{\"plans\": []}", true},
      {"{\"scenario\": \"a\", \"plans\": [" + filler + "]}", true},
      {"{\"scenario\": {\"plans\": 1}, \"pl", false},  // ends too early to be certain
      {"{\"otherData\": {\"plans\": []}, \"traceEvents\": [], \"plans\": []}", false},
      {"[{\"plans\": []}]", false},
      {"{}", false},
      {"\"plans\"", false},
      {"plans", false},
      {"", false}};
  for (const auto& [text, is_one] : cases) {
    CAPTURE(text.substr(0, 80));
    std::ofstream(path) << text;
    CHECK(is_plan_file(path) == is_one);
  }
  CHECK_FALSE(is_plan_file("/no/such/plan.json"));
  CHECK_FALSE(is_plan_file(REHEARSE_TESTS_DIR "/traces/gpu-kernels.json"));
  Progress progress;
  const ResultFile file = read_results(kFile, progress);
  REQUIRE(std::holds_alternative<ReadPlans>(file));
  CHECK(std::get<ReadPlans>(file).rows.rows.size() == 19);
  progress.cancelled = true;
  CHECK_THROWS_AS(read_results(kFile, progress), Cancelled);
}

TEST_CASE("Plans are told in words by what they differ in") {
  const PlanFile file = gpt3();
  CHECK(varying_settings(file) == std::vector<std::string>{"strategy.tensor", "strategy.pipeline",
                                                           "strategy.data", "strategy.schedule",
                                                           "strategy.virtual_stages", "strategy.zero_stage",
                                                           "training.micro_batch", "training.recompute"});
  CHECK(
      settings_text(file, file.plans[0]).toStdString() ==
      "tensor 8 x pipeline 8 x data 16, schedule interleaved, virtual_stages 3, zero_stage 1, micro_batch 1, "
      "recompute none");
  CHECK(short_key({"a.x", "b.x", "b.y"}, "a.x") == "a.x");
  CHECK(short_key({"a.x", "b.x", "b.y"}, "b.y") == "y");
  const std::string best = description_of(file, 0).toStdString();
  CHECK(best.find("Plan 1, 1,024 devices:\n") == 0);
  CHECK(best.find("step time 20.10 s, time per sample 13.09 ms, 76.42 samples/s, memory 66.12 GiB, "
                  "cost per step 10.29 USD, energy per step 2,001 Wh, MFU 51.00 %") != std::string::npos);
  CHECK(description_of(file, 1).contains("Too close to the best plan to distinguish"));
  CHECK(description_of(file, 14).contains("step time at least 34.40 s"));
  CHECK(description_of(file, 17).startsWith("Too large 1:"));
  CHECK(description_of(file, 17).contains("Does not fit into memory"));
  CHECK(result_sentence(file, "mine").toStdString() ==
        "mine: tensor 8 x pipeline 8 x data 16, schedule interleaved, virtual_stages 3, zero_stage 1, "
        "micro_batch "
        "1, recompute none: 20.10 s a step. The scenario's own plan is 37.3 % slower. 123,456 plans were "
        "searched, "
        "14 of them simulated.");
  CHECK(search_sentences(file)[0].toStdString() ==
        "119,000 cannot be among the best, by a lower bound on their time; 12 violate a constraint; 4,000 "
        "do "
        "not fit into memory.");
  CHECK(result_sentence(plans_with(""), "x") == "x: no plan was found that can be run.");
}

TEST_CASE("Rows of plans hold the settings that vary and the figures that are known") {
  const PlanFile file = gpt3();
  const TableData rows = rows_of(file);
  CHECK(titles(rows) == std::vector<std::string>{"plan",
                                                 "step time (s)",
                                                 "slower (%)",
                                                 "tensor",
                                                 "pipeline",
                                                 "data",
                                                 "schedule",
                                                 "virtual_stages",
                                                 "zero_stage",
                                                 "micro_batch",
                                                 "recompute",
                                                 "time per sample (ms)",
                                                 "samples/s",
                                                 "memory (GiB)",
                                                 "cost per step (USD)",
                                                 "energy per step (Wh)",
                                                 "MFU (%)",
                                                 "fits",
                                                 "basis",
                                                 "Pareto",
                                                 "distinct",
                                                 "why"});
  CHECK(rows.rows[0][1].tip.startsWith("From 19.09 to 21.21 s"));
  CHECK(rows.rows[14][1].text == "≥ 34.40");
  CHECK(rows.rows[14][1].number == 34.4);
  CHECK(rows.rows[16][0].text == "own plan");
  CHECK(rows.rows[17][17].tone == Tone::notable);
  ValueTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.set(rows);
  // Memory is shown in GiB of 2^30 bytes.
  CHECK(rows.rows[0][13].number == Approx(71e9 / 1073741824));
  const TableData few = rows_of(plans_with(plan_with("\"x\"", 0.25) + "," + plan_with("\"y\"", 0.5)));
  CHECK(titles(few)[1] == "step time (ms)");
  CHECK(titles(few)[3] == "b");
  CHECK_FALSE(few.columns[3].numbers);
}

TEST_CASE("Filters leave the plans that are wanted") {
  const PlanFile file = gpt3();
  const TableData rows = rows_of(file);
  using Numbers = std::vector<std::size_t>;
  struct Case {
    PlanFilter filter;
    Numbers left;
  };
  const std::vector<Case> cases = {{{"zero_bubble", false, false, false}, {5}},
                                   {{"INTERLEAVED tensor<8", false, false, false}, {2, 8, 18}},
                                   {{"steptime<=20.18", false, false, false}, {0, 1, 17, 18}},
                                   {{"memory<30 pipeline>=64", false, false, false}, {11}},
                                   {{"micro=4", false, false, false}, {13}},
                                   {{"mfu>50", false, false, false}, {0, 1}},
                                   {{"steptime<=20.18", true, false, false}, {0, 1}},
                                   {{"data=16 tensor<=2", false, true, false}, {10}},
                                   {{"data=16 tensor<=2", false, false, false}, {10, 15}},
                                   {{"unknown>3", false, false, false}, {}},
                                   {{"schedule>3", false, false, false}, {}},
                                   {{"own", false, false, false}, {16}}};
  for (const Case& c : cases) {
    CAPTURE(c.filter.text.toStdString(), c.filter.fits, c.filter.simulated);
    CHECK(numbers_of(matching(file, rows, c.filter)) == c.left);
  }
  CHECK(numbers_of(matching(file, rows, {"", false, false, true})) == Numbers{0, 1, 4, 7, 9, 11, 13});
  CHECK(numbers_of(matching(file, rows, {})).size() == 19);
}

TEST_CASE("The front holds each plan that no other one beats in both figures") {
  PlanFile file;
  std::mt19937 random(7);
  std::uniform_int_distribution<int> digit(0, 9);  // so few values that many are equal
  for (int i = 0; i < 200; ++i) {
    FoundPlan plan;
    plan.step_time_s = 1 + digit(random);
    plan.memory_bytes = 1 + digit(random);
    plan.mfu = 0.1 * digit(random);
    plan.fits = digit(random) > 1;
    file.plans.push_back(plan);
  }
  file.plans[3].memory_bytes = kNotTold;
  std::vector<bool> among(file.plans.size(), true);
  among[5] = among[9] = false;
  struct Case {
    PlanFigure across, up;
  };
  for (const Case& c :
       {Case{PlanFigure::step_time, PlanFigure::memory}, Case{PlanFigure::memory, PlanFigure::mfu},
        Case{PlanFigure::mfu, PlanFigure::step_time}}) {
    // Applies the definition of the front to each pair of plans.
    const auto worse = [&](const FoundPlan& a, const FoundPlan& b, PlanFigure figure) {
      return is_better_if_larger(figure) ? value_of(a, figure) < value_of(b, figure)
                                         : value_of(a, figure) > value_of(b, figure);
    };
    const auto can_stand = [&](std::size_t i) {
      return among[i] && file.plans[i].fits && std::isfinite(value_of(file.plans[i], c.across)) &&
             std::isfinite(value_of(file.plans[i], c.up));
    };
    std::set<std::pair<double, double>> expected, found;
    for (std::size_t i = 0; i < file.plans.size(); ++i) {
      bool beaten = !can_stand(i);
      const FoundPlan& a = file.plans[i];
      for (std::size_t k = 0; k < file.plans.size() && !beaten; ++k) {
        const FoundPlan& b = file.plans[k];
        beaten = can_stand(k) && !worse(b, a, c.across) && !worse(b, a, c.up) &&
                 (worse(a, b, c.across) || worse(a, b, c.up));
      }
      if (!beaten) expected.emplace(value_of(a, c.across), value_of(a, c.up));
    }
    const std::vector<std::size_t> front = front_of(file, c.across, c.up, among);
    for (const std::size_t plan : front)
      found.emplace(value_of(file.plans[plan], c.across), value_of(file.plans[plan], c.up));
    CHECK(found == expected);
    CHECK(front.size() == expected.size());  // only the first of equal plans
  }
}

TEST_CASE("Figures are told in one unit each, and only those that are known") {
  const PlanFile file = gpt3();
  CHECK(title_of(file, PlanFigure::cost) == "cost per step (USD)");
  CHECK(title_of(file, PlanFigure::mfu) == "MFU (%)");
  CHECK(title_of(file, PlanFigure::samples) == "samples/s");
  CHECK(known_figures(file).size() == kPlanFigures);
  CHECK(known_figures(plans_with(plan_with("1", 1))) ==
        std::vector<PlanFigure>{PlanFigure::step_time, PlanFigure::memory});
}

TEST_CASE("Axes place numbers by their logarithm or evenly, and words side by side") {
  const PlanFile file = gpt3();
  const std::vector<PlanAxis> axes = axes_of(file);
  CHECK(axes.size() == 10);
  const PlanAxis& tensor = axis_of(axes, "strategy.tensor");  // 1 to 16
  CHECK(tensor.scale == PlanAxis::Scale::logarithmic);
  CHECK(tensor.places[0] == Approx(std::log(8.0) / std::log(16.0)));
  CHECK(tensor.marks.size() == 5);
  const PlanAxis& zero = axis_of(axes, "strategy.zero_stage");  // 0 to 3
  CHECK(zero.scale == PlanAxis::Scale::linear);
  CHECK(zero.places[0] == Approx(1.0 / 3));
  const PlanAxis& recompute = axis_of(axes, "training.recompute");
  CHECK(recompute.scale == PlanAxis::Scale::categories);
  CHECK(recompute.places[0] == Approx(0.5));  // full, none, selective
  // Plans without virtual stages are at "none", below the others.
  const PlanAxis& stages = axis_of(axes, "strategy.virtual_stages");
  CHECK(stages.marks[0].text == "none");
  CHECK(stages.places[6] == 0);
  CHECK(stages.places[0] > 0);
  const PlanAxis& time = axis_of(axes, "step time");
  CHECK(time.places[17] == 0);
  CHECK(time.places[13] == 1);
  CHECK(time.places[0] == Approx((20.1 - 18.2) / (41.2 - 18.2)));

  // An axis with both numbers and words is one of words.
  const std::vector<PlanAxis> mixed =
      axes_of(plans_with(plan_with("1", 1) + "," + plan_with("\"auto\"", 2) + "," + plan_with("2", 3)));
  CHECK(mixed[0].scale == PlanAxis::Scale::categories);
  CHECK(mixed[0].places == std::vector<double>{0, 1, 0.5});
  // A figure that is equal for all plans is in the middle.
  CHECK(mixed[2].places[0] == 0.5);
  CHECK(axes_of(plans_with("")).empty());
}

TEST_CASE("Ranges of axes hold their ends, and plans without a place are in none") {
  std::vector<PlanAxis> axes(2);
  axes[0].places = {0, 0.5, 1};
  axes[1].places = {0.2, kNotTold, 0.2};
  const auto left = [&](const PlanRanges& ranges) {
    std::vector<std::size_t> plans;
    for (std::size_t i = 0; i < 3; ++i)
      if (within(axes, i, ranges)) plans.push_back(i);
    return plans;
  };
  using Numbers = std::vector<std::size_t>;
  CHECK(left({}) == Numbers{0, 1, 2});
  CHECK(left({{0, {0.5, 1}}}) == Numbers{1, 2});
  CHECK(left({{0, {0.6, 0.9}}}) == Numbers{});
  CHECK(left({{0, {0.5, 1}}, {1, {0.2, 0.2}}}) == Numbers{2});
}
