// The keys are those of `Segment`, `Block`, `TraceEntry` and `Frame` in PyTorch's torch/cuda/_memory_viz.py.
#include "simulator/report/memory_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "models/text/output_file.hpp"
#include "simulator/report/address_space.hpp"
#include "simulator/report/pickle.hpp"
#include "simulator/report/rank_names.hpp"
#include "simulator/trace/memory_moment.hpp"
#include "simulator/trace/tensor_rows.hpp"

namespace rehearse {
namespace {

// A device's addresses begin here, so that none is 0. JavaScript's numbers hold addresses up to 2^53.
constexpr std::int64_t kFirstAddress = std::int64_t{1} << 40;
constexpr std::int64_t kBlockUnit = 512;  // bytes, to which PyTorch's allocator rounds

std::int64_t whole_bytes(double bytes) {
  return std::llround(std::clamp(bytes, 1.0, 1e15));
}

// Returns "activation, layers 3-5, micro-batch 2".
std::string about(const Tensor& tensor) {
  std::string text = kind_text(tensor.kind);
  if (tensor.first_layer >= 0 && tensor.last_layer >= tensor.first_layer)
    text += fmt::format(", layer{} {}", tensor.first_layer == tensor.last_layer ? "" : "s",
                        ranges_text({{tensor.first_layer, tensor.last_layer}}));
  if (tensor.microbatch >= 0) text += fmt::format(", micro-batch {}", tensor.microbatch);
  return text;
}

class SnapshotWriter {
public:
  SnapshotWriter(const Trace& trace, int rank_class, int step)
      : name_(class_name(trace, rank_class)),
        live_(live_tensors(trace, rank_class, step)),
        timeline_(memory_timeline(live_)),
        addresses_(live_.tensors.size(), 0) {}

  std::string write() {
    allocate_what_is_before();
    pickle_.begin_dict();
    pickle_.text("device_traces");
    pickle_.begin_list();
    write_trace();
    pickle_.end_list();
    pickle_.text("segments");
    write_segments();
    pickle_.end_dict();
    return pickle_.done();
  }

private:
  const Tensor& tensor(std::size_t i) const {
    return live_.program->tensors[static_cast<std::size_t>(live_.tensors[i].tensor)];
  }

  bool counts(std::size_t i) const { return live_.tensors[i].bytes > 0; }

  void allocate(std::size_t i) {
    addresses_[i] = space_.allocate(whole_bytes(live_.tensors[i].bytes));
    tensor_at_[addresses_[i]] = i;
  }

  // Persistent tensors first: their places stay as they are.
  void allocate_what_is_before() {
    for (const bool persistent : {true, false})
      for (std::size_t i = 0; i < live_.tensors.size(); ++i) {
        const LiveTensor& one = live_.tensors[i];
        if (counts(i) && one.persistent == persistent && one.born_in < 0) allocate(i);
      }
  }

  void write_trace() {
    pickle_.begin_list();
    for (const MemoryChange& change : timeline_.changes) {
      const std::size_t i = change.tensor;
      const LiveTensor& one = live_.tensors[i];
      if (!counts(i)) continue;
      const double into_step_s = change.time_s - live_.begin_s;
      if (change.bytes < 0) {
        entry("free_requested", i, into_step_s, one.freed_in);
        entry("free_completed", i, into_step_s, one.freed_in);
        space_.free(addresses_[i]);
      } else if (one.born_in >= 0) {
        allocate(i);
        entry("alloc", i, into_step_s, one.born_in);
      }
    }
    pickle_.end_list();
  }

  void entry(const char* action, std::size_t i, double into_step_s, int op) {
    pickle_.begin_dict();
    pickle_.item("action", action);
    pickle_.item("addr", addresses_[i]);
    pickle_.item("size", whole_bytes(live_.tensors[i].bytes));
    pickle_.item("stream", 0);
    pickle_.item("time_us", std::llround(1e6 * into_step_s));
    frames(i, op);
    pickle_.end_dict();
  }

  // The tensor is the innermost frame, and the op its caller. The viewer shows "FILENAME:LINE:NAME".
  void frames(std::size_t i, int op) {
    pickle_.text("frames");
    pickle_.begin_list();
    frame(tensor(i).name, about(tensor(i)), live_.tensors[i].tensor);
    if (op >= 0) frame(live_.program->ops[static_cast<std::size_t>(op)].name, name_, op);
    pickle_.end_list();
  }

  void frame(const std::string& name, const std::string& file, int line) {
    pickle_.begin_dict();
    pickle_.item("name", name);
    pickle_.item("filename", file);
    pickle_.item("line", line);
    pickle_.end_dict();
  }

  // One segment holds all addresses: blocks at the end of the step, and the free places between them.
  void write_segments() {
    pickle_.begin_list();
    if (space_.end() > space_.base()) write_segment();
    pickle_.end_list();
  }

  void write_segment() {
    std::int64_t allocated = 0;
    for (const auto& [address, bytes] : space_.blocks()) allocated += bytes;
    pickle_.begin_dict();
    pickle_.item("device", 0);
    pickle_.item("address", space_.base());
    pickle_.item("total_size", space_.end() - space_.base());
    pickle_.item("allocated_size", allocated);
    pickle_.item("active_size", allocated);
    pickle_.item("requested_size", requested());
    pickle_.item("stream", 0);
    pickle_.item("segment_type", "large");
    pickle_.text("is_expandable");
    pickle_.boolean(false);
    pickle_.text("blocks");
    pickle_.begin_list();
    std::int64_t next = space_.base();
    for (const auto& [address, bytes] : space_.blocks()) {
      if (address > next) free_block(next, address - next);
      block(address, bytes);
      next = address + bytes;
    }
    if (next < space_.end()) free_block(next, space_.end() - next);
    pickle_.end_list();
    pickle_.end_dict();
  }

  std::int64_t requested() const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < live_.tensors.size(); ++i)
      if (counts(i) && live_.tensors[i].persistent) bytes += whole_bytes(live_.tensors[i].bytes);
    return bytes;
  }

  void block(std::int64_t address, std::int64_t bytes) {
    const std::size_t i = tensor_at_.at(address);
    block_head(address, bytes, whole_bytes(live_.tensors[i].bytes), "active_allocated");
    frames(i, -1);
    pickle_.end_dict();
  }

  void free_block(std::int64_t address, std::int64_t bytes) {
    block_head(address, bytes, 0, "inactive");
    pickle_.text("frames");
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.end_dict();
  }

  void block_head(std::int64_t address, std::int64_t bytes, std::int64_t requested, const char* state) {
    pickle_.begin_dict();
    pickle_.item("address", address);
    pickle_.item("size", bytes);
    pickle_.item("requested_size", requested);
    pickle_.item("state", state);
  }

  std::string name_;
  LiveTensors live_;
  MemoryTimeline timeline_;
  std::vector<std::int64_t> addresses_;            // by tensor; 0: not allocated yet
  std::map<std::int64_t, std::size_t> tensor_at_;  // the last one at an address
  AddressSpace space_{kFirstAddress, kBlockUnit};
  Pickle pickle_;
};

}  // namespace

std::string memory_snapshot(const Trace& trace, int job) {
  const MemoryPeak fullest = fullest_worker(memory_peaks(trace, job));
  return SnapshotWriter(trace, fullest.rank_class, fullest.step).write();
}

void write_memory_snapshot(const Result& result, const std::string& path) {
  write_whole_file(path, memory_snapshot(result.trace, 0));
}

}  // namespace rehearse
