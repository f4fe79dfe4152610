#include "simulator/report/packed_file.hpp"

#include <fmt/format.h>
#ifdef REHEARSE_HAVE_ZLIB
#include <zlib.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "models/text/error.hpp"

namespace rehearse {

#ifdef REHEARSE_HAVE_ZLIB
// A plain or gzipped file, read in order.
class PackedFile::Source {
public:
  explicit Source(const std::string& path) : file_(gzopen(path.c_str(), "rb"), gzclose) {}
  bool is_open() const { return file_ != nullptr; }
  // Returns how many bytes were read; 0 at the end, negative on an error.
  int read(char* data, std::size_t bytes) {
    const int n = gzread(file_.get(), data, static_cast<unsigned>(bytes));
    if (n <= 0) what_ = gzerror(file_.get(), &state_);
    return n < 0 || state_ != Z_OK ? -1 : n;
  }
  std::string why() const {
    if (state_ == Z_BUF_ERROR) return "ends in the middle of its gzip data";
    if (state_ == Z_ERRNO) return fmt::format("cannot be read: {}", std::strerror(errno));
    return fmt::format("its gzip data is damaged: {}", what_);
  }

private:
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  int state_ = Z_OK;
  const char* what_ = "";
};
#else
class PackedFile::Source {
public:
  explicit Source(const std::string& path) : file_(std::fopen(path.c_str(), "rb"), std::fclose) {}
  bool is_open() const { return file_ != nullptr; }
  int read(char* data, std::size_t bytes) {
    const bool begins = std::ftell(file_.get()) == 0;
    const std::size_t n = std::fread(data, 1, bytes, file_.get());
    zipped_ = begins && n >= 2 && data[0] == '\x1f' && data[1] == '\x8b';  // RFC 1952, 2.3.1
    return zipped_ || std::ferror(file_.get()) != 0 ? -1 : static_cast<int>(n);
  }
  std::string why() const {
    return zipped_ ? "is gzipped, and this program was built without zlib; allowed: the unpacked file"
                   : fmt::format("cannot be read: {}", std::strerror(errno));
  }

private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  bool zipped_ = false;
};
#endif

PackedFile::PackedFile(const std::string& path, const std::string& kind) : path_(path) {
  const auto refuse = [&](const std::string& message) { throw InputError({path, 0, 0}, message); };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) refuse("there is no such file");
  if (status.type() == std::filesystem::file_type::directory) refuse("is a directory; allowed: a " + kind);
  source_ = std::make_unique<Source>(path);
  if (!source_->is_open()) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
}

PackedFile::~PackedFile() = default;

std::size_t PackedFile::read(char* data, std::size_t bytes) {
  const int n = source_->read(data, bytes);
  if (n < 0) throw InputError({path_, 0, 0}, source_->why());
  return static_cast<std::size_t>(n);
}

}  // namespace rehearse
