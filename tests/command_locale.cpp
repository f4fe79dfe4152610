// Tests that a scenario gives identical bytes on every run, in every time zone and under every locale.
#include <clocale>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/locales.hpp"

// Suppresses a leak report: glibc retains memory for LOCPATH. The leak sanitizer calls this function.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:argz_add_sep\n";
}

using namespace rehearse::test;

namespace {

constexpr const char* kScenario = R"([model]
preset = "gpt2"
[training]
global_batch = 8
[cluster]
nodes = 2
[cluster.node]
device = "a100-80"
devices = 2
interconnect = "nvswitch"
nvlink_gb_per_s = 299.5
nic_gbps = 12.5
[cluster.fabric]
kind = "switch"
latency_us = 1.25
[strategy]
pipeline = 2
)";

// Returns all that `simulate` prints and writes for a scenario.
std::string everything(const Scratch& scratch, const std::string& scenario, const std::string& environment) {
  std::string all;
  const std::string trace = scratch.path("trace.json"), zipped = scratch.path("trace.json.gz");
  for (const std::string format : {"text", "json", "csv"}) {
    const Outcome run =
        run_rehearse("simulate " + scenario + " --format " + format + " --trace " + trace, environment);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    all += run.out + read_file(trace);
  }
  REQUIRE(run_rehearse("simulate " + scenario + " --trace " + zipped, environment).status == 0);
  return all + read_file(zipped);
}

// Returns the output of the other commands, for files with decimal fractions and for a file that is refused.
std::string others(const Scratch& scratch, const std::string& scenario, const std::string& environment) {
  const std::string table = scratch.write(
      "table.csv",
      "id,measured_step_s,source,note,model.preset,training.global_batch,cluster.preset,cluster.nodes\n"
      "one,0.125,\"A, 2020\",n,resnet50,64,dgx-a100,1\n");
  const std::string point = " --vary cluster.node.nic_gbps=12.5,25.75";
  std::string all;
  for (const std::string& arguments :
       {"compare " + scenario + " --variant cluster.fabric.latency_us=2.5",
        "compare " + scenario + " --format json --variant cluster.fabric.latency_us=2.5",
        "compare " + scenario + " --format csv --variant cluster.fabric.latency_us=2.5", "validate " + table,
        "validate --format json " + table, "validate --format csv " + table,
        "sweep " + scenario + " --jobs 1 --format csv" + point,
        "sweep " + scenario + " --jobs 1 --format jsonl" + point, std::string("show gpt2"),
        std::string("show a100-80"), std::string("show dgx-a100"), std::string("show 1f1b"),
        std::string("list devices"), "simulate " + scenario + " --set cluster.node.nic_gbps=-0.5",
        "simulate " + scenario + " --set cluster.node.nic_gbps=1,5",
        "simulate " + scenario + " --set training.INIT=1.5"}) {
    const Outcome run = run_rehearse(arguments, environment);
    CAPTURE(arguments, run.err);
    REQUIRE((run.status == 0) == (arguments.rfind("simulate", 0) != 0));
    all += run.out;
    // A sweep's summary contains wall-clock seconds.
    if (arguments.rfind("sweep", 0) != 0) all += run.err;
  }
  return all;
}

// Sets the locale of this process, as a GUI toolkit does; the destructor restores the previous one.
class UnderLocale {
public:
  UnderLocale(const Scratch& scratch, const std::string& name) {
    setenv("LOCPATH", scratch.path("").c_str(), 1);
    before_ = std::locale::global(std::locale(name + ".UTF-8"));
  }
  UnderLocale(const UnderLocale&) = delete;
  UnderLocale& operator=(const UnderLocale&) = delete;
  ~UnderLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }

private:
  std::locale before_;
};

bool is_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80       ? 1
                               : lead >> 5 == 6  ? 2
                               : lead >> 4 == 14 ? 3
                               : lead >> 3 == 30 ? 4
                                                 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((text[i + k] & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace

TEST_CASE("the same bytes on every run and in every environment", "[release]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("gpt.toml", kScenario);
  const std::string first = everything(scratch, scenario, "");
  for (const std::string environment : {"", "LC_ALL=C", "LC_ALL=C.UTF-8", "TZ=Asia/Tokyo"}) {
    CAPTURE(environment);
    CHECK(everything(scratch, scenario, environment) == first);
  }
}

TEST_CASE("the same bytes under a locale with a decimal comma", "[release]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("gpt.toml", kScenario);
  const std::string plain_results = everything(scratch, scenario, ""),
                    plain_others = others(scratch, scenario, "");
  for (const char* name : kCommaLocales) make_locale(scratch, name);
  CHECK(everything(scratch, scenario, under_locale(scratch, "de_DE")) == plain_results);
  for (const char* name : {"fr_FR", "tr_TR"}) {
    CAPTURE(name);
    CHECK(others(scratch, scenario, under_locale(scratch, name)) == plain_others);
  }

  // The program does not set the locale; a program that does must get the same output from the library.
  const auto from_library = [&] {
    const rehearse::Prediction prediction =
        rehearse::predict(rehearse::read_scenario_file(scenario), rehearse::Where::child);
    const rehearse::Result result = prediction.result();
    std::ostringstream out;
    rehearse::write_text(result, out);
    rehearse::write_json(result, out);
    rehearse::write_csv(result, out);
    rehearse::write_chrome_trace(result, scratch.path("library.json"));
    return out.str() + read_file(scratch.path("library.json"));
  };
  const std::string plain = from_library();
  for (const char* name : kCommaLocales) {
    CAPTURE(name);
    const UnderLocale set(scratch, name);
    REQUIRE(std::string(std::localeconv()->decimal_point) == ",");
    std::ostringstream half;
    half << 0.5;
    REQUIRE(half.str() == "0,5");
    CHECK(from_library() == plain);
  }
}

TEST_CASE("text is UTF-8 whatever the locale says") {
  // An environment that does not declare UTF-8 (a container's LANG=C) is more common than a terminal without
  // it.
  const Scratch scratch;
  const std::string scenario = scratch.write("gpt.toml", kScenario);
  const Outcome plain = run_rehearse("simulate " + scenario, "LANG=C LC_ALL=C");
  REQUIRE(plain.status == 0);
  CHECK(is_utf8(plain.out));
  CHECK(plain.out.find("\u2588") != std::string::npos);  // a full block, as in the bars
  CHECK_FALSE(is_utf8("\xE2\x96"));
}
