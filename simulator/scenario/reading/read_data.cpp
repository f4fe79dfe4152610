#include <fmt/format.h>

#include "simulator/scenario/reading/readers.hpp"
#include "simulator/scenario/reading/storage_reader.hpp"

namespace rehearse {
namespace {

constexpr double kKiB = 1024, kMiB = 1048576, kGiB = 1073741824;
constexpr Range kSampleKb{0, 1e9, true};

// Returns the bytes of a sample: as it is stored, and as a device gets it.
struct SampleBytes {
  double stored = 0, on_device = 0;
};
SampleBytes default_sample(const Model& model, double tokens) {
  constexpr double kLargestShort =
      65'500;  // Megatron-LM, megatron/core/datasets/indexed_dataset.py: optimal_dtype
  constexpr double kTokensAndLabels = 2 * 8;
  if (const auto* transformer = std::get_if<Transformer>(&model.shape)) {
    if (transformer->patch_size > 0) {
      const double pixels = transformer->image_size * transformer->image_size * transformer->image_channels;
      return {0, 4 * pixels};
    }
    return {tokens * (transformer->vocabulary < kLargestShort ? 2 : 4), tokens * kTokensAndLabels};
  }
  if (const auto* convolutions = std::get_if<ConvolutionalNet>(&model.shape))
    return {0, 4 * convolutions->image_size * convolutions->image_size * convolutions->channels};
  if (const auto* perceptron = std::get_if<MultiLayerPerceptron>(&model.shape))
    return {4 * perceptron->widths.front(), 4 * perceptron->widths.front()};
  return {};
}

DataLoader read_loader(Section& section) {
  DataLoader loader;
  loader.title = section.text("title", "its loader");
  section.text("preset", "");
  loader.kind = static_cast<LoaderKind>(section.choice("kind", kLoaderKindNames, 0));
  loader.workers = static_cast<int>(section.integer("workers", 0, 256, 4));
  loader.prefetch = static_cast<int>(section.integer("prefetch", 1, 64, 2));
  loader.device_batches = static_cast<int>(section.integer("device_batches", 1, 16, 2));
  section.finish();
  return loader;
}

Sourced read_preparation(Section& section, std::string& title) {
  section.text("preset", "");
  title = section.text("title", "");
  Sourced core_s = read_sourced(section, "core_ms", {0, 1e7}, 1e-3);
  section.finish();
  return core_s;
}

}  // namespace

void read_storage(Section& section, Storage& storage, StorageAccess& access, double operation_bytes) {
  section.text("preset", "");
  access.title = section.text("title", "the storage");
  storage.kind = static_cast<Storage::Kind>(section.choice("kind", kStorageKindNames, 0));
  const bool shared = storage.kind == Storage::Kind::shared, any = storage.kind != Storage::Kind::none;
  const auto rate = [&](std::string_view key, bool applies) {
    if (!applies && section.has(key))
      section.refuse_inapplicable(
          key,
          fmt::format("given with kind = \"{}\"", kStorageKindNames[static_cast<std::size_t>(storage.kind)]),
          any ? "kind = \"shared\"" : "kind = \"local\" or \"shared\"");
    return section.number(key, kBandwidth, 0) * kGB;
  };
  storage.read_bandwidth = rate("read_gb_per_s", any);
  storage.write_bandwidth = rate("write_gb_per_s", any);
  storage.client_bandwidth = rate("client_gb_per_s", shared);
  access.reader_bytes_per_s = rate("reader_gb_per_s", any);
  storage.servers = static_cast<int>(section.integer("servers", 0, 65'536, 0));
  if (storage.servers > 0 && !shared)
    section.refuse_inapplicable("servers", fmt::format("{}", storage.servers), "0, or kind = \"shared\"");
  if (storage.servers > 0 && storage.client_bandwidth > 0)
    section.refuse_inapplicable("client_gb_per_s", "given with servers",
                                "servers = 0: those on the fabric reach a node through its NICs");
  access.latency_s = section.number("latency_us", {0, 1e9}, 0) * 1e-6;
  const double operations_per_s = section.number("operations_per_s", kNotNegative, 0);
  storage.operations_bandwidth = operations_per_s * operation_bytes;
  if (shared && storage.read_bandwidth <= 0)
    section.refuse("read_gb_per_s", "missing", "the bandwidth of all servers together");
  if (storage.write_bandwidth <= 0) storage.write_bandwidth = storage.read_bandwidth;
  section.finish();
}

// Adds the keys of the preset that `key`, or else `fallback`, names.
void apply_preset(Document& document, Section section, std::string_view key, std::string_view folder,
                  std::string_view fallback) {
  if (!section.has(key) && fallback.empty()) return;
  const std::string name = section.has(key) ? section.text(key) : std::string(fallback);
  document.fill_in(named_preset(section, key, name, folder));
}

Data read_data(Document& document, const Model& model, double sequence_length) {
  Data data;
  Section section = document.root().section("data");
  data.given = section.present();
  if (!data.given) {
    section.finish();
    return data;
  }
  apply_preset(document, section, "dataset", "simulator/input/datasets", "");
  apply_preset(document, section.section("loader"), "preset", "simulator/input/loaders", "pytorch");
  apply_preset(document, section.section("preparation"), "preset", "simulator/input/preparations", "");
  apply_preset(document, section.section("storage"), "preset", "simulator/input/storages", "page-cache");
  section = document.root().section("data");

  const SampleBytes sample = default_sample(model, tokens_per_sample(model, sequence_length));
  section.text("dataset", "");
  data.title = section.text("title", "its samples");
  data.samples = section.number("samples", {0, 1e15, true}, 0);
  data.sample_bytes = section.number("sample_kb", kSampleKb, sample.stored / kKiB) * kKiB;
  if (data.sample_bytes <= 0)
    section.refuse("sample_kb", "missing", "the mean size of a stored sample, or a dataset that gives it");
  data.record_bytes = section.number("record_mb", {0, 1e6}, 0) * kMiB;
  data.device_bytes = section.number("device_kb", kSampleKb, sample.on_device / kKiB) * kKiB;
  if (data.device_bytes <= 0) section.refuse("device_kb", "missing", "the size of a prepared sample");
  data.shuffle = section.boolean("shuffle", true);
  Section loader = section.section("loader"), preparation = section.section("preparation"),
          storage = section.section("storage"), cache = section.section("cache");
  data.loader = read_loader(loader);
  data.core_s = read_preparation(preparation, data.preparation);
  read_storage(storage, data.storage, data.access,
               data.record_bytes > 0 ? data.record_bytes : data.sample_bytes);
  data.cache = static_cast<CachePolicy>(
      cache.choice("policy", kCachePolicyNames, static_cast<std::size_t>(CachePolicy::random)));
  data.cache_bytes = cache.number("gib", {0, 1e9}, 0) * kGiB;
  if (data.cache_bytes > 0 && data.samples <= 0)
    cache.refuse("gib", fmt::format("{}", data.cache_bytes / kGiB),
                 "0, or beside data.samples, which says how much the cache has to hold");
  cache.finish();
  section.finish();
  return data;
}

}  // namespace rehearse
