// Tests uncertainty intervals for the times of single kernels and collectives, for one operation and in
// tables.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/commands/predicting/device_constants.hpp"
#include "simulator/commands/predicting/propagation.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

// A device where products take time proportional to 1 / gemm_efficiency and copies to 1 / memory_efficiency,
// and that has no other uncertain constant.
const std::string kChip = R"(compute_capability = 80
memory_gib = {value = 80, basis = "published", source = "test"}
memory_gb_per_s = {value = 2000, basis = "published", source = "test"}
gemm_efficiency = {value = 0.5, basis = "measured", source = "test", uncertainty = 0.1}
memory_efficiency = {value = 0.8, basis = "guess", source = "test", uncertainty = 0.2}
[peak_tflops]
fp32 = {value = 20, basis = "published", source = "test"}
bf16 = {value = 300, basis = "published", source = "test"}
)";

json told_by(const std::string& arguments) {
  const Outcome run = run_rehearse(arguments + " --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

const json& effect_of(const json& told, const std::string& constant) {
  const auto found = std::find_if(told["uncertainty"].begin(), told["uncertainty"].end(),
                                  [&](const json& effect) { return effect["constant"] == constant; });
  REQUIRE(found != told["uncertainty"].end());
  return *found;
}

}  // namespace

TEST_CASE("effects add up by squares, on each side for itself") {
  const Uncertainty found =
      propagated(2,
                 {{"small", Basis::guess, 0.5, 2 * std::exp(-0.03), 2 * std::exp(0.04)},
                  {"none", Basis::guess, 0.5, 2, 2},
                  {"large", Basis::measured, 0.1, 2 * std::exp(-0.08), 2 * std::exp(0.12)}},
                 0.05);
  REQUIRE(found.effects.size() == 2);
  CHECK(found.effects[0].constant == "large");
  // 90 % of a normal distribution are within 1.645 standard deviations.
  CHECK(found.low_s == Approx(2 * std::exp(-1.645 * std::hypot(0.03, 0.08, 0.05))));
  CHECK(found.high_s == Approx(2 * std::exp(1.645 * std::hypot(0.04, 0.12, 0.05))));
}

TEST_CASE("a constant that is taken over from another device is not more certain than there") {
  // Matches "as the A100's", "the H100's share, raised ..."; but "the A100's is 1 to 3 us" is a bound.
  const std::regex taken_over("^(?:as )?the ([A-Z]+[0-9]+(?: [0-9]+GB)?)'s(?! is).*");
  const std::map<std::string, std::string> presets = {
      {"A100", "a100-80"},   {"A100 80GB", "a100-80"}, {"A40", "a40"},   {"V100", "v100"},
      {"V100 16GB", "v100"}, {"P100", "p100"},         {"H100", "h100"}, {"B200", "b200"},
      {"GB200", "gb200"},    {"GB300", "gb300"}};
  int checked = 0;
  for (const std::string& name : device_names())
    for (const DeviceConstant& constant : device_constants()) {
      Device device = device_preset(name);
      const Sourced& number = constant.in(device);
      std::smatch match;
      if (number.value <= 0 || !std::regex_match(number.source, match, taken_over)) continue;
      CAPTURE(name, constant.key, number.source);
      Device original = device_preset(presets.at(match[1]));
      CHECK(number.deviation() >= constant.in(original).deviation());
      ++checked;
    }
  CHECK(checked > 100);
}

TEST_CASE("a kernel's interval follows from the constants of its device") {
  const Scratch scratch;
  const std::string chip = scratch.write("chip.toml", kChip);
  struct Case {
    std::string kernel, constant;
    double deviation;  // of the constant, to which the time is inversely proportional
  };
  for (const Case& c : {Case{"gemm 4096 4096 4096", "chip gemm_efficiency", 0.1},
                        Case{"norm 4096 4096", "chip memory_efficiency", 0.2}}) {
    const std::string line = "kernel " + c.kernel + " --device " + chip;
    CAPTURE(line);
    CHECK(told_by(line).count("interval_s") == 0);
    const json told = told_by(line + " --uncertainty");
    const double time_s = told["time_s"];
    CHECK(told["uncertainty"].size() == 1);
    const json& effect = effect_of(told, c.constant);
    CHECK(effect["deviation"] == c.deviation);
    CHECK(effect["better_s"].get<double>() == Approx(time_s * std::exp(-c.deviation)));
    CHECK(effect["worse_s"].get<double>() == Approx(time_s * std::exp(c.deviation)));
    const double low_s = told["interval_s"][0], high_s = told["interval_s"][1];
    CHECK(std::log(low_s / time_s) == Approx(-std::log(high_s / time_s)));
    CHECK(high_s > time_s * std::exp(1.645 * c.deviation));  // measurement scatter widens it further

    const Outcome text = run_rehearse(line + " --uncertainty");
    CHECK(text.out.find("\n  Uncertainty: nine of ten measurements are expected between ") !=
          std::string::npos);
    CHECK(text.out.find(c.constant + " (") != std::string::npos);
    const std::vector<std::string> csv = lines_of(run_rehearse(line + " --uncertainty --format csv").out);
    REQUIRE(csv.size() == 2);
    CHECK(csv[0].ends_with(",bound,time_low_s,time_high_s"));
    CHECK(std::stod(csv[1].substr(csv[1].rfind(',') + 1)) == Approx(high_s));
  }
}

TEST_CASE("a collective's interval follows from latency where it is small and from bandwidth where large") {
  const std::string line = "collective all-reduce --cluster dgx-a100 --bytes 8,8G";
  CHECK(told_by(line)[0].count("interval_s") == 0);
  const json sizes = told_by(line + " --uncertainty");
  REQUIRE(sizes.size() == 2);
  struct Case {
    std::size_t size;
    std::string constant;
  };
  for (const Case& c :
       {Case{0, "dgx-a100 startup and latency"}, Case{1, "dgx-a100 bandwidth inside nodes"}}) {
    CAPTURE(c.constant);
    const json& told = sizes[c.size];
    const json& effect = effect_of(told, c.constant);
    CHECK(told["uncertainty"][0] == effect);  // the largest effect
    const double time_s = told["time_s"], deviation = effect["deviation"];
    CHECK(effect["worse_s"].get<double>() == Approx(time_s * std::exp(deviation)).epsilon(0.01));
    CHECK(effect["better_s"].get<double>() == Approx(time_s * std::exp(-deviation)).epsilon(0.01));
    CHECK(told["interval_s"][0].get<double>() < effect["better_s"].get<double>());
    CHECK(told["interval_s"][1].get<double>() > effect["worse_s"].get<double>());
  }
  // NVLink switches that sum (NVLS) are limited by what a GPU's NVLinks carry.
  const json nvls = told_by("collective all-reduce --cluster dgx-h100 --bytes 8G --uncertainty")[0];
  REQUIRE(nvls["algorithm"] == "nvls");
  const json share = effect_of(nvls, "dgx-h100 bandwidth inside nodes");
  CHECK(share["worse_s"].get<double>() ==
        Approx(nvls["time_s"].get<double>() * std::exp(share["deviation"].get<double>())).epsilon(0.01));
  // Eight devices of one node use no link between nodes.
  for (const json& told : sizes)
    for (const json& effect : told["uncertainty"])
      CHECK(effect["constant"] != "dgx-a100 bandwidth between nodes");

  const std::vector<std::string> plain = lines_of(run_rehearse(line).out),
                                 text = lines_of(run_rehearse(line + " --uncertainty").out),
                                 csv = lines_of(run_rehearse(line + " --uncertainty --format csv").out);
  const auto row = [](const std::vector<std::string>& lines, const std::string& size) {
    return *std::find_if(lines.begin(), lines.end(), [&](const std::string& one) {
      return one.find(" " + size + " ") != std::string::npos;
    });
  };
  // The columns that nccl-tests prints keep their places; the bounds come between out-of-place figures and
  // the algorithm.
  const std::string with = row(text, "8589934592"), without = row(plain, "8589934592");
  const std::size_t columns = without.rfind("  ");
  CHECK(with.substr(0, columns) == without.substr(0, columns));
  CHECK(with.ends_with(without.substr(columns)));
  CHECK(with.size() == without.size() + 2 * (2 + 7));
  CHECK(std::count_if(text.begin(), text.end(), [](const std::string& one) {
          return one.starts_with("# low, high            : nine of ten measurements");
        }) == 1);
  CHECK(csv[0].ends_with(",protocol,time_low_s,time_high_s"));
  CHECK(std::stod(csv[2].substr(csv[2].rfind(',') + 1)) == Approx(sizes[1]["interval_s"][1].get<double>()));
}

TEST_CASE("what collective prints with intervals is a table of nccl-tests, too") {
  const Scratch scratch;
  const Outcome printed =
      run_rehearse("collective all-gather --cluster dgx-a100 --nodes 2 --bytes 1M..1G*32 --uncertainty");
  REQUIRE(printed.status == 0);
  const json table = told_by("validate " + scratch.write("printed.txt", printed.out) +
                             " --set cluster.preset=dgx-a100 --set cluster.nodes=2 --set "
                             "collective=all-gather --uncertainty")[0];
  REQUIRE(table["rows"].size() == 3);
  for (const json& one : table["rows"]) {
    CHECK(std::abs(one["error"].get<double>()) < 0.01);
    CHECK(one["inside"] == true);
  }
  CHECK(table["intervals"]["inside"] == 3);
}

TEST_CASE("tables of kernels and of collectives tell how many measurements lie in their intervals") {
  const Scratch scratch;
  const std::string chip = scratch.write("chip.toml", kChip);
  const json alone = told_by("kernel gemm 4096 4096 4096 --device " + chip + " --uncertainty");
  const auto us = [](double seconds) { return std::to_string(1e6 * seconds); };
  const double high_s = alone["interval_s"][1];
  std::string kernels = "id,source,group,kernel,device,precision,measured_time_us,m,n,k\n";
  kernels += "in,test,a,gemm," + chip + ",bf16," + us(0.99 * high_s) + ",4096,4096,4096\n";
  kernels += "out,test,b,gemm," + chip + ",bf16," + us(1.01 * high_s) + ",4096,4096,4096\n";
  const json all_reduce =
      told_by("collective all-reduce --cluster dgx-a100 --devices 4 --bytes 1G --uncertainty")[0];
  const double low_s = all_reduce["interval_s"][0];
  std::string collectives = "id,source,group,cluster.preset,devices,bytes,measured_time_us\n";
  collectives += "in,test,a,dgx-a100,4,1073741824," + us(1.01 * low_s) + "\n";
  collectives += "out,test,b,dgx-a100,4,1073741824," + us(0.99 * low_s) + "\n";
  for (const auto& [text, expected] : {std::pair(kernels, alone), std::pair(collectives, all_reduce)}) {
    const std::string file = scratch.write("own.csv", text);
    const json table = told_by("validate --uncertainty " + file)[0];
    CHECK(table["intervals"]["rows"] == 2);
    CHECK(table["intervals"]["inside"] == 1);
    CHECK(table["groups"][0]["intervals"]["inside"] == 1);
    CHECK(table["groups"][1]["intervals"]["inside"] == 0);
    for (std::size_t i = 0; i < 2; ++i) {
      const json& one = table["rows"][i];
      CHECK(one["inside"] == (i == 0));
      CHECK(one["interval_s"][0].get<double>() == Approx(expected["interval_s"][0].get<double>()));
      CHECK(one["interval_s"][1].get<double>() == Approx(expected["interval_s"][1].get<double>()));
      CHECK(one["uncertainty"][0]["constant"] == expected["uncertainty"][0]["constant"]);
    }
    const Outcome printed = run_rehearse("validate --uncertainty " + file);
    CHECK(printed.out.find("Intervals: 1 of 2 measurements inside (50.0 %)") != std::string::npos);
    const Outcome csv = run_rehearse("validate --uncertainty --format csv " + file);
    CHECK(csv.out.find(",predicted_low_s,predicted_high_s\n") != std::string::npos);
  }
}
