// Tests that the time in which a profiled GPU idles stays in the step, and that `rehearse profile` names its
// causes.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/profiler_trace_text.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

json told_by(const std::string& arguments) {
  const Outcome run = run_rehearse(arguments + " --format json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

// When, in microseconds from the beginning of a step, the three kernels of a step are launched and begin.
// They take 100, 120 and 50 us: 270 of the step's 1000 us.
struct Launches {
  double forward, forward_at, backward, backward_at, update, update_at;
};

using Extra = std::function<void(TraceText&, double)>;

std::string idle_steps(const Launches& at, const Extra& extra, double forward_op = -1) {
  TraceText trace("\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-80GB\"}], ");
  trace.backward_thread = kBackward;
  for (int step = 0; step < 5; ++step) {
    const double t = 2000 + 1000 * step;
    trace.note(fmt::format("ProfilerStep#{}", step), t, t + 999);
    extra(trace, t);
    trace.op("aten::linear", t + (forward_op < 0 ? at.forward - 3 : forward_op), t + at.forward + 4, step,
             "[[8, 16], [32, 16], [32]]");
    trace.kernel("gemm", t + at.forward, t + at.forward_at, t + at.forward_at + 100, kMain);
    trace.node("AddmmBackward0", t + at.backward - 3, t + at.backward + 4, step);
    trace.kernel("gemm", t + at.backward, t + at.backward_at, t + at.backward_at + 120, kBackward);
    trace.accumulate(t + at.backward + 5, t + at.backward + 7, "[32, 16]");
    trace.note("Optimizer.step#SGD.step", t + at.update - 2, t + at.update + 4);
    trace.kernel("add", t + at.update, t + at.update_at, t + at.update_at + 50, kMain);
  }
  return trace.text();
}

struct IdleCase {
  const char* cause;  // of more than 70 % of the step
  const char* name;   // of what causes it
  Launches at;
  Extra extra;
  double forward_op = -1;  // begin of the forward pass
};

const std::vector<IdleCase>& cases() {
  static const Extra nothing = [](TraceText&, double) {};
  static const std::vector<IdleCase> all = {
      {"data_loading",
       "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
       {745, 750, 760, 850, 770, 970},
       [](TraceText& trace, double t) {
         trace.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", t + 22, t + 738);
       }},
      // Traces until 2022 have the loader among the operators.
      {"data_loading",
       "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
       {745, 750, 760, 850, 770, 970},
       [](TraceText& trace, double t) {
         trace.add("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 22, t + 738,
                   kMain);
       }},
      // A batch is loaded between the passes.
      {"data_loading",
       "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
       {5, 10, 830, 835, 840, 955},
       [](TraceText& trace, double t) {
         trace.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", t + 112, t + 826);
       }},
      // The process waits for the forward pass, and then takes its time.
      {"synchronisation",
       "cudaStreamSynchronize in aten::item",
       {5, 10, 830, 835, 840, 955},
       [](TraceText& trace, double t) {
         trace.add("cpu_op", "aten::item", t + 20, t + 118, kMain);
         trace.add("cuda_runtime", "cudaStreamSynchronize", t + 25, t + 112, kMain);
         trace.add("cpu_op", "aten::mul", t + 130, t + 820, kMain);
       }},
      {"operators",
       "aten::index_put_",
       {745, 750, 760, 850, 770, 970},
       [](TraceText& trace, double t) { trace.add("cpu_op", "aten::index_put_", t + 22, t + 738, kMain); }},
      // The forward pass itself takes long to launch its only kernel.
      {"operators", "aten::linear", {745, 750, 760, 850, 770, 970}, nothing, 22},
      {"python", "", {745, 750, 760, 850, 770, 970}, nothing},
      {"copies",
       "cudaMemcpyAsync",
       {5, 10, 830, 835, 840, 955},
       [](TraceText& trace, double t) {
         trace.add("cuda_runtime", "cudaMemcpyAsync", t + 112, t + 826, kBackward);
       }},
      {"queue", "", {5, 10, 30, 835, 40, 955}, nothing},
  };
  return all;
}

}  // namespace

TEST_CASE("a step in which the GPU idles for 73 % comes back at its length, with the cause") {
  for (const IdleCase& one : cases()) {
    CAPTURE(one.cause, one.name, one.at.forward);
    const Scratch scratch;
    const std::string trace = scratch.write("job.json", idle_steps(one.at, one.extra, one.forward_op));
    const std::string scenario = scratch.path("job.toml");
    const json told = told_by("profile " + trace + " --out " + scenario);
    CHECK(told["step_s"].get<double>() == Approx(1000e-6));
    CHECK(told["parts_s"]["idle"].get<double>() == Approx(730e-6));
    CHECK(told["parts_s"]["sum"].get<double>() == Approx(1000e-6));
    double sum_s = 0;
    for (const json& idle : told["idle_causes"]) sum_s += idle["seconds"].get<double>();
    CHECK(sum_s == Approx(730e-6));
    const json& most = told["idle_causes"][0];
    CHECK(most["cause"] == one.cause);
    CHECK(most["share"].get<double>() > 0.7);
    if (*one.name != '\0') CHECK(most["name"] == one.name);

    const json result = told_by("simulate " + scenario);
    CHECK(result["step_time_s"].get<double>() == Approx(1000e-6).epsilon(0.02));
    const json& parts = result["breakdown_s"];
    CHECK(parts["compute"].get<double>() == Approx(270e-6).epsilon(0.02));
    const bool data = std::string(one.cause) == "data_loading";
    CHECK(parts["data_stall"].get<double>() == Approx(data ? most["seconds"].get<double>() : 0));
    CHECK(parts["other"].get<double>() + parts["data_stall"].get<double>() == Approx(730e-6).epsilon(0.03));
    // Twice the samples: the kernels take twice as long, not the waits.
    const json twice =
        told_by("simulate " + scenario + " --set training.micro_batch=16 --set training.global_batch=16");
    CHECK(twice["step_time_s"].get<double>() == Approx((1000 + 220) * 1e-6).epsilon(0.03));

    const Outcome text = run_rehearse("profile " + trace);
    CHECK(text.out.find("The GPU idles for 73.0 % of the step: ") != std::string::npos);
    CHECK(text.out.find(one.name) != std::string::npos);
  }
}

TEST_CASE("each micro-batch waits for its own data") {
  TraceText trace("\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-80GB\"}], ");
  for (int step = 0; step < 5; ++step) {
    trace.note(fmt::format("ProfilerStep#{}", step), 2000 + 1000 * step, 2000 + 1000 * step + 999);
    for (int pass = 0; pass < 2; ++pass) {
      const double t = 2000 + 1000 * step + 490 * pass;
      const int number = 10 * step + pass;
      trace.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", t + 2, t + 252);
      trace.op("aten::linear", t + 255, t + 262, number, "[[8, 16], [32, 16], [32]]");
      trace.kernel("gemm", t + 258, t + 260, t + 360, kMain);
      trace.node("AddmmBackward0", t + 270, t + 276, number);
      trace.kernel("gemm", t + 272, t + 360, t + 480, kMain);
      trace.accumulate(t + 277, t + 279, "[32, 16]");
      trace.add("cuda_runtime", "cudaStreamSynchronize", t + 300, t + 485, kMain);
    }
    trace.note("Optimizer.step#SGD.step", 2000 + 1000 * step + 978, 2000 + 1000 * step + 985);
    trace.kernel("add", 2000 + 1000 * step + 980, 2000 + 1000 * step + 982, 2000 + 1000 * step + 992, kMain);
  }
  const Scratch scratch;
  const std::string scenario = scratch.path("job.toml");
  const json told = told_by("profile " + scratch.write("job.json", trace.text()) + " --out " + scenario);
  CHECK(told["passes"] == 2);
  CHECK(told["idle_causes"][0]["cause"] == "data_loading");
  CHECK(told["idle_causes"][0]["seconds"].get<double>() == Approx(500e-6));
  CHECK(told["waits_s"]["data"].get<double>() == Approx(250e-6));
  const json two = told_by("simulate " + scenario);
  CHECK(two["step_time_s"].get<double>() == Approx(1000e-6).epsilon(0.02));
  CHECK(two["breakdown_s"]["data_stall"].get<double>() == Approx(500e-6));
  const json three = told_by("simulate " + scenario + " --set training.global_batch=24");
  CHECK(three["breakdown_s"]["data_stall"].get<double>() == Approx(750e-6));
  CHECK(three["step_time_s"].get<double>() == Approx((1000 + 480) * 1e-6).epsilon(0.03));
}

TEST_CASE("idle time is not counted as waiting for launches and once more as a wait") {
  // Forty kernels of 1 us, each of which takes the process 20 us to launch.
  TraceText trace("\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-80GB\"}], ");
  for (int step = 0; step < 5; ++step) {
    const double t = 2000 + 1000 * step;
    trace.note(fmt::format("ProfilerStep#{}", step), t, t + 999);
    for (int k = 0; k < 20; ++k) {
      trace.op("aten::linear", t + 20 * k, t + 20 * k + 19, 100 * step + k, "[[8, 16], [32, 16], [32]]");
      trace.kernel("gemm", t + 20 * k + 10, t + 20 * k + 15, t + 20 * k + 16, kMain);
    }
    for (int k = 0; k < 20; ++k) {
      const double at = t + 400 + 20 * k;
      trace.node("AddmmBackward0", at, at + 14, 100 * step + 19 - k);
      trace.kernel("gemm", at + 10, at + 15, at + 16, kMain);
      trace.accumulate(at + 15, at + 19, "[32, 16]");
    }
    trace.note("Optimizer.step#SGD.step", t + 805, t + 820);
    trace.kernel("add", t + 810, t + 815, t + 820, kMain);
  }
  const Scratch scratch;
  const std::string scenario = scratch.path("job.toml");
  const json told = told_by("profile " + scratch.write("job.json", trace.text()) + " --out " + scenario);
  CHECK(told["kernel_launch_s"].get<double>() == Approx(20e-6).epsilon(0.03));
  CHECK(told_by("simulate " + scenario)["step_time_s"].get<double>() == Approx(1000e-6).epsilon(0.03));
  // Without launches, hardly more than the 195 us between the steps is left.
  CHECK(told_by("simulate " + scenario + " --set training.cuda_graphs=true")["step_time_s"].get<double>() <
        330e-6);
}

TEST_CASE("a GPU that idles while processors run a collective waits for communication, once") {
  const Scratch scratch;
  const std::string trace =
      scratch.write("job.json", idle_steps({5, 10, 15, 110, 840, 845}, [](TraceText& text, double t) {
                      text.note("gloo:all_reduce", t + 230, t + 830, kGloo);
                    }));
  const std::string scenario = scratch.path("job.toml");
  const json told = told_by("profile " + trace + " --out " + scenario);
  const json& parts = told["parts_s"];
  CHECK(parts["waiting_for_collectives"].get<double>() == Approx(600e-6));
  CHECK(parts["idle"].get<double>() == Approx(130e-6));
  CHECK(parts["sum"].get<double>() == Approx(1000e-6));
  CHECK(told_by("simulate " + scenario)["step_time_s"].get<double>() == Approx(400e-6).epsilon(0.03));
}

TEST_CASE("waits of [model.profiled] are part of a step, on each stage and for each pass") {
  const Scratch scratch;
  const auto simulated = [&](const std::string& keys, const std::string& options = "") {
    return told_by("simulate " +
                   scratch.write("job.toml",
                                 "[model.profiled]\nlayers = 2\nmicro_batch = 4\nforward_ms = [10, 20]\n"
                                 "backward_input_ms = 30\nbackward_weight_ms = 0\np2p_bytes = 0\n"
                                 "parameters = 1000\noptimizer_ms = 5\n" +
                                     keys +
                                     "\n[training]\nglobal_batch = 4\nmicro_batch = 4\n"
                                     "[cluster]\npreset = \"dgx-a100\"\nnodes = 1\ndevices_per_node = 1\n") +
                   " " + options);
  };
  constexpr double kStep_s = 95e-3;  // (10 + 20) + 2 x 30 + 5 ms
  struct Waits {
    const char* keys;
    double process_s, data_s;  // of one pass
    double update_s;
  };
  for (const Waits& one :
       {Waits{"", 0, 0, 0}, Waits{"forward_wait_ms = 2", 4e-3, 0, 0},
        Waits{"forward_wait_ms = [1, 0]", 1e-3, 0, 0}, Waits{"backward_wait_ms = [0, 7]", 7e-3, 0, 0},
        Waits{"data_wait_ms = 9", 0, 9e-3, 0}, Waits{"optimizer_wait_ms = 3", 0, 0, 3e-3},
        Waits{"forward_wait_ms = 1\nbackward_wait_ms = 2\ndata_wait_ms = 3\n"
              "optimizer_wait_ms = 4",
              6e-3, 3e-3, 4e-3}}) {
    CAPTURE(one.keys);
    const json result = simulated(one.keys);
    CHECK(result["step_time_s"].get<double>() == Approx(kStep_s + one.process_s + one.data_s + one.update_s));
    CHECK(result["breakdown_s"]["compute"].get<double>() == Approx(kStep_s));
    CHECK(result["breakdown_s"]["data_stall"].get<double>() == Approx(one.data_s).margin(1e-12));
    CHECK(result["breakdown_s"]["other"].get<double>() == Approx(one.process_s + one.update_s).margin(1e-12));
    CHECK(result.value("profiled_wait_s", 0.0) == Approx(one.process_s + one.update_s).margin(1e-12));
    // Two micro-batches of half as many samples: the waits of the passes count twice, the kernels as before.
    const json halves = simulated(one.keys, "--set training.micro_batch=2");
    CHECK(halves["step_time_s"].get<double>() ==
          Approx(kStep_s + 2 * (one.process_s + one.data_s) + one.update_s));
    // A device at half its speed waits no longer than before.
    const json slow = simulated(one.keys, "--set cluster.slow=[{device=0,factor=0.5}]");
    CHECK(slow["step_time_s"].get<double>() ==
          Approx(2 * kStep_s + one.process_s + one.data_s + one.update_s));
    double path_s = 0;
    for (const json& segment : result["critical_path"]["segments"]) {
      if (segment["kind"] == "data") CHECK(segment["seconds"].get<double>() == Approx(one.data_s));
      path_s += segment["seconds"].get<double>();
    }
    CHECK(path_s == Approx(result["step_time_s"].get<double>()));
  }
}
