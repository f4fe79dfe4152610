// Tests that `rehearse profile` takes an accelerator that it does not know for one, never for a processor.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/profiler_trace_text.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

// How a trace shows its accelerator: the categories of calls and kernels, the name of the device, and an
// event that each step has beside them.
struct Device {
  std::string runtime, kernels, name, beside, beside_args;
};

std::string steps_on(const Device& device, bool kernels = true) {
  TraceText trace(
      device.name.empty() ? "" : "\"deviceProperties\": [{\"id\": 0, \"name\": \"" + device.name + "\"}], ");
  trace.runtime = device.runtime;
  trace.kernels = device.kernels;
  for (int step = 0; step < 4; ++step) {
    const double t = 1000 + 100 * step;
    trace.note(fmt::format("ProfilerStep#{}", step), t, t + 99);
    trace.op("aten::linear", t + 5, t + 15, step, "[[8, 16], [32, 16], [32]]");
    trace.node("AddmmBackward0", t + 20, t + 28, step);
    trace.accumulate(t + 30, t + 34, "[32, 16]");
    trace.note("Optimizer.step#SGD.step", t + 40, t + 48);
    if (kernels) {
      trace.kernel("gemm", t + 8, t + 10, t + 30, kMain);
      trace.kernel("gemm", t + 22, t + 30, t + 60, kMain);
      trace.kernel("add", t + 42, t + 60, t + 70, kMain);
    }
    if (!device.beside.empty()) trace.add(device.beside, "beside", t + 50, t + 51, kMain, device.beside_args);
  }
  return trace.text();
}

// Joins the lines of a text into one.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

struct Case {
  Device device;
  std::string accelerator;  // empty: a GPU of CUDA or HIP, or processors
  bool has_kernels = true;
};

}  // namespace

TEST_CASE("an accelerator of unknown kind is named as one, and never taken for a processor") {
  for (const Case& one : {
           Case{{"xpu_runtime", "kernel", "Intel(R) Data Center GPU Max 1550", "", ""}, "xpu"},
           Case{{"xpu_driver", "kernel", "", "", ""}, "xpu"},
           Case{{"mtia_runtime", "mtia_ccp_events", "", "", ""}, "mtia"},
           Case{{"privateuse1_runtime", "kernel", "", "", ""}, "privateuse1"},
           Case{{"NPU_runtime", "npu_kernel", "Ascend910B", "", ""}, "npu"},
           Case{{"hpu_runtime", "hpu_op", "", "", ""}, "hpu"},
           // Only the runtime, or an allocation on the device, shows that there is an accelerator.
           Case{{"", "", "", "privateuseone_runtime", ""}, "privateuseone", false},
           Case{{"", "", "", "hpu_op", ""}, "hpu", false},
           Case{{"", "", "", "cpu_instant_event", "\"Device Type\": 13, \"Device Id\": 0"}, "mps", false},
           Case{{"", "", "", "cpu_instant_event", "\"Device Type\": \"XLA\""}, "xla", false},
           Case{{"cuda_runtime", "kernel", "NVIDIA A100-SXM4-80GB", "", ""}, ""},
           Case{{"hip_runtime", "kernel", "AMD Instinct MI300X", "", ""}, ""},
           Case{{"cuda_runtime", "kernel", "", "cpu_instant_event", "\"Device Type\": 1"}, ""},
           Case{{"", "", "", "cpu_instant_event", "\"Device Type\": 0"}, "", false},
       }) {
    CAPTURE(one.device.runtime, one.device.kernels, one.device.beside, one.device.beside_args);
    const Scratch scratch;
    const std::string trace = scratch.write("job.json", steps_on(one.device, one.has_kernels));
    const Outcome text = run_rehearse("profile " + trace),
                  run = run_rehearse("profile " + trace + " --format json");
    CAPTURE(text.out, text.err);
    const std::string said = in_one_line(text.out);
    REQUIRE(run.status == 0);
    const json told = json::parse(run.out);
    if (one.accelerator.empty()) {
      CHECK(told["unknown_accelerator"].is_null());
      CHECK(said.find("unknown kind") == std::string::npos);
      CHECK((told["device"] == "cpu") != one.has_kernels);
      continue;
    }
    CHECK(told["unknown_accelerator"] == one.accelerator);
    CHECK(told["device"] == one.device.name);
    CHECK(said.find("on processors") == std::string::npos);
    CHECK(said.find("an accelerator of unknown kind (" + one.accelerator + ")") != std::string::npos);
    CHECK(said.find("there is no device file for it") != std::string::npos);
    const bool host_times = said.find("times are those of the operators") != std::string::npos;
    CHECK(host_times != one.has_kernels);
    if (one.has_kernels) CHECK(told["layers"][0]["forward_s"].get<double>() == Approx(20e-6));

    // A cluster must be named, and its scenario repeats the note.
    const std::string scenario = scratch.path("job.toml");
    const Outcome refused = run_rehearse("profile " + trace + " --out " + scenario);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("--cluster: is not given, and the trace is of ") == 0);
    CHECK(refused.err.find("(" + one.accelerator + "), which no device file describes") != std::string::npos);
    CHECK(run_rehearse("profile " + trace + " --cluster dgx-a100 --out " + scenario).status == 0);
    CHECK(read_file(scenario).find("(" + one.accelerator + ")") != std::string::npos);
    CHECK(read_file(scenario).find("protocol = \"tcp\"") == std::string::npos);
    const Outcome simulated = run_rehearse("simulate " + scenario + " --format json");
    CAPTURE(simulated.err);
    REQUIRE(simulated.status == 0);
    if (one.has_kernels)
      CHECK(json::parse(simulated.out)["step_time_s"].get<double>() == Approx(100e-6).epsilon(0.03));
  }
}
