#include "simulator/terminal/terminal_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kBufferBytes = 1u << 16;

// Length without an incomplete last character, whose remaining bytes can still follow.
std::size_t whole_characters(const std::string& text) {
  for (std::size_t tail = 1; tail <= std::min<std::size_t>(3, text.size()); ++tail) {
    const auto byte = static_cast<unsigned char>(text[text.size() - tail]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;  // not the first byte of a character
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return tail < length ? text.size() - tail : text.size();
  }
  return text.size();
}

}  // namespace

bool TerminalBuffer::write_pending(std::size_t bytes) {
  const std::string text = printable(std::string_view(pending_).substr(0, bytes), "\n\t");
  pending_.erase(0, bytes);
  for (std::size_t written = 0; written < text.size() && !reader_gone_ && error_ == 0;) {
    const ssize_t n = ::write(file_, text.data() + written, text.size() - written);
    if (n >= 0) {
      written += static_cast<std::size_t>(n);
    } else if (errno == EPIPE) {
      reader_gone_ = true;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  return error_ == 0;
}

bool TerminalBuffer::finish() {
  return write_pending(pending_.size());
}

TerminalBuffer::int_type TerminalBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize TerminalBuffer::xsputn(const char* text, std::streamsize bytes) {
  pending_.append(text, static_cast<std::size_t>(bytes));
  if (pending_.size() >= kBufferBytes && !write_pending(whole_characters(pending_))) return 0;
  return bytes;
}

int TerminalBuffer::sync() {
  return write_pending(whole_characters(pending_)) ? 0 : -1;
}

}  // namespace rehearse
