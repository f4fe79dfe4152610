#include "gui/models/scenario/scenario_check.hpp"

#include <fmt/format.h>

#include <QDir>
#include <exception>
#include <functional>
#include <string>

#include "gui/models/work/background.hpp"
#include "simulator/report/report.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse::gui {
namespace {

constexpr const char* kFileName = "scenario";

template <typename Names, typename Enum>
QString name_in(const Names& names, Enum value) {
  const std::string_view name = names[static_cast<std::size_t>(value)];
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

QMap<QString, QString> values_of(const Scenario& s, const Plan& plan) {
  const Training& t = s.training;
  const StrategyChoice& c = s.strategy;
  const auto number = [](double value) { return QString::number(static_cast<qint64>(value)); };
  QMap<QString, QString> values = {
      {"model.preset", QString::fromStdString(s.model.name)},
      {"cluster.preset", QString::fromStdString(s.cluster->name)},
      {"cluster.nodes", QString::number(s.cluster->nodes())},
      {"training.global_batch", number(t.global_batch)},
      {"training.micro_batch", number(t.micro_batch)},
      {"training.precision", name_in(kPrecisionNames, t.precision)},
      {"training.optimizer", name_in(kOptimizerNames, t.optimizer)},
      {"training.recompute", name_in(kRecomputeNames, t.recompute)},
      {"strategy.data", QString::number(c.data)},
      {"strategy.tensor", QString::number(c.tensor)},
      {"strategy.sequence_parallel", c.sequence_parallel ? "true" : "false"},
      {"strategy.tensor_overlap", name_in(kTensorOverlapNames, c.tensor_overlap)},
      {"strategy.scatter_gather", c.scatter_gather ? "true" : "false"},
      {"strategy.context", QString::number(c.context)},
      {"strategy.context_kind", name_in(kContextKindNames, c.context_kind)},
      {"strategy.expert", QString::number(c.expert)},
      {"strategy.pipeline", QString::number(c.pipeline)},
      {"strategy.schedule", name_in(kPipelineScheduleNames, c.schedule)},
      {"strategy.overlap_passes", c.overlap_passes ? "true" : "false"},
      {"strategy.virtual_stages", QString::number(c.virtual_stages)},
      {"strategy.gradients", QString::fromStdString(c.gradients)},
      {"strategy.all_reduce", name_in(kAlgorithmNames, c.all_reduce)},
  };
  const Cluster& cluster = *s.cluster;
  const auto decimal = [](double value) { return QString::number(value, 'g', 6); };
  values["cluster.server_nodes"] = QString::number(cluster.server_nodes());
  values["cluster.nic_gbps"] = decimal(cluster.node().nic_bandwidth * 8 / 1e9);
  values["cluster.kind"] = name_in(kFabricNames, cluster.fabric().kind);
  values["cluster.oversubscription"] = decimal(cluster.fabric().oversubscription);
  values["strategy.bucket_mb"] = decimal(c.bucket_bytes / 1048576);
  values["strategy.overlap"] = c.overlap ? "true" : "false";
  values["strategy.compression"] = name_in(kCompressionNames, c.compression.kind);
  values["strategy.offload"] = name_in(kOffloadNames, c.offload.optimizer);
  values["strategy.offload_parameters"] = name_in(kOffloadNames, c.offload.parameters);
  const auto shared = c.gradient_strategy ? c.gradient_strategy->shared_state(s) : std::nullopt;
  values["strategy.zero_stage"] = QString::number(shared ? shared->stage : 0);
  values["simulation.fidelity"] = name_in(kFidelityNames, s.engine.fidelity);
  values["simulation.protocol"] = name_in(kProtocolNames, s.engine.protocol.kind);
  values["cost.currency"] = QString::fromStdString(s.cost.currency);
  if (s.cost.per_device_hour) values["cost.price_per_device_hour"] = decimal(s.cost.per_device_hour->value);
  if (s.cost.per_server_hour) values["cost.price_per_server_hour"] = decimal(s.cost.per_server_hour->value);
  if (std::holds_alternative<Transformer>(s.model.shape)) {
    values["training.sequence_length"] = number(tokens_per_sample(s.model, t.sequence_length));
    values["training.attention"] = name_in(kAttentionKernelsNames, t.attention);
  }
  for (const Role& role : plan.schedule->roles)
    if (role.name == "server") values["servers"] = QString::number(role.size());
  return values;
}

}  // namespace

CheckedScenario check_scenario(const QString& text, const QString& folder) {
  CheckedScenario checked;
  const std::string file = (folder.isEmpty() ? QString(kFileName) : folder + '/' + kFileName).toStdString();
  try {
    const Scenario scenario = read_scenario_text(text.toStdString(), file);
    const Plan plan = write_schedule(scenario);
    checked.ok = true;
    checked.devices = scenario.cluster->devices();
    checked.summary = QString::fromStdString(
        fmt::format("{} on {} {}: {}", scenario.model.title, checked.devices,
                    checked.devices == 1 ? "device" : "devices", strategy_line(scenario, *plan.schedule)));
    checked.values = values_of(scenario, plan);
  } catch (const InputError& error) {
    const Place& place = error.place();
    const std::string told = error.what();
    // what() begins with the position, which the window shows differently.
    const std::string prefix = place.line > 0
                                   ? fmt::format("{}:{}:{}: ", place.file, place.line, place.column)
                                   : fmt::format("{}: ", place.file);
    const bool ours = place.file == file || place.file == kFileName;
    checked.message =
        QString::fromStdString(ours && told.starts_with(prefix) ? told.substr(prefix.size()) : told);
    if (ours) checked.line = place.line, checked.column = place.column;
  } catch (const std::exception& error) {
    checked.message = QString::fromUtf8(error.what());
  }
  return checked;
}

ScenarioCheck::ScenarioCheck(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(1);
  timer_.setSingleShot(true);
  timer_.setInterval(kDelayMs);
  connect(&timer_, &QTimer::timeout, this, &ScenarioCheck::start);
}

ScenarioCheck::~ScenarioCheck() {
  pool_.waitForDone();
}

void ScenarioCheck::set_text(const QString& text, const QString& folder) {
  text_ = text;
  folder_ = folder;
  timer_.start();
}

void ScenarioCheck::check_now() {
  if (!timer_.isActive()) return;
  timer_.stop();
  start();
}

void ScenarioCheck::start() {
  again_ = running_;
  if (running_) return;
  running_ = true;
  run_on(pool_, this, [this, text = text_, folder = folder_]() -> std::function<void()> {
    return [this, checked = check_scenario(text, folder)] {
      running_ = false;
      if (again_) return start();
      result_ = checked;
      emit this->checked();
    };
  });
}

}  // namespace rehearse::gui
