// Tests `rehearse plan` as a user runs it.
#include "tests/command_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse;
using namespace rehearse::test;
using Json = nlohmann::json;

namespace {

// Splits a line of CSV into its fields, without their quotes.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// Returns a value as in TOML, without quotes.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_array() ? fmt::format("[{}]", fmt::join(value.get<std::vector<int>>(), ", "))
                          : value.dump();
}

}  // namespace

TEST_CASE("all formats of an answer agree") {
  const Scratch scratch;
  const std::string command = "plan " + scratch.write("scenario.toml", kPlanned) + kFewPlans;
  const Outcome text = run_rehearse(command), json = run_rehearse(command + " --format json"),
                csv = run_rehearse(command + " --format csv");
  for (const Outcome* outcome : {&text, &json, &csv}) {
    CHECK(outcome->status == 0);
    CHECK(outcome->err == "");  // progress is only printed to terminals
  }
  const Json answer = Json::parse(json.out);
  const Json& plans = answer["plans"];
  const auto pareto = answer["pareto"].get<std::vector<std::size_t>>();
  REQUIRE(plans.size() >= 10);
  const std::vector<std::string> rows = lines_of(csv.out);
  REQUIRE(rows.size() == plans.size() + 1);
  const std::vector<std::string> columns = fields_of(rows.front());
  double last_s = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json& plan = plans[i];
    CAPTURE(i, plan["words"].get<std::string>());
    const std::vector<std::string> row = fields_of(rows[i + 1]);
    REQUIRE(row.size() == columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string& column = columns[c];
      CAPTURE(column);
      if (column == "rank")
        CHECK(row[c] == fmt::format("{}", i + 1));
      else if (column == "pareto")
        CHECK((row[c] == "true") == (std::find(pareto.begin(), pareto.end(), i) != pareto.end()));
      else if (column.find('.') != std::string::npos)
        CHECK(row[c] == text_of(plan["settings"].value(column, Json(""))));
      else if (plan[column].is_number())
        CHECK(std::stod(row[c]) == Approx(plan[column].get<double>()).epsilon(1e-12));
      else if (!plan[column].is_null())
        CHECK(row[c] == text_of(plan[column]));
      else
        CHECK(row[c] == "");
    }
    CHECK(plan["step_time_s"] >= last_s);
    last_s = plan["step_time_s"];
    CHECK_THAT(text.out, contains_text("  " + plan["words"].get<std::string>() + "\n"));
    CHECK(plan["fits"] == true);
    CHECK(plan["basis"] == "simulated");
    CHECK(plan["result"]["step_time_s"] == plan["step_time_s"]);
    CHECK(plan["result"]["memory_bytes"]["total"] == plan["memory_bytes"]);
  }
  CHECK_THAT(text.out, contains_text("\n  " + plans[0]["words"].get<std::string>() + "\n"));
  const Json& own = answer["base"];
  CHECK(own["slower"] ==
        Approx(own["time_per_sample_s"].get<double>() / plans[0]["time_per_sample_s"].get<double>() - 1));
  CHECK(own["slower"] > 0);
  // Each plan of the space is counted exactly once.
  const Json& space = answer["space"];
  int ruled_out = 0;
  for (const Json& count : space["ruled_out"]) ruled_out += count.get<int>();
  CHECK(ruled_out + space["simulated"].get<int>() == space["plans"].get<int>());
}

TEST_CASE("the files of plans simulate to what the answer says") {
  const Scratch scratch;
  const std::string out = scratch.path("plans");
  const Outcome outcome = run_rehearse("plan " + scratch.write("scenario.toml", kPlanned) + kFewPlans +
                                       " --format json --top 3 --out " + out);
  REQUIRE(outcome.status == 0);
  const Json answer = Json::parse(outcome.out);
  for (const Json& plan : answer["plans"]) {
    const std::string file = out + "/" + plan["file"].get<std::string>();
    CAPTURE(file);
    const Outcome simulated = run_rehearse("simulate " + file + " --format json");
    REQUIRE(simulated.status == 0);
    CHECK(Json::parse(simulated.out)["step_time_s"] == plan["step_time_s"]);
    CHECK(Json::parse(simulated.out)["memory_bytes"]["total"] == plan["memory_bytes"]);
  }
  CHECK(run_shell("ls " + out + " | grep -c plan-.*toml").out == fmt::format("{}\n", answer["plans"].size()));
}

TEST_CASE("a scenario from standard input is planned as that of a file", "[release]") {
  const Scratch scratch;
  const std::string file = scratch.write("scenario.toml", kPlanned);
  const Outcome piped = run_rehearse(std::string("plan -") + kFewPlans + " --format csv", "", "<" + file);
  CHECK(piped.status == 0);
  CHECK(piped.out == run_rehearse("plan " + file + kFewPlans + " --format csv").out);
}

TEST_CASE("progress goes to standard error", "[release]") {
  const Scratch scratch;
  const std::string command = "plan " + scratch.write("scenario.toml", kPlanned) + kFewPlans;
  const Outcome told = run_rehearse(command + " --progress lines");
  CHECK(told.out == run_rehearse(command).out);
  for (const std::string& line : lines_of(told.err)) CHECK_THAT(line, contains_text("plan: bounded "));
}

TEST_CASE("where no plan is possible, the answer names what is in its way") {
  struct Case {
    const char* arguments;
    const char* says;
  };
  const Case c =
      GENERATE(Case{" --reserve 79.9GiB", "2 x workstation-10gbe: memory. The smallest plan ("},
               Case{" --reserve 79.97GiB", " on a device with 80.0 GiB, "},
               Case{" --set training.global_batch=23 --vary strategy.data=8",
                    "2 x workstation-10gbe: no plan divides the devices, the model and the global batch"},
               Case{" --set training.global_batch=1000003 --vary strategy.data=2,4", "no plan divides"});
  CAPTURE(c.arguments);
  const Scratch scratch;
  // The arguments set strategy.data, or leave it to the search.
  const std::string command = "plan " + scratch.write("scenario.toml", kPlanned) + kFewPlans + c.arguments;
  const Outcome outcome = run_rehearse(command);
  CHECK(outcome.status == 1);
  CHECK(outcome.err == "");
  std::string one_line = outcome.out;  // the text is wrapped; undo that
  for (std::size_t at = 0; (at = one_line.find("\n  ", at)) != std::string::npos;)
    one_line.replace(at, 3, " ");
  CHECK_THAT(one_line, contains_text("No plan for Transformer, 4 layers of 512 satisfies the constraints."));
  CHECK_THAT(one_line, contains_text(c.says));
  const Json answer = Json::parse(run_rehearse(command + " --format json").out);
  CHECK(answer["plans"].empty());
  CHECK(answer["binding"].size() == 1);
}

TEST_CASE("a plan that no scenario allows is told by the first refusal", "[release]") {
  const Scratch scratch;
  const std::string file = scratch.write("scenario.toml",
                                         "[model]\npreset = \"mlp\"\n[training]\nglobal_batch = "
                                         "16\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n");
  const Outcome outcome = run_rehearse("plan " + file + " --vary training.recompute=operators");
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, contains_text("no plan could be simulated; the first failure: "));
  CHECK_THAT(outcome.out, contains_text("mlp is not a transformer"));
}

TEST_CASE("constraints without a meaning are refused") {
  struct Case {
    const char* arguments;
    const char* says;  // part of the message; FILE stands for the scenario's path
  };
  const Case c = GENERATE(
      Case{"--reserve 150%", "--reserve: is \"150%\"; allowed: such as 4GiB, or a share below 100%"},
      Case{"--reserve -1GiB", "--reserve: is \"-1GiB\"; allowed: such as 4GiB"},
      Case{"--reserve nanGiB", "--reserve: is \"nanGiB\"; allowed: such as 4GiB"},
      Case{"--reserve inf%", "--reserve: is \"inf%\"; allowed: such as 4GiB"},
      Case{"--reserve 4GB", "--reserve: is \"4GB\"; allowed: such as 4GiB"},
      Case{"--reserve ''", "--reserve: is empty; allowed: such as 4GiB"},
      Case{"--vary strategy.nonsense=1",
           "--vary: names the key \"strategy.nonsense\"; allowed: strategy.tensor,"},
      Case{"--vary strategy.tenser=1", "did you mean \"strategy.tensor\"?"},
      Case{"--vary strategy.tensor=a",
           "--vary strategy.tensor: has the value \"a\"; allowed: whole numbers from 1 to 1000000"},
      Case{"--vary strategy.tensor=0", "--vary strategy.tensor: has the value \"0\"; allowed: whole numbers"},
      Case{"--vary strategy.tensor=1.5", "--vary strategy.tensor: has the value \"1.5\"; allowed: whole"},
      Case{"--vary strategy.tensor=99999999999", "--vary strategy.tensor: has the value \"99999999999\""},
      Case{"--vary strategy.tensor", "--vary strategy.tensor: has no value; allowed: key=a,b,c"},
      Case{"--vary strategy.tensor=1,,2", "--vary strategy.tensor: has no value; allowed: key=a,b,c"},
      Case{"--vary strategy.data=x", "--vary strategy.data: has the value \"x\"; allowed: whole numbers"},
      Case{"--vary strategy.zero_stage=4", "has the value \"4\"; allowed: whole numbers from 0 to 3"},
      Case{"--vary training.micro_batch=0", "--vary training.micro_batch: has the value \"0\""},
      Case{"--vary strategy.schedule=zzz",
           "--vary strategy.schedule: has the value \"zzz\"; allowed: gpipe, 1f1b, interleaved"},
      Case{"--vary strategy.sequence_parallel=maybe", "has the value \"maybe\"; allowed: false, true"},
      Case{"--vary strategy.tensor=1 --vary strategy.tensor=2",
           "--vary: repeats the key \"strategy.tensor\""},
      Case{"--keep strategy.data --vary strategy.data=2", "--keep: repeats the key \"strategy.data\""},
      Case{"--keep strategy.tensor", "--keep strategy.tensor: names a key that is not in the scenario"},
      Case{"--nodes 8..4", "--nodes: is \"8..4\"; allowed: a whole number from 1 on"},
      Case{"--nodes 0", "--nodes: is \"0\"; allowed: a whole number from 1 on"},
      Case{"--nodes ''", "--nodes: is empty; allowed: 8, 8,12 or 8..512"},
      Case{"--global-batch 0", "--global-batch: is \"0\"; allowed: a whole number from 1 on"},
      Case{"--cluster nonsense", "--cluster: is \"nonsense\"; allowed: aws-p2.8xlarge, "},
      Case{"--cluster dgx-h10", "did you mean \"dgx-h100\"?"},
      Case{"--tolerance 2", "--tolerance: Value 2 not in range"},
      Case{"--jobs 0", "--jobs: Value 0 not in range"},
      Case{"--out ''", "--out: is empty; allowed: the name of a folder"},
      Case{"--out FILE", "--out: is \"FILE\", which cannot be created"},
      Case{"--out /dev/null",
           "--out: is \"/dev/null\", which cannot be created: Not a directory; allowed: a folder"},
      Case{"--results FILE",
           "--results FILE would overwrite this file, which is read; allowed: another file"},
      Case{"--results ''", "--results: is empty; allowed: the name of a file"},
      Case{"--set strategy.x=1", "--set strategy.x=1: unknown key \"x\" in [strategy]; allowed: "},
      Case{"--set training.global_batch=0", "training.global_batch is 0; allowed: an integer from 1"});
  CAPTURE(c.arguments);
  const Scratch scratch;
  const std::string file = scratch.write("scenario.toml", kPlanned);
  const auto with_file = [&](std::string text) {
    for (std::size_t at; (at = text.find("FILE")) != std::string::npos;) text.replace(at, 4, file);
    return text;
  };
  const Outcome outcome = run_rehearse("plan " + file + " " + with_file(c.arguments), "timeout 20");
  CHECK(outcome.status == 2);
  CHECK(outcome.out == "");
  CHECK_THAT(outcome.err, contains_text(with_file(c.says)));
  CHECK(read_file(file) == kPlanned);
}

TEST_CASE("a scenario without a global batch has no plan") {
  const Scratch scratch;
  std::string text = kPlanned;
  text.replace(text.find("global_batch = 24\n"), 18, "");
  const std::string file = scratch.write("scenario.toml", text);
  const Outcome outcome = run_rehearse("plan " + file);
  CHECK(outcome.status == 2);
  CHECK(outcome.err ==
        file + ":7:1: training.global_batch is missing; allowed: an integer from 1 to 1000000000\n");
}

TEST_CASE("several ranks without a file in common are refused") {
  const Scratch scratch;
  const Outcome outcome = run_rehearse("plan " + scratch.write("scenario.toml", kPlanned),
                                       "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, contains_text("several ranks need a shared file; allowed: --results FILE"));
}

TEST_CASE("the files of plans do not overwrite the scenario") {
  const Scratch scratch;
  const std::string file = scratch.write("plan-1.toml", kPlanned);
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const Outcome outcome = run_rehearse("plan " + file + kFewPlans + " --out " + folder);
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, contains_text("--out " + file + " would overwrite this file, which is read"));
  CHECK(read_file(file) == kPlanned);
}
