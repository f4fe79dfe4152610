#include "simulator/report/packed_output.hpp"

#include <fcntl.h>
#include <unistd.h>
#ifdef REHEARSE_HAVE_ZLIB
#include <zlib.h>
#endif

#include <cerrno>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

class PlainBytes : public PackedOutput::Bytes {
public:
  explicit PlainBytes(int file) : file_(file) {}
  bool write(const char* data, std::size_t bytes) override {
    while (bytes > 0) {
      const ssize_t n = ::write(file_, data, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      data += n;
      bytes -= static_cast<std::size_t>(n);
    }
    return true;
  }
  bool close() override { return true; }

private:
  int file_;
};

#ifdef REHEARSE_HAVE_ZLIB
class ZippedBytes : public PackedOutput::Bytes {
public:
  explicit ZippedBytes(gzFile file) : file_(file) {}
  ~ZippedBytes() override { ZippedBytes::close(); }
  bool write(const char* data, std::size_t bytes) override {
    return gzwrite(file_, data, static_cast<unsigned>(bytes)) > 0;
  }
  bool close() override { return file_ == nullptr || gzclose(std::exchange(file_, nullptr)) == Z_OK; }

private:
  gzFile file_;
};
#endif

bool is_zipped(const std::string& path) {
  return path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
}

// Returns null if there is no memory for it. Throws InputError for a gzipped file if this program has no
// zlib.
std::unique_ptr<PackedOutput::Bytes> bytes_of(const OutputFile& file, const std::string& path) {
  if (!is_zipped(path)) return std::make_unique<PlainBytes>(file.descriptor());
#ifdef REHEARSE_HAVE_ZLIB
  const int own = fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);  // zlib closes it
  gzFile zipped = own < 0 ? nullptr : gzdopen(own, "wb");
  if (zipped != nullptr) return std::make_unique<ZippedBytes>(zipped);
  if (own >= 0) ::close(own);
  return nullptr;
#else
  throw InputError({},
                   fmt::format("{}: this program was built without zlib; allowed: .json", printable(path)));
#endif
}

}  // namespace

PackedOutput::PackedOutput(const std::string& path) : file_(path), bytes_(bytes_of(file_, path)) {
  if (bytes_ == nullptr) file_.fail(errno);
}

void PackedOutput::close() {
  flush();
  errno = 0;
  if (!bytes_->close()) file_.fail(errno);
  file_.commit();
}

void PackedOutput::flush() {
  const std::size_t size = buffer_.size();
  if (size == 0) return;
  errno = 0;
  const bool ok = bytes_->write(buffer_.data(), size);
  buffer_.clear();
  if (!ok) file_.fail(errno);
}

}  // namespace rehearse
