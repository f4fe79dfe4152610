#include "simulator/engine/trace_pipe.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rehearse {

namespace {

// Small values are collected; a large column is written from where it is, since a second copy of a long trace
// may not fit into memory.
class Writer {
public:
  explicit Writer(int file) : file_(file) { buffer_.reserve(kBlockBytes); }
  template <class T>
  void value(const T& v) {
    bytes(&v, sizeof v);
  }
  template <class T>
  void values(const std::vector<T>& v) {
    value(v.size());
    bytes(v.data(), v.size() * sizeof(T));
  }
  void text(const std::string& s) {
    value(s.size());
    bytes(s.data(), s.size());
  }
  // Writes what is still collected. Returns whether everything has been written.
  bool finish() {
    write_all(buffer_.data(), buffer_.size());
    buffer_.clear();
    return good_;
  }

private:
  static constexpr std::size_t kBlockBytes = 65536;

  void bytes(const void* data, std::size_t size) {
    if (buffer_.size() + size > kBlockBytes) finish();
    if (size > kBlockBytes)
      write_all(static_cast<const char*>(data), size);
    else if (size > 0)
      buffer_.append(static_cast<const char*>(data), size);
  }
  void write_all(const char* data, std::size_t size) {
    while (good_ && size > 0) {
      const ssize_t n = write(file_, data, size);
      if (n < 0 && errno == EINTR) continue;
      good_ = n > 0;
      if (!good_) return;
      data += n;
      size -= static_cast<std::size_t>(n);
    }
  }

  int file_;
  std::string buffer_;
  bool good_ = true;
};

class Reader {
public:
  explicit Reader(int file) : file_(file) {}
  template <class T>
  void value(T& v) {
    bytes(&v, sizeof v);
  }
  template <class T>
  void values(std::vector<T>& v) {
    take(v);
  }
  void text(std::string& s) { take(s); }
  bool whole() const { return whole_; }

private:
  template <class Column>
  void take(Column& column) {
    std::size_t n = 0;
    value(n);
    if (!whole_) return;
    column.resize(n);
    bytes(column.data(), n * sizeof column[0]);
  }
  void bytes(void* to, std::size_t size) {
    char* at = static_cast<char*>(to);
    while (whole_ && size > 0) {
      if (at_ == filled_) fill();
      const std::size_t part = std::min(size, filled_ - at_);
      std::memcpy(at, block_.data() + at_, part);
      at_ += part;
      at += part;
      size -= part;
    }
  }
  void fill() {
    ssize_t n = -1;
    do n = read(file_, block_.data(), block_.size());
    while (n < 0 && errno == EINTR);
    whole_ = n > 0;
    at_ = 0;
    filled_ = whole_ ? static_cast<std::size_t>(n) : 0;
  }

  int file_;
  std::vector<char> block_ = std::vector<char>(65536);
  std::size_t at_ = 0, filled_ = 0;  // of the block
  bool whole_ = true;
};

// Lists the contents of a trace once, for both directions.
template <class Stream, class AnyTrace>
void pass(Stream& s, AnyTrace& trace) {
  auto& spans = trace.spans;
  s.values(spans.rank_class);
  s.values(spans.phase);
  s.values(spans.step);
  s.values(spans.op);
  s.values(spans.iteration);
  s.values(spans.ready_s);
  s.values(spans.begin_s);
  s.values(spans.end_s);
  s.values(spans.latency_s);
  s.values(spans.slowed_s);
  s.values(spans.status);
  s.values(spans.sender);
  s.values(trace.link_use);
  s.value(trace.end_s);
  s.value(trace.bytes_total);
  s.text(trace.engine.fidelity);
  s.value(trace.engine.classes);
  s.value(trace.engine.events);
}

constexpr char kTrace = 't', kFailure = 'f', kEnd = 'e';

}  // namespace

bool send_trace(const Trace& trace, int file) {
  Writer w(file);
  w.value(kTrace);
  w.value(trace.classes.size());
  for (const RankClass& c : trace.classes) {
    w.value(c.job);
    w.value(c.role);
    w.value(c.phase_program);
    w.values(c.ranks);
    w.value(c.issued_s);
  }
  pass(w, trace);
  w.value(trace.job_failed.size());
  for (bool failed : trace.job_failed) w.value(failed);
  w.value(trace.failures.size());
  for (const std::string& f : trace.failures) w.text(f);
  w.value(kEnd);
  return w.finish();
}

bool send_failure(const std::string& message, int file) {
  Writer w(file);
  w.value(kFailure);
  w.text(message.empty() ? "the simulation failed" : message);
  return w.finish();
}

bool receive_trace(int file, Trace& trace, std::string& failure) {
  Reader r(file);
  char what = 0;
  r.value(what);
  if (what == kFailure) r.text(failure);
  if (what != kTrace || !r.whole()) return false;
  std::size_t n = 0;
  r.value(n);
  for (std::size_t i = 0; i < n && r.whole(); ++i) {
    RankClass c;
    r.value(c.job);
    r.value(c.role);
    r.value(c.phase_program);
    r.values(c.ranks);
    r.value(c.issued_s);
    trace.classes.push_back(std::move(c));
  }
  pass(r, trace);
  r.value(n);
  for (std::size_t i = 0; i < n && r.whole(); ++i) {
    bool failed = false;
    r.value(failed);
    trace.job_failed.push_back(failed);
  }
  r.value(n);
  for (std::size_t i = 0; i < n && r.whole(); ++i) {
    std::string f;
    r.text(f);
    trace.failures.push_back(std::move(f));
  }
  char end = 0;
  r.value(end);
  return r.whole() && end == kEnd;
}

}  // namespace rehearse
