// Tests that a parsed document can be written and parsed again.
#include "models/text/toml_text.hpp"

#include <algorithm>

#include "models/text/document.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("values are written so that they are read as the same") {
  for (const std::string text :
       {"7", "-3", "0.1", "1e-30", "20000000.0", "true", "\"a \\\"quoted\\\" \\\\ name\"", "\"tab \\u0009\"",
        "[1, 2.5, \"x\"]", "[]", "{a = 1, \"b c\" = [2]}", "[{a = 1}, 2]"}) {
    CAPTURE(text);
    const TomlValue value = parse_toml_value(text, {});
    const std::string written = toml_value_text(value);
    CHECK(written == toml_value_text(parse_toml_value(written, {})));
    CHECK(written == text);
  }
}

TEST_CASE("a document keeps its values, tables and arrays of tables") {
  const std::string text = R"(b.c = 1
a = "first"
[t]
[t.below]
x = [1, 2]
[[t.list]]
n = 1
[[t.list]]
n = 2
[t.list.inner]
m = 3.5
[only.headers.deep]
y = false
[empty]
)";
  Document document = Document::parse_text(text, "a.toml");
  const std::string written = toml_text(document.tree());
  CAPTURE(written);
  Document again = Document::parse_text(written, "b.toml");
  auto expected = document.values(), found = again.values();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
  CHECK(toml_text(again.tree()) == written);
  CHECK(again.root().section("empty").present());
}

TEST_CASE("only a default that is set otherwise counts as kept") {
  Document document = Document::parse_text("a = 1\nb = 2.5\nc = \"x\"\n", "a.toml");
  CHECK(document.fill_in(Document::parse_text("a = 1\nb = 3.5\nc = \"x\"\nd = 4\n", "b.toml")) ==
        std::vector<std::string>{"b"});
}
