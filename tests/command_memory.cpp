// Tests the tensors that `simulate` tells, and its file for PyTorch's viewer.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"
#include "tests/unpickle.hpp"

using namespace rehearse::test;
using nlohmann::json;
using rehearse::contains_text;

TEST_CASE("simulate tells the largest tensors at the peak") {
  const std::string simulate = "simulate " + shipped_scenario("gpt3-175b");
  const Outcome text = run_rehearse(simulate + " --advice never --memory");
  CAPTURE(text.out);
  REQUIRE(text.status == 0);
  for (const char* const told : {"  Peak of the fullest GPU: 70.5 GiB on stage 0", "  tensor ",
                                 "  optimizer state x 3 ", " always", "    from 0.00 s, \"forward 0\", to "})
    CHECK_THAT(text.out, contains_text(told));
  CHECK(lines_of(text.out).size() < 50);  // a screen
  const Outcome plain = run_rehearse(simulate + " --advice never");
  CHECK_THAT(plain.out, !contains_text("Peak of the fullest"));
  // The table comes below an answer that is otherwise the same.
  CHECK(text.out.find(plain.out.substr(0, plain.out.find("Note:"))) == 0);

  const Outcome as_json = run_rehearse(simulate + " --memory --format json");
  REQUIRE(as_json.status == 0);
  const json memory = json::parse(as_json.out)["memory_bytes"], peak = memory["peak"];
  CHECK(peak["time_s"] > 0);
  CHECK(peak["op"] == "backward 0");
  CHECK(peak["rank"] == 0);
  REQUIRE_FALSE(peak["tensors"].empty());
  CHECK(peak["tensors"].size() <= 10);
  double bytes = peak["others_bytes"];
  for (const json& tensor : peak["tensors"]) {
    bytes += tensor["bytes"].get<double>();
    CHECK(tensor["count"] >= 1);
    CHECK(tensor["born_s"].is_null() == tensor["born_in"].is_null());
    CHECK(tensor["freed_s"].is_null() == tensor["freed_in"].is_null());
    if (!tensor["born_s"].is_null()) CHECK(tensor["born_s"] < tensor["freed_s"]);
  }
  CHECK(bytes == Approx(memory["total"].get<double>()));
  const json& largest = peak["tensors"][0];
  CHECK(largest["name"] == "optimizer state");
  CHECK(largest["kind"] == "optimizer_state");
  CHECK(largest["role"] == "worker");
  CHECK(largest["first_layer"] == 0);
  CHECK(largest["last_layer"] == 2);
  CHECK(largest["first_microbatch"].is_null());
  CHECK(largest["born_s"].is_null());
  CHECK_FALSE(json::parse(run_rehearse(simulate + " --format json").out)["memory_bytes"].contains("peak"));

  const Outcome csv = run_rehearse(simulate + " --memory --format csv");
  CHECK(csv.status == 2);
  CHECK_THAT(csv.err, contains_text("--memory has no columns in CSV; allowed: --format text or json"));
}

TEST_CASE("simulate writes the allocations of the fullest device") {
  const Scratch scratch;
  const std::string path = scratch.path("memory.pickle"), scenario = shipped_scenario("small-gpt"),
                    simulate = "simulate " + scenario + " --advice never";
  const Outcome run = run_rehearse(simulate + " --memory-trace " + path);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out == run_rehearse(simulate).out);
  const std::string bytes = read_file(path);
  const json snapshot = unpickle(bytes), entry = snapshot["device_traces"][0][0];
  CHECK(entry["action"] == "alloc");
  CHECK(entry["frames"][0]["name"] == "activations 0");
  CHECK(entry["frames"][0]["filename"] == "activation, layers 0-5, micro-batch 0");
  CHECK(entry["frames"][1]["name"] == "forward 0, layer 0 embedding");
  CHECK_THAT(entry["frames"][1]["filename"].get<std::string>(), contains_text("worker, tensor 0-1"));

  const Outcome again = run_rehearse(simulate + " --memory-trace " + scratch.path("again.anything"));
  CHECK(again.status == 0);
  CHECK(read_file(scratch.path("again.anything")) == bytes);  // the same on every run

  const Outcome over = run_rehearse("simulate " + scratch.write("s.toml", read_file(scenario)) +
                                    " --memory-trace " + scratch.path("s.toml"));
  CHECK(over.status == 2);
  CHECK_THAT(over.err, contains_text("would overwrite"));
  CHECK(read_file(scratch.path("s.toml")) == read_file(scenario));
  const Outcome both = run_rehearse(simulate + " --trace " + path + " --memory-trace " + path);
  CHECK(both.status == 2);
  CHECK_THAT(both.err, contains_text("--trace and --memory-trace name the same file"));
  CHECK(read_file(path) == bytes);
  CHECK(run_rehearse(simulate + " --memory-trace " + scratch.path("no/such/folder")).status == 1);
}

TEST_CASE("Python reads the allocations") {
  if (std::system("python3 -c 'import pickle' > /dev/null 2>&1") != 0) SKIP("there is no python3");
  const Scratch scratch;
  const std::string path = scratch.path("memory.pickle");
  REQUIRE(run_rehearse("simulate " + shipped_scenario("mlp-ring") + " --advice never --memory-trace " + path)
              .status == 0);
  const std::string script = scratch.write("read.py",
                                           "import json, pickle, sys\n"
                                           "with open(sys.argv[1], 'rb') as file:\n"
                                           "    value = pickle.load(file)\n"
                                           "with open(sys.argv[2], 'w') as file:\n"
                                           "    json.dump(value, file)\n");
  const std::string out = scratch.path("memory.json");
  REQUIRE(std::system(("python3 " + script + " " + path + " " + out).c_str()) == 0);
  CHECK(json::parse(read_file(out)) == unpickle(read_file(path)));
}
