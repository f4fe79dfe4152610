#include "gui/models/trace/trace_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "models/text/error.hpp"

namespace rehearse::gui {
namespace {

class PlainSource : public TraceSource {
public:
  PlainSource(std::FILE* file, double size) : file_(file), size_(size) {
    std::setvbuf(file, nullptr, _IONBF, 0);
  }
  ~PlainSource() override { std::fclose(file_); }
  std::size_t read(char* to, std::size_t bytes) override {
    const std::size_t got = std::fread(to, 1, bytes, file_);
    if (got < bytes && std::ferror(file_) != 0) problem_ = std::strerror(errno);
    done_ += static_cast<double>(got);
    return got;
  }
  double share() const override { return size_ > 0 ? std::min(1.0, done_ / size_) : 0; }

private:
  std::FILE* file_;
  double size_, done_ = 0;
};

class ZippedSource : public TraceSource {
public:
  ZippedSource(gzFile file, double size) : file_(file), size_(size) { gzbuffer(file, 1 << 18); }
  ~ZippedSource() override { gzclose(file_); }
  std::size_t read(char* to, std::size_t bytes) override {
    std::size_t done = 0;
    while (done < bytes && problem_.empty()) {
      const int got = gzread(file_, to + done, static_cast<unsigned>(std::min(bytes - done, kMost)));
      if (got > 0) done += static_cast<std::size_t>(got);
      int error = Z_OK;
      if (got <= 0) gzerror(file_, &error);
      if (error == Z_BUF_ERROR)
        problem_ = "the gzipped file is cut off";
      else if (error != Z_OK)
        problem_ = "the gzipped file is damaged";
      if (got <= 0) break;
    }
    return done;
  }
  double share() const override {
    return size_ > 0 ? std::clamp(static_cast<double>(gzoffset(file_)) / size_, 0.0, 1.0) : 0;
  }

private:
  static constexpr std::size_t kMost = 1 << 30;
  gzFile file_;
  double size_;
};

class TextSource : public TraceSource {
public:
  explicit TextSource(std::string_view text) : text_(text) {}
  std::size_t read(char* to, std::size_t bytes) override {
    const std::size_t count = std::min(bytes, text_.size() - done_);
    std::copy_n(text_.data() + done_, count, to);
    done_ += count;
    return count;
  }
  double share() const override {
    return text_.empty() ? 1 : static_cast<double>(done_) / static_cast<double>(text_.size());
  }

private:
  std::string_view text_;
  std::size_t done_ = 0;
};

}  // namespace

std::unique_ptr<TraceSource> open_trace(const std::string& path) {
  const auto fail = [&](const std::string& why) { throw InputError({path}, "cannot be read: " + why); };
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) fail(std::strerror(errno));
  if (S_ISDIR(about.st_mode)) fail("it is a folder; a trace is a .json or .json.gz file");
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) fail(std::strerror(errno));
  const auto size = static_cast<double>(about.st_size);
  unsigned char magic[2] = {};
  const bool zipped = std::fread(magic, 1, 2, file) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (!zipped && std::fseek(file, 0, SEEK_SET) == 0) return std::make_unique<PlainSource>(file, size);
  std::fclose(file);
  if (!zipped) fail("it is not a seekable file");  // e.g. a pipe
  gzFile unzipped = gzopen(path.c_str(), "rb");
  if (unzipped == nullptr) fail(std::strerror(errno == 0 ? ENOMEM : errno));
  return std::make_unique<ZippedSource>(unzipped, size);
}

std::unique_ptr<TraceSource> text_source(std::string_view text) {
  return std::make_unique<TextSource>(text);
}

}  // namespace rehearse::gui
