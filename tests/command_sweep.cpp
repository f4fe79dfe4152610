// Tests `rehearse sweep`: which points it computes, what it writes to the file, and how it continues one.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/text/error.hpp"
#include "simulator/commands/sweep/sweep_output.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

using Texts = std::vector<std::string>;

const std::string kScenarios = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/";
const std::string kResnetRing = kScenarios + "resnet50-ring.toml";

// Returns the header and then the points by number, because workers finish in any order.
Texts sorted_lines(const std::string& text) {
  Texts lines = lines_of(text);
  std::sort(
      lines.begin() + (lines.empty() ? 0 : 1), lines.end(),
      [](const std::string& a, const std::string& b) { return std::atol(a.c_str()) < std::atol(b.c_str()); });
  return lines;
}

Texts shown(const SweepAxis& axis) {
  Texts all;
  for (const auto& step : axis.values) all.push_back(step.front().shown);
  return all;
}

std::string refusal(const std::string& assignment) {
  try {
    parse_vary(assignment);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

Sweep small_sweep() {
  Sweep sweep;
  sweep.scenario_text = "text";
  sweep.axes = {parse_vary("a.b=1..3"), parse_vary("a.c=x,\"y, z\"")};
  return sweep;
}

// Returns lines as an earlier `sweep` leaves them; the second is for a failed point.
std::string some_lines(const SweepRows& rows, int count) {
  std::string text = rows.header();
  for (int p = 1; p <= count; ++p)
    text += rows.line(p, p == 2 ? PointStatus::failed : PointStatus::refused, "no, \"never\"\nat all");
  return text;
}

}  // namespace

TEST_CASE("values of --vary are lists, ranges and TOML") {
  struct Case {
    const char* assignment;
    Texts values;
  };
  for (const Case& c : std::vector<Case>{
           {"a.b=1", {"1"}},
           {"a.b=1,2,4", {"1", "2", "4"}},
           {"a.b = 1, 2 ,4", {"1", "2", "4"}},
           {"a.b=1..4", {"1", "2", "3", "4"}},
           {"a.b=-1..1", {"-1", "0", "1"}},
           {"a.b=7..7", {"7"}},
           {"a.b=0..64+16", {"0", "16", "32", "48", "64"}},
           {"a.b=1..10+4", {"1", "5", "9"}},
           {"a.b=1..64*2", {"1", "2", "4", "8", "16", "32", "64"}},
           {"a.b=3..100*10", {"3", "30"}},
           {"a.b=1..3,10,20..40+10", {"1", "2", "3", "10", "20", "30", "40"}},
           {"a.b=9223372036854775806..9223372036854775807", {"9223372036854775806", "9223372036854775807"}},
           {"a.b=0.5,1e3,true", {"0.5", "1000.0", "true"}},
           {"a.b=ring,tree", {"ring", "tree"}},
           {"a.b=\"x,y\",'z'", {"x,y", "z"}},
           {"a.b=[1, 2],[3]", {"[1, 2]", "[3]"}},
           {"a.b=[{device = 1, factor = 0.5}],[]", {"[{\"device\" = 1, \"factor\" = 0.5}]", "[]"}},
           {"a.b=../x.toml,..", {"../x.toml", ".."}},
           {"a.c[0].d=1", {"1"}},
       }) {
    CAPTURE(c.assignment);
    CHECK(shown(parse_vary(c.assignment)) == c.values);
  }
  CHECK(parse_vary("a.b=\"x,y\"").values[0][0].toml == "\"x,y\"");
  CHECK(parse_vary("a.b=ring").values[0][0].toml == "\"ring\"");
}

TEST_CASE("bad values of --vary are refused") {
  const std::string ranges = "; allowed: ranges of whole numbers such as 1..8, 0..64+16 and 1..64*2";
  const std::pair<const char*, std::string> cases[] = {
      {"a.b", "--vary a.b: there is no \"=\"; allowed: --vary section.key=value,value,..."},
      {"ab=1",
       "--vary ab=1: \"ab\" is not the name of a key; allowed: section.key, such as strategy.pipeline"},
      {"=1", "--vary =1: \"\" is not the name of a key; allowed: section.key, such as strategy.pipeline"},
      {"a.b=", "--vary a.b=: a value is empty; allowed: values with commas between them"},
      {"a.b=1,,2", "--vary a.b=1,,2: a value is empty; allowed: values with commas between them"},
      {"a.b=4..1", "--vary a.b=4..1: the range \"4..1\" ends before it begins" + ranges},
      {"a.b=1..x", "--vary a.b=1..x: the range \"1..x\" has an end that is not a whole number" + ranges},
      {"a.b=1..8+0", "--vary a.b=1..8+0: the range \"1..8+0\" needs a step of at least 1" + ranges},
      {"a.b=1..8+x",
       "--vary a.b=1..8+x: the range \"1..8+x\" has a step that is not a whole number" + ranges},
      {"a.b=0..8*2",
       "--vary a.b=0..8*2: the range \"0..8*2\" needs a start of at least 1 and a factor of at least 2" +
           ranges},
      {"a.b=1..1000000000",
       "--vary a.b=1..1000000000: the range \"1..1000000000\" has more than 100000 values" + ranges},
      {"a.b=[1", "--vary a.b=[1: the value is not TOML: "},
      {"a.b=\"x\\ny\"",
       "--vary a.b=\"x\\ny\": a string \"x\\x0Ay\" has control characters; allowed: values without them"},
  };
  for (const auto& [assignment, message] : cases) {
    CAPTURE(assignment);
    CHECK(refusal(assignment).substr(0, message.size()) == message);
  }
  const auto checked = [](std::vector<const char*> vary, Texts set) -> std::string {
    Sweep sweep;
    sweep.overrides = std::move(set);
    for (const char* v : vary) sweep.axes.push_back(parse_vary(v));
    try {
      check(sweep);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(checked({"a.b=1,2", "a.c=1,2"}, {"a.d=3"}) == "accepted");
  CHECK(checked({"a.b=1", "a.b=2"}, {}) ==
        "--vary a.b=2: \"a.b\" is varied or set already; allowed: each key once");
  CHECK(checked({"a.b=1"}, {"a.b = 2"}) ==
        "--vary a.b=1: \"a.b\" is varied or set already; allowed: each key once");
  CHECK(checked({"a.b=1,2,1..3"}, {}) ==
        "--vary a.b=1,2,1..3: the value 1 of a.b appears twice; allowed: each value once");
  CHECK(checked({"a.b=1..10000", "a.c=1..10000"}, {}) ==
        "--vary a.c=1..10000: the sweep has more than 10000000 points; allowed: at most 10000000");
}

TEST_CASE("points run through the product, the last key fastest") {
  Sweep sweep = small_sweep();
  REQUIRE(sweep.points() == 6);
  CHECK(sweep.keys() == Texts{"a.b", "a.c"});
  CHECK(sweep.overrides_of(1).varied == Texts{"a.b=1", "a.c=\"x\""});
  CHECK(sweep.overrides_of(2).varied == Texts{"a.b=1", "a.c=\"y, z\""});
  CHECK(sweep.overrides_of(6).varied == Texts{"a.b=3", "a.c=\"y, z\""});
  std::set<Texts> all;
  for (std::int64_t p = 1; p <= 6; ++p) all.insert(sweep.overrides_of(p).varied);
  CHECK(all.size() == 6);
  SECTION("the hash tells every part") {
    std::set<std::string> hashes = {sweep.hash()};
    Sweep other = sweep;
    CHECK(other.hash() == sweep.hash());
    other.scenario_text += " ";
    hashes.insert(other.hash());
    other = sweep;
    other.overrides = {"a.d=1"};
    hashes.insert(other.hash());
    other = sweep;
    other.axes[0] = parse_vary("a.b=1..4");
    hashes.insert(other.hash());
    other = sweep;
    std::swap(other.axes[0], other.axes[1]);
    hashes.insert(other.hash());
    CHECK(hashes.size() == 5);
  }
}

TEST_CASE("a sweep file says the same as the command line") {
  const Sweep sweep = parse_sweep_file(R"(scenario = "job.toml"
[set]
training.micro_batch = 2
"strategy.overlap" = false
[vary]
strategy.all_reduce = ["ring", "tree"]
cluster = { nodes = "1..4*2" }
strategy.stage_layers = [[1, 2], [3]]
[[zip]]
strategy.data = [1, 2]
training.global_batch = "8..16+8"
)",
                                       "folder/mine.toml");
  CHECK(sweep.scenario_path == "job.toml");
  CHECK(sweep.overrides == Texts{"training.micro_batch=2", "strategy.overlap=false"});
  CHECK(sweep.keys() == Texts{"strategy.all_reduce", "strategy.stage_layers", "cluster.nodes",
                              "strategy.data", "training.global_batch"});
  CHECK(sweep.points() == 2 * 3 * 2 * 2);
  CHECK(sweep.overrides_of(24).set == sweep.overrides);
  CHECK(sweep.overrides_of(24).varied == Texts{"strategy.all_reduce=\"tree\"", "strategy.stage_layers=[3]",
                                               "cluster.nodes=4", "strategy.data=2",
                                               "training.global_batch=16"});
  CHECK(is_sweep_file("scenario = 1"));
  CHECK(is_sweep_file("[vary]\n"));
  CHECK_FALSE(is_sweep_file("[model]\npreset = \"gpt2\""));
  CHECK_FALSE(is_sweep_file("= ="));
}

TEST_CASE("a torn last line is cut off at whichever byte, and earlier ones are kept") {
  const Scratch scratch;
  const Sweep sweep = small_sweep();
  for (const SweepFormat format : {SweepFormat::csv, SweepFormat::jsonl}) {
    const SweepRows rows(sweep, format);
    const std::string whole = some_lines(rows, 4), before = some_lines(rows, 3);
    for (std::size_t length = before.size(); length <= whole.size(); ++length) {
      CAPTURE(length);
      const std::string path = scratch.write("out", whole.substr(0, length));
      const bool torn = length < whole.size();
      {
        SweepOutput output(rows, path, false);
        REQUIRE(output.found().size() == (torn ? 3u : 4u));
        CHECK(output.found()[1].status == PointStatus::failed);
        CHECK(output.found()[1].error == "no, \"never\" at all");
        REQUIRE(read_file(path) == (torn ? before : whole));
        if (torn) output.append(whole.substr(before.size()));
      }
      CHECK(read_file(path) == whole);
    }
    // A torn first line, or an empty file.
    const std::string first = some_lines(rows, format == SweepFormat::csv ? 0 : 1);
    for (std::size_t length = 0; length < first.size(); ++length) {
      const std::string path = scratch.write("out", first.substr(0, length));
      const SweepOutput output(rows, path, false);
      CHECK(output.found().empty());
      CHECK(read_file(path) == rows.header());
    }
  }
}

TEST_CASE("somebody else's file is refused and left alone") {
  const Scratch scratch;
  const Sweep sweep = small_sweep();
  Sweep other = sweep;
  other.scenario_text = "another";
  for (const SweepFormat format : {SweepFormat::csv, SweepFormat::jsonl}) {
    const SweepRows rows(sweep, format), others(other, format);
    const std::string good = some_lines(rows, 2);
    struct Case {
      std::string text, told;
    };
    for (const Case& c : std::vector<Case>{
             {"hello", "out:1:1: is not the output of this sweep"},
             {"hello\n", "out:1:1: "},
             {"\n", "out:1:1: "},
             {"{}\n", "out:1:1: "},
             {some_lines(others, 1), "belongs to another sweep"},
             {good + some_lines(others, 1).substr(others.header().size()), "belongs to another sweep"},
             {good + good.substr(rows.header().size()), "point 1 is in the file already"},
             {good + "half a line\n", "the sweep cannot continue from this line"},
             {good + std::string(20, '\0') + "\n", "the sweep cannot continue from this line"},
         }) {
      CAPTURE(c.text);
      const std::string path = scratch.write("out", c.text);
      std::string told;
      try {
        const SweepOutput output(rows, path, false);
      } catch (const InputError& error) {
        told = error.what();
      }
      CAPTURE(told);
      CHECK(told.find(c.told) != std::string::npos);
      CHECK(told.find("--force-new") != std::string::npos);
      CHECK(read_file(path) == c.text);
      const SweepOutput output(rows, path, true);
      CHECK(read_file(path) == rows.header());
    }
  }
}

TEST_CASE("A sweep says whose framework's costs each point counts") {
  const Scratch scratch;
  for (const std::string name : {"a.csv", "a.jsonl"}) {
    const Outcome run = run_rehearse("sweep " + kScenarios +
                                     "gpt3-175b.toml --vary training.framework=megatron-2021,none --out " +
                                     scratch.path(name));
    CAPTURE(name, run.err);
    CHECK(run.err.find("(training.framework): megatron-2021 at 1 of 2 points, none at 1 of 2 points\n") !=
          std::string::npos);
  }
}

TEST_CASE("every point's line holds what simulate says") {
  const Scratch scratch;
  const std::string vary = kResnetRing + " --vary cluster.nodes=4,8 --vary training.micro_batch=32,64",
                    csv = scratch.path("a.csv"), lines = scratch.path("a.jsonl");
  const Outcome run = run_rehearse("sweep " + vary + " --out " + csv);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out.empty());
  CHECK(run.err.find("4 of 4 points: 4 computed now") == 0);
  CHECK(run.err.find("(training.framework): none at 4 of 4 points\n") != std::string::npos);
  CHECK(run.err.find('\r') == std::string::npos);  // progress is only printed to terminals
  REQUIRE(run_rehearse("sweep " + vary + " --out " + lines).status == 0);
  const Texts rows = sorted_lines(read_file(csv));
  REQUIRE(rows.size() == 5);
  CHECK(
      rows[0] ==
      "point,cluster.nodes,training.micro_batch,step_time_s,samples_per_s,tokens_per_s,devices,mfu,compute_s,"
      "exposed_communication_s,data_stall_s,pipeline_bubble_s,other_s,memory_bytes,fits,network_bytes_per_"
      "step,framework,ignored,status,error,sweep");
  for (const std::string& line : lines_of(read_file(lines))) {
    const json point = json::parse(line);
    CAPTURE(line);
    const json& varied = point["varied"];
    const Outcome one = run_rehearse("simulate " + kResnetRing +
                                     " --format json --set cluster.nodes=" + varied["cluster.nodes"].dump() +
                                     " --set training.micro_batch=" + varied["training.micro_batch"].dump());
    REQUIRE(one.status == 0);
    json expected = json::parse(one.out);
    expected["critical_path"] = nullptr;  // needs further simulations, which a sweep leaves out
    CHECK(point["result"] == expected);
    CHECK(point["status"] == "ok");
    CHECK(point["error"] == nullptr);
    const std::string& row = rows[point["point"].get<std::size_t>()];
    std::istringstream in(row);
    Texts fields;
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    REQUIRE(fields.size() == 21);
    CHECK(fields[1] == varied["cluster.nodes"].dump());
    CHECK(fields[2] == varied["training.micro_batch"].dump());
    CHECK(std::stod(fields[3]) == expected["step_time_s"].get<double>());
    CHECK(std::stod(fields[4]) == expected["samples_per_s"].get<double>());
    CHECK(std::stoi(fields[6]) == expected["devices"].get<int>());
    CHECK(std::stod(fields[8]) == expected["breakdown_s"]["compute"].get<double>());
    CHECK(std::stod(fields[12]) == expected["breakdown_s"]["other"].get<double>());
    CHECK(std::stod(fields[13]) == expected["memory_bytes"]["total"].get<double>());
    CHECK(fields[14] == "true");
    CHECK(std::stod(fields[15]) == expected["network"]["bytes_per_step"].get<double>());
    CHECK(fields[16] == "none");
    CHECK(fields[17].empty());
    CHECK(fields[18] == "ok");
    CHECK(fields[19].empty());
    CHECK(fields[20] == point["sweep"].get<std::string>());
  }
  SECTION("without a file the same goes to standard output") {
    const Outcome plain = run_rehearse("sweep " + vary + " --jobs 1");
    CHECK(plain.out == read_file(csv).substr(0, plain.out.find('\n') + 1) + [&] {
      std::string text;
      for (std::size_t i = 1; i < rows.size(); ++i) text += rows[i] + "\n";
      return text;
    }());
  }
  SECTION("the same command again computes nothing and changes nothing") {
    const std::string before = read_file(csv);
    const Outcome again = run_rehearse("sweep " + vary + " --out " + csv);
    CHECK(again.status == 0);
    CHECK(again.err.find("4 of 4 points: 0 computed now") == 0);
    CHECK(again.err.substr(again.err.find("best")) == run.err.substr(run.err.find("best")));
    CHECK(read_file(csv) == before);
  }
  SECTION("another sweep is refused, unless it is to begin anew") {
    const Outcome other = run_rehearse("sweep " + vary + " --set training.optimizer=adam --out " + csv);
    CHECK(other.status == 2);
    CHECK(other.err.find(csv +
                         ":2:1: the sweep cannot continue from this line: it belongs to another sweep") == 0);
    CHECK(run_rehearse("sweep " + vary + " --set training.optimizer=adam --force-new --out " + csv).status ==
          0);
    CHECK(lines_of(read_file(csv)).size() == 5);
  }
}

TEST_CASE("points that fail are rows, and the others go on") {
  const Scratch scratch;
  const std::string out = scratch.path("out.csv");
  const Outcome run =
      run_rehearse("sweep " + kResnetRing +
                   " --vary training.precision=fp32,bf16 --vary strategy.data=32,33 --out " + out);
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK(run.err.find("4 of 4 points: 4 computed now") == 0);
  CHECK(run.err.find("3 failed") != std::string::npos);
  CHECK(run.err.find("best: point 1 (training.precision=fp32, strategy.data=32)") != std::string::npos);
  CHECK(run.err.find("first failure: point 2 (training.precision=fp32, strategy.data=33): ") !=
        std::string::npos);
  const Texts rows = sorted_lines(read_file(out));
  REQUIRE(rows.size() == 5);
  CHECK(rows[1].find(",ok,,") != std::string::npos);
  CHECK(rows[2].find("2,fp32,33,,,,,,,,,,,,,,,,refused,") == 0);
  CHECK(rows[3].find("3,bf16,32,,,,,,,,,,,,,,,,refused,") == 0);
  CHECK(rows[3].find("which p100 does not support") != std::string::npos);
  const Outcome again =
      run_rehearse("sweep " + kResnetRing +
                   " --vary training.precision=fp32,bf16 --vary strategy.data=32,33 --out " + out);
  CHECK(again.status == 1);  // a failure stays a failure
  CHECK(again.err.find("0 computed now") != std::string::npos);
}

TEST_CASE("keys of a preset's file vary like the scenario's own") {
  const Outcome run = run_rehearse("sweep " + kResnetRing +
                                   " --vary model.convolutional.image_size=112,224"
                                   " --vary cluster.node.device=p100,v100"
                                   " --set 'model.convolutional.stage[0].channels=32' --format jsonl");
  CAPTURE(run.out, run.err);
  CHECK(run.status == 0);
  CHECK(run.err.find("4 of 4 points: 4 computed now") == 0);
  std::set<double> step_times_s;
  for (const std::string& line : lines_of(run.out)) {
    const json result = json::parse(line)["result"];
    step_times_s.insert(result["step_time_s"].get<double>());
    // The network is the preset's, unchanged.
    CHECK(result["rests_on"].dump().find("changed by the scenario") == std::string::npos);
  }
  CHECK(step_times_s.size() == 4);  // no two points are equal
  const Outcome slower =
      run_rehearse("simulate " + kResnetRing + " --format json --set cluster.node.nic_gbps=10");
  REQUIRE(slower.status == 0);
  const json guessed = json::parse(slower.out)["rests_on"]["guessed"];
  CHECK(guessed.dump().find("changed by the scenario: nic_gbps") != std::string::npos);
}

TEST_CASE("a file that one point alone names may be wrong") {
  const Scratch scratch;
  const std::string shape = "widths = [784, 1000, 10]\n",
                    bad = scratch.write("bad.toml", "[multi_layer_perceptron]\ndepth = 3\n" + shape),
                    good = scratch.write("good.toml", "[multi_layer_perceptron]\n" + shape),
                    scenario = scratch.write("job.toml",
                                             "[training]\nglobal_batch = 64\nprecision = \"fp32\"\n"
                                             "[cluster]\npreset = \"ethernet\"\n");
  const Outcome run = run_rehearse("sweep " + scenario + " --vary model.file=" + bad + "," + good +
                                   " --vary training.micro_batch=1,2");
  CAPTURE(run.err, run.out);
  CHECK(run.status == 1);
  CHECK(run.err.find("4 of 4 points: 4 computed now") == 0);
  CHECK(run.err.find("2 failed") != std::string::npos);
  CHECK(run.err.find("bad.toml:2:1: unknown key \"depth\"") != std::string::npos);
}

TEST_CASE("what is wrong for every point is wrong input") {
  const Scratch scratch;
  const std::string out = scratch.path("out.csv");
  struct Case {
    std::string arguments, told;
  };
  const std::string sweep = scratch.write(
                        "s.toml", "scenario = \"" + kResnetRing + "\"\n[vary]\nstrategy.pipelin = [1, 2]\n"),
                    empty = scratch.write("e.toml", "scenario = \"" + kResnetRing + "\"\n"),
                    gone = scratch.write("g.toml", "scenario = \"gone.toml\"\n[vary]\na.b = [1]\n");
  for (const Case& c : std::vector<Case>{
           {kResnetRing, kResnetRing + ": nothing varies; allowed: --vary key=a,b,c"},
           {empty, empty + ": nothing varies"},
           {kResnetRing + " --vary trainin.micro_batch=1,2",
            "--vary trainin.micro_batch=1,2: unknown section [trainin]; did you mean [training]?"},
           {kResnetRing + " --vary training.micro_bach=1,2", "--vary training.micro_bach=1,2: unknown key"},
           {sweep, sweep + ":3:10: unknown key \"pipelin\" in [strategy]; did you mean \"pipeline\"?"},
           {gone, scratch.path("gone.toml") + ": there is no such file"},
           {kResnetRing + " --vary training.micro_batch=1 --merge", "there is nothing to merge into"},
           {kResnetRing + " --vary training.micro_batch=1 --set x", "--set x: there is no \"=\""},
           {scratch.path("none.toml") + " --vary a.b=1",
            scratch.path("none.toml") + ": there is no such file"},
           {scratch.write("bad.toml", "= =") + " --vary a.b=1", scratch.path("bad.toml") + ":1:1: not TOML"},
       }) {
    CAPTURE(c.arguments);
    const bool merge = c.arguments.find("--merge") != std::string::npos;
    const Outcome run = run_rehearse("sweep " + c.arguments + (merge ? "" : " --out " + out));
    CHECK(run.status == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(c.told) == 0);
    CHECK_FALSE(std::filesystem::exists(out));
  }
  const Outcome folder =
      run_rehearse("sweep " + kResnetRing + " --vary training.micro_batch=1 --out " + scratch.path(""));
  CHECK(folder.status == 1);
  const Outcome full =
      run_rehearse("sweep " + kResnetRing + " --vary training.micro_batch=32,64 --out /dev/full");
  CHECK(full.status == 1);
  CHECK(full.err.find("/dev/full: cannot be written: No space left on device") != std::string::npos);
}

TEST_CASE("a worker that dies or fails costs its own task alone") {
  std::int64_t next = 0;
  std::map<std::int64_t, TaskEnd> ends;
  int most_at_once = 0;
  TaskPool pool;
  pool.jobs = 3;
  pool.next = [&] { return next < 12 ? next++ : -1; };
  pool.work = [](std::int64_t task) -> std::string {
    if (task == 4) raise(SIGKILL);
    if (task == 6) throw std::runtime_error("no");
    return std::string(task == 8 ? 300'000 : 3, static_cast<char>('a' + task));
  };
  pool.ended = [&](const TaskEnd& end) {
    CHECK(ends.count(end.task) == 0);
    ends[end.task] = end;
  };
  pool.tick = [&] {
    most_at_once = std::max(most_at_once, static_cast<int>(next - static_cast<std::int64_t>(ends.size())));
  };
  run(pool);
  REQUIRE(ends.size() == 12);
  CHECK(most_at_once <= 3);
  CHECK(ends[4].failure == "the simulation was ended by signal 9 (Killed)");
  CHECK(ends[6].failure == "the simulation ended without a result");
  CHECK(ends[8].output == std::string(300'000, 'i'));
  CHECK(ends[11].output == "lll");
  CHECK(ends[11].failure.empty());
  SECTION("when a result cannot be taken, the others are ended") {
    next = 0;
    pool.work = [](std::int64_t task) {
      if (task > 0) pause();
      return std::string("x");
    };
    pool.ended = [](const TaskEnd&) { throw RunError("full"); };
    CHECK_THROWS_AS(run(pool), RunError);
    CHECK((waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
  }
}

TEST_CASE("two sweeps at once on one file are refused") {
  const Scratch scratch;
  const std::string out = scratch.write("out.csv", "");
  const int file = open(out.c_str(), O_RDWR);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  REQUIRE(fcntl(file, F_SETLK, &whole) == 0);
  for (const std::string more : {"", " --force-new"}) {
    const Outcome run =
        run_rehearse("sweep " + kResnetRing + " --vary training.micro_batch=64 --out " + out + more);
    CHECK(run.status == 2);
    CHECK(run.err == out + ": another sweep is writing this file (process " + std::to_string(getpid()) +
                         "); allowed: one at a time\n");
    CHECK(std::filesystem::file_size(out) == 0);  // reading it here would release the lock
  }
  close(file);
  CHECK(run_rehearse("sweep " + kResnetRing + " --vary training.micro_batch=64 --out " + out).status == 0);
}

TEST_CASE("ranks share the points, and the next single run gathers them") {
  const Scratch scratch;
  const std::string out = scratch.path("out.csv"),
                    command = "sweep " + kResnetRing +
                              " --vary training.micro_batch=8,16,32,64 --vary "
                              "cluster.nodes=4,8 --out " +
                              out,
                    whole = scratch.path("whole.csv");
  REQUIRE(run_rehearse("sweep " + kResnetRing +
                       " --vary training.micro_batch=8,16,32,64 --vary cluster.nodes=4,8 --out " + whole)
              .status == 0);
  const Texts expected = sorted_lines(read_file(whole));
  struct Launcher {
    const char *rank, *size, *more;
    bool merge;  // whether --merge gathers the results, or a run that also computes missing points
  };
  const Launcher launcher = GENERATE(Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", true},
                                     Launcher{"PMI_RANK", "PMI_SIZE", "", false},
                                     Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID=0 ", false});
  CAPTURE(launcher.rank);
  const auto rank = [&](int r, int size) {
    return run_rehearse(command, std::string(launcher.more) + launcher.rank + "=" + std::to_string(r) + " " +
                                     launcher.size + "=" + std::to_string(size));
  };
  CHECK(rank(0, 3).err.find("rank 0 of 3: 3 of 8 points: 3 computed now") == 0);
  CHECK(rank(2, 3).err.find("rank 2 of 3: 2 of 8 points: 2 computed now") == 0);
  CHECK(lines_of(read_file(out + ".0")).size() == 4);
  CHECK_FALSE(std::filesystem::exists(out));
  // Starts again with another number of ranks: points in the earlier files are not computed twice.
  CHECK(rank(0, 2).err.find("computed now") != std::string::npos);
  CHECK(rank(1, 2).status == 0);
  const auto points = [&](const std::string& path) { return lines_of(read_file(path)).size() - 1; };
  CHECK(points(out + ".0") + points(out + ".1") + points(out + ".2") == 8);
  if (!launcher.merge) std::filesystem::remove(out + ".1");
  // A batch script outside a job step is not a rank.
  const Outcome gathered =
      run_rehearse(command + (launcher.merge ? " --merge" : ""), "SLURM_PROCID=0 SLURM_NTASKS=3");
  CAPTURE(gathered.err);
  CHECK(gathered.status == 0);
  CHECK(gathered.err.find(launcher.merge ? "8 of 8 points: 0 computed now" : "8 of 8 points: ") == 0);
  CHECK(sorted_lines(read_file(out)) == expected);
  for (const char* number : {".0", ".1", ".2"}) CHECK_FALSE(std::filesystem::exists(out + number));
  // Rank files of another sweep cause an error unless everything starts anew; other files stay untouched.
  scratch.write("out.csv.4", "point,of,another\n");
  CHECK(run_rehearse(command).status == 2);
  scratch.write("out.csv.5", "a log\n");
  CHECK(run_rehearse(command + " --force-new").status == 0);
  CHECK_FALSE(std::filesystem::exists(out + ".4"));
  CHECK(std::filesystem::exists(out + ".5"));
}
