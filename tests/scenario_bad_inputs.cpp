// Compares refusals with golden files: tests/bad_inputs/NAME.toml is refused in the exact words of
// NAME.expected, which `rehearse simulate` prints before it ends with status 2.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/in_folder.hpp"

using namespace rehearse;
using rehearse::test::InFolder;
namespace fs = std::filesystem;

namespace {

std::string refusal(const std::string& path, const std::vector<std::string>& overrides = {}) {
  try {
    read_scenario_file(path, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every bad input is refused in the expected words") {
  InFolder folder(fs::path(REHEARSE_TESTS_DIR) / "bad_inputs");
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(".")) {
    if (entry.path().extension() != ".toml") continue;
    std::string name = entry.path().stem().string();
    CAPTURE(name);
    ++cases;
    std::string found = refusal(name + ".toml") + "\n";
    std::ifstream golden(name + ".expected", std::ios::binary);
    if (!golden) {
      FAIL_CHECK(name << ".expected is missing; it would be:\n" << found);
      continue;
    }
    std::stringstream expected;
    expected << golden.rdbuf();
    CHECK(found == expected.str());
  }
  CHECK(cases >= 30);
  for (const auto& entry : fs::directory_iterator(".")) {  // every golden file has its input
    if (entry.path().extension() != ".expected") continue;
    CAPTURE(entry.path().string());
    CHECK(fs::exists(entry.path().stem().string() + ".toml"));
  }
}

TEST_CASE("what is not a file is refused") {
  InFolder folder(REHEARSE_TESTS_DIR);
  CHECK(refusal("bad_inputs") == "bad_inputs: is a directory; allowed: a TOML file");
  CHECK(refusal("no_such_file.toml") == "no_such_file.toml: there is no such file");
  CHECK(refusal("bad_inputs/empty.toml/x.toml").substr(0, 30) == "bad_inputs/empty.toml/x.toml: ");
  CHECK(refusal("") == "no file name is given");
  CHECK(refusal("/dev/null").substr(0, 34) == "/dev/null: no model is described; ");
}

TEST_CASE("bad overrides are refused by their own name") {
  InFolder folder(fs::path(REHEARSE_TESTS_DIR).parent_path() / "simulator/scenarios");
  const std::pair<std::string, std::string> cases[] = {
      {"training.micro_batch",
       "--set training.micro_batch: there is no \"=\"; allowed: --set section.key=value"},
      {"=4", "--set =4: \"\" is not the name of a key; allowed: section.key or section.key[0].key"},
      {"training.=4",
       "--set training.=4: \"training.\" is not the name of a key; allowed: section.key or "
       "section.key[0].key"},
      {"training.micro_batch=zero",
       "--set training.micro_batch=zero: training.micro_batch is a string \"zero\"; allowed: an integer from "
       "1 to "
       "1000000"},
      {"training.micro_bach=2",
       "--set training.micro_bach=2: unknown key \"micro_bach\" in [training]; did you mean "
       "\"micro_batch\"?"},
      {"trainin.micro_batch=2",
       "--set trainin.micro_batch=2: unknown section [trainin]; did you mean [training]?"},
      {"training=2", "--set training=2: training is 2; allowed: a table [training]"},
      {"training.global_batch.x=2",
       "--set training.global_batch.x=2: training.global_batch is 2048; allowed: a table, to set a key in "
       "it"},
      {"training.global_batch=1000",
       "--set training.global_batch=1000: training.global_batch is 1000; allowed: a multiple of micro_batch "
       "64 x data "
       "32 = 2048, such as 2048"},
      {"cluster.slow=[{device=32, factor=0.5}]",
       "--set cluster.slow=[{device=32, factor=0.5}]: cluster.slow[0].device is 32; allowed: an integer from "
       "0 to 31"},
      {"training.precision=bf16",
       "--set training.precision=bf16: training.precision is \"bf16\", which p100 does not support; allowed: "
       "\"fp32\", "
       "\"fp16\""},
  };
  for (const auto& [assignment, message] : cases) {
    CAPTURE(assignment);
    CHECK(refusal("resnet50-ring.toml", {assignment}) == message);
  }
}
