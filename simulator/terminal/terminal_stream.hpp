// Filters standard output and standard error of the programs, so that printed text cannot control a terminal.
#pragma once

#include <cstddef>
#include <streambuf>
#include <string>

namespace rehearse {

// Writes text to an open file and escapes control characters except line feeds and tabs (printable.hpp), so
// that callers need not. After the reader of a pipe has gone, discards all text without an error: `head` has
// read what it needed.
class TerminalBuffer : public std::streambuf {
public:
  explicit TerminalBuffer(int file) : file_(file) {}
  ~TerminalBuffer() override { finish(); }
  TerminalBuffer(const TerminalBuffer&) = delete;
  TerminalBuffer& operator=(const TerminalBuffer&) = delete;

  bool finish();                        // writes the rest; false on error
  int error() const { return error_; }  // errno of the first failed write; 0: none

protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize bytes) override;
  int sync() override;

private:
  bool write_pending(std::size_t bytes);

  int file_;
  int error_ = 0;
  bool reader_gone_ = false;
  std::string pending_;
};

}  // namespace rehearse
