// Stores a trace for the window, whichever program wrote it: rows of spans, with one array per attribute.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rehearse::gui {

using Time = std::int64_t;  // nanoseconds from the first span of the trace
using SpanId = std::uint32_t;
inline constexpr SpanId kNoSpan = std::numeric_limits<SpanId>::max();

// What a rank does in a span; kinds differ in color and pattern.
enum class Kind : std::uint8_t {
  compute,        // forward, backward, optimizer; kernels
  communication,  // transfer of bytes
  waiting,        // for a peer that is not ready
  bubble,         // waiting for a peer in the pipeline
  data,           // loading a batch
  checkpoint,     // writing a checkpoint
  copy,           // memory copies and memory sets
  host,           // calls on the host: operators, the CUDA runtime
  annotation,     // a range marked by name
  other
};
inline constexpr std::array<std::string_view, 10> kKindNames = {
    "compute",    "communication", "waiting", "bubble",     "data",
    "checkpoint", "copy",          "host",    "annotation", "other"};
inline bool is_wait(Kind kind) {
  return kind == Kind::waiting || kind == Kind::bubble;
}

// The part of the training step that a compute span belongs to. backward: the complete backward pass, or only
// the gradients of the inputs if those of the weights are computed separately.
enum class Pass : std::uint8_t { none, forward, backward, optimizer, recompute, weights };
inline constexpr std::array<std::string_view, 6> kPassNames = {"none",      "forward",   "backward",
                                                               "optimizer", "recompute", "weights"};

// Attributes of spans in columns of equal length, sorted by row and then by time. Unknown values are -1, NaN
// or 0 as noted.
struct SpanColumns {
  std::vector<Time> begin, end;
  std::vector<std::uint32_t> name;  // index into Timeline::strings
  std::vector<Kind> kind;
  std::vector<Pass> pass;
  std::vector<std::int32_t> microbatch;  // -1: unknown
  std::vector<std::int32_t> step;        // -1: unknown
  std::vector<std::int32_t> op;          // number in its rank's program; -1: unknown
  std::vector<std::uint32_t> algorithm;  // index into Timeline::strings; 0: ""
  std::vector<std::int32_t> members;     // of a collective; 0: unknown
  std::vector<float> bytes, flops;       // NaN: unknown
  std::vector<Time> ready;               // when its stream and dependencies allowed it to begin; -1: unknown
  std::vector<bool> critical;            // on the critical path, according to the trace
  std::size_t size() const { return begin.size(); }
  // Fills columns that are shorter than `begin` with their "unknown" values.
  void fill_unknown();
};

// Spans without overlaps, painted in one line. Overlapping or nested spans of a track are in several rows,
// the outermost first. The wait for the peer before a transfer is a separate span of kind waiting or bubble,
// with the transfer's op.
struct Row {
  int process = 0;
  int track = -1;              // -1: the summary of its process
  SpanId first = 0, last = 0;  // [first, last) in the columns
};

// A stream of a rank or a thread of a process.
struct Track {
  std::string name;  // e.g. "compute", "stream 7"
  int process = 0;
  std::int64_t tid = 0;
  int first_row = 0, last_row = 0;  // [first, last)
};

// A rank, or several ranks folded into one process.
struct Process {
  std::string name;  // "stage 3, data 0-63 (64 ranks)"
  std::int64_t pid = 0;
  std::int64_t sort_index = 0;
  int members = 1;          // number of ranks it represents
  std::string stage, role;  // for grouping; empty: not known
  std::string kind;         // common name of ranks with similar behavior, "rank 0-7"; empty: no others
  int first_track = 0, last_track = 0;  // [first, last)
  // The row that summarizes all its tracks, with each instant counted once: compute (in Rehearse's traces
  // with its pass and micro-batch), else exposed communication, else data, else waiting. Its spans are
  // synthesized when the trace is read and do not count in totals or searches. -1: none.
  int summary_row = -1;
  bool device = true;  // false: a host next to its GPUs, which means over devices leave out
};

// A value that is constant between its changes.
struct Counter {
  std::string name, unit;  // e.g. "memory", "bytes"
  int process = -1;        // -1: of the run as a whole
  std::vector<Time> time;  // ascending
  std::vector<double> value;
};

// An arrow from the span that sends or launches to the one that receives or runs.
struct Flow {
  SpanId from = 0, to = 0;
};

struct Timeline {
  SpanColumns spans;
  std::vector<Row> rows;
  std::vector<Track> tracks;
  std::vector<Process> processes;  // sorted by their sort index
  std::vector<Counter> counters;
  std::vector<Flow> flows;              // sorted by `from`
  std::vector<std::uint32_t> flows_to;  // indices into `flows`, sorted by `to`
  std::vector<std::string> strings = {""};

  // In Rehearse's traces: the ops that a span's op depends on, as numbers in its rank's program. Those of
  // span s are at [first_dependency[s], first_dependency[s + 1]). Empty: none are known.
  std::vector<std::uint32_t> first_dependency;
  std::vector<std::int32_t> dependencies;
  // The `args` of each span as in the file, for the details panel; empty if there was too much text to
  // retain.
  std::vector<std::uint64_t> first_detail;  // the text of span s is at [first[s], first[s + 1])
  std::string details;

  Time begin = 0, end = 0;  // over all spans
  Time origin = 0;          // time in the file that is time 0 of this timeline
  std::string other_data;   // JSON: `otherData` of a Rehearse trace; else empty
  // JSON: a profiler's data about the run (distributedInfo, deviceProperties); else empty
  std::string metadata;
  enum class Writer { rehearse, pytorch, unknown } writer = Writer::unknown;
  std::vector<std::string> problems;  // what could not be read

  const std::string& name_of(SpanId span) const { return strings[spans.name[span]]; }
  int row_of(SpanId span) const;  // by binary search
  int process_of(SpanId span) const { return rows[row_of(span)].process; }
  // Returns the first span of the row that ends after `time`; row.last if there is none.
  SpanId first_after(const Row& row, Time time) const;
  // Returns the span of the row with begin <= time < end; kNoSpan if there is none.
  SpanId at(const Row& row, Time time) const;
  std::span<const Flow> flows_from(SpanId span) const;
  std::span<const std::uint32_t> flows_into(SpanId span) const;  // indices into `flows`
  std::string_view detail_of(SpanId span) const;
};

}  // namespace rehearse::gui
