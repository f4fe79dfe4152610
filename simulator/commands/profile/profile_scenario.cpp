#include "simulator/commands/profile/profile_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "models/text/si_prefixes.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/report/format.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

// A GPU's name in CUDA (cudaDeviceProp::name), or the beginning of it, and a shipped cluster of such GPUs.
struct KnownGpu {
  std::string_view name, cluster;
};
constexpr std::array<KnownGpu, 10> kKnownGpus = {{{"NVIDIA A100-SXM4-40GB", "dgx-a100-40"},
                                                  {"A100-SXM4-40GB", "dgx-a100-40"},
                                                  {"NVIDIA A100-SXM", "dgx-a100"},
                                                  {"NVIDIA H100 80GB HBM3", "dgx-h100"},
                                                  {"NVIDIA H200", "hgx-h200"},
                                                  {"NVIDIA B200", "dgx-b200"},
                                                  {"Tesla V100-SXM2-16GB", "dgx1-v100"},
                                                  {"Tesla V100-SXM2-32GB", "v100-32"},
                                                  {"Tesla V100-SXM3-32GB", "dgx-2"},
                                                  {"Tesla P100-SXM2", "dgx1-p100"}}};

std::string cluster_of(const StepProfile& profile) {
  if (profile.on_processors()) return "cpu-cluster";
  if (!profile.accelerator.empty())
    throw InputError(
        {"--cluster"},
        fmt::format("is not given, and the trace is of {}, which no device file describes; allowed: "
                    "a file that describes a cluster with such devices, or the name of a cluster "
                    "whose devices may stand for them (rehearse list clusters)",
                    device_of(profile)));
  for (const KnownGpu& known : kKnownGpus)
    if (profile.gpu.starts_with(known.name)) return std::string(known.cluster);
  throw InputError({"--cluster"},
                   fmt::format("is not given, and the trace is of {}, which no shipped cluster has; allowed: "
                               "the name of a cluster (rehearse list clusters), or a file that describes one",
                               profile.gpu.empty() ? "a GPU that it does not name" : printable(profile.gpu)));
}

std::string cluster_text(const StepProfile& profile, const std::string& asked) {
  const std::string name = asked.empty() ? cluster_of(profile) : asked;
  collective_cluster({name, 1});  // refuses a name that is not a cluster's
  const std::vector<std::string> known = cluster_names();
  const bool preset = std::find(known.begin(), known.end(), name) != known.end();
  return fmt::format("[cluster]\n{} = {}\nnodes = 1\ndevices_per_node = 1\n", preset ? "preset" : "file",
                     toml_string(preset ? name : std::filesystem::absolute(name).string()));
}

// Formats a number in fixed notation with up to six decimals, which resolve a nanosecond if the unit is
// milliseconds.
std::string number(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string array(const char* key, const std::vector<std::string>& values) {
  constexpr std::size_t kWidth = 100;
  std::string out = fmt::format("{} = [", key), line;
  for (const std::string& value : values) {
    if (line.size() + value.size() > kWidth || line.empty()) {
      out += line + "\n ";
      line.clear();
    }
    line += ' ' + value + ',';
  }
  return out + line + "\n]\n";
}

std::string array(const char* key, const std::vector<ProfiledLayer>& layers,
                  const std::function<std::string(const ProfiledLayer&)>& of) {
  std::vector<std::string> values;
  for (const ProfiledLayer& layer : layers) values.push_back(of(layer));
  return array(key, values);
}

std::string array(const char* key, const std::vector<ProfiledLayer>& layers, double ProfiledLayer::*field,
                  double unit = 1) {
  return array(key, layers, [&](const ProfiledLayer& layer) { return number(layer.*field / unit); });
}

// Returns the lines of waits in milliseconds; nothing if all are zero.
std::string wait_text(const char* key, double seconds) {
  return seconds > 0 ? fmt::format("{} = {}\n", key, number(seconds / kMilli)) : "";
}
std::string wait_text(const char* key, const std::vector<double>& seconds) {
  if (std::none_of(seconds.begin(), seconds.end(), [](double s) { return s > 0; })) return "";
  std::vector<std::string> values;
  for (const double s : seconds) values.push_back(number(s / kMilli));
  return array(key, values);
}

std::string_view precision_of(const StepProfile& profile) {
  return profile.element_bytes > 0 && profile.element_bytes < 3 ? "bf16" : "fp32";
}

std::string optimizer_of(const StepProfile& profile) {
  if (profile.optimizer == "SGD") return profile.momentum ? "momentum" : "sgd";
  return "adam";
}

bool is_known_optimizer(const std::string& name) {
  return name.empty() || name == "SGD" || name == "Adam" || name == "AdamW";
}

// Returns "job" for "runs/job.json.gz".
std::string name_of(const StepProfile& profile) {
  std::string name = title_of_file(profile.file);
  if (name.ends_with(".json")) name.erase(name.size() - 5);
  return name;
}

std::string source_of(const StepProfile& profile) {
  return fmt::format("PyTorch's profiler: {}, median of {}", name_of(profile),
                     counted(profile.steps_used, "step"));
}

std::string framework_text(const StepProfile& profile, const ProfiledWaits& waits) {
  // Without parameters the scenario has no update, so the update's time counts as part of the step.
  double step_s = profile.other_s + waits.outside_s;
  if (!profile.has_shapes) step_s += profile.optimizer_s;
  std::string costs;
  const auto add = [&](const char* key, double value, const std::string& what) {
    if (value > 0)
      costs += fmt::format("{} = {{value = {}, basis = \"measured\", source = {}}}\n", key, number(value),
                           toml_string(source_of(profile) + ", " + what));
  };
  add("step_ms", step_s / kMilli, "time of a step outside of its layers and the update");
  add("kernel_launch_us", profile.kernel_launch_s / kMicro,
      "time of the host for each kernel of passes and update, without waiting for the GPU");
  return costs.empty() ? "" : "\n[framework]\ntitle = \"PyTorch, as profiled\"\n" + costs;
}

}  // namespace

std::string device_of(const StepProfile& profile) {
  const std::string name = printable(profile.gpu);
  if (!profile.accelerator.empty())
    return fmt::format("{}an accelerator of unknown kind ({})", name.empty() ? "" : name + ", ",
                       printable(profile.accelerator));
  if (!profile.on_gpu) return "processors";
  return name.empty() ? "a GPU" : name;
}

std::vector<std::string> profile_notes(const StepProfile& profile, const ProfileScenario& choices) {
  std::vector<std::string> notes = {
      "Times were taken under PyTorch's profiler, which slows down operators of a few microseconds."};
  if (!profile.accelerator.empty())
    notes.push_back(
        fmt::format("The trace is of {}: there is no device file for it, so what is not measured (memory, "
                    "power, other GPUs) is that of the cluster that --cluster names.",
                    device_of(profile)));
  if (!profile.accelerator.empty() && !profile.on_gpu)
    notes.emplace_back(
        "The trace does not show which operators launched its kernels: times are those of the operators on "
        "the processor, which may end before the accelerator does.");
  if (!profile.has_shapes)
    notes.emplace_back(
        "The trace has no sizes of parameters: ranks send no gradients. Profile with record_shapes=True.");
  if (profile.has_shapes && profile.micro_batch == 0 && choices.micro_batch == 0)
    notes.emplace_back(
        "The trace does not give the batch size: all that a pass of the trace trained counts as one sample.");
  notes.emplace_back(
      "The two parts of the backward pass are not distinguished: schedules that split it gain nothing.");
  if (profile.optimizer.empty())
    notes.emplace_back("The trace has no optimizer.step(): the update is left out.");
  if (!is_known_optimizer(profile.optimizer))
    notes.push_back(fmt::format("{} counts as Adam in the memory estimate; its time is measured.",
                                printable(profile.optimizer)));
  if (profile.ranks > 1)
    notes.push_back(fmt::format("The trace is of one of {} ranks: the time of its collectives is left out.",
                                profile.ranks));
  return notes;
}

std::string profile_scenario(const StepProfile& profile, const ProfileScenario& choices) {
  const std::vector<ProfiledLayer>& layers = profile.layers;
  const ProfiledWaits waits = waits_of(profile);
  const double told = choices.micro_batch > 0 ? choices.micro_batch : profile.micro_batch;
  const auto micro_batch = static_cast<long>(told > 0 ? told : 1);
  std::string out = fmt::format(
      "# One device trains, as in the profile. For N devices: --set cluster.nodes=N --set "
      "training.global_batch=N*{}\n"
      "\n"
      "[model]\n"
      "name = {}\n"
      "title = {}\n"
      "sources = [{}]\n"
      "notes = [\n",
      micro_batch * profile.passes, toml_string(name_of(profile)),
      toml_string("profile of " + name_of(profile)), toml_string(source_of(profile)));
  for (const std::string& note : profile_notes(profile, choices)) out += "  " + toml_string(note) + ",\n";
  out += fmt::format("]\n\n[model.profiled]\nlayers = {}\n", layers.size());
  if (told > 0) out += fmt::format("micro_batch = {}\n", micro_batch);
  out +=
      array("names", layers, [](const ProfiledLayer& layer) { return toml_string(printable(layer.name)); });
  out += array("forward_ms", layers, &ProfiledLayer::forward_s, kMilli);
  out += array("backward_input_ms", layers, &ProfiledLayer::backward_s, kMilli);
  out += "backward_weight_ms = 0\n";
  out += array("p2p_bytes", layers, &ProfiledLayer::output_bytes);
  if (profile.has_shapes) {
    out += array("parameters", layers, &ProfiledLayer::parameters);
    if (profile.optimizer_s > 0)
      out += fmt::format("optimizer_ms = {}\n", number(profile.optimizer_s / kMilli));
  }
  if (profile.on_gpu) {
    out += array("forward_kernels", layers, &ProfiledLayer::forward_kernels);
    out += array("backward_kernels", layers, &ProfiledLayer::backward_kernels);
    if (profile.has_shapes && profile.optimizer_s > 0)
      out += fmt::format("optimizer_kernels = {}\n", number(profile.optimizer_kernels));
  }
  out += wait_text("forward_wait_ms", waits.forward_s);
  out += wait_text("backward_wait_ms", waits.backward_s);
  out += wait_text("data_wait_ms", waits.data_s);
  out += wait_text("optimizer_wait_ms", waits.optimizer_s);
  out += fmt::format(
      "\n[training]\nglobal_batch = {}\nmicro_batch = {}\nprecision = \"{}\"\noptimizer = \"{}\"\n\n",
      micro_batch * profile.passes, micro_batch, precision_of(profile), optimizer_of(profile));
  out += cluster_text(profile, choices.cluster);
  out += "\n[strategy]\npreset = \"pytorch-ddp\"\n";
  if (profile.on_processors()) out += "\n[simulation]\nprotocol = \"tcp\"\n";
  return out + framework_text(profile, waits);
}

}  // namespace rehearse
