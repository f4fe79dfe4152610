// Where the bytes of a trace come from: a file, plain or gzipped, or a text in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rehearse::gui {

class TraceSource {
public:
  virtual ~TraceSource() = default;
  // Writes up to `bytes` to `to`; fewer only at the end. What fails ends the source and is told by problem().
  virtual std::size_t read(char* to, std::size_t bytes) = 0;
  virtual double share() const = 0;                        // that has been read, 0 to 1
  const std::string& problem() const { return problem_; }  // "" if all is well

protected:
  std::string problem_;
};

// InputError: it cannot be opened.
std::unique_ptr<TraceSource> open_trace(const std::string& path);
// `text` must outlive it.
std::unique_ptr<TraceSource> text_source(std::string_view text);

}  // namespace rehearse::gui
