// Holds the contents of a trace's events in the order of the file, from which a timeline is built once all
// have been read.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gui/models/timeline/timeline.hpp"
#include "gui/models/work/parallel.hpp"
#include "simulator/schedule/purpose.hpp"

namespace rehearse::gui {

// A span, with times as in the file.
struct Record {
  Time begin = 0, end = 0, ready = -1;  // ready: kNoTime if not known
  std::uint32_t name = 0, track = 0, algorithm = 0;
  std::int32_t microbatch = -1, step = -1, op = -1, members = 0;
  float bytes = std::numeric_limits<float>::quiet_NaN(), flops = bytes;
  std::uint32_t first_dependency = 0, first_detail = 0, detail_bytes = 0;
  std::uint16_t dependencies = 0;
  Kind kind = Kind::other;
  Pass pass = Pass::none;
  bool critical = false;
  bool waits = false;     // a transfer that waits for its peer from `ready` on
  bool pipeline = false;  // a transfer of the pipeline
};
inline constexpr Time kNoTime = std::numeric_limits<Time>::min();

// A growing array that never copies its elements to a new block. `T` must be trivially destructible.
template <typename T>
class Blocks {
public:
  Blocks() = default;
  Blocks(const Blocks& other) { *this = other; }
  Blocks(Blocks&&) noexcept = default;
  Blocks& operator=(const Blocks& other) {
    if (this == &other) return *this;
    clear();
    for (std::size_t at = 0; at < other.size_; at += kBlock) {
      size_ = at;
      make_room(1);
      std::copy_n(&other[at], std::min(kBlock, other.size_ - at), &(*this)[at]);
    }
    size_ = other.size_;
    return *this;
  }
  Blocks& operator=(Blocks&&) noexcept = default;
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return blocks_[i >> kBits].get()[i & (kBlock - 1)]; }
  const T& operator[](std::size_t i) const { return blocks_[i >> kBits].get()[i & (kBlock - 1)]; }
  void push_back(const T& value) {
    make_room(1);
    new (&(*this)[size_]) T(value);
    ++size_;
  }
  // Appends room for `count` contiguous values, at most kBlock, and sets `place` to their index.
  T* append(std::size_t count, std::size_t& place) {
    make_room(count);
    place = size_;
    size_ += count;
    return &(*this)[place];
  }
  void clear() {
    blocks_.clear();
    size_ = 0;
  }
  static constexpr int kBits = 16 + (sizeof(T) == 1 ? 6 : 0);
  static constexpr std::size_t kBlock = std::size_t{1} << kBits;

private:
  static_assert(std::is_trivially_destructible_v<T>);
  struct Free {
    void operator()(T* block) const { std::free(block); }
  };
  void make_room(std::size_t count) {
    if ((size_ & (kBlock - 1)) + count > kBlock) size_ = blocks_.size() << kBits;
    if (size_ >> kBits < blocks_.size()) return;
    constexpr std::size_t kPage = std::size_t{1} << 21,
                          kBytes = (kBlock * sizeof(T) + kPage - 1) / kPage * kPage;
    auto* const block = static_cast<T*>(std::aligned_alloc(kPage, kBytes));
    if (block == nullptr) throw std::bad_alloc();
    if (!blocks_.empty()) prefer_large_pages(block, kBytes);
    blocks_.emplace_back(block);
  }
  std::vector<std::unique_ptr<T, Free>> blocks_;
  std::size_t size_ = 0;
};
using Records = Blocks<Record>;

// Assigns numbers to distinct texts. Looks up a text in its raw form, with the escapes of the file.
class Strings {
public:
  Strings() : texts{""}, slots_(1024) {}
  std::uint32_t number_of(std::string_view raw);
  std::vector<std::string> texts;

private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = 0, raw = 0;  // raw: index in raws_, from 1; 0: free slot
  };
  void grow();
  std::vector<Slot> slots_;
  std::vector<std::string> raws_;
};

struct Draft {
  struct Process {
    std::int64_t pid = 0;
    std::string name, labels, role;
    int ranks = 1, stage = -1;  // only given in Rehearse's traces
    bool is_sorted = false;     // the file gives a sort index
    std::int64_t sort_index = 0;
  };
  struct Track {
    int process = 0;
    std::int64_t tid = 0;
    std::string name;
    bool is_sorted = false;
    std::int64_t sort_index = 0;
    bool gpu = false;           // a stream of a GPU
    bool asynchronous = false;  // spans that belong to no thread
  };
  // One end of an arrow.
  struct FlowEnd {
    std::uint64_t key = 0;
    Time time = 0;
    std::uint32_t track = 0;
    char phase = 's';  // or t, f
    bool enclosing = false;
  };
  struct Counter {
    std::string name, key;
    int process = 0;
    std::vector<std::pair<Time, double>> samples;
  };

  struct Step {
    Time begin = 0, end = 0;
    std::int32_t number = 0;
  };

  Records records;
  std::vector<Step> steps;  // marked by a profiler on the host
  Strings strings;
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<FlowEnd> flow_ends;
  std::vector<Counter> counters;
  std::vector<std::int32_t> dependencies;
  Blocks<char> details;  // each text is contiguous
  bool details_kept = true;
  std::vector<std::optional<Purpose>> purposes;  // by name; only in Rehearse's traces
  bool ours = false, profiled = false;
  // Messages for Timeline::problems, with the number of occurrences.
  std::map<std::string, std::uint64_t> left_out;
};

}  // namespace rehearse::gui
