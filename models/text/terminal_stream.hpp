// Standard output and standard error of the programs: what is printed there cannot command a terminal.
#pragma once

#include <cstddef>
#include <streambuf>
#include <string>

namespace rehearse {

// Writes text to an open file, control characters but for line feeds and tabs escaped (printable.hpp), so
// that no caller has to think of it. A pipe whose reader has gone takes everything and loses it: `head` has
// what it wanted.
class TerminalBuffer : public std::streambuf {
public:
  explicit TerminalBuffer(int file) : file_(file) {}
  ~TerminalBuffer() override { finish(); }
  TerminalBuffer(const TerminalBuffer&) = delete;
  TerminalBuffer& operator=(const TerminalBuffer&) = delete;

  bool finish();                        // writes all that is left; false if it cannot be written
  int error() const { return error_; }  // errno of the first write that failed; 0: none did

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
