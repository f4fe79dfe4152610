// Tests `rehearse jobs`: times of small lists by hand under each policy, properties that hold for any list,
// the formats of recorded traces, and what is refused.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

json jobs_of(const Scratch& scratch, const std::string& list, const std::string& options) {
  const std::string path = scratch.write("jobs.csv", list);
  const Outcome run = run_rehearse("jobs " + path + " --cluster dgx-a100 --format json " + options);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

}  // namespace

TEST_CASE("small lists end as worked out by hand under each policy") {
  // A node of 8 devices. All three ask for all of them.
  const std::string whole = "name,submit_s,devices,duration_s\na,0,8,10\nb,1,8,2\nc,2,8,4\n";
  // b waits for all devices; c ends as soon as a does, beside it; d does not fit beside both.
  const std::string gap = "name,submit_s,devices,duration_s\na,0,6,10\nb,1,8,5\nc,2,2,8\nd,3,2,9\n";
  // c would end after a, when b needs all devices.
  const std::string late = "name,submit_s,devices,duration_s\na,0,6,10\nb,1,8,5\nc,2,2,8.5\n";
  const std::string rounds = "name,submit_s,devices,duration_s\na,0,8,1080\nb,0,8,1080\n";
  // 16 device-hours are 2 hours on 8 devices: then a comes after b, which has had none.
  const std::string attained = "name,submit_s,devices,duration_s\na,0,8,10000\nb,100,8,1000\n";
  const std::string prior = "name,submit_s,devices,duration_s,priority\na,0,8,10,0\nb,1,8,2,0\nc,2,8,4,1\n";
  struct Case {
    const char* policy;
    const std::string& list;
    const char* options;
    std::vector<double> ends_s;
    int preemptions;
  };
  for (const Case& c : std::vector<Case>{
           {"fifo", whole, "", {10, 12, 16}, 0},
           {"sjf", whole, "", {10, 12, 16}, 0},
           {"srtf", whole, "", {16, 3, 7}, 1},  // at 1: 2 < 9 left, then 4 < 9
           {"srsf", whole, "", {16, 3, 7}, 1},
           {"srtf", whole, "--start-cost 1 --preemption-cost 0.5", {20.5, 4, 9}, 1},
           {"fifo", whole, "--start-cost 1", {11, 14, 19}, 0},
           {"fifo", prior, "", {10, 16, 14}, 0},  // c is before b at 10
           {"fifo", gap, "", {10, 15, 23, 24}, 0},
           {"backfill", gap, "", {10, 15, 10, 24}, 0},
           {"backfill", late, "", {10, 15, 23.5}, 0},
           {"gavel", rounds, "", {1800, 2160}, 4},
           {"tiresias", attained, "", {11000, 8200}, 1},
           {"fifo", attained, "", {10000, 11000}, 0},
       }) {
    CAPTURE(c.policy, c.list, c.options);
    const Scratch scratch;
    const json answer =
        jobs_of(scratch, c.list, std::string("--nodes 1 --policy ") + c.policy + " " + c.options);
    const json& policy = answer["policies"][0];
    REQUIRE(policy["jobs"].size() == c.ends_s.size());
    double completion_s = 0, last_s = 0;
    int preemptions = 0;
    for (std::size_t j = 0; j < c.ends_s.size(); ++j) {
      CAPTURE(j);
      const json& job = policy["jobs"][j];
      CHECK(job["end_s"].get<double>() == Approx(c.ends_s[j]).epsilon(1e-9));
      completion_s += c.ends_s[j] - job["submit_s"].get<double>();
      last_s = std::max(last_s, c.ends_s[j]);
      preemptions += job["preemptions"].get<int>();
    }
    CHECK(policy["mean_completion_s"].get<double>() ==
          Approx(completion_s / static_cast<double>(c.ends_s.size())).epsilon(1e-9));
    CHECK(policy["makespan_s"].get<double>() == Approx(last_s).epsilon(1e-9));
    CHECK(preemptions == c.preemptions);
  }
}

TEST_CASE("under every policy random jobs get all their devices or none, do all their work, and lose none") {
  std::mt19937 random(45);
  std::string list = "name,submit_s,devices,duration_s\n";
  double work = 0;
  constexpr int kJobs = 60;
  for (int j = 0; j < kJobs; ++j) {
    const int devices = 1 << random() % 6, duration_s = 1 + static_cast<int>(random() % 4000);
    list += "j" + std::to_string(j) + "," + std::to_string(random() % 20'000) + "," +
            std::to_string(devices) + "," + std::to_string(duration_s) + "\n";
    work += devices * static_cast<double>(duration_s);
  }
  const Scratch scratch;
  for (const char* placement : {"packed", "spread", "topology"}) {
    CAPTURE(placement);
    const std::string trace = scratch.path("trace.json");
    const json answer = jobs_of(scratch, list,
                                "--nodes 5 --policy fifo,backfill,sjf,srtf,srsf,tiresias,gavel --placement " +
                                    std::string(placement) + " --trace " + trace);
    REQUIRE(answer["policies"].size() == 7);
    double least_mean_s = 1e300, srtf_mean_s = 0;
    for (const json& policy : answer["policies"]) {
      const auto name = policy["policy"].get<std::string>();
      CAPTURE(name);
      std::vector<std::pair<double, int>> changes;
      double last_start_s = 0;
      for (const json& job : policy["jobs"]) {
        CHECK(job["start_s"].get<double>() >= job["submit_s"].get<double>());
        CHECK(job["end_s"].get<double>() > job["start_s"].get<double>());
        if (name == "fifo") {  // nobody overtakes
          CHECK(job["start_s"].get<double>() >= last_start_s);
          last_start_s = job["start_s"].get<double>();
        }
        if (policy["preemptions"] != 0) continue;
        changes.emplace_back(job["start_s"].get<double>(), job["devices"].get<int>());
        changes.emplace_back(job["end_s"].get<double>(), -job["devices"].get<int>());
      }
      std::sort(changes.begin(), changes.end());
      int held = 0;
      for (const auto& [time_s, devices] : changes) {
        held += devices;
        CHECK(held <= 40);
      }
      // Nothing is lost without costs, so that devices are held for the work alone. Rounds hold them longer.
      const double held_s = policy["utilization"].get<double>() * policy["makespan_s"].get<double>() * 40;
      CHECK(held_s == Approx(work).epsilon(1e-6));
      const auto mean_s = policy["mean_completion_s"].get<double>();
      least_mean_s = std::min(least_mean_s, mean_s);
      if (name == "srtf") srtf_mean_s = mean_s;
    }
    CHECK(srtf_mean_s < 1.25 * least_mean_s);  // it is the least for jobs that ask for all devices

    // The spans of the chart: a node never has more than its 8 devices in use.
    const json chart = json::parse(read_file(trace));
    std::map<std::pair<int, int>, std::vector<std::pair<double, int>>> nodes;
    for (const json& event : chart["traceEvents"])
      if (event["ph"] == "X") {
        const std::pair<int, int> node{event["pid"].get<int>(), event["tid"].get<int>()};
        nodes[node].emplace_back(event["ts"].get<double>() + 20, event["args"]["devices"].get<int>());
        nodes[node].emplace_back(event["ts"].get<double>() + event["dur"].get<double>(),
                                 -event["args"]["devices"].get<int>());
      }
    CHECK(nodes.size() >= 7);
    for (auto& [node, changes] : nodes) {
      std::sort(changes.begin(), changes.end());
      int held = 0;
      for (const auto& [time_us, devices] : changes) {
        held += devices;
        CHECK(held <= 8);
      }
    }
  }
}

TEST_CASE(
    "on one machine no policy completes jobs sooner on average than the shortest remaining time first") {
  // Schrage 1968: optimal with preemption at no cost.
  std::mt19937 random(1968);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::string list = "name,submit_s,devices,duration_s\n";
    for (int j = 0; j < 25; ++j)
      list += std::to_string(j) + "," + std::to_string(random() % 3000) + ",8," +
              std::to_string(1 + random() % 400) + "\n";
    const Scratch scratch;
    const json answer =
        jobs_of(scratch, list, "--nodes 1 --policy srtf,fifo,backfill,sjf,srsf,tiresias,gavel");
    const auto best_s = answer["policies"][0]["mean_completion_s"].get<double>();
    for (const json& policy : answer["policies"])
      CHECK(policy["mean_completion_s"].get<double>() >= best_s * (1 - 1e-9));
  }
}

TEST_CASE("steps of a job take what its list or its scenario says") {
  const Scratch scratch;
  scratch.write("job.toml", kMeasuredStages);
  const Outcome alone =
      run_rehearse("simulate " + scratch.path("job.toml") + " --format json --advice never");
  REQUIRE(alone.status == 0);
  const auto step_s = json::parse(alone.out)["step_time_s"].get<double>();
  const std::string list = scratch.write("list.csv",
                                         "name,submit_s,devices,steps,step_time_s,scenario\n"
                                         "own,0,4,100,0.5,\npredicted,0,4,100,,job.toml\n");
  const std::string cluster = scratch.write("lab.toml",
                                            "[node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 80\n"
                                            "[fabric]\nkind = \"switch\"\nlatency_us = 1\n");
  const Outcome run =
      run_rehearse("jobs " + list + " --cluster " + cluster + " --nodes 8 --policy fifo --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json jobs = json::parse(run.out)["policies"][0]["jobs"];
  CHECK(jobs[0]["end_s"].get<double>() == Approx(50));
  CHECK(jobs[1]["step_time_s"].get<double>() == Approx(step_s));
  CHECK(jobs[1]["end_s"].get<double>() == Approx(100 * step_s));
}

TEST_CASE("recorded traces are known by their columns or keys") {
  struct Case {
    const char* format;
    std::string text;
    std::vector<double> submit_s, duration_s;
    std::vector<int> devices;
    int without_devices, unfinished;
  };
  for (
      const Case& c : std::vector<Case>{
          {"Philly",
           R"([{"status": "Pass", "vc": "a", "jobid": "x", "user": "u", "submitted_time": "2017-10-09 00:00:10",
  "attempts": [{"start_time": "2017-10-09 00:00:20", "end_time": "2017-10-09 00:01:20",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]},
 {"status": "Killed", "vc": "a", "jobid": "y", "user": "u", "submitted_time": "2017-10-09 00:00:00",
  "attempts": [{"start_time": "2017-10-09 00:00:05", "end_time": "2017-10-09 00:00:15",
                "detail": [{"ip": "m1", "gpus": ["gpu2"]}]},
               {"start_time": "2017-10-09 00:00:25", "end_time": "2017-10-09 00:00:45",
                "detail": [{"ip": "m1", "gpus": ["gpu2"]}]}]},
 {"status": "Killed", "vc": "a", "jobid": "z", "user": "u", "submitted_time": "2017-10-09 00:00:00",
  "attempts": []}])",
           {0, 10},
           {30, 60},
           {1, 2},
           0,
           1},
          {"Helios",
           "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
           "queue\n1,u,v,j,4,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 00:02:10,120,"
           "10\n2,u,v,j,0,16,1,COMPLETED,2020-04-01 00:00:30,2020-04-01 00:00:30,2020-04-01 00:00:40,10,0\n",
           {0},
           {120},
           {4},
           1,
           0},
      }) {
    CAPTURE(c.format, c.text);
    const Scratch scratch;
    const json answer = jobs_of(scratch, c.text, "--nodes 1 --policy fifo");
    CHECK(answer["format"] == c.format);
    CHECK(answer["without_devices"] == c.without_devices);
    CHECK(answer["unfinished"] == c.unfinished);
    const json& jobs = answer["policies"][0]["jobs"];
    REQUIRE(jobs.size() == c.submit_s.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      CHECK(jobs[j]["submit_s"].get<double>() == Approx(c.submit_s[j]));
      CHECK(jobs[j]["devices"] == c.devices[j]);
      CHECK(jobs[j]["end_s"].get<double>() - jobs[j]["start_s"].get<double>() == Approx(c.duration_s[j]));
    }
  }
}

TEST_CASE("the text has the policies side by side, and says which completes jobs soonest") {
  const Outcome run = run_rehearse("jobs " + std::string(REHEARSE_TESTS_DIR) +
                                   "/../simulator/life/scheduling/jobs.csv --cluster dgx-a100 --nodes 4");
  CHECK(run.status == 0);
  CHECK(run.out.find("fifo      backfill          srtf      tiresias") != std::string::npos);
  CHECK(run.out.find("Jobs complete soonest, on average, under srtf: the least remaining time first") !=
        std::string::npos);
  const Scratch scratch;
  const std::string alone = scratch.write("one.csv", "name,submit_s,devices,duration_s\na,0,1,1\n");
  const Outcome equal = run_rehearse("jobs " + alone + " --cluster dgx-a100 --nodes 1");
  CHECK(equal.out.find("All policies complete jobs equally soon") != std::string::npos);
  const std::string chart = scratch.path("chart.json.gz");
  CHECK(run_rehearse("jobs " + alone + " --cluster dgx-a100 --nodes 1 --trace " + chart).status == 0);
  CHECK(read_file(chart).substr(0, 2) == "\x1f\x8b");  // gzip (RFC 1952)
}

TEST_CASE("bad lists are refused with their place and what is allowed") {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"", "jobs.csv: the list is empty"},
           Case{"name,submit_s,devices,duration_s\n", "the list has no jobs; allowed: at least one"},
           Case{"name,submit_s,duration_s\na,0,1\n", "jobs.csv:1:1: column devices is missing"},
           Case{"name,submit_s,devices,duration_s,colour\na,0,1,1,red\n", "column \"colour\" is unknown"},
           Case{"name,name,devices,duration_s\n", "jobs.csv:1:6: column \"name\" appears twice"},
           Case{"x,y\n1,2\n", "the columns are those of no known format"},
           Case{"name,submit_s,devices,duration_s\na,0,1\n",
                "jobs.csv:2:1: the row has 3 fields; allowed: 4"},
           Case{"name,submit_s,devices,duration_s\n,0,1,1\n", "name is empty"},
           Case{"name,submit_s,devices,duration_s\na,-1,1,1\n", "jobs.csv:2:3: submit_s is \"-1\""},
           Case{"name,submit_s,devices,duration_s\na,nan,1,1\n", "submit_s is \"nan\""},
           Case{"name,submit_s,devices,duration_s\na,1e300,1,1\n", "submit_s is \"1e300\""},
           Case{"name,submit_s,devices,duration_s\na,0,0,1\n", "devices is \"0\""},
           Case{"name,submit_s,devices,duration_s\na,0,1.5,1\n", "devices is 1.5; allowed: a whole number"},
           Case{"name,submit_s,devices,duration_s\na,0,1,0\n",
                "duration_s is \"0\"; allowed: a number above 0"},
           Case{"name,submit_s,devices,duration_s\na,0,1,\n", "job \"a\" has none of duration_s"},
           Case{"name,submit_s,devices,duration_s,steps\na,0,1,1,5\n", "steps are given beside duration_s"},
           Case{"name,submit_s,devices,step_time_s\na,0,1,1\n", "steps is missing"},
           Case{"name,submit_s,devices,duration_s\na,0,1,1\na,0,1,1\n",
                "jobs.csv:3:1: name \"a\" is that of line 2, too"},
           Case{"name,submit_s,devices,duration_s\na,0,99,1\n",
                "job \"a\" asks for 99 devices; allowed: at most 8"},
           Case{"name,submit_s,devices,duration_s\n\"a,0,1,1\n", "a quoted field is not closed"},
           Case{"[{\"jobid\": ", "the JSON ends too early"},
           Case{"[1]", "1 stands among the jobs"},
           Case{"{}", "the file is JSON, but no array"},
           Case{"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "nested deeper than 16 levels"},
       }) {
    CAPTURE(c.text);
    const Scratch scratch;
    const std::string path = scratch.write("jobs.csv", c.text);
    const Outcome run = run_rehearse("jobs " + path + " --cluster dgx-a100 --nodes 1 --policy fifo");
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CAPTURE(run.err);
    CHECK(run.err.find(c.message) != std::string::npos);
  }
  const Scratch scratch;
  const std::string list = scratch.write("jobs.csv", "name,submit_s,devices,duration_s\na,0,1,1\n");
  struct Options {
    const char* options;
    const char* message;
  };
  for (const Options& c : {
           Options{"--policy fair", "--policy: names \"fair\"; allowed: fifo, backfill"},
           Options{"--policy fifo,fifo", "--policy: names fifo twice"},
           Options{"--policy fifo,", "names \"\""},
           Options{"--policy fifo --preemption-cost -1", "--preemption-cost"},
       }) {
    CAPTURE(c.options);
    const Outcome run = run_rehearse("jobs " + list + " --cluster dgx-a100 --nodes 1 " + c.options);
    CHECK(run.status == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(c.message) != std::string::npos);
  }
  // A list is never overwritten.
  const Outcome over = run_rehearse("jobs " + list + " --cluster dgx-a100 --policy fifo --trace " + list);
  CHECK(over.status == 2);
  CHECK(read_file(list) == "name,submit_s,devices,duration_s\na,0,1,1\n");
}
