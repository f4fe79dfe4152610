// Tests that untrusted text cannot control the terminal when printed, and that only a limited amount is read.
#include <sstream>
#include <string>
#include <utility>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "models/text/read_text.hpp"
#include "models/text/toml_value.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

const std::pair<std::string, std::string> kTexts[] = {
    {"plain text, \"quoted\" \\", "plain text, \"quoted\" \\"},
    {"\x1b[2J\x07", "\\x1B[2J\\x07"},
    {"a\tb\nc\r", "a\\x09b\\x0Ac\\x0D"},
    {std::string("a\0b", 3), "a\\x00b"},
    {"\x7f", "\\x7F"},
    {"\xC2\x80 \xC2\x9B \xC2\x9F", "\\u0080 \\u009B \\u009F"},
    {"\xC2\xA0 \xC3\xA9 \xE2\x96\x88 \xF0\x9F\x9A\x80", "\xC2\xA0 \xC3\xA9 \xE2\x96\x88 \xF0\x9F\x9A\x80"},
    {"\x9B \xC2", "\\x9B \\xC2"},  // continuation without start, and start without continuation
    {"\xC0\x9B \xED\xA0\x80", "\\xC0\\x9B \\xED\\xA0\\x80"},  // overlong; surrogate
    {"\xE2\x96", "\\xE2\\x96"},
};

}  // namespace

TEST_CASE("control characters and bytes that are not UTF-8 are escaped") {
  for (const auto& [text, expected] : kTexts) {
    CAPTURE(expected);
    CHECK(printable(text) == expected);
    CHECK(printable(expected) == expected);
  }
  CHECK(printable("a\n\tb\r", "\n\t") == "a\n\tb\\x0D");
  CHECK(title_of_file("folder/a\x1b[31m\xff.toml") == "a\\x1B[31m\\xFF");
}

TEST_CASE("values of a file are quoted without control characters") {
  CHECK(in_quotes("\x1b \xC2\x9B \xFF \"\\") == "\"\\x1B \\u009B \\xFF \\\"\\\\\"");
}

TEST_CASE("the place of an error is printable") {
  CHECK(std::string(InputError({"a\x1b[31m\n.toml", 1, 2}, "wrong").what()) ==
        "a\\x1B[31m\\x0A.toml:1:2: wrong");
}

TEST_CASE("text is read up to a limit") {
  std::istringstream small(std::string(1u << 20, 'x'));
  CHECK(read_text(small, "<stdin>", "scenario", 1u << 20).size() == 1u << 20);
  std::istringstream large(std::string((1u << 20) + 1, 'x'));
  CHECK_THROWS_WITH(read_text(large, "<stdin>", "scenario", 1u << 20),
                    "<stdin>: is larger than 1 MiB; allowed: a scenario of at most 1 MiB");
}
