#include "models/text/printable.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace rehearse {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte_at(text, i) >= low && byte_at(text, i) <= high;
  };
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

bool is_control(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x20 || first == 0x7F) return true;
  return first == 0xC2 && text.size() > 1 && byte_at(text, 1) >= 0x80 && byte_at(text, 1) <= 0x9F;
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const std::size_t length = utf8_length(rest);
    if (length == 0 || (is_control(rest) && kept.find(rest.front()) == std::string_view::npos)) {
      out += length == 2 ? fmt::format("\\u{:04X}", byte_at(rest, 1))
                         : fmt::format("\\x{:02X}", byte_at(rest, 0));
    } else {
      out += rest.substr(0, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string title_of_file(const std::string& path) {
  return printable(std::filesystem::path(path).stem().string());
}

}  // namespace rehearse
