#include "backend/runs/checkpoint_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "rehearse checkpoint 1";
constexpr std::string_view kPrefix = "step-", kUnfinished = ".partial";

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw RunError(fmt::format("{}: {}", printable(path), what));
}

std::string folder_of(const std::string& folder, long round) {
  return fmt::format("{}/{}{:08}", folder, kPrefix, round);
}

// An open file, which is closed when it goes out of scope.
class OpenFile {
public:
  OpenFile(const std::string& path, int flags)
      : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail(path, std::strerror(errno));
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor_); }

  void write(const char* data, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t n = ::write(descriptor_, data, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(path_, std::strerror(errno));
      data += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void read(std::uint64_t offset, char* data, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t n = ::pread(descriptor_, data, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(path_, n == 0 ? "ends too early" : std::strerror(errno));
      data += n;
      offset += static_cast<std::uint64_t>(n);
      bytes -= static_cast<std::size_t>(n);
    }
  }
  // Returns when everything written is on the disk; for a folder, the names of its files.
  void sync() {
    if (::fsync(descriptor_) != 0) fail(path_, std::strerror(errno));
  }

private:
  std::string path_;
  int descriptor_;
};

void sync_folder(const std::string& path) {
  OpenFile(path, O_RDONLY | O_DIRECTORY).sync();
}

std::uint64_t hash_of_file(const std::string& path, std::uint64_t bytes) {
  constexpr std::size_t kBlock = 1 << 20;
  OpenFile file(path, O_RDONLY);
  std::vector<char> block(kBlock);
  std::uint64_t hash = kHashBegin;
  for (std::uint64_t offset = 0; offset < bytes; offset += kBlock) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, bytes - offset));
    file.read(offset, block.data(), part);
    hash = hash_of_bytes(block.data(), part, hash);
  }
  return hash;
}

// Returns the number in the name of a complete checkpoint's folder; -1: it is something else.
long round_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix) || name.size() <= kPrefix.size() || name.size() > kPrefix.size() + 18)
    return -1;
  long round = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return -1;
    round = 10 * round + (c - '0');
  }
  return round;
}

// Returns the complete checkpoints, the newest first.
std::vector<std::pair<long, fs::path>> complete_ones(const std::string& folder) {
  std::vector<std::pair<long, fs::path>> all;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (const long round = round_of(entry.path()); round >= 0 && entry.is_directory(ignored))
      all.emplace_back(round, entry.path());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return all;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) fail(path.string(), "cannot be read");
  return text.str();
}

// Returns why a checkpoint cannot be used; empty: it can.
std::string damage(const fs::path& folder, const Manifest& manifest) {
  for (const SavedFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error) return fmt::format("{} is missing", printable(path.string()));
    if (bytes != file.bytes)
      return fmt::format("{} has {} bytes instead of {}", printable(path.string()), bytes, file.bytes);
    if (hash_of_file(path.string(), bytes) != file.hash)
      return fmt::format("{} was changed: its hash differs", printable(path.string()));
  }
  return "";
}

}  // namespace

SavedFile write_rank_file(const std::string& folder, long round, int rank,
                          const std::vector<float>& numbers) {
  const std::string partial = folder_of(folder, round) + std::string(kUnfinished);
  std::error_code error;
  fs::create_directories(partial, error);
  if (error) fail(partial, error.message());
  SavedFile saved{fmt::format("rank-{:05}.bin", rank), numbers.size() * sizeof(float), kHashBegin};
  OpenFile file(partial + "/" + saved.name, O_WRONLY | O_CREAT | O_TRUNC);
  const auto* data = reinterpret_cast<const char*>(numbers.data());
  file.write(data, saved.bytes);
  file.sync();
  saved.hash = hash_of_bytes(data, saved.bytes, kHashBegin);
  return saved;
}

void publish_checkpoint(const std::string& folder, const Manifest& manifest, int keep) {
  const std::string finished = folder_of(folder, manifest.round),
                    partial = finished + std::string(kUnfinished);
  {
    const std::string text = to_text(manifest);
    OpenFile file(partial + "/" + kManifest, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(text.data(), text.size());
    file.sync();
  }
  sync_folder(partial);
  std::error_code error;
  fs::remove_all(finished, error);  // one that was damaged
  fs::rename(partial, finished, error);
  if (error) fail(partial, error.message());
  sync_folder(folder);
  const auto all = complete_ones(folder);
  for (std::size_t i = static_cast<std::size_t>(std::max(1, keep)); i < all.size(); ++i)
    if (all[i].first < manifest.round) fs::remove_all(all[i].second, error);
}

void remove_incomplete(const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> partial;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kUnfinished)) partial.push_back(entry.path());
  }
  for (const fs::path& path : partial) fs::remove_all(path, ignored);
}

FoundCheckpoint newest_checkpoint(const std::string& folder) {
  FoundCheckpoint found;
  for (const auto& [round, path] : complete_ones(folder)) {
    std::string why;
    try {
      const std::string name = (path / kManifest).string();
      Manifest manifest = from_text(read_text(name), name);
      why = manifest.round == round ? damage(path, manifest)
                                    : fmt::format("{} is of step {}", printable(name), manifest.round);
      if (why.empty()) {
        found.folder = path.string();
        found.manifest = std::move(manifest);
        return found;
      }
    } catch (const RunError& error) {
      why = error.what();
    }
    found.damaged.push_back(why);
  }
  return found;
}

std::vector<float> read_slice(const FoundCheckpoint& found, const StateSlice& wanted) {
  std::vector<float> numbers(wanted.count);
  std::vector<char> known(wanted.count, 0);
  std::size_t missing = wanted.count;
  for (const SavedSlice& saved : found.manifest.slices) {
    const StateSlice& has = saved.slice;
    if (has.kind != wanted.kind || has.layer != wanted.layer || has.place != wanted.place ||
        has.of != wanted.of)
      continue;
    const std::size_t from = std::max(has.first, wanted.first),
                      to = std::min(has.first + has.count, wanted.first + wanted.count);
    if (from >= to) continue;
    const SavedFile& file = found.manifest.files.at(static_cast<std::size_t>(saved.file));
    OpenFile(found.folder + "/" + file.name, O_RDONLY)
        .read(saved.offset + (from - has.first) * sizeof(float),
              reinterpret_cast<char*>(numbers.data() + (from - wanted.first)), (to - from) * sizeof(float));
    for (std::size_t i = from - wanted.first; i < to - wanted.first; ++i)
      if (std::exchange(known[i], 1) == 0) --missing;
  }
  if (missing > 0)
    fail(found.folder,
         fmt::format("has no {} of layer {}{}{}: another strategy divided the layer in another way; allowed: "
                     "the same degrees of tensor and expert parallelism",
                     kStateKindNames[static_cast<std::size_t>(wanted.kind)], wanted.layer,
                     wanted.place.empty() ? "" : " at ", wanted.place));
  return numbers;
}

std::string to_text(const Manifest& manifest) {
  ordered_json json = {{"format", kFormat}, {"step", manifest.round}, {"training", manifest.what}};
  json["files"] = ordered_json::array();
  for (const SavedFile& file : manifest.files)
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"hash", fmt::format("{:016x}", file.hash)}});
  json["slices"] = ordered_json::array();
  for (const SavedSlice& saved : manifest.slices)
    json["slices"].push_back({{"kind", kStateKindNames[static_cast<std::size_t>(saved.slice.kind)]},
                              {"layer", saved.slice.layer},
                              {"place", saved.slice.place},
                              {"first", saved.slice.first},
                              {"count", saved.slice.count},
                              {"of", saved.slice.of},
                              {"file", saved.file},
                              {"offset", saved.offset}});
  return json.dump(1) + "\n";
}

Manifest from_text(std::string_view text, const std::string& name) {
  Manifest manifest;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at("format").get<std::string>() != kFormat)
      fail(name, fmt::format("is no manifest of \"{}\"", kFormat));
    manifest.round = json.at("step").get<long>();
    manifest.what = json.at("training").get<TrainedWhat>();
    for (const auto& one : json.at("files")) {
      SavedFile file{one.at("name").get<std::string>(), one.at("bytes").get<std::uint64_t>(), 0};
      file.hash = std::stoull(one.at("hash").get<std::string>(), nullptr, 16);
      if (fs::path(file.name).filename() != file.name) fail(name, "names a file outside its folder");
      manifest.files.push_back(std::move(file));
    }
    for (const auto& one : json.at("slices")) {
      SavedSlice saved;
      const auto kind =
          std::find(kStateKindNames.begin(), kStateKindNames.end(), one.at("kind").get<std::string>());
      if (kind == kStateKindNames.end()) fail(name, "has a slice of an unknown kind");
      saved.slice.kind = static_cast<StateKind>(kind - kStateKindNames.begin());
      saved.slice.layer = one.at("layer").get<int>();
      saved.slice.place = one.at("place").get<std::string>();
      saved.slice.first = one.at("first").get<std::size_t>();
      saved.slice.count = one.at("count").get<std::size_t>();
      saved.slice.of = one.at("of").get<std::size_t>();
      saved.file = one.at("file").get<int>();
      saved.offset = one.at("offset").get<std::uint64_t>();
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 8;
      const bool inside = saved.file >= 0 && saved.file < static_cast<int>(manifest.files.size()) &&
                          saved.slice.count < kMost && saved.slice.first < kMost && saved.offset < kMost &&
                          saved.offset + saved.slice.count * sizeof(float) <=
                              manifest.files[static_cast<std::size_t>(saved.file)].bytes;
      if (!inside) fail(name, "has a slice outside its file");
      manifest.slices.push_back(std::move(saved));
    }
  } catch (const std::exception& error) {
    if (dynamic_cast<const RunError*>(&error) != nullptr) throw;
    fail(name, std::string("is malformed: ") + error.what());
  }
  return manifest;
}

}  // namespace rehearse
