// A trace as the window holds it: rows of spans in columns, whoever wrote it.
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

// What a rank does in a span: what is told apart by colour and pattern.
enum class Kind : std::uint8_t {
  compute,        // forward, backward, optimizer; kernels
  communication,  // bytes on their way
  waiting,        // for a peer that is not ready
  bubble,         // waiting for a peer of the pipeline
  data,           // loading a batch
  checkpoint,     // writing one
  copy,           // memory copies and sets
  host,           // the host's own calls: operators, the CUDA runtime
  annotation,     // what somebody marked by name
  other
};
inline constexpr std::array<std::string_view, 10> kKindNames = {
    "compute",    "communication", "waiting", "bubble",     "data",
    "checkpoint", "copy",          "host",    "annotation", "other"};

// Of computation: which part of the training step. Backward: of the whole, or of the inputs alone where the
// gradients of the weights are computed apart.
enum class Pass : std::uint8_t { none, forward, backward, optimizer, recompute, weights };
inline constexpr std::array<std::string_view, 6> kPassNames = {"none",      "forward",   "backward",
                                                               "optimizer", "recompute", "weights"};

// Spans in columns of equal length, ordered by row and, within a row, by time. What is not known: -1, NaN or
// 0 as told.
struct SpanColumns {
  std::vector<Time> begin, end;
  std::vector<std::uint32_t> name;  // of Timeline::strings
  std::vector<Kind> kind;
  std::vector<Pass> pass;
  std::vector<std::int32_t> microbatch;  // -1
  std::vector<std::int32_t> step;        // -1
  std::vector<std::int32_t> op;          // number in its rank's program; -1
  std::vector<std::uint32_t> algorithm;  // of strings; 0: ""
  std::vector<std::int32_t> members;     // of a collective; 0
  std::vector<float> bytes, flops;       // NaN
  std::vector<Time> ready;               // when its stream and dependencies let it begin; -1
  std::vector<bool> critical;            // on the critical path, as the trace says
  std::size_t size() const { return begin.size(); }
  // Says "not known" of the spans for which a column holds nothing yet.
  void fill_unknown();
};

// Spans that do not overlap: what is painted in one line. Those of a track that overlap or nest lie in
// several rows, the outermost first. Before a transfer stands what it waited for its peer: a span of its own,
// of kind waiting or bubble, with the transfer's op.
struct Row {
  int process = 0;
  int track = -1;              // -1: the summary of its process
  SpanId first = 0, last = 0;  // [first, last) of the columns
};

// A stream of a rank or a thread of a process.
struct Track {
  std::string name;  // "compute", "stream 7"
  int process = 0;
  std::int64_t tid = 0;
  int first_row = 0, last_row = 0;  // [first, last)
};

// A rank; folded, the ranks it stands for.
struct Process {
  std::string name;  // "stage 3, data 0-63 (64 ranks)"
  std::int64_t pid = 0;
  std::int64_t sort_index = 0;
  int members = 1;                      // ranks that it stands for
  std::string stage, role;              // to group by; empty: not known
  std::string kind;                     // what ranks that do alike share, "rank 0-7"; empty: it is alone
  int first_track = 0, last_track = 0;  // [first, last)
  // Of all its tracks, each instant once: computing (of our own traces with its pass and micro-batch), else
  // exposed communication, else data, else waiting. Its spans are made up when the trace is read; they count
  // in no total and no search. -1: none.
  int summary_row = -1;
  bool device = true;  // false: a host beside its GPUs, which means of devices leave out
};

// A value that stays until it changes.
struct Counter {
  std::string name, unit;  // "memory", "bytes"
  int process = -1;        // -1: of the whole run
  std::vector<Time> time;  // ascending
  std::vector<double> value;
};

// From the span that sends or launches to the one that receives or runs.
struct Flow {
  SpanId from = 0, to = 0;
};

struct Timeline {
  SpanColumns spans;
  std::vector<Row> rows;
  std::vector<Track> tracks;
  std::vector<Process> processes;  // in the order of their sort index
  std::vector<Counter> counters;
  std::vector<Flow> flows;              // ordered by `from`
  std::vector<std::uint32_t> flows_to;  // the same, numbers of flows ordered by `to`
  std::vector<std::string> strings = {""};

  // Of ours: numbers of ops that a span's op came after, in its rank's program.
  std::vector<std::uint32_t> first_dependency;  // of span s: [s], [s + 1]; empty: none are known
  std::vector<std::int32_t> dependencies;
  // The span's `args` as they stand in the file, for the details; empty where they were too many to keep.
  std::vector<std::uint64_t> first_detail;  // of span s: [s], [s + 1]
  std::string details;

  Time begin = 0, end = 0;  // of all spans
  Time origin = 0;          // what the file calls the time 0 of this timeline
  std::string other_data;   // JSON: `otherData` of ours; empty
  std::string metadata;  // JSON: what a profiler says of the run (distributedInfo, deviceProperties); empty
  enum class Writer { rehearse, pytorch, unknown } writer = Writer::unknown;
  std::vector<std::string> problems;  // what could not be read

  const std::string& name_of(SpanId span) const { return strings[spans.name[span]]; }
  int row_of(SpanId span) const;  // by binary search
  int process_of(SpanId span) const { return rows[row_of(span)].process; }
  // The first span of the row that ends after `time`; row.last if there is none.
  SpanId first_after(const Row& row, Time time) const;
  // The span of the row that is under way at `time`, its begin included; kNoSpan if there is none.
  SpanId at(const Row& row, Time time) const;
  std::span<const Flow> flows_from(SpanId span) const;
  std::span<const std::uint32_t> flows_into(SpanId span) const;  // numbers of flows
  std::string_view detail_of(SpanId span) const;
};

}  // namespace rehearse::gui
