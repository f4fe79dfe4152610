// Writes who ran where, when, in the Chrome Trace Event format: a chart that Perfetto opens.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "models/text/output_file.hpp"
#include "simulator/commands/jobs/jobs_answer.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

class TraceText {
public:
  explicit TraceText(const std::string& path) : file_(path) {}

  void add(const std::string& text) {
    text_ += text;
    if (text_.size() >= kFlushed) flush();
  }
  void end() {
    flush();
    file_.commit();
  }

private:
  static constexpr std::size_t kFlushed = 1 << 20;
  void flush() {
    for (std::size_t at = 0; at < text_.size();) {
      const ssize_t n = write(file_.descriptor(), text_.data() + at, text_.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) file_.fail(n < 0 ? errno : EIO);
      at += static_cast<std::size_t>(n);
    }
    text_.clear();
  }
  OutputFile file_;
  std::string text_;
};

}  // namespace

void write_jobs_trace(const JobsAnswer& answer, const std::string& path) {
  TraceText text(path);
  text.add("{\"traceEvents\": [");
  const char* between = "\n";
  const auto add = [&](const Json& event) {
    text.add(between + json_text(event));
    between = ",\n";
  };
  int pid = 0;
  for (const PolicyAnswer& one : answer.policies) {
    ++pid;
    add({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", one.policy->name}}}});
    for (int node = 0; node < answer.run.nodes; ++node)
      add({{"ph", "M"},
           {"name", "thread_name"},
           {"pid", pid},
           {"tid", node},
           {"args", {{"name", fmt::format("node{}", node)}}}});
    for (const JobSpan& span : one.result.spans)
      add({{"ph", "X"},
           {"name", answer.list.jobs[static_cast<std::size_t>(span.job)].name},
           {"pid", pid},
           {"tid", span.node},
           {"ts", 1e6 * span.start_s},
           {"dur", 1e6 * (span.end_s - span.start_s)},
           {"args", {{"devices", span.devices}, {"job", span.job}}}});
  }
  text.add("\n]}\n");
  text.end();
}

}  // namespace rehearse
