#include "simulator/commands/validate/terms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/trace/rows.hpp"
#include "topologies/faster.hpp"

namespace rehearse {
namespace {

// The inputs of a simulation, copied so that one term can be removed from them.
struct Setting {
  Schedule schedule;
  Device device;
  EngineOptions options;
};
struct TermRule {
  std::string name;
  std::function<void(Setting&)> remove;
};

bool is_softmax(const Kernel& kernel) {
  return kernel.form == MemoryForm::softmax_forward || kernel.form == MemoryForm::softmax_backward;
}
bool is_norm(const Kernel& kernel) {
  return kernel.form == MemoryForm::norm_forward || kernel.form == MemoryForm::norm_backward ||
         kernel.form == MemoryForm::norm_parameters || kernel.form == MemoryForm::batch_norm_forward ||
         kernel.form == MemoryForm::batch_norm_sums || kernel.form == MemoryForm::batch_norm_backward;
}

TermRule without_kernels(std::string name, const std::function<bool(const Kernel&)>& are) {
  return {std::move(name), [are](Setting& setting) {
            for (Work& work : setting.schedule.works)
              work.kernels.erase(std::remove_if(work.kernels.begin(), work.kernels.end(), are),
                                 work.kernels.end());
          }};
}

std::vector<TermRule> compute_rules() {
  using Kind = Kernel::Kind;
  return {
      without_kernels("matrix products", [](const Kernel& k) { return k.kind == Kind::gemm; }),
      without_kernels("convolutions", [](const Kernel& k) { return k.kind == Kind::convolution; }),
      without_kernels(
          "attention products",
          [](const Kernel& k) { return k.kind == Kind::attention || k.kind == Kind::fused_attention; }),
      without_kernels("softmax kernels",
                      [](const Kernel& k) { return k.kind == Kind::memory && !k.loss && is_softmax(k); }),
      without_kernels("norm kernels",
                      [](const Kernel& k) { return k.kind == Kind::memory && !k.loss && is_norm(k); }),
      without_kernels(
          "element-wise kernels",
          [](const Kernel& k) { return k.kind == Kind::memory && !k.loss && !is_softmax(k) && !is_norm(k); }),
      without_kernels("loss kernels", [](const Kernel& k) { return k.loss; }),
      {"optimizer updates",
       [](Setting& s) {
         for (Work& work : s.schedule.works) work.parameters_updated = work.optimizer_bytes = 0;
       }},
      {"partly filled waves of tiles", [](Setting& s) { s.device.compute_units = 0; }},
      {"prologues of matrix products", [](Setting& s) { s.device.gemm_prologue_k.value = 0; }},
      {"gaps between kernels", [](Setting& s) { s.device.kernel_overhead_s.value = 0; }},
      {"issuing kernels",
       [](Setting& s) {
         HostLaunches& launches = s.options.launches;
         launches.kernel_s = launches.routed_kernel_s = launches.expert_product_s = 0;
       }},
      {"issuing collectives and messages", [](Setting& s) { s.options.launches.collective_s = 0; }},
      {"fixed time of a step", [](Setting& s) { s.options.launches.step_s = 0; }},
      {"collectives slowing computation", [](Setting& s) { s.options.interference.on = false; }},
      {"startup and latency of transfers", [](Setting& s) { s.options.latency_factor = 0; }},
  };
}

std::vector<TermRule> communication_rules() {
  std::vector<TermRule> rules;
  for (std::size_t p = 0; p < kPurposes.size(); ++p) {
    const auto purpose = static_cast<Purpose>(p);
    rules.push_back({"bytes of " + waiting(purpose), [purpose](Setting& setting) {
                       for (Program& program : setting.schedule.programs)
                         for (Op& op : program.ops) {
                           if (op.purpose != purpose) continue;
                           for (Message& message : op.messages) message.bytes = 0;
                           op.collective.bytes = 0;
                           op.host_bytes = 0;
                         }
                     }});
  }
  return rules;
}

double step_time_s(const Prediction& p, const TermRule& rule) {
  const Cluster& cluster = *p.scenario.cluster;
  Setting setting{*p.plan.schedule, cluster.node().device, p.scenario.engine};
  rule.remove(setting);
  Faster factors;
  factors.device = setting.device;
  Run run = p.trace.run;
  run.jobs.front().phases.front().schedule = std::make_shared<const Schedule>(std::move(setting.schedule));
  const Trace trace = simulate(run, *faster(p.scenario.cluster, factors), setting.options);
  const StepWindow window = last_step(trace, 0);
  return (window.end_s - window.begin_s) / p.plan.schedule->optimizer_steps;
}

}  // namespace

std::vector<Term> terms_of(const Prediction& p) {
  if (p.metrics.asynchrony) return {};
  std::vector<TermRule> rules = compute_rules();
  for (TermRule& rule : communication_rules()) rules.push_back(std::move(rule));
  std::vector<std::function<double()>> runs;
  for (const TermRule& rule : rules) runs.emplace_back([&p, &rule] { return step_time_s(p, rule); });
  const std::vector<double> times_s = step_times(runs, processors());
  std::vector<Term> terms;
  // Simulations of the same schedule may differ in the last digits.
  const double step_s = p.metrics.step_time_s, least_s = 1e-9 * step_s;
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (std::abs(times_s[i] - step_s) > least_s) terms.push_back({rules[i].name, times_s[i]});
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.without_s < b.without_s; });
  return terms;
}

}  // namespace rehearse
