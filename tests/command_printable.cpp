// Tests that untrusted text cannot control a terminal, and that results stay valid UTF-8 and JSON.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "models/text/printable.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::test;

namespace {

// Clears the screen in three ways: with ESC [, with its one-byte form, and with its UTF-8 form; ends with a
// byte that is not UTF-8.
const std::string kName =
    "a\x1b[2J\x9b"
    "2J\xC2\x9B"
    "2J\x7f\xff";

bool is_plain(const std::string& text) {
  return rehearse::printable(text, "\n\t") == text;
}

std::string in_shell(const std::string& text) {
  return "'" + text + "'";
}

}  // namespace

TEST_CASE("file names and arguments are escaped wherever they are printed") {
  const Scratch scratch;
  const std::string good = in_shell(scratch.write(kName + ".toml", kMeasuredStages));
  const std::string bad = in_shell(scratch.write(kName + "-bad.toml", "x = 1\n"));
  const std::string table = in_shell(scratch.write(kName + ".csv", kName + ",b\n1,2\n"));
  const std::string name = in_shell(kName);
  const std::string sweep =
      "sweep " + good + " --vary " + in_shell("training.micro_batch=1,\"" + kName + "\"");
  for (const std::string& arguments :
       {"simulate " + good,
        "simulate " + bad,
        "simulate " + name,
        "simulate " + good + " --set " + name,
        "simulate " + good + " --set model.name=" + name,
        "simulate " + good + " --format " + name,
        "simulate " + good + " --format csv",
        "simulate " + good + " " + name,
        "simulate " + good + " --" + name,
        "simulate " + good + " --trace " + in_shell("/no/" + kName),
        "compare " + good + " --variant " + in_shell("training.micro_batch=1 " + kName + "=1"),
        "compare " + good + " " + good,
        "compare " + good + " " + good + " --format csv",
        "compare " + good + " " + name,
        "show " + name,
        "list " + name,
        "validate " + name,
        "validate " + table,
        name,
        "sweep " + good + " --vary " + in_shell(kName + "=1,2"),
        sweep,
        "sweep " + good + " --vary training.micro_batch=1 --out " + in_shell("/no/" + kName)}) {
    CAPTURE(rehearse::printable(arguments));
    const Outcome run = run_rehearse(arguments);
    CHECK(run.status >= 0);
    CHECK(is_plain(run.out));
    CHECK(is_plain(run.err));
    const bool named = arguments != "simulate " + good && arguments != sweep;  // these two print no name
    CHECK(((run.out + run.err).find("\\x1B[2J") != std::string::npos) == named);
  }
}

TEST_CASE("JSON is valid whatever a file is called") {
  const Scratch scratch;
  const std::string path = in_shell(scratch.write(kName + ".toml", kMeasuredStages));
  for (const std::string& arguments : {"simulate " + path, "compare " + path + " " + path}) {
    CAPTURE(rehearse::printable(arguments));
    const Outcome run = run_rehearse(arguments + " --format json");
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(is_plain(run.out));
    CHECK(nlohmann::json::accept(run.out));
  }
  const Outcome sweep = run_rehearse("sweep " + path + " --format jsonl --vary training.micro_batch=1");
  CHECK(sweep.status == 0);
  CHECK(nlohmann::json::accept(sweep.out));
  const std::string trace = scratch.path("trace.json");
  REQUIRE(run_rehearse("simulate " + path + " --trace " + trace).status == 0);
  CHECK(nlohmann::json::accept(read_file(trace)));
}

TEST_CASE("files and pipes without an end are refused, not read") {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", kMeasuredStages), huge = scratch.path("huge");
  scratch.write("points.toml", std::string(kMeasuredStages) +
                                   "[simulation]\nprotocol = \"measured\"\nlink_profile = \"huge\"\n");
  REQUIRE(std::system(("truncate -s 20G " + huge + " " + huge + ".csv " + huge + ".json").c_str()) == 0);
  const std::string sweep = "sweep " + scenario + " --vary training.micro_batch=1,2";
  const std::string out = scratch.path("out.csv");
  // The address sanitizer reserves far more address space than it uses.
  const std::string few = rehearse::testing::kSanitized ? "" : "ulimit -v 1500000;";
  REQUIRE(run_rehearse(sweep + " --out " + out).status == 0);
  REQUIRE(std::system(("truncate -s 20G " + out).c_str()) == 0);
  for (const std::string& arguments :
       {"simulate " + huge, std::string("simulate /dev/zero"), std::string("simulate - < /dev/zero"),
        "simulate " + scratch.path("points.toml"), "compare " + scenario + " " + huge,
        std::string("compare - < /dev/zero"), "sweep " + huge + " --vary a=1,2",
        std::string("sweep - --vary a=1,2 < /dev/zero"), sweep + " --out " + huge, sweep + " --out " + out,
        "validate " + huge + ".csv", "validate " + huge + ".json",
        "simulate " + scenario + " --set model='{huggingface=\"huge\"}'"}) {
    CAPTURE(arguments);
    const Outcome run = run_rehearse(arguments, few);
    CHECK(run.status == 2);
    CHECK(run.err.find("MiB") != std::string::npos);
  }
}
