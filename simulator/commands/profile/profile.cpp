// Implements `rehearse profile`: reads the timings of a PyTorch profiler's trace, and makes a scenario from
// them.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include "models/text/output_file.hpp"
#include "models/text/printable.hpp"
#include "models/text/si_prefixes.hpp"
#include "models/text/text.hpp"
#include "simulator/commands/profile/profile.hpp"
#include "simulator/commands/profile/profile_scenario.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

std::string in_ms(double seconds) {
  return fmt::format("{:.3f} ms", seconds / kMilli);
}

// Returns whether layers complete their gradients in the order of the backward pass.
bool comes_in_order(const StepProfile& p) {
  return std::is_sorted(p.gradients_ready.rbegin(), p.gradients_ready.rend());
}

void write_layers(const StepProfile& p, std::ostream& out) {
  std::size_t width = 5;
  for (const ProfiledLayer& layer : p.layers) width = std::max(width, printable(layer.name).size());
  out << fmt::format("  {:{}}  {:>13}  {:>13}  {:>14}{}\n", "layer", width, "forward", "backward", "gradient",
                     p.on_gpu ? "  kernels" : "");
  for (const ProfiledLayer& layer : p.layers) {
    out << fmt::format("  {:{}}  {:>13}  {:>13}  {:>14}", printable(layer.name), width,
                       in_ms(layer.forward_s), in_ms(layer.backward_s),
                       p.has_shapes ? human_bytes(layer.gradient_bytes) : "unknown");
    if (p.on_gpu) out << fmt::format("  {:>7.0f}", layer.forward_kernels + layer.backward_kernels);
    out << '\n';
  }
}

void write_parts(const StepProfile& p, std::ostream& out) {
  double forward_s = 0, backward_s = 0;
  for (const ProfiledLayer& layer : p.layers) {
    forward_s += p.passes * layer.forward_s;
    backward_s += p.passes * layer.backward_s;
  }
  const auto part = [&](const std::string& name, double seconds, bool always = false) {
    if (seconds > 0 || always)
      out << fmt::format("  {:<32}{:>13}{:>9}\n", name, in_ms(seconds), in_percent(seconds / p.step_s));
  };
  out << '\n';
  part("forward", forward_s, true);
  part("backward", backward_s, true);
  part(p.optimizer.empty() ? "update" : fmt::format("update ({})", printable(p.optimizer)), p.optimizer_s,
       true);
  part("waiting for collectives", p.communication_s);
  if (p.on_gpu) {
    part("kernels outside of layers", p.other_s);
    part("idle between steps", p.between_steps_s);
    part("idle within steps", p.idle_s - p.between_steps_s);
  } else {
    part("outside of layers and update", p.other_s);
  }
  part("sum of these medians", p.sum_s(), true);
  out << fmt::format("  {:<32}{:>13}          {} to {}\n", "median step", in_ms(p.step_s),
                     in_ms(p.least_step_s), in_ms(p.most_step_s));
}

// Returns a sentence about what the GPU waits for while it idles.
std::string idle_sentence(const StepProfile& p) {
  std::string text =
      fmt::format("The {} idles for {} of the step", p.accelerator.empty() ? "GPU" : "accelerator",
                  in_percent(p.idle_s / p.step_s));
  std::string_view separator = ": ";
  for (const ProfiledIdle& idle : p.idle_causes) {
    if (idle.seconds < 0.0005 * p.step_s) continue;
    text += fmt::format("{}{} {}{}", separator, kIdleCauseNames[static_cast<std::size_t>(idle.cause)],
                        in_percent(idle.seconds / p.step_s),
                        idle.name.empty() ? "" : fmt::format(" ({})", printable(idle.name)));
    separator = ", ";
  }
  return text + ".";
}

void write_profile_text(const StepProfile& p, const ProfileArguments& arguments,
                        const ProfileScenario& choices, std::ostream& out) {
  out << fmt::format("{}: PyTorch on {}, {} of {} steps used{}\n\n", printable(p.file), device_of(p),
                     p.steps_used, p.steps_found,
                     p.told_by_updates ? " (a step ends where its update ends)" : "");
  write_layers(p, out);
  write_parts(p, out);
  out << '\n';
  const double micro_batch = choices.micro_batch > 0 ? choices.micro_batch : p.micro_batch;
  if (micro_batch > 0)
    out << fmt::format("  Micro-batch: {}, {} a step.\n", counted(micro_batch, "sample"),
                       counted(p.passes, "pass"));
  if (p.kernel_launch_s > 0)
    out << fmt::format("  The host takes {:.2f} us for each kernel.\n", p.kernel_launch_s / kMicro);
  if (p.idle_s >= 0.0005 * p.step_s) out << wrapped(idle_sentence(p)) << '\n';
  if (p.collective_s > 0)
    out << fmt::format("  Collectives take {} of each step, overlapped or not, and are left out.\n",
                       in_ms(p.collective_s));
  if (!comes_in_order(p)) {
    std::string names;
    for (const int layer : p.gradients_ready)
      names += (names.empty() ? "" : ", ") + printable(p.layers[static_cast<std::size_t>(layer)].name);
    out << wrapped("Gradients are ready in the order " + names + ".") << '\n';
  }
  for (const std::string& note : profile_notes(p, choices)) out << wrapped("Note: " + note) << '\n';
  if (!arguments.out.empty()) out << fmt::format("  Written: {}\n", printable(arguments.out));
}

nlohmann::ordered_json idle_json(const StepProfile& p) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ProfiledIdle& idle : p.idle_causes)
    json.push_back({{"cause", kIdleCauseKeys[static_cast<std::size_t>(idle.cause)]},
                    {"seconds", idle.seconds},
                    {"share", idle.seconds / p.step_s},
                    {"name", idle.name.empty() ? nullptr : nlohmann::ordered_json(idle.name)}});
  return json;
}

nlohmann::ordered_json waits_json(const ProfiledWaits& waits) {
  const auto sum = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  return {{"forward", sum(waits.forward_s)},
          {"backward", sum(waits.backward_s)},
          {"data", waits.data_s},
          {"optimizer", waits.optimizer_s}};
}

nlohmann::ordered_json to_json(const StepProfile& p, const ProfileScenario& choices) {
  nlohmann::ordered_json json = {
      {"trace", p.file},
      {"device", p.on_processors() ? "cpu" : p.gpu},
      {"unknown_accelerator", p.accelerator.empty() ? nullptr : nlohmann::ordered_json(p.accelerator)},
      {"steps", p.steps_found},
      {"steps_used", p.steps_used},
      {"passes", p.passes},
      {"micro_batch", p.micro_batch > 0 ? nlohmann::ordered_json(p.micro_batch) : nullptr},
      {"step_s", p.step_s},
      {"least_step_s", p.least_step_s},
      {"most_step_s", p.most_step_s},
      {"parts_s",
       {{"layers", p.layers_s()},
        {"optimizer", p.optimizer_s},
        {"waiting_for_collectives", p.communication_s},
        {"other", p.other_s},
        {"idle", p.idle_s},
        {"sum", p.sum_s()}}},
      {"idle_between_steps_s", p.between_steps_s},
      {"idle_causes", idle_json(p)},
      {"waits_s", waits_json(waits_of(p))},
      {"collectives_s", p.collective_s},
      {"optimizer", p.optimizer},
      {"kernel_launch_s", p.kernel_launch_s > 0 ? nlohmann::ordered_json(p.kernel_launch_s) : nullptr}};
  json["layers"] = nlohmann::ordered_json::array();
  for (const ProfiledLayer& layer : p.layers) {
    nlohmann::ordered_json one = {{"name", layer.name},
                                  {"forward_s", layer.forward_s},
                                  {"backward_s", layer.backward_s},
                                  {"parameters", layer.parameters},
                                  {"gradient_bytes", layer.gradient_bytes},
                                  {"output_bytes", layer.output_bytes}};
    if (p.on_gpu) {
      one["forward_kernels"] = layer.forward_kernels;
      one["backward_kernels"] = layer.backward_kernels;
    }
    json["layers"].push_back(std::move(one));
  }
  json["gradients_ready"] = nlohmann::ordered_json::array();
  for (const int layer : p.gradients_ready) {
    const ProfiledLayer& its = p.layers[static_cast<std::size_t>(layer)];
    json["gradients_ready"].push_back({{"layer", its.name}, {"bytes", its.gradient_bytes}});
  }
  json["notes"] = profile_notes(p, choices);
  return json;
}

void write_profile_csv(const StepProfile& p, std::ostream& out) {
  out << "layer,forward_s,backward_s,parameters,gradient_bytes,output_bytes,forward_kernels,backward_"
         "kernels\n";
  for (const ProfiledLayer& layer : p.layers)
    out << fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(layer.name), layer.forward_s, layer.backward_s,
                       layer.parameters, layer.gradient_bytes, layer.output_bytes, layer.forward_kernels,
                       layer.backward_kernels);
}

}  // namespace

void run_profile(const ProfileArguments& arguments, std::ostream& out) {
  refuse_to_overwrite("--out", arguments.out, {arguments.trace, arguments.cluster});
  const StepProfile profile = profile_steps(read_profiler_trace(arguments.trace));
  const ProfileScenario choices{arguments.cluster, arguments.micro_batch};
  if (!arguments.out.empty()) {
    const std::string text = profile_scenario(profile, choices);
    read_scenario_text(text, arguments.out);  // refuses an invalid cluster
    write_whole_file(arguments.out, text);
  }
  switch (arguments.format) {
    case Format::text:
      write_profile_text(profile, arguments, choices, out);
      break;
    case Format::json:
      out << json_text(to_json(profile, choices), 2) << '\n';
      break;
    case Format::csv:
      write_profile_csv(profile, out);
      break;
  }
}

}  // namespace rehearse
