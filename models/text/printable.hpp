// Makes external text (file names, arguments, strings in files) safe to print.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// Returns the bytes of the UTF-8 sequence at the beginning of `text`, which must not be empty; 0 if it is not
// UTF-8 (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text);

// Whether the character at the beginning of `text` is a control character: U+0000 to U+001F, U+007F to
// U+009F. A terminal could interpret it as a command.
bool is_control(std::string_view text);

// Escapes control characters and bytes that are not UTF-8: "\x1B" for a byte, "\u009B" for a character of two
// bytes. Leaves the characters in `kept` unchanged. Escaping text twice is the same as escaping it once.
std::string printable(std::string_view text, std::string_view kept = "");

// Returns the file name without folder and extension, printable.
std::string title_of_file(const std::string& path);

}  // namespace rehearse
