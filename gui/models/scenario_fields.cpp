#include "gui/models/scenario_fields.hpp"

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "models/text/document.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse::gui {
namespace {

QString text_of(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

template <typename Names>
QStringList list_of(const Names& names) {
  QStringList list;
  for (const auto& name : names) list << text_of(name);
  return list;
}

QStringList gradient_names() {
  QStringList list;
  for (const GradientStrategyEntry* entry : gradient_strategies()) list << text_of(entry->name);
  return list;
}

}  // namespace

const std::vector<ScenarioField>& scenario_fields() {
  using enum ScenarioField::Kind;
  static const std::vector<ScenarioField> kFields = {
      {choice, "Model", "model.preset", "Model", "What is trained", list_of(preset_names("models"))},
      {choice, "Cluster", "cluster.preset", "Cluster", "Kind of nodes, and the network between them",
       list_of(preset_names("topologies"))},
      {number, "Cluster", "cluster.nodes", "Nodes", "Number of nodes", {}},
      {number,
       "Training",
       "training.global_batch",
       "Global batch",
       "Samples an optimizer step, over all devices",
       {}},
      {number,
       "Training",
       "training.micro_batch",
       "Micro-batch",
       "Samples that a device computes at once",
       {}},
      {number,
       "Training",
       "training.sequence_length",
       "Sequence length",
       "Tokens a sample, of models that are trained on tokens",
       {}},
      {choice, "Training", "training.precision", "Precision", "In which products are computed",
       list_of(kPrecisionNames)},
      {choice, "Training", "training.optimizer", "Optimizer", "What updates the weights",
       list_of(kOptimizerNames)},
      {choice, "Training", "training.attention", "Attention",
       "Its kernels, of transformers: unfused or fused", list_of(kAttentionKernelsNames)},
      {choice, "Training", "training.recompute", "Recompute",
       "Activations that are computed again instead of kept", list_of(kRecomputeNames)},
      {choice, "Training", "training.framework", "Framework", "Whose launches and extra kernels are counted",
       list_of(preset_names("simulator/frameworks"))},
      {choice, "Strategy", "strategy.preset", "Preset",
       "A library's way of training; it gives the keys that the text leaves out",
       list_of(preset_names("simulator/strategies"))},
      {number, "Strategy", "strategy.data", "Data parallel", "Ranks that share a batch", {}},
      {number, "Strategy", "strategy.tensor", "Tensor parallel", "Ranks that share every layer", {}},
      {flag,
       "Strategy",
       "strategy.sequence_parallel",
       "Sequence parallel",
       "Tensor ranks share tokens where they do not share products",
       {"false", "true"}},
      {choice, "Strategy", "strategy.tensor_overlap", "Tensor overlap",
       "What is computed while tensor ranks communicate", list_of(kTensorOverlapNames)},
      {flag,
       "Strategy",
       "strategy.scatter_gather",
       "Scatter/gather",
       "Tensor ranks each send a part of a tensor to the next stage, which gathers it",
       {"false", "true"}},
      {number, "Strategy", "strategy.context", "Context parallel", "Ranks that share every sequence", {}},
      {choice, "Strategy", "strategy.context_kind", "Context kind",
       "How they come by each other's keys and values", list_of(kContextKindNames)},
      {number,
       "Strategy",
       "strategy.expert",
       "Expert parallel",
       "Ranks of the other axes that share out a mixture's experts",
       {}},
      {number, "Strategy", "strategy.pipeline", "Pipeline", "Stages into which the model is cut", {}},
      {choice, "Strategy", "strategy.schedule", "Schedule", "Order of the pipeline's passes",
       list_of(kPipelineScheduleNames)},
      {flag,
       "Strategy",
       "strategy.overlap_passes",
       "Overlap passes",
       "A forward and a backward pass take turns: one computes while the other communicates",
       {"false", "true"}},
      {number,
       "Strategy",
       "strategy.virtual_stages",
       "Virtual stages",
       "Parts of the model on each stage, with the interleaved or breadth-first schedule",
       {}},
      {choice, "Strategy", "strategy.gradients", "Gradients", "How ranks bring their gradients together",
       gradient_names()},
      {choice, "Strategy", "strategy.all_reduce", "All-reduce", "Algorithm of the gradients' all-reduce",
       list_of(kAlgorithmNames)},
      {number,
       "Strategy",
       "strategy.zero_stage",
       "ZeRO stage",
       "1: ranks share out optimizer state, 2: gradients too, 3: weights too",
       {}},
      {choice, "Strategy", "strategy.offload", "Offload",
       "Where ranks that share out optimizer state keep it, and update", list_of(kOffloadNames)},
      {choice, "Strategy", "strategy.offload_parameters", "Offload weights",
       "Where they keep their shards of the weights", list_of(kOffloadNames)},
      {number, "Strategy", "servers", "Servers", "Number of parameter servers", {}},
  };
  return kFields;
}

bool has_servers(const QString& gradients) {
  // Those that have some show them in their example of [strategy].
  const GradientStrategyEntry* entry = find_gradient_strategy(gradients.toStdString());
  return entry && entry->keys.find("servers =") != std::string_view::npos;
}

QString field_key(const ScenarioField& field, const QString& gradients) {
  if (field.key != "servers") return field.key;
  const QString table = has_servers(gradients) ? gradients : QString("parameter-server");
  return "strategy." + QString(table).replace('-', '_') + ".servers";
}

std::vector<ScenarioTemplate> scenario_templates() {
  const std::vector<std::string> models = preset_names("models");
  if (models.empty()) return {};
  // FOLDER/models/presets/NAME.toml, and beside it FOLDER/simulator/scenarios or, installed,
  // FOLDER/scenarios.
  QDir folder = QFileInfo(QString::fromStdString(preset_path("models", models.front()))).dir();
  folder.cdUp();
  folder.cdUp();
  if (!folder.cd("simulator/scenarios") && !folder.cd("scenarios")) return {};
  std::vector<ScenarioTemplate> templates;
  for (const QFileInfo& file : folder.entryInfoList({"*.toml"}, QDir::Files, QDir::Name)) {
    QFile text(file.absoluteFilePath());
    if (!text.open(QIODevice::ReadOnly)) continue;
    QString told;
    while (!text.atEnd()) {
      const QString line = QString::fromUtf8(text.readLine()).trimmed();
      if (!line.startsWith("# ")) break;
      told += (told.isEmpty() ? "" : " ") + line.mid(2);
    }
    templates.push_back({file.completeBaseName(), file.absoluteFilePath(), told});
  }
  return templates;
}

}  // namespace rehearse::gui
