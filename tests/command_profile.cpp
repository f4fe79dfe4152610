// Tests `rehearse profile` on traces in the format of PyTorch's profiler, with times that can be added up by
// hand.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/profiler_trace_text.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

// Adds two linear layers, the first of which takes `f` us, with a ReLU between them that belongs to the
// first. Node n is the view of the first weight, n + 1 its product, n + 2 the ReLU; n + 3 and n + 4 belong to
// the second layer.
void passes_on_processors(TraceText& trace, double t, int n, double f) {
  trace.op("aten::linear", t + 20, t + 20 + f, n, "[[8, 16], [32, 16], [32]]");
  trace.op("aten::t", t + 21, t + 23, n, "[[32, 16]]");
  trace.op("aten::addmm", t + 24, t + 19 + f, n + 1, "[[32], [8, 16]]");
  trace.op("aten::relu", t + 30 + f, t + 40 + f, n + 2, "[[8, 32]]");
  trace.op("aten::linear", t + 50 + f, t + 100 + f, n + 3, "[[8, 32], [4, 32], [4]]");
  trace.op("aten::addmm", t + 60 + f, t + 90 + f, n + 4, "[[4], [8, 32]]");
  trace.node("AddmmBackward0", t + 300, t + 350, n + 4);
  trace.accumulate(t + 352, t + 356, "[4]");
  trace.node("TBackward0", t + 357, t + 360, n + 3);
  trace.accumulate(t + 362, t + 366, "[4, 32]");
  trace.node("ReluBackward0", t + 370, t + 380, n + 2);
  trace.node("AddmmBackward0", t + 385, t + 485, n + 1);
  trace.accumulate(t + 490, t + 494, "[32]");
  trace.node("TBackward0", t + 495, t + 498, n);
  trace.accumulate(t + 500, t + 510, "[32, 16]");
}

// Writes four steps of 1000 us; the first is slow, and the others differ in the first layer.
std::string on_processors(bool shapes = true, bool with_steps = true) {
  TraceText trace("\"distributedInfo\": {\"backend\": \"gloo\", \"rank\": 0, \"world_size\": 2}, ");
  trace.shapes = shapes;
  const double first_layer[] = {180, 100, 120, 110};
  for (int step = 0; step < 4; ++step) {
    const double t = 1000 * step;
    if (with_steps) trace.note(fmt::format("ProfilerStep#{}", step + 3), t, t + 1000);
    passes_on_processors(trace, t, 10 + 5 * step, first_layer[step]);
    trace.add("cpu_op", "c10d::allreduce_", t + 504, t + 508, kMain);
    trace.note("gloo:all_reduce", t + 506, t + 560, kGloo);
    trace.note("Optimizer.step#SGD.step", t + 600, t + 650);
    trace.add("cpu_op", "aten::add_", t + 610, t + 640, kMain);
  }
  return trace.text();
}

// Writes the same network on a GPU, with the backward pass on a separate thread; a kernel clips the
// gradients.
std::string on_gpu(const std::string& name = "NVIDIA A100-SXM4-80GB") {
  TraceText trace("\"deviceProperties\": [{\"id\": 0, \"name\": \"" + name + "\"}], ");
  trace.backward_thread = kBackward;
  for (int step = 0; step < 4; ++step) {
    const double t = 1000 * step;
    const int n = 10 + 5 * step;
    trace.note(fmt::format("ProfilerStep#{}", step), t, t + 1000);
    trace.add("cpu_op", "aten::copy_", t + 4, t + 8, kMain);
    trace.kernel("Memcpy HtoD", t + 5, t + 20, t + 30, kMain);
    trace.op("aten::linear", t + 20, t + 50, n, "[[8, 16], [32, 16], [32]]");
    trace.op("aten::addmm", t + 25, t + 45, n + 1, "[[32], [8, 16]]");
    trace.kernel("gemm", t + 30, t + 50, t + 150, kMain);
    trace.op("aten::relu", t + 55, t + 65, n + 2, "[[8, 32]]");
    trace.kernel("relu", t + 60, t + 150, t + 160, kMain);
    trace.op("aten::linear", t + 70, t + 90, n + 3, "[[8, 32], [4, 32], [4]]");
    trace.op("aten::addmm", t + 72, t + 88, n + 4, "[[4], [8, 32]]");
    trace.kernel("gemm", t + 80, t + 170, t + 270, kMain);
    trace.node("AddmmBackward0", t + 100, t + 140, n + 4);
    trace.kernel("gemm", t + 110, t + 270, t + 370, kBackward);
    trace.kernel("gemm", t + 120, t + 370, t + 420, kBackward);
    trace.accumulate(t + 141, t + 143, "[4]");
    trace.accumulate(t + 144, t + 146, "[4, 32]");
    trace.node("ReluBackward0", t + 150, t + 160, n + 2);
    trace.kernel("threshold", t + 152, t + 430, t + 440, kBackward);
    trace.node("AddmmBackward0", t + 170, t + 200, n + 1);
    trace.kernel("gemm", t + 180, t + 440, t + 640, kBackward);
    trace.accumulate(t + 201, t + 203, "[32]");
    trace.accumulate(t + 204, t + 210, "[32, 16]");
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 205, t + 600, t + 700, kBackward,
                 kCollectives);
    trace.add("cpu_op", "aten::_foreach_norm", t + 240, t + 260, kMain);
    trace.kernel("norm", t + 250, t + 640, t + 650, kMain);
    trace.note("Optimizer.step#AdamW.step", t + 300, t + 340);
    trace.kernel("multi_tensor_apply_kernel", t + 320, t + 700, t + 750, kMain);
    trace.add("cuda_runtime", "cudaStreamSynchronize", t + 330, t + 340, kMain);
  }
  return trace.text();
}

json profiled(const std::string& trace, const std::string& options = "") {
  const Outcome run = run_rehearse("profile " + trace + " --format json " + options);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out);
}

double simulated_s(const std::string& scenario, const std::string& options = "") {
  const Outcome run = run_rehearse("simulate " + scenario + " --format json " + options);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return json::parse(run.out)["step_time_s"].get<double>();
}

// Removes the folder's name from a table in text format.
std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = 0; (at = text.find(folder)) != std::string::npos;) text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("every moment of a step on processors belongs to a layer, the update, a collective or neither") {
  const Scratch scratch;
  const json told = profiled(scratch.write("job.json", on_processors()));
  CHECK(told["steps"] == 4);
  CHECK(told["steps_used"] == 3);
  CHECK(told["micro_batch"] == 8);
  CHECK(told["passes"] == 1);
  CHECK(told["optimizer"] == "SGD");
  constexpr double f = 110;  // the median of 100, 120 and 110
  REQUIRE(told["layers"].size() == 2);
  const json &first = told["layers"][0], &second = told["layers"][1];
  CHECK(first["forward_s"].get<double>() == Approx((f + 20) * 1e-6));
  CHECK(second["forward_s"].get<double>() == Approx(60e-6));
  CHECK(second["backward_s"].get<double>() == Approx((366 - 300) * 1e-6));
  // Excludes the 4 us that it takes to submit the collective.
  CHECK(first["backward_s"].get<double>() == Approx((510 - 366 - 4) * 1e-6));
  CHECK(first["parameters"] == 32 * 16 + 32);
  CHECK(second["gradient_bytes"] == 4 * (4 * 32 + 4));
  CHECK(first["output_bytes"] == 4 * 8 * 32);
  CHECK(told["parts_s"]["optimizer"].get<double>() == Approx(50e-6));
  CHECK(told["parts_s"]["waiting_for_collectives"].get<double>() == Approx((4 + 50) * 1e-6));
  CHECK(told["parts_s"]["other"].get<double>() == Approx((20 + 200 - f + 40 + 350) * 1e-6));
  CHECK(told["parts_s"]["sum"].get<double>() == Approx(1000e-6));
  CHECK(told["collectives_s"].get<double>() == Approx(54e-6));
  CHECK(told["gradients_ready"][0]["layer"] == "linear.1");
  CHECK(told["gradients_ready"][1]["bytes"] == 4 * (32 * 16 + 32));
}

TEST_CASE("a scenario made of a profile takes as long as its layers, and scales with the micro-batch") {
  const Scratch scratch;
  const std::string trace = scratch.write("job.json", on_processors()), scenario = scratch.path("job.toml");
  const json parts = profiled(trace, "--out " + scenario)["parts_s"];
  const double other_s = parts["other"].get<double>(), optimizer_s = parts["optimizer"].get<double>();
  const double layers_s = parts["layers"].get<double>();
  CHECK(simulated_s(scenario) == Approx(layers_s + optimizer_s + other_s));
  CHECK(simulated_s(scenario, "--set training.micro_batch=4 --set training.global_batch=4") ==
        Approx(layers_s / 2 + optimizer_s + other_s));
  // Two micro-batches: two passes, one update.
  CHECK(simulated_s(scenario, "--set training.global_batch=16") ==
        Approx(2 * layers_s + optimizer_s + other_s));
  // Ranks that send gradients take longer, and the layers form two stages.
  CHECK(simulated_s(scenario, "--set cluster.nodes=2 --set training.global_batch=16") >
        layers_s + optimizer_s + other_s);
  CHECK(simulated_s(scenario, "--set cluster.nodes=2 --set strategy.pipeline=2") > layers_s);
  // With ZeRO each rank updates only its shard: half of 50 us less than for all parameters, under the same
  // plan.
  const std::string shards =
      "--set cluster.nodes=2 --set training.global_batch=16 --set strategy.zero_stage=1 ";
  CHECK(simulated_s(scenario, shards) -
            simulated_s(scenario, shards + "--set model.profiled.optimizer_ms=0.1") ==
        Approx(-25e-6));
}

TEST_CASE("every moment of a GPU belongs to a kernel of a layer, the update, a collective or nobody") {
  const Scratch scratch;
  const std::string trace = scratch.write("gpu.json", on_gpu()), scenario = scratch.path("gpu.toml");
  const json told = profiled(trace, "--out " + scenario);
  CHECK(told["device"] == "NVIDIA A100-SXM4-80GB");
  CHECK(told["steps_used"] == 2);  // the first is dropped, and the end of the last is unknown
  const json &first = told["layers"][0], &second = told["layers"][1];
  CHECK(first["forward_s"].get<double>() == Approx(110e-6));
  CHECK(first["backward_s"].get<double>() == Approx(210e-6));
  CHECK(second["forward_s"].get<double>() == Approx(100e-6));
  CHECK(second["backward_s"].get<double>() == Approx(150e-6));
  CHECK(first["forward_kernels"] == 2);
  CHECK(second["backward_kernels"] == 2);
  const json& parts = told["parts_s"];
  CHECK(parts["optimizer"].get<double>() == Approx(50e-6));
  CHECK(parts["waiting_for_collectives"].get<double>() == Approx(50e-6));  // 600 to 700 minus 600 to 650 us
  CHECK(parts["other"].get<double>() == Approx(10e-6));
  CHECK(parts["idle"].get<double>() == Approx(320e-6));
  CHECK(parts["sum"].get<double>() == Approx(1000e-6));
  CHECK(told["idle_between_steps_s"].get<double>() == Approx(300e-6));
  CHECK(told["collectives_s"].get<double>() == Approx(100e-6));
  // Passes from 20 to 90 and 100 to 210 us, the update from 300 to 330; 8 kernels. Up to its first launch at
  // 30 us, the GPU idles between steps.
  CHECK(told["kernel_launch_s"].get<double>() == Approx((60 + 110 + 30) * 1e-6 / 8));

  // All but the 50 us of collectives: 620 us of kernels, 20 us between them, and the 310 us between steps and
  // for clipping.
  CHECK(simulated_s(scenario) == Approx(950e-6));
  CHECK(simulated_s(scenario, "--set framework.kernel_launch_us.value=200") ==
        Approx(310e-6 + 8 * 200e-6).epsilon(0.05));
}

TEST_CASE("what profiles print") {
  const Scratch scratch;
  const auto printed = [&](const std::string& arguments) {
    const Outcome run = run_rehearse("profile " + arguments);
    CAPTURE(run.err);
    CHECK(run.status == 0);
    return without_folder(run.out, scratch.path(""));
  };
  const std::string trace = scratch.write("job.json", on_processors()), scenario = scratch.path("job.toml");
  check_golden("profile-processors.txt", printed(trace + " --out " + scenario));
  check_golden("profile-processors.toml", read_file(scenario));
  check_golden("profile-processors.csv", printed(trace + " --format csv"));
  check_golden("profile-gpu.txt",
               printed(scratch.write("gpu.json", on_gpu()) + " --out " + scratch.path("gpu.toml")));
  check_golden("profile-gpu.toml", read_file(scratch.path("gpu.toml")));
  // Written by PyTorch 2.15.0 (see tests/gui_trace_profiler.cpp). It has no shapes.
  check_golden(
      "profile-gloo.txt",
      without_folder(run_rehearse("profile " REHEARSE_TESTS_DIR "/traces/ddp-gloo-rank0.json.gz").out,
                     REHEARSE_TESTS_DIR "/traces/"));
}

TEST_CASE("steps without annotations of their own end where updates end, and passes are counted") {
  const Scratch scratch;
  const json told = profiled(scratch.write("job.json", on_processors(true, false)));
  CHECK(told["steps"] == 3);
  CHECK(told["steps_used"] == 3);
  CHECK(told["parts_s"]["sum"].get<double>() == Approx(1000e-6));

  TraceText trace;
  for (int step = 0; step < 3; ++step) {
    trace.note(fmt::format("ProfilerStep#{}", step), 2000 * step, 2000 * step + 2000);
    passes_on_processors(trace, 2000 * step, 10 + 10 * step, 100);
    passes_on_processors(trace, 2000 * step + 600, 15 + 10 * step, 120);
    trace.note("Optimizer.step#Adam.step", 2000 * step + 1200, 2000 * step + 1300);
  }
  const std::string twice = scratch.write("twice.json", trace.text()), scenario = scratch.path("twice.toml");
  const json two = profiled(twice, "--out " + scenario);
  CHECK(two["passes"] == 2);
  CHECK(two["layers"][0]["forward_s"].get<double>() == Approx((110 + 20) * 1e-6));
  CHECK(two["parts_s"]["sum"].get<double>() == Approx(2000e-6));
  CHECK(simulated_s(scenario) == Approx(2000e-6));
}

TEST_CASE("without sizes of parameters nothing is sent, and the notes say so") {
  const Scratch scratch;
  const std::string trace = scratch.write("job.json", on_processors(false)),
                    scenario = scratch.path("a.toml");
  const json told = profiled(trace, "--micro-batch 8 --out " + scenario);
  CHECK(told["layers"].size() == 2);
  CHECK(told["layers"][0]["parameters"] == 0);
  CHECK(told["notes"][1].get<std::string>().find("record_shapes=True") != std::string::npos);
  // The update then counts as part of the fixed time per step.
  const json& parts = told["parts_s"];
  CHECK(simulated_s(scenario) == Approx(parts["layers"].get<double>() + parts["optimizer"].get<double>() +
                                        parts["other"].get<double>()));
}

TEST_CASE("files that are no trace with steps are refused by name") {
  const Scratch scratch;
  const std::string zipped = read_file(REHEARSE_TESTS_DIR "/traces/ddp-gloo-rank0.json.gz");
  const std::string ours = scratch.path("ours.json"), whole = on_processors();
  REQUIRE(
      run_rehearse("simulate " + scratch.write("stages.toml", kMeasuredStages) + " --trace " + ours).status ==
      0);
  TraceText forward_only;
  forward_only.note("ProfilerStep#1", 0, 100);
  forward_only.op("aten::linear", 10, 20, 3);
  struct Case {
    std::string file, said;
  };
  for (const Case& one : {
           Case{scratch.path("missing.json"), "there is no such file"},
           Case{scratch.path(""), "is a directory; allowed: a trace of PyTorch's profiler"},
           Case{scratch.write("empty.json", ""), "is empty; allowed: a trace of PyTorch's profiler"},
           Case{scratch.write("text.json", "step 1: 20 ms\n"), "not JSON from byte 1 on"},
           Case{scratch.write("object.json", "{\"loss\": 3}"), "JSON without traceEvents"},
           Case{scratch.write("cut.json", whole.substr(0, whole.size() / 2)), "the JSON ends too early"},
           Case{scratch.write("cut.json.gz", zipped.substr(0, zipped.size() / 2)),
                "ends in the middle of its gzip data"},
           Case{scratch.write("huge.json", "{\"traceEvents\": [{\"ts\": 1e999}]}"),
                "a number that is too large"},
           Case{ours, "is a trace that Rehearse wrote"},
           Case{scratch.write("none.json", "{\"traceEvents\": []}"), "has no events of PyTorch's profiler"},
           Case{scratch.write("forward.json", forward_only.text()),
                "has 1 steps, none of them with a forward and a backward pass"},
           Case{scratch.write("steps.json",
                              [] {
                                TraceText trace;
                                passes_on_processors(trace, 0, 10, 100);
                                return trace.text();
                              }()),
                "but no step: neither \"ProfilerStep#\" nor two \"Optimizer.step#\" annotations"},
       }) {
    CAPTURE(one.file);
    const Outcome run = run_rehearse("profile " + one.file);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.rfind(one.file, 0) == 0);
    CHECK(run.err.find(one.said) != std::string::npos);
  }
}

TEST_CASE("a profile is written over no file that is read, and onto a cluster that there is") {
  const Scratch scratch;
  const std::string trace = scratch.write("job.json", on_processors());
  const std::string other = scratch.write("other.json", on_gpu("Tesla T4"));
  const std::string out = " --out " + scratch.path("a.toml");
  struct Case {
    std::string arguments, said;
  };
  for (const Case& one : {
           Case{trace + " --out " + trace, "--out " + trace + " would overwrite this file, which is read"},
           Case{other + out,
                "--cluster: is not given, and the trace is of Tesla T4, which no shipped cluster has"},
           Case{trace + out + " --cluster dgx-a10", "--cluster: is \"dgx-a10\"; allowed: "},
           Case{trace + out + " --micro-batch 0", "--micro-batch: "},
       }) {
    CAPTURE(one.arguments);
    const Outcome run = run_rehearse("profile " + one.arguments);
    CHECK(run.status == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(one.said) != std::string::npos);
  }
  CHECK(read_file(trace) == on_processors());
  CHECK_FALSE(std::filesystem::exists(scratch.path("a.toml")));
  CHECK(run_rehearse("profile " + other + out + " --cluster dgx1-v100").status == 0);
}
