// Tests tables of kernels: the accuracy of the predictions for the shipped table, and which tables are
// refused.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/validate/kernel_table.hpp"
#include "simulator/commands/validate/statistics.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using Shape = std::vector<double>;

// Returns true for every other shape of a group in ascending order.
bool every_other(const KernelTable& kernels, std::size_t row) {
  std::set<Shape> shapes;
  for (std::size_t i = 0; i < kernels.questions.size(); ++i)
    if (kernels.table.rows[i].group == kernels.table.rows[row].group)
      shapes.insert(kernels.questions[i].sizes);
  return std::distance(shapes.begin(), shapes.find(kernels.questions[row].sizes)) % 2 == 0;
}

}  // namespace

TEST_CASE("DeepBench's products on a P100 and a V100 take about as long as measured") {
  const std::string path = measurement_path("deepbench-products");
  const KernelTable kernels = parse_kernel_table(read_text_file(path, "table"), path);
  const std::vector<double> seconds = predicted_times_s(kernels);
  REQUIRE(seconds.size() == 435);
  // Rows with both sides of the result at least 1,024 set the shares of the peak in the device files; of the
  // others, those of every other shape in fp32 on the V100 set the shares of tiles
  // (simulator/costs/product.cpp). No constant was set on the remaining ones.
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const PublishedRow& row = kernels.table.rows[i];
    const std::vector<double>& sizes = kernels.questions[i].sizes;
    const bool large = std::min(sizes[0], sizes[1]) >= 1024;
    const bool used = row.group == "V100 fp32" && every_other(kernels, i);
    errors[{row.group, large  ? "large"
                       : used ? "tiles"
                              : "unseen"}]
        .push_back(seconds[i] / row.measured_step_s - 1);
  }
  struct Case {
    const char *group, *rows;
    std::size_t count;
    double median, mean;  // absolute errors, rounded up to a per cent
  };
  for (const Case& c :
       {Case{"V100 fp32", "large", 41, 0.06, 0.05}, Case{"V100 fp32", "tiles", 42, 0.08, 0.11},
        Case{"V100 fp32", "unseen", 30, 0.07, 0.10}, Case{"V100 tensor cores", "large", 43, 0.04, 0.04},
        Case{"V100 tensor cores", "unseen", 84, 0.18, 0.21}, Case{"P100 fp32", "large", 32, 0.02, 0.02},
        Case{"P100 fp32", "unseen", 58, 0.17, 0.20}, Case{"P100 fp16 operands", "large", 39, 0.02, 0.02},
        Case{"P100 fp16 operands", "unseen", 66, 0.16, 0.20}}) {
    CAPTURE(c.group, c.rows);
    const ErrorSummary summary = summarize(errors[{c.group, c.rows}]);
    CHECK(summary.rows == c.count);
    CHECK(summary.median_absolute < c.median);
    CHECK(summary.mean_absolute < c.mean);
    CHECK(summary.median_absolute > c.median - 0.04);  // a better fit must be noticed, too
  }
}

TEST_CASE("DeepBench's convolutions on a P100 and a V100 take about as long as measured") {
  const std::string path = measurement_path("deepbench-convolutions");
  const KernelTable kernels = parse_kernel_table(read_text_file(path, "table"), path);
  const std::vector<double> seconds = predicted_times_s(kernels);
  REQUIRE(seconds.size() == 1060);
  // Rows by group and by whether the input has at least 16 channels: libraries have special kernels for
  // images and spectrograms of one to three channels, which products in whole tiles do not represent.
  std::map<std::pair<std::string, bool>, std::vector<double>> errors;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double channels = kernels.questions[i].sizes[2];
    errors[{kernels.table.rows[i].group, channels >= 16}].push_back(
        seconds[i] / kernels.table.rows[i].measured_step_s - 1);
  }
  struct Case {
    const char* group;
    bool wide;
    std::size_t count;
    double median, mean;  // absolute errors, rounded up to a per cent
  };
  for (const Case& c :
       {Case{"V100 fp32", true, 240, 0.35, 0.50}, Case{"V100 fp32", false, 20, 1.05, 2.17},
        Case{"V100 tensor cores", true, 240, 0.24, 0.28}, Case{"V100 tensor cores", false, 20, 0.82, 0.75},
        Case{"P100 fp32", true, 240, 0.23, 0.32}, Case{"P100 fp32", false, 30, 1.80, 5.045},
        Case{"P100 fp16 operands", true, 240, 0.45, 0.49},
        Case{"P100 fp16 operands", false, 30, 0.67, 1.06}}) {
    CAPTURE(c.group, c.wide);
    const ErrorSummary summary = summarize(errors[{c.group, c.wide}]);
    CHECK(summary.rows == c.count);
    CHECK(summary.median_absolute < c.median);
    CHECK(summary.mean_absolute < c.mean);
    CHECK(summary.median_absolute > c.median - 0.01);
    CHECK(summary.mean_absolute > c.mean - 0.01);
  }
}

TEST_CASE(
    "fused attention on an H100 takes about as long as measured, for heads and lengths like those of "
    "training") {
  const std::string path = measurement_path("flash-attention-h100");
  const KernelTable kernels = parse_kernel_table(read_text_file(path, "table"), path);
  const std::vector<double> seconds = predicted_times_s(kernels);
  REQUIRE(seconds.size() == 96);
  // Heads of 128 with 4,096 tokens set the device's shares: for the forward pass the causal ones, for the
  // backward pass those lowered for a causal mask, which was not measured. One share covers all lengths and
  // heads, although measured rates differ: short causal sequences and narrow heads are slower.
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const KernelQuestion& q = kernels.questions[i];
    const bool trained =
        q.sizes[2] >= 2048 && q.sizes[3] >= 128 && (q.causal || q.pass == KernelPass::backward);
    errors[{kernels.table.rows[i].group, trained ? "as in training" : "others"}].push_back(
        seconds[i] / kernels.table.rows[i].measured_step_s - 1);
  }
  struct Case {
    const char *group, *rows;
    std::size_t count;
    double mean;  // absolute errors, rounded up to a per cent
  };
  for (const Case& c :
       {Case{"flash-2 forward", "as in training", 8, 0.08},
        Case{"flash-2 backward", "as in training", 4, 0.21},
        Case{"flash-3 forward", "as in training", 8, 0.07},
        Case{"flash-3 backward", "as in training", 4, 0.17}, Case{"flash-2 forward", "others", 28, 0.12},
        Case{"flash-2 backward", "others", 8, 0.08}, Case{"flash-3 forward", "others", 28, 0.22},
        Case{"flash-3 backward", "others", 8, 0.05}}) {
    CAPTURE(c.group, c.rows);
    const ErrorSummary summary = summarize(errors[{c.group, c.rows}]);
    CHECK(summary.rows == c.count);
    CHECK(summary.mean_absolute < c.mean);
    CHECK(summary.mean_absolute > c.mean - 0.02);
  }
}

TEST_CASE("validate prints a table of kernels in microseconds") {
  const Scratch scratch;
  const std::string path =
      scratch.write("mine.csv",
                    "id,kernel,device,precision,m,n,k,rows,width,pass,measured_time_us,source\n"
                    "large,gemm,a100-80,bf16,4096,4096,512,,,,80,by hand\n"
                    "norm,norm,h100,bf16,,,,8192,12288,backward,300,by hand\n");
  const Outcome text = run_rehearse("validate " + path);
  CAPTURE(text.err, text.out);
  REQUIRE(text.status == 0);
  CHECK(text.out.find("  large     80.0 us     ") != std::string::npos);
  CHECK(text.out.find("2 rows: mean error ") != std::string::npos);
  const Outcome one = run_rehearse("kernel norm 8192 12288 --pass backward --device h100 --format json");
  const Outcome both = run_rehearse("validate --format json " + path);
  REQUIRE(both.status == 0);
  const nlohmann::json rows = nlohmann::json::parse(both.out)[0]["rows"];
  CHECK(rows[1]["predicted_time_s"] == nlohmann::json::parse(one.out)["time_s"]);
  CHECK(rows[1]["measured_time_s"].get<double>() == Approx(300e-6));
  CHECK(run_rehearse("validate --format csv " + path).out.find("\nmine,norm,0.0003,") != std::string::npos);
  const Outcome set = run_rehearse("validate --set training.micro_batch=2 " + path);
  CHECK(set.status == 2);
  CHECK(set.err == path + ": is a table of kernels, given with --set; allowed: tables of scenarios\n");
}

TEST_CASE("a bad table of kernels is refused with its place") {
  struct Case {
    std::string text, told;
  };
  const std::string header = "id,source,kernel,device,precision,measured_time_us,m,n,k,rows\n";
  for (const Case& c : std::vector<Case>{
           {header, "t.csv: the table has no rows"},
           {"id,source,kernel,device,measured_time_us\n",
            "t.csv:1:1: column precision is missing; required: id"},
           {"speed," + header, "t.csv:1:1: column \"speed\" is unknown; allowed: id, source, kernel"},
           {header + "a,b,gem,v100,fp32,1,2,3,4,\n",
            "t.csv:2:1: kernel is \"gem\"; allowed: gemm, attention, convolution, norm"},
           {header + "a,b,gemm,v100,fp33,1,2,3,4,\n",
            "t.csv:2:1: precision is \"fp33\"; allowed: fp32, tf32"},
           {header + "a,b,gemm,v100,fp32,0,2,3,4,\n",
            "t.csv:2:1: measured_time_us is \"0\"; allowed: a number"},
           {header + "a,b,gemm,v100,fp32,1,2,3,4,5\n",
            "t.csv:2:1: rows is given for a gemm; allowed: m, n, k"},
           {header + "a,b,gemm,v100,fp32,1,2,,4,\n", "t.csv:2:1: n is \"\"; allowed: a number above 0"},
           {header + "a,b,gemm,v100,fp32,1,2,3.5,4,\n", "t.csv:2: n is 3.5; allowed: a whole number from 1"},
           {"attention," + header + "flash-9,a,b,gemm,v100,fp32,1,2,3,4,\n",
            "t.csv:2:1: attention is \"flash-9\"; allowed: unfused, flash-1"},
           {"causal," + header + "yes,a,b,gemm,v100,fp32,1,2,3,4,\n",
            "t.csv:2:1: causal is \"yes\"; allowed: false, true"},
           {"causal," + header + "true,a,b,gemm,v100,fp32,1,2,3,4,\n",
            "t.csv:2: gemm is causal; allowed: attention"},
           {header + "a,b,gemm,v100,fp32,1,2,3,4\n", "t.csv:2:1: the row has 9 fields; allowed: 10"},
       }) {
    CAPTURE(c.text);
    CHECK(is_kernel_table(c.text));
    std::string told;
    try {
      parse_kernel_table(c.text, "t.csv");
    } catch (const InputError& error) {
      told = error.what();
    }
    CAPTURE(told);
    CHECK(told.find(c.told) == 0);
  }
  CHECK_FALSE(is_kernel_table("id,measured_step_s,source\na,1,kernel\n"));
  CHECK_FALSE(is_kernel_table("id,kernels,measured_time_us,source\n"));
  std::string told;
  try {
    predicted_times_s(parse_kernel_table(header + "a,b,gemm,v10,fp32,1,2,3,4,\n", "t.csv"));
  } catch (const InputError& error) {
    told = error.what();
  }
  CHECK(told.find("t.csv:a: there is no device \"v10\"; allowed: a10, a100-40, ") == 0);
}
