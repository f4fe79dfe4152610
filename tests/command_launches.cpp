// Tests how the commands report the costs of a framework's process.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

const std::string kSmall =
    " --set model.transformer.layers=6 --set model.transformer.hidden=512 --set model.transformer.heads=8"
    " --set training.global_batch=8 --set cluster.preset=dgx-a100 --set cluster.nodes=1 --set "
    "cluster.devices_per_node=2"
    " --set strategy.data=2 --set strategy.tensor=1 --set strategy.sequence_parallel=false --set "
    "strategy.pipeline=1 --set strategy.schedule=1f1b"
    " --set training.framework=megatron-2021 --set strategy.blocking_p2p=false";

Outcome simulate_small(const std::string& more) {
  return run_rehearse("simulate " REHEARSE_TESTS_DIR "/../simulator/scenarios/small-gpt.toml" + kSmall +
                      more);
}

}  // namespace

TEST_CASE("waiting for kernel launches is told, as part of the step and as what sets it") {
  const Outcome text = simulate_small("");
  CAPTURE(text.out, text.err);
  REQUIRE(text.status == 0);
  for (const char* told : {"waiting for kernel launches", "Bottleneck: kernel launches",
                           "--set training.cuda_graphs=true", "10 % faster kernel launches"})
    CHECK(text.out.find(told) != std::string::npos);

  const json result = json::parse(simulate_small(" --format json").out);
  double parts_s = 0;
  for (const auto& [name, seconds] : result["breakdown_s"].items()) parts_s += seconds.get<double>();
  CHECK(parts_s == Approx(result["step_time_s"].get<double>()));
  CHECK(result["kernel_launch_wait_s"].get<double>() > 0.1 * parts_s);
  CHECK(result["kernel_launch_wait_s"].get<double>() <= result["breakdown_s"]["other"].get<double>());

  // The result predicts a shorter step for 10 % faster launches; CUDA graphs shorten it further.
  double promised_s = 0;
  for (const json& one : result["critical_path"]["ten_percent_faster"])
    if (one["resource"] == "kernel_launches") promised_s = one["step_time_s"].get<double>();
  std::string costs;
  for (const json& input : result["rests_on"]["published"]) {
    const std::string cost = input.get<std::string>();
    if (const auto at = cost.find(" of megatron-2021: "); at != std::string::npos)
      costs += cost.substr(0, at) + "; ";
  }
  CHECK(costs == "kernel launch; collective launch; fixed time of a step; gradient accumulation traffic; ");
  CHECK(promised_s > 0);
  CHECK(promised_s < result["step_time_s"].get<double>());
  const json graphs = json::parse(simulate_small(" --set training.cuda_graphs=true --format json").out);
  CHECK(graphs["step_time_s"].get<double>() < promised_s);
}

TEST_CASE("launches that block add their time to the device's") {
  const auto step_s = [](const std::string& launch_us, const std::string& more) {
    const Outcome run = simulate_small(" --set strategy.overlap=false --format json " + more +
                                       " --set 'framework.kernel_launch_us={value=" + launch_us +
                                       ",basis=\"guess\",source=\"a test\"}'");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out)["step_time_s"].get<double>();
  };
  const std::string blocking = "--set training.blocking_launches=true";
  const double free_s = step_s("0", blocking), once_s = step_s("5", blocking);
  CHECK(once_s > 1.01 * free_s);
  CHECK(step_s("10", blocking) - once_s == Approx(once_s - free_s));
  // A process that runs ahead hides short launches behind longer kernels.
  CHECK(step_s("5", "") - step_s("0", "") < 0.5 * (once_s - free_s));

  for (const char* overlapping : {"strategy.overlap=true", "strategy.tensor_overlap=weight-gradients"}) {
    const Outcome refused =
        simulate_small(" --set strategy.overlap=false " + blocking + " --set " + overlapping);
    CHECK(refused.status != 0);
    CHECK(refused.err.find("blocking_launches is true with strategy.") != std::string::npos);
  }
}

TEST_CASE("costs of one's own replace a framework's, alone or beside it") {
  const std::string slow =
      " --set 'framework.kernel_launch_us={value=1000,basis=\"measured\",source=\"a profile\"}' --format "
      "json";
  const json own = json::parse(simulate_small(slow).out);
  const json shipped = json::parse(simulate_small(" --format json").out);
  CHECK(own["step_time_s"].get<double>() > 10 * shipped["step_time_s"].get<double>());
  CHECK(own["rests_on"]["measured"][0] == "kernel launch of megatron-2021: a profile");
}
