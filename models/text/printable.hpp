// Text from outside (file names, arguments, strings of files), made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// Bytes of the UTF-8 sequence at the front of `text`, which is not empty; 0 if it is not UTF-8 (Unicode 15,
// table 3-7).
std::size_t utf8_length(std::string_view text);

// Whether the character at the front of `text` is a control character: U+0000 to U+001F, U+007F to U+009F. A
// terminal may take it for a command.
bool is_control(std::string_view text);

// With control characters and bytes that are not UTF-8 escaped: "\x1B" for a byte, "\u009B" for a character
// of two bytes. Characters in `kept` stay. Text that has been escaped does not change when it is escaped
// again.
std::string printable(std::string_view text, std::string_view kept = "");

// What a file is called without its folder and ending, printable.
std::string title_of_file(const std::string& path);

}  // namespace rehearse
