#include "simulator/engine/trace_pipe.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rehearse {

namespace {

class Writer {
public:
  template <class T>
  void value(const T& v) {
    buffer_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  template <class T>
  void values(const std::vector<T>& v) {
    value(v.size());
    buffer_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  }
  void text(const std::string& s) {
    value(s.size());
    buffer_ += s;
  }
  bool send(int file) const {
    std::size_t sent = 0;
    while (sent < buffer_.size()) {
      const ssize_t n = write(file, buffer_.data() + sent, buffer_.size() - sent);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

private:
  std::string buffer_;
};

class Reader {
public:
  explicit Reader(int file) {
    char block[65536];
    while (true) {
      const ssize_t n = read(file, block, sizeof block);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      buffer_.append(block, static_cast<std::size_t>(n));
    }
  }
  template <class T>
  void value(T& v) {
    if (!take(sizeof v)) return;
    std::memcpy(&v, buffer_.data() + at_ - sizeof v, sizeof v);
  }
  template <class T>
  void values(std::vector<T>& v) {
    std::size_t n = 0;
    value(n);
    if (!take(n * sizeof(T))) return;
    v.resize(n);
    if (n > 0) std::memcpy(v.data(), buffer_.data() + at_ - n * sizeof(T), n * sizeof(T));
  }
  void text(std::string& s) {
    std::size_t n = 0;
    value(n);
    if (take(n)) s = buffer_.substr(at_ - n, n);
  }
  bool whole() const { return whole_; }

private:
  bool take(std::size_t n) {
    if (buffer_.size() - at_ < n) whole_ = false;
    if (whole_) at_ += n;
    return whole_;
  }
  std::string buffer_;
  std::size_t at_ = 0;
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
  Writer w;
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
  return w.send(file);
}

bool send_failure(const std::string& message, int file) {
  Writer w;
  w.value(kFailure);
  w.text(message.empty() ? "the simulation failed" : message);
  return w.send(file);
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
