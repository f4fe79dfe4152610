#include "simulator/terminal/progress_line.hpp"

#include <unistd.h>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

// Writes without std::cerr, which would escape terminal commands.
void write_to_terminal(const std::string& text) {
  [[maybe_unused]] const ssize_t unimportant = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

ProgressLine::ProgressLine(bool shown) : shown_(shown) {}

ProgressLine::ProgressLine() : ProgressLine(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!shown_) return;
  write_to_terminal("\r" + printable(text) + "\x1b[K");
  written_ = true;
}

void ProgressLine::clear() {
  if (written_) write_to_terminal("\r\x1b[K");
  written_ = false;
}

}  // namespace rehearse
