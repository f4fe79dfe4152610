// Checks that text from other programs is read if it is a JSON object and ignored otherwise.
#include <string>

#include "simulator/report/json_reader.hpp"
#include "tests/catch.hpp"

using rehearse::json_object_in;

TEST_CASE("a JSON object is read, anything else is an empty object") {
  CHECK(json_object_in(R"({"a": [1, 2]})").dump() == R"({"a":[1,2]})");
  for (const char* text :
       {"", " ", "{", "{}", "[1]", "1", "null", "\"a\"", "{\"a\": 1} 2", "{\"a\": 1e999}", "\xff"}) {
    CAPTURE(text);
    CHECK(json_object_in(text) == nlohmann::json::object());
  }
}
