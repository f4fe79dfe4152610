#include "backend/training/sample_folder.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "backend/training/token_file.hpp"
#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

constexpr const char* kIndexFile = "index.toml";
constexpr std::array<std::string_view, 4> kNumberTypeNames = {"float32", "uint8", "uint16", "uint32"};
constexpr std::array<std::size_t, 4> kNumberTypeBytes = {4, 1, 2, 4};

// A file that is open while this object exists.
class OpenedFile {
public:
  explicit OpenedFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() {
    if (file_ >= 0) ::close(file_);
  }
  int number() const { return file_; }

private:
  int file_;
};

}  // namespace

SampleFolder::SampleFolder(const std::string& folder, std::uint64_t seed, bool shuffle)
    : folder_(folder), seed_(seed), shuffle_(shuffle) {
  read_index();
}

void SampleFolder::refuse(const std::string& file, const std::string& what) const {
  throw InputError({printable((std::filesystem::path(folder_) / file).string()), 0, 0}, what);
}

void SampleFolder::read_index() {
  constexpr std::int64_t kMostNumbers = 1 << 28, kMostPadding = 1 << 30;
  Document document = Document::parse_file((std::filesystem::path(folder_) / kIndexFile).string());
  Section index = document.root();
  type_ = static_cast<Type>(index.choice("type", kNumberTypeNames));
  number_bytes_ = kNumberTypeBytes[static_cast<std::size_t>(type_)];
  numbers_ = static_cast<std::size_t>(index.integer("numbers", 1, kMostNumbers));
  const auto samples = static_cast<std::uint64_t>(index.integer("samples", 1, INT64_MAX));
  scale_ = static_cast<float>(index.number("scale", kPositive, 1.0));
  sample_bytes_ =
      numbers_ * number_bytes_ + static_cast<std::size_t>(index.integer("padding_bytes", 0, kMostPadding, 0));
  if (has_tokens() && index.has("scale"))
    index.refuse("scale", "given with tokens", "with type = \"float32\" or \"uint8\"");
  add_files(index.texts("files"));
  if (first_.back() != samples)
    index.refuse("samples", fmt::format("{}", samples),
                 fmt::format("{}, the number in its {} file{}", first_.back(), files_.size(),
                             files_.size() == 1 ? "" : "s"));
  index.finish();
}

void SampleFolder::add_files(std::vector<std::string> names) {
  if (names.empty()) {
    std::error_code failed;
    for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
         entry.increment(failed))
      if (std::string name = entry->path().filename().string(); name != kIndexFile && name.front() != '.')
        names.push_back(std::move(name));
    if (failed) throw InputError({printable(folder_), 0, 0}, failed.message());
    std::sort(names.begin(), names.end());
  }
  files_ = std::move(names);
  first_ = {0};
  for (const std::string& name : files_) {
    struct stat about {};
    if (::stat((std::filesystem::path(folder_) / name).c_str(), &about) != 0)
      refuse(name, std::strerror(errno));
    if (!S_ISREG(about.st_mode))
      refuse(name, fmt::format("is not a file; allowed in a folder of samples: {} and files of samples",
                               kIndexFile));
    const auto bytes = static_cast<std::uint64_t>(about.st_size);
    if (bytes == 0)
      refuse(name, fmt::format("is empty; allowed: at least one sample of {} bytes", sample_bytes_));
    if (bytes % sample_bytes_ != 0)
      refuse(name,
             fmt::format("has {} bytes, which end inside sample {} (at byte {}); allowed: whole samples "
                         "of {} bytes",
                         bytes, bytes / sample_bytes_, bytes - bytes % sample_bytes_, sample_bytes_));
    first_.push_back(first_.back() + bytes / sample_bytes_);
  }
}

SampleFolder::At SampleFolder::at(std::uint64_t sample) const {
  const std::uint64_t position = sample % samples();
  const std::uint64_t place = shuffle_ ? shuffled(position, samples(), seed_, sample / samples()) : position;
  const auto file = std::upper_bound(first_.begin(), first_.end(), place) - first_.begin() - 1;
  return {static_cast<std::size_t>(file), place - first_[static_cast<std::size_t>(file)]};
}

std::string SampleFolder::place_of(std::uint64_t sample) const {
  const At where = at(sample);
  return fmt::format("{}: sample {} (at byte {})",
                     printable((std::filesystem::path(folder_) / files_[where.file]).string()), where.sample,
                     where.sample * sample_bytes_);
}

void SampleFolder::read_bytes(const At& from, std::size_t offset, std::size_t bytes, std::byte* to) const {
  const std::string& name = files_[from.file];
  const std::uint64_t begin = from.sample * sample_bytes_ + offset;
  // A file is opened for each sample: folders may have more files than a process may open.
  const OpenedFile file((std::filesystem::path(folder_) / name).string());
  if (file.number() < 0) refuse(name, std::strerror(errno));
  std::size_t done = 0;
  bool tells = true;  // the system can tell whether bytes are in the page cache
  while (done < bytes) {
    const iovec part{to + done, bytes - done};
    ssize_t n = -1;
    if (tells) {
      n = ::preadv2(file.number(), &part, 1, static_cast<off_t>(begin + done), RWF_NOWAIT);
      if (n > 0) cached_bytes_ += static_cast<std::uint64_t>(n);
      if (n < 0 && errno != EAGAIN) tells = false;
      if (n > 0) told_bytes_ += static_cast<std::uint64_t>(n);
    }
    if (n <= 0) {
      n = ::pread(file.number(), part.iov_base, part.iov_len, static_cast<off_t>(begin + done));
      if (n > 0 && tells) told_bytes_ += static_cast<std::uint64_t>(n);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(name, fmt::format("cannot be read at byte {}: {}", begin + done, std::strerror(errno)));
    if (n == 0)
      refuse(name,
             fmt::format("ends at byte {}, inside sample {}; it had {} samples of {} bytes", begin + done,
                         from.sample, first_[from.file + 1] - first_[from.file], sample_bytes_));
    done += static_cast<std::size_t>(n);
  }
}

void SampleFolder::read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const {
  const bool whole = first == 0 && count == numbers_;
  std::vector<std::byte> bytes(whole ? sample_bytes_ : count * number_bytes_);
  read_bytes(at(sample), first * number_bytes_, bytes.size(), bytes.data());
  const auto convert = [&](auto number) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&number, &bytes[i * sizeof number], sizeof number);
      to[i] = static_cast<float>(number);
    }
  };
  switch (type_) {
    case Type::float32:
      convert(float{});
      break;
    case Type::uint8:
      convert(std::uint8_t{});
      break;
    case Type::uint16:
      convert(std::uint16_t{});
      break;
    case Type::uint32:
      convert(std::uint32_t{});
      break;
  }
  if (scale_ == 1) return;
  for (std::size_t i = first == 0 ? 1 : 0; i < count; ++i) to[i] *= scale_;
}

std::vector<std::string> SampleFolder::notes() const {
  if (told_bytes_ == 0) return {};
  return {fmt::format("{:.0f} % of the bytes that rank 0 read were in the system's page cache",
                      100.0 * static_cast<double>(cached_bytes_) / static_cast<double>(told_bytes_))};
}

}  // namespace rehearse
