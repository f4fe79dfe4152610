#include "models/text/read_text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "models/text/document.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

thread_local FilesRead* collector = nullptr;

}  // namespace

FilesRead::FilesRead() : outer_(collector) {
  collector = this;
}

FilesRead::~FilesRead() {
  collector = outer_;
}

std::string read_text(std::istream& in, const std::string& name, const std::string& kind,
                      std::size_t most_bytes) {
  std::string text;
  std::vector<char> buffer(1u << 16);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes)
      throw InputError({name}, fmt::format("is larger than {0} MiB; allowed: a {1} of at most {0} MiB",
                                           most_bytes >> 20, kind));
  }
  if (in.bad()) throw InputError({name}, "cannot be read to its end");
  return text;
}

std::string read_text_file(const std::string& path, const std::string& kind, std::size_t most_bytes) {
  const auto refuse = [&](const std::string& message) { throw InputError({path}, message); };
  if (path.empty()) throw InputError({}, "no file name is given");
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) refuse("there is no such file");
  if (status.type() == std::filesystem::file_type::directory) refuse("is a directory; allowed: a " + kind);
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  for (FilesRead* one = collector; one != nullptr; one = one->outer_) one->paths_.push_back(path);
  return read_text(file, path, kind, most_bytes);
}

std::string read_text_file(const std::string& path, const std::string& kind) {
  return read_text_file(path, kind, kMostTextBytes);
}

}  // namespace rehearse
