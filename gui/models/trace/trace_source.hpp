// Reads the bytes of a trace from a file, plain or gzipped, or from a text in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rehearse::gui {

class TraceSource {
public:
  virtual ~TraceSource() = default;
  // Writes up to `bytes` to `to`; fewer only at the end. An error ends the source and is reported by
  // problem().
  virtual std::size_t read(char* to, std::size_t bytes) = 0;
  virtual double share() const = 0;                        // share that has been read, 0 to 1
  const std::string& problem() const { return problem_; }  // "" if there was no error

protected:
  std::string problem_;
};

// Throws InputError if the file cannot be opened.
std::unique_ptr<TraceSource> open_trace(const std::string& path);
// `text` must outlive the source.
std::unique_ptr<TraceSource> text_source(std::string_view text);

}  // namespace rehearse::gui
