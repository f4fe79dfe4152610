// Writes a trace file of a pipeline with a given number of spans.
#pragma once

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace rehearse::gui {

namespace fs = std::filesystem;

inline constexpr int kRanks = 64;

// A temporary trace file, removed by the destructor.
class TraceFile {
public:
  TraceFile(long spans, bool zipped)
      : path_(fs::temp_directory_path() /
              fmt::format("rehearse-{}-{}.json{}", getpid(), spans, zipped ? ".gz" : "")) {
    if (zipped) {
      zipped_ = gzopen(path_.c_str(), "wb1");
    } else {
      plain_ = std::fopen(path_.c_str(), "wb");
    }
    if (zipped_ == nullptr && plain_ == nullptr) std::abort();
    write(spans);
    flush();
    if (plain_ != nullptr) std::fclose(plain_);
    if (zipped_ != nullptr) gzclose(zipped_);
  }
  ~TraceFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return name_; }
  double bytes() const { return bytes_; }

private:
  // Writes the ranks one after another, like Rehearse's own traces: compute with a gap after every fourth
  // span, sends beside it, and receives that wait for their peer.
  void write(long spans) {
    print("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int rank = 0; rank < kRanks; ++rank) {
      print(
          R"json({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"stage {} (rank {})"}}}},)json"
          "\n",
          rank + 1, rank, rank);
      const long count = spans / kRanks + (rank < spans % kRanks ? 1 : 0);
      for (long i = 0; i < count; ++i) span(rank, i);
    }
    print(R"({{"ph":"M","name":"end","pid":1,"tid":0}}],"otherData":{{"generator":"rehearse"}}}})");
  }

  void span(int rank, long i) {
    const long microbatch = i / 4 % 128, step = i / 512;
    const double begin = static_cast<double>(i / 4) * 2000 + rank * 10;
    switch (i % 4) {
      case 0:
      case 2:
        print(
            R"({{"ph":"X","name":"{0} {1}","cat":"{0}","pid":{2},"tid":1,"ts":{3:.3f},"dur":{4:.3f},"args":{{"op":{5},"kind":"compute","layer":"0-11","microbatch":{1},"flops":523415584768,"step":{6},"ready_us":{3:.3f},"deps":[{7},{8}],"status":"done"}}}},)"
            "\n",
            i % 4 == 0 ? "forward" : "backward", microbatch, rank + 1, begin + (i % 4 == 0 ? 0 : 700.125),
            i % 4 == 0            ? 700.125
            : microbatch % 2 == 0 ? 1299.875
                                  : 1200.25,
            i % 512, step, (i + 511) % 512, (i + 500) % 512);
        break;
      default:
        print(
            R"({{"ph":"X","name":"{0} {1}","cat":"{2}","pid":{3},"tid":{4},"ts":{5:.3f},"dur":{6:.3f},"args":{{"op":{7},"kind":"exchange","microbatch":{1},"bytes":50331648,"step":{8},"ready_us":{9:.3f},"deps":[{10}],"status":"done"}}}},)"
            "\n",
            i % 4 == 1 ? "send forward" : "receive backward", microbatch, i % 4 == 1 ? "forward" : "backward",
            rank + 1, i % 4 == 1 ? 2 : 3, begin + 710, 80.75, i % 512, step,
            begin + (i % 4 == 1 ? 710.0 : 0.0), (i + 511) % 512);
        if (i % 20 == 1)
          print(
              R"({{"ph":"{}","bp":"e","id":{},"name":"message","cat":"message","pid":{},"tid":2,"ts":{:.3f}}},)"
              "\n",
              rank % 2 == 0 ? 's' : 'f', i + rank / 2 * 1'000'000'000L, rank + 1, begin + 710);
    }
  }

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() > 1 << 18) flush();
  }
  void flush() {
    bytes_ += static_cast<double>(buffer_.size());
    const bool ok = plain_ != nullptr
                        ? std::fwrite(buffer_.data(), 1, buffer_.size(), plain_) == buffer_.size()
                        : gzwrite(zipped_, buffer_.data(), static_cast<unsigned>(buffer_.size())) > 0;
    if (!ok) std::abort();
    buffer_.clear();
  }

  fs::path path_;
  std::string name_ = path_.string();
  std::FILE* plain_ = nullptr;
  gzFile zipped_ = nullptr;
  fmt::memory_buffer buffer_;
  double bytes_ = 0;
};

}  // namespace rehearse::gui
