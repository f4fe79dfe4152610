// Tests pickles byte by byte against https://docs.python.org/3/library/pickletools.html, and the addresses of
// blocks.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "simulator/report/address_space.hpp"
#include "simulator/report/pickle.hpp"
#include "tests/catch.hpp"
#include "tests/unpickle.hpp"

using namespace rehearse;
using namespace rehearse::test;
using namespace std::string_literals;

TEST_CASE("values are pickled with the operations of protocol 2") {
  struct Case {
    std::string name;
    std::function<void(Pickle&)> write;
    std::string between;  // the protocol's number and the stop
  };
  const std::vector<Case> cases = {
      {"a byte", [](Pickle& p) { p.integer(255); }, "K\xFF"},
      {"two bytes", [](Pickle& p) { p.integer(0x1234); }, "M\x34\x12"},
      {"four bytes", [](Pickle& p) { p.integer(65536); }, "J\x00\x00\x01\x00"s},
      {"a negative number", [](Pickle& p) { p.integer(-2); }, "J\xFE\xFF\xFF\xFF"},
      {"an address", [](Pickle& p) { p.integer(std::int64_t{1} << 40); }, "\x8A\x08\0\0\0\0\0\x01\0\0"s},
      {"true", [](Pickle& p) { p.boolean(true); }, "\x88"},
      {"false", [](Pickle& p) { p.boolean(false); }, "\x89"},
      {"a text", [](Pickle& p) { p.text("ab"); }, "X\x02\0\0\0abq\0"s},
      {"a text that is no UTF-8", [](Pickle& p) { p.text("\xFF"); }, "X\x04\0\0\0\\xFFq\0"s},
      {"an empty list",
       [](Pickle& p) {
         p.begin_list();
         p.end_list();
       },
       "](e"},
      {"a text that comes again",
       [](Pickle& p) {
         p.begin_list();
         p.text("a");
         p.text("a");
         p.end_list();
       },
       "](X\x01\0\0\0aq\0h\0e"s},
      {"a dictionary",
       [](Pickle& p) {
         p.begin_dict();
         p.item("n", 1);
         p.end_dict();
       },
       "}(X\x01\0\0\0nq\0K\x01u"s},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Pickle pickle;
    c.write(pickle);
    CHECK(pickle.done() == "\x80\x02" + c.between + ".");
  }
}

TEST_CASE("what is pickled is read again") {
  Pickle pickle;
  pickle.begin_dict();
  pickle.text("numbers");
  pickle.begin_list();
  for (int i = 0; i < 2500; ++i) pickle.integer(i);  // more than a batch
  pickle.integer(std::numeric_limits<std::int64_t>::min());
  pickle.integer(std::numeric_limits<std::int64_t>::max());
  pickle.end_list();
  pickle.text("texts");
  pickle.begin_list();
  for (int i = 0; i < 700; ++i) pickle.text(std::to_string(i % 350));  // more than a byte numbers
  pickle.end_list();
  pickle.end_dict();
  const nlohmann::json read = unpickle(pickle.done());
  REQUIRE(read["numbers"].size() == 2502);
  CHECK(read["numbers"][0] == 0);
  CHECK(read["numbers"][2499] == 2499);
  CHECK(read["numbers"][2500] == std::numeric_limits<std::int64_t>::min());
  CHECK(read["numbers"][2501] == std::numeric_limits<std::int64_t>::max());
  REQUIRE(read["texts"].size() == 700);
  CHECK(read["texts"][349] == "349");
  CHECK(read["texts"][699] == "349");
}

TEST_CASE("blocks take the first free place that is large enough") {
  AddressSpace space(1000, 10);
  const std::int64_t a = space.allocate(25), b = space.allocate(10), c = space.allocate(1);
  CHECK(a == 1000);
  CHECK(b == 1030);
  CHECK(c == 1040);
  CHECK(space.end() == 1050);
  space.free(a);
  CHECK(space.allocate(31) == 1050);  // more than what is free
  CHECK(space.allocate(20) == 1000);
  CHECK(space.allocate(5) == 1020);
  space.free(1000);
  space.free(b);
  space.free(1020);  // joins the places beside it
  CHECK(space.allocate(40) == 1000);
  CHECK(space.end() == 1090);
  CHECK(space.blocks().size() == 3);
  space.free(7);  // no block
  CHECK(space.blocks().size() == 3);
}
