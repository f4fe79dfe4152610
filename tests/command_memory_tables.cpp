// Columns of measured memory in tables of steps: what is compared, how it is written, what is refused.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse::test;
using nlohmann::json;
using rehearse::contains_text;

namespace {

constexpr const char* kColumns =
    "id,source,measured_peak_bytes,measured_static_bytes,measured_reserved_bytes,measured_out_of_memory,"
    "measured_stage,model.preset,training.global_batch,training.micro_batch,training.precision,strategy.data,"
    "strategy.pipeline,cluster.preset\n";
// A model of 124 million parameters fits on a GPU; one of 13 billion with Adam in mixed precision does not.
constexpr const char* kRows =
    "small,here,1e10,2e9,1.2e10,false,,gpt2,8,1,bf16,8,,dgx-a100\n"
    "large,here,,,,true,,llama2-13b,8,1,bf16,8,,dgx-a100\n"
    "first,here,1e10,1e9,,,first,gpt2,8,1,bf16,4,2,dgx-a100\n"
    "last,here,1e10,1e9,,false,last,gpt2,8,1,bf16,4,2,dgx-a100\n";

}  // namespace

TEST_CASE("measured memory is compared with its prediction") {
  const Scratch scratch;
  const std::string path = scratch.write("t.csv", std::string(kColumns) + kRows);
  const Outcome run = run_rehearse("validate --format json " + path);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json table = json::parse(run.out)[0];
  CHECK(!table.contains("mean_error"));  // no times were measured
  CHECK(table["memory"]["peak"]["rows"] == 3);
  CHECK(table["memory"]["static"]["rows"] == 3);
  CHECK(table["memory"]["reserved"]["rows"] == 1);
  CHECK(table["memory"]["out_of_memory"]["rows"] == 3);
  CHECK(table["memory"]["out_of_memory"]["right"] == 3);
  const auto memory = [&](int row) { return table["rows"][row]["memory"]; };
  const double peak = memory(0)["peak_bytes"]["predicted"], still = memory(0)["static_bytes"]["predicted"];
  CHECK(memory(0)["peak_bytes"]["error"].get<double>() == Approx(peak / 1e10 - 1));
  CHECK(still < peak);
  CHECK(memory(0)["reserved_bytes"]["interval"][0].get<double>() <=
        memory(0)["reserved_bytes"]["interval"][1].get<double>());
  CHECK(memory(1)["out_of_memory"]["predicted"] == true);
  // The last of two stages keeps the activations of one micro-batch and the logits; the first those of two.
  CHECK(memory(2)["peak_bytes"]["predicted"] != memory(3)["peak_bytes"]["predicted"]);

  const Outcome text = run_rehearse("validate " + path);
  CHECK_THAT(text.out, contains_text("Out of memory or not: 3 of 3 said right; 0 said to fit that did not"));
  CHECK_THAT(text.out, contains_text("Peak memory of 3 rows: mean error"));
  const std::vector<std::string> csv = lines_of(run_rehearse("validate --format csv " + path).out);
  REQUIRE(csv.size() == 5);
  CHECK_THAT(csv[0], contains_text(",measured_peak_bytes,predicted_peak_bytes,"));
  CHECK_THAT(csv[2], contains_text(",true,true"));
}

TEST_CASE("cells of measured memory that say nothing are refused") {
  struct Case {
    std::string cells, message;
  };
  const Scratch scratch;
  for (const Case& c :
       std::vector<Case>{{"a,b,,,,maybe,", "measured_out_of_memory is \"maybe\"; allowed: false, true"},
                         {"a,b,1e9,,,,middle", "measured_stage is \"middle\"; allowed: fullest, first, last"},
                         {"a,b,-1,,,,", "measured_peak_bytes"},
                         {"a,b,,,,,first", "the row has no measurement"}}) {
    CAPTURE(c.cells);
    const std::string path =
        scratch.write("t.csv", std::string(kColumns) + c.cells + ",gpt2,8,1,bf16,8,,dgx-a100\n");
    const Outcome run = run_rehearse("validate " + path);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, contains_text(c.message));
  }
}

// What the tables' memory errors are today, so that a change that moves a prediction is noticed at once.
TEST_CASE("errors of tables of memory are pinned", "[release]") {
  struct Pinned {
    const char *table, *figure;
    std::size_t rows;
    double mean_absolute;
  };
  for (const Pinned& pinned : std::vector<Pinned>{{"megatron-golden", "peak", 126, 0.022},
                                                  {"megatron-golden", "static", 126, 0.029},
                                                  {"nanotron-h100-memory", "static", 129, 0.003},
                                                  {"simumax-b200", "peak", 10, 0.007},
                                                  {"simumax-b200", "reserved", 10, 0.026}}) {
    CAPTURE(pinned.table, pinned.figure);
    const Outcome run = run_rehearse(std::string("validate --format json ") + pinned.table);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json memory = json::parse(run.out)[0]["memory"];
    CHECK(memory[pinned.figure]["rows"] == pinned.rows);
    CHECK(memory[pinned.figure]["mean_absolute_error"].get<double>() ==
          Approx(pinned.mean_absolute).margin(0.001));
    if (!memory.contains("out_of_memory")) continue;
    const double right = memory["out_of_memory"]["right"], judged = memory["out_of_memory"]["rows"];
    CHECK(right / judged > 0.95);
  }
}
