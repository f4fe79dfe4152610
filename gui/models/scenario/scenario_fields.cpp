#include "gui/models/scenario/scenario_fields.hpp"

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

using Kind = ScenarioField::Kind;

ScenarioField choice(const char* group, const char* key, const char* label, const char* tip,
                     const QStringList& choices, const char* absent = "") {
  return {Kind::choice, group, key, label, tip, choices, {}, absent};
}

ScenarioField flag(const char* group, const char* key, const char* label, const char* tip) {
  return {Kind::flag, group, key, label, tip, {"false", "true"}, {}, {}};
}

ScenarioField number(const char* group, const char* key, const char* label, const char* tip,
                     const char* absent = "") {
  return {Kind::number, group, key, label, tip, {}, {}, absent};
}

ScenarioField decimal(const char* group, const char* key, const char* label, const char* unit,
                      const char* tip, const char* absent = "") {
  return {Kind::decimal, group, key, label, tip, {}, unit, absent};
}

std::vector<ScenarioField> cluster_and_training() {
  return {
      choice("Model", "model.preset", "Model", "Model to train", list_of(preset_names("models"))),
      choice("Cluster", "cluster.preset", "Cluster", "Type of the nodes, and the network between them",
             list_of(preset_names("topologies"))),
      number("Cluster", "cluster.nodes", "Nodes", "Number of nodes"),
      number("Cluster", "cluster.server_nodes", "Server nodes",
             "Nodes without devices that run dedicated parameter servers"),
      decimal("Cluster", "cluster.nic_gbps", "NIC bandwidth", "Gb/s",
              "Bandwidth of a node's network card in each direction"),
      choice("Cluster", "cluster.kind", "Fabric", "How the nodes are connected", list_of(kFabricNames)),
      decimal("Cluster", "cluster.oversubscription", "Oversubscription", "",
              "Bandwidth of the network cards that share an uplink, divided by that of the uplink"),
      number("Training", "training.global_batch", "Global batch",
             "Samples per optimizer step, over all devices"),
      number("Training", "training.micro_batch", "Micro-batch", "Samples that a device processes at once"),
      number("Training", "training.sequence_length", "Sequence length",
             "Tokens per sample, for models that are trained on tokens"),
      choice("Training", "training.precision", "Precision", "Number format of the matrix products",
             list_of(kPrecisionNames)),
      choice("Training", "training.optimizer", "Optimizer", "Algorithm that updates the weights",
             list_of(kOptimizerNames)),
      choice("Training", "training.attention", "Attention",
             "Attention kernels of transformers: unfused or fused", list_of(kAttentionKernelsNames)),
      choice("Training", "training.recompute", "Recompute",
             "Activations that are recomputed instead of stored", list_of(kRecomputeNames)),
      choice("Training", "training.framework", "Framework",
             "Framework whose launches and extra kernels are included",
             list_of(preset_names("simulator/frameworks")), "none"),
  };
}

std::vector<ScenarioField> strategy() {
  return {
      choice("Strategy", "strategy.preset", "Preset",
             "A library's training setup; it supplies the keys that the text omits",
             list_of(preset_names("simulator/strategies")), "none"),
      number("Strategy", "strategy.data", "Data parallel", "Number of ranks that share each batch"),
      number("Strategy", "strategy.tensor", "Tensor parallel", "Number of ranks that share each layer"),
      flag("Strategy", "strategy.sequence_parallel", "Sequence parallel",
           "Tensor ranks split the tokens where they do not split the products"),
      choice("Strategy", "strategy.tensor_overlap", "Tensor overlap",
             "Computation that overlaps with the communication of tensor ranks",
             list_of(kTensorOverlapNames)),
      flag("Strategy", "strategy.scatter_gather", "Scatter/gather",
           "Each tensor rank sends a part of a tensor to the next stage, which gathers the parts"),
      number("Strategy", "strategy.context", "Context parallel", "Number of ranks that share each sequence"),
      choice("Strategy", "strategy.context_kind", "Context kind",
             "How context ranks exchange keys and values", list_of(kContextKindNames)),
      number("Strategy", "strategy.expert", "Expert parallel",
             "Number of ranks, of the other axes, that share the experts of a mixture"),
      number("Strategy", "strategy.pipeline", "Pipeline", "Number of stages into which the model is split"),
      choice("Strategy", "strategy.schedule", "Schedule", "Order of the pipeline's passes",
             list_of(kPipelineScheduleNames)),
      flag("Strategy", "strategy.overlap_passes", "Overlap passes",
           "Pair forward and backward passes: one computes while the other communicates"),
      number("Strategy", "strategy.virtual_stages", "Virtual stages",
             "Model chunks on each stage, with the interleaved or breadth-first schedule"),
      choice("Strategy", "strategy.gradients", "Gradients", "How ranks combine their gradients",
             gradient_names()),
      number("Strategy", "servers", "Servers", "Number of parameter servers"),
      choice("Strategy", "strategy.all_reduce", "All-reduce", "Algorithm of the gradient all-reduce",
             list_of(kAlgorithmNames)),
      decimal("Strategy", "strategy.bucket_mb", "Buckets", "MiB",
              "Largest amount of gradients that are sent together"),
      flag("Strategy", "strategy.overlap", "Overlap gradients",
           "Send gradients while the backward pass still computes others"),
      choice("Strategy", "strategy.compression", "Compression",
             "How gradients are compressed before the all-reduce", list_of(kCompressionNames)),
      number("Strategy", "strategy.zero_stage", "ZeRO stage",
             "1: shard the optimizer state, 2: gradients too, 3: weights too"),
      choice("Strategy", "strategy.offload", "Offload", "Where sharded optimizer state is stored and updated",
             list_of(kOffloadNames)),
      choice("Strategy", "strategy.offload_parameters", "Offload weights",
             "Where the shards of the weights are stored", list_of(kOffloadNames)),
  };
}

std::vector<ScenarioField> simulation_and_cost() {
  return {
      choice("Simulation", "simulation.fidelity", "Fidelity",
             "How communication is simulated: by messages, by flows, or by formulas",
             list_of(kFidelityNames)),
      choice("Simulation", "simulation.protocol", "Protocol",
             "Protocol that determines the latencies and efficiencies of messages", list_of(kProtocolNames)),
      decimal("Full training", "training.tokens", "Tokens", "",
              "Tokens of the full training; adds its duration and cost to the result", "not given"),
      decimal("Full training", "training.samples", "Samples", "", "Samples of the full training",
              "not given"),
      decimal("Full training", "training.epochs", "Epochs", "", "Number of passes over the data set",
              "not given"),
      decimal("Full training", "training.dataset_samples", "Data set", "samples",
              "Samples in the data set, to be used with epochs", "not given"),
      decimal("Full training", "cost.price_per_device_hour", "Device-hour", "", "Price of a device per hour",
              "not known"),
      decimal("Full training", "cost.price_per_server_hour", "Server-hour", "",
              "Price of a server node per hour", "not known"),
      {Kind::text, "Full training", "cost.currency", "Currency", "Currency of the prices", {}, {}, {}},
  };
}

}  // namespace

const std::vector<ScenarioField>& scenario_fields() {
  static const std::vector<ScenarioField> kFields = [] {
    std::vector<ScenarioField> all = cluster_and_training();
    for (const auto& more : {strategy(), simulation_and_cost()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFields;
}

bool has_servers(const QString& gradients) {
  // Strategies with servers show them in their example of [strategy].
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
  // Derives the folder of scenarios from FOLDER/models/presets/NAME.toml: FOLDER/simulator/scenarios or, in
  // an installation, FOLDER/scenarios.
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
