#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "simulator/scenario/reading/readers.hpp"
#include "simulator/scenario/reading/storage_reader.hpp"

namespace rehearse {
namespace {

constexpr int kMostSteps = 10'000'000;
constexpr Range kRate{0, 1e6};  // GB/s; 0: unlimited

bool has(const Checkpoint& checkpoint, CheckpointTier tier) {
  return std::count(checkpoint.tiers.begin(), checkpoint.tiers.end(), tier) > 0;
}

std::vector<CheckpointTier> read_tiers(Section& section) {
  const bool given = section.has("tiers");
  const std::vector<std::string> names = section.texts("tiers");
  if (!given) return {CheckpointTier::storage};
  std::vector<CheckpointTier> tiers;
  for (const std::string& name : names) {
    const auto known = std::find(kCheckpointTierNames.begin(), kCheckpointTierNames.end(), name);
    const auto tier = static_cast<CheckpointTier>(known - kCheckpointTierNames.begin());
    const bool twice = std::count(tiers.begin(), tiers.end(), tier) > 0;
    if (known == kCheckpointTierNames.end() || twice)
      section.refuse("tiers", fmt::format("\"{}\"{}", name.substr(0, 60), twice ? " twice" : ""),
                     fmt::format("each of \"{}\" once", fmt::join(kCheckpointTierNames, "\", \"")));
    tiers.push_back(tier);
  }
  if (tiers.empty())
    section.refuse("tiers", "[]",
                   fmt::format("at least one of \"{}\"", fmt::join(kCheckpointTierNames, "\", \"")));
  return tiers;
}

// Presets describe the storage of [data].
void apply_storage_preset(Document& document, Section section) {
  constexpr std::string_view kFolder = "simulator/input/storages", kTable = "[data.storage]";
  if (!section.has("preset")) return;
  const std::string name = section.text("preset");
  named_preset(section, "preset", name, kFolder);  // refuses an unknown name
  const std::string path = preset_path(kFolder, name);
  std::string text = read_text_file(path, "preset");
  text.replace(text.find(kTable), kTable.size(), "[checkpoint.storage]");
  document.fill_in(Document::parse_text(text, path));
}

// Returns the number of the first storage on the nodes' drives; adds one if there is none.
int drives_of(std::vector<Storage>& storages) {
  const auto local = std::find_if(storages.begin(), storages.end(), [](const Storage& storage) {
    return storage.kind == Storage::Kind::local;
  });
  const auto number = static_cast<int>(local - storages.begin());
  if (local == storages.end()) storages.push_back({.kind = Storage::Kind::local});
  return number;
}

}  // namespace

Checkpoint read_checkpoint(Document& document, const Data& data, std::vector<Storage>& storages) {
  if (data.storage.kind != Storage::Kind::none) storages.push_back(data.storage);
  Checkpoint checkpoint;
  Section section = document.root().section("checkpoint");
  checkpoint.given = section.present();
  if (!checkpoint.given) {
    section.finish();
    return checkpoint;
  }
  apply_preset(document, section, "preset", "simulator/input/checkpoints", "pytorch-dcp");
  apply_storage_preset(document, section.section("storage"));
  section = document.root().section("checkpoint");
  section.text("preset", "");
  checkpoint.title = section.text("title", "its writers");
  if (!section.has("every"))
    section.refuse("every", "missing", "the optimizer steps between two checkpoints");
  checkpoint.every = static_cast<int>(section.integer("every", 1, kMostSteps, 1));
  checkpoint.mode = static_cast<CheckpointMode>(section.choice("mode", kCheckpointModeNames, 0));
  checkpoint.writers = static_cast<CheckpointWriters>(section.choice("writers", kCheckpointWritersNames, 0));
  checkpoint.tiers = read_tiers(section);
  checkpoint.bytes_per_parameter = section.number("bytes_per_parameter", {0, 1000}, 0);
  checkpoint.writer_bytes_per_s = section.number("writer_gb_per_s", kRate, 0) * kGB;
  checkpoint.copy_bytes_per_s = section.number("copy_gb_per_s", kRate, 0) * kGB;

  Section own = section.section("storage");
  const bool wanted = has(checkpoint, CheckpointTier::storage);
  if (own.present() && !wanted) {
    section.refuse_inapplicable("storage", "given without the tier \"storage\"", "tiers = [\"storage\"]");
  } else if (own.present()) {
    Storage storage;
    storage.name = "checkpoints";
    StorageAccess access;
    read_storage(own, storage, access, 0);
    const std::string_view cited = own.has("preset") ? "preset" : "kind";
    if (storage.kind == Storage::Kind::none)
      own.refuse(cited, "of kind \"none\"", "storage of kind \"local\" or \"shared\"");
    if (storage.kind == Storage::Kind::local && data.storage.kind == Storage::Kind::local)
      own.refuse(cited, "of kind \"local\" beside data.storage, which is local, too",
                 "storage of kind \"shared\", or no [checkpoint.storage]: then checkpoints are written to "
                 "the same drives");
    checkpoint.storage = static_cast<int>(storages.size());
    storages.push_back(storage);
    checkpoint.storage_title = access.title;
    checkpoint.latency_s = access.latency_s;
    if (access.reader_bytes_per_s > 0)
      checkpoint.writer_bytes_per_s = checkpoint.writer_bytes_per_s > 0
                                          ? std::min(checkpoint.writer_bytes_per_s, access.reader_bytes_per_s)
                                          : access.reader_bytes_per_s;
  } else if (wanted && data.storage.kind != Storage::Kind::none) {
    checkpoint.storage = 0;
    checkpoint.storage_title = data.access.title;
    checkpoint.latency_s = data.access.latency_s;
  } else if (wanted) {
    section.refuse("storage", "missing",
                   "where checkpoints are written: storage.preset, or storage.kind and its bandwidth");
  }
  own.finish();
  if (has(checkpoint, CheckpointTier::local)) {
    checkpoint.drives = drives_of(storages);
    if (checkpoint.drives == checkpoint.storage)
      section.refuse("tiers", "\"local\" and \"storage\", which is the same drives", "one of them");
  }
  section.finish();
  return checkpoint;
}

void refuse_unknown_bandwidth(const Data& data, const Checkpoint& checkpoint, const Cluster& cluster,
                              Document& document) {
  if (data.storage.kind == Storage::Kind::local && cluster.storage().read_bandwidth <= 0)
    document.root().section("data").section("storage").refuse(
        "read_gb_per_s", "missing", "the bandwidth of a node's drives, or cluster.node.nvme_read_gb_per_s");
  Section written = document.root().section("checkpoint");
  if (checkpoint.drives >= 0 && cluster.storage(checkpoint.drives).write_bandwidth <= 0)
    written.refuse("tiers", "\"local\" with drives of unknown bandwidth",
                   "\"local\" with cluster.node.nvme_write_gb_per_s");
  if (checkpoint.storage >= 0 && cluster.storage(checkpoint.storage).write_bandwidth <= 0)
    written.section("storage").refuse(
        "write_gb_per_s", "missing",
        "the bandwidth with which checkpoints are written, or cluster.node.nvme_write_gb_per_s for drives");
}

}  // namespace rehearse
