#include "gui/models/session/examples.hpp"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

#include "models/text/data_folder.hpp"

namespace rehearse::gui {

std::vector<Example> examples_in(const QString& folder) {
  const QDir at(QDir::cleanPath(folder));
  const auto files = [&at](std::initializer_list<const char*> names) {
    QStringList paths;
    for (const char* name : names) paths << at.filePath(name);
    return paths;
  };
  return {
      {"ring", "A data-parallel ring",
       "ResNet-50 on 32 GPUs: most of the all-reduce overlaps with the backward pass.",
       files({"resnet50-ring.json.gz"}), "why"},
      {"servers", "Ring against servers",
       "The same 32 GPUs with two parameter servers: how much longer a step takes, and why.",
       files({"resnet50-ring.json.gz", "resnet50-servers.json.gz"}), "compare"},
      {"pipeline", "GPT-3's pipeline", "48 stages on 768 GPUs: the wave of micro-batches, and the bubble.",
       files({"gpt3-175b.json.gz"}), "why"},
      {"measured", "Predicted against measured",
       "A pipeline recorded on four machines, next to its prediction.",
       files({"predicted.json.gz", "measured.json.gz"}), "compare"},
      {"accuracy", "Accuracy of predictions",
       "Recorded runs, each against its prediction: a point on the line is exact.", files({"accuracy.csv"}),
       "accuracy"},
      {"sweep", "A sweep", "From 4 to 64 GPUs: a ring keeps scaling, servers do not.", files({"scaling.csv"}),
       "scaling"},
      {"plan", "The best plan",
       "Megatron's 7.5 B on 32 GPUs: the fastest ways to split it, by time and memory.",
       files({"plans/plan.json"}), "plan"},
      {"pytorch", "Your PyTorch trace",
       "Record one with torch.profiler, export_chrome_trace(); open its ranks together.",
       files({"pytorch-rank0.json.gz", "pytorch-rank1.json.gz"}), "why", true},
  };
}

std::vector<Example> examples() {
  std::vector<Example> there;
  for (Example& example : examples_in(QString::fromStdString(data_folder("examples").string()))) {
    const bool complete = std::all_of(example.files.begin(), example.files.end(),
                                      [](const QString& file) { return QFileInfo::exists(file); });
    if (!complete && example.asks) example.files.clear();
    if (complete || example.asks) there.push_back(std::move(example));
  }
  return there;
}

}  // namespace rehearse::gui
