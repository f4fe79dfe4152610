// Tests the strict TOML reader: what it accepts, and the position and wording of its errors.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "models/text/document.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

// Returns the message of InputError, or "" if nothing is thrown.
template <typename F>
std::string error_of(F&& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string parse_error(std::string_view text) {
  return error_of([&] { Document::parse_text(text, "f.toml"); });
}

struct TemporaryFile {
  explicit TemporaryFile(const std::string& text) {
    path = std::filesystem::temp_directory_path() / ("rehearse_base_" + std::to_string(::getpid()) + ".toml");
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("values are read as they stand") {
  auto document = Document::parse_text(
      "number = 2.5\ninteger = 7\nwhole = 3\nyes = true\nname = \"ring\"\n"
      "numbers = [1, 2.5]\nintegers = [1, 2]\ntexts = [\"a\", \"b\"]\n[sub.deeper]\nx = 1\n[[item]]\nn = "
      "1\n[[item]]\nn = 2\n",
      "f.toml");
  auto root = document.root();
  CHECK(root.number("number", kPositive) == 2.5);
  CHECK(root.number("whole", kPositive) == 3);
  CHECK(root.integer("integer", 1, 10) == 7);
  CHECK(root.boolean("yes"));
  CHECK(root.text("name") == "ring");
  constexpr std::array<std::string_view, 2> names = {"tree", "ring"};
  CHECK(root.choice("name", names) == 1);
  CHECK(root.numbers("numbers", kPositive) == std::vector<double>{1, 2.5});
  CHECK(root.integers("integers", 0, 9) == std::vector<std::int64_t>{1, 2});
  CHECK(root.texts("texts") == std::vector<std::string>{"a", "b"});
  CHECK(root.numbers("absent", kPositive).empty());
  CHECK(root.number("absent_number", kPositive, 4) == 4);
  CHECK(root.text("absent_text", "fallback") == "fallback");
  CHECK(root.section("sub").section("deeper").integer("x", 0, 1) == 1);
  CHECK(root.section("sub").path() == "sub");
  CHECK_FALSE(root.section("nothing").present());
  auto items = root.sections("item");
  REQUIRE(items.size() == 2);
  CHECK(items[1].integer("n", 0, 9) == 2);
  CHECK(items[1].path() == "item[1]");
  CHECK(items[1].place("n").line == 14);
  CHECK(root.keys() == std::vector<std::string>{"number", "integer", "whole", "yes", "name", "numbers",
                                                "integers", "texts", "sub", "item"});
  CHECK(error_of([&] { root.finish(); }).empty());
}

TEST_CASE("a value that is refused is named with its place, what was found and what is allowed") {
  struct Case {
    std::string text;
    std::function<void(Section&)> read;
    std::string error;
  };
  constexpr static std::array<std::string_view, 2> names = {"gpipe", "1f1b"};
  auto number = [](Section& s) { s.number("x", kPositive); };
  auto integer = [](Section& s) { s.integer("x", 1, 1000); };
  auto text = [](Section& s) { s.text("x"); };
  const Case cases[] = {
      {"x = \"abc\"", number, "f.toml:2:5: t.x is a string \"abc\"; allowed: a number above 0"},
      {"x = true", number, "f.toml:2:5: t.x is a boolean true; allowed: a number above 0"},
      {"x = nan", number, "f.toml:2:5: t.x is NaN; allowed: a number above 0"},
      {"x = -inf", number, "f.toml:2:5: t.x is -infinity; allowed: a number above 0"},
      {"x = -3", number, "f.toml:2:5: t.x is -3; allowed: a number above 0"},
      {"x = 0.0", number, "f.toml:2:5: t.x is 0.0; allowed: a number above 0"},
      {"x = 1e300", number, "f.toml:2:5: t.x is 1e+300; allowed: a number above 0, at most 1e+18"},
      {"x = 2026-01-02", number, "f.toml:2:5: t.x is a date or time 2026-01-02; allowed: a number above 0"},
      {"x = [1, 2]", number, "f.toml:2:5: t.x is an array of 2 elements; allowed: a number above 0"},
      {"x = {}", number, "f.toml:2:5: t.x is a table; allowed: a number above 0"},
      {"y = 1", number, "f.toml:1:1: t.x is missing; allowed: a number above 0"},
      {"x = 1.5", [](Section& s) { s.number("x", kFraction); },
       "f.toml:2:5: t.x is 1.5; allowed: a number above 0 and at most 1"},
      {"x = -1", [](Section& s) { s.number("x", kNotNegative); },
       "f.toml:2:5: t.x is -1; allowed: a number of at least 0"},
      {"x = 8",
       [](Section& s) {
         s.number("x", {2, 4});
       },
       "f.toml:2:5: t.x is 8; allowed: a number from 2 to 4"},
      {"x = 0", integer, "f.toml:2:5: t.x is 0; allowed: an integer from 1 to 1000"},
      {"x = 2.0", integer, "f.toml:2:5: t.x is 2.0; allowed: an integer from 1 to 1000"},
      {"x = 9223372036854775807", integer,
       "f.toml:2:5: t.x is 9223372036854775807; allowed: an integer from 1 to 1000"},
      {"x = 1", text, "f.toml:2:5: t.x is 1; allowed: a string"},
      {"x = \"a\\u0000b\"", text,
       "f.toml:2:5: t.x is a string \"a\\x00b\"; allowed: a string without control characters"},
      {"x = \"" + std::string(5000, 'a') + "\"", text,
       "f.toml:2:5: t.x is a string of 5000 bytes; allowed: at most 4096"},
      {"x = \"1f1\"", [](Section& s) { s.choice("x", names); },
       "f.toml:2:5: t.x is \"1f1\"; allowed: \"gpipe\", \"1f1b\""},
      {"x = 1", [](Section& s) { s.boolean("x"); }, "f.toml:2:5: t.x is 1; allowed: true or false"},
      {"x = [1, 2, \"c\"]", [](Section& s) { s.integers("x", 1, 9); },
       "f.toml:2:12: t.x[2] is a string \"c\"; allowed: an integer from 1 to 9"},
      {"x = 3", [](Section& s) { s.integers("x", 1, 9); },
       "f.toml:2:5: t.x is 3; allowed: an array of integers"},
      {"x = 3", [](Section& s) { s.section("x"); }, "f.toml:2:5: t.x is 3; allowed: a table [t.x]"},
      {"x = {}", [](Section& s) { s.sections("x"); }, "f.toml:2:5: t.x is a table; allowed: tables [[t.x]]"},
      {"x = [1]", [](Section& s) { s.sections("x"); }, "f.toml:2:6: t.x[0] is 1; allowed: tables [[t.x]]"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    auto document = Document::parse_text("[t]\n" + c.text + "\n", "f.toml");
    auto section = document.root().section("t");
    CHECK(error_of([&] { c.read(section); }) == c.error);
  }
  auto empty = Document::parse_text("", "f.toml");
  auto absent = empty.root().section("t");
  CHECK(error_of([&] { absent.number("x", kPositive); }) ==
        "f.toml: t.x is missing; allowed: a number above 0");
}

TEST_CASE("keys that nobody asks for are refused") {
  auto refusal = [](std::string_view text) {
    auto document = Document::parse_text(text, "f.toml");
    auto root = document.root();
    auto training = root.section("training");
    training.integer("micro_batch", 1, 9, 1);
    training.integer("global_batch", 1, 9, 1);
    return error_of([&] {
      root.finish();
      training.finish();
    });
  };
  CHECK(refusal("[training]\nmicro_batch = 2\n") == "");
  CHECK(refusal("[training]\nmicro_bach = 2\n") ==
        "f.toml:2:1: unknown key \"micro_bach\" in [training]; did you mean \"micro_batch\"?");
  CHECK(refusal("[training]\n\nlearning = 2\n") ==
        "f.toml:3:1: unknown key \"learning\" in [training]; allowed: global_batch, micro_batch");
  CHECK(refusal("[trainig]\n") == "f.toml:1:2: unknown section [trainig]; did you mean [training]?");
  // Long names are shortened, and control characters escaped.
  CHECK(refusal("[" + std::string(5000, 'x') + "]\n") ==
        "f.toml:1:2: unknown section [" + std::string(60, 'x') + "...]; allowed: training");
  CHECK(refusal("[\"a\\u0007\"]\n") == "f.toml:1:2: unknown section [a\\x07]; allowed: training");
  auto required = Document::parse_text("[training]\nglobal_bach = 2\n", "f.toml");
  CHECK(error_of([&] { required.root().section("training").integer("global_batch", 1, 9); }) ==
        "f.toml:2:1: unknown key \"global_bach\" in [training]; did you mean \"global_batch\"?");
  CHECK(refusal("batch = 1\n") == "f.toml:1:1: unknown key \"batch\"; allowed: training");
}

TEST_CASE("a name that begins with what was found is nearest, then one with the same first letter") {
  const std::vector<std::string> known = {"a10", "a100-40-pcie", "h100", "v100"};
  for (const auto& [found, nearest] :
       {std::pair{"a100", "a100-40-pcie"}, {"v10", "v100"}, {"h10", "h100"}, {"a1", "a10"}}) {
    CAPTURE(found);
    CHECK(nearest_name(found, known) == nearest);
  }
}

TEST_CASE("the nearest name is at most two edits or a third of the length away") {
  const std::vector<std::string> known = {"micro_batch", "global_batch", "optimizer", "tensor"};
  const std::pair<std::string, std::string> cases[] = {
      {"micro_bach", "micro_batch"},     // one letter missing
      {"mircobatch", "micro_batch"},     // neighbours swapped and one letter missing
      {"optimiser", "optimizer"},        // one letter replaced
      {"tensors", "tensor"},             // one letter added
      {"global_barks", "global_batch"},  // 3 edits; a third of 12 letters is 4
      {"pipeline", ""},
      {"", ""},
      {std::string(100'000, 'a'), ""},
  };
  for (const auto& [found, nearest] : cases) {
    CAPTURE(found.substr(0, 20));
    CHECK(nearest_name(found, known) == nearest);
  }
}

TEST_CASE("text that is not TOML is refused with its place") {
  CHECK(parse_error("") == "");
  CHECK(parse_error("\xEF\xBB\xBFx = 1\n") == "");  // a byte order mark
  CHECK(parse_error("x = \"\xC3\xA9\"\r\n# \xF0\x9F\x98\x80\n") == "");
  CHECK(parse_error("x = 1\ny = \"\xFF\"\n") ==
        "f.toml:2:6: the byte 0xFF is not UTF-8; allowed: text in UTF-8");
  // Overlong, surrogate, above U+10FFFF, truncated.
  for (std::string bytes : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    CAPTURE(bytes);
    CHECK(parse_error("\xC3\xA9" + bytes).substr(0, 23) == "f.toml:1:2: the byte 0x");
  }
  CHECK(parse_error("[training]\nx = [1, 2\n").substr(0, 22) == "f.toml:2:11: not TOML:");
  CHECK(parse_error("x = 1\nx = 2\n").substr(0, 21) == "f.toml:2:5: not TOML:");
  CHECK(parse_error(std::string("x = \0", 5)).substr(0, 9) == "f.toml:1:");
}

TEST_CASE("nesting cannot exhaust the stack") {
  CHECK(parse_error("x = " + std::string(100'000, '[')) ==
        "f.toml:1:37: brackets are nested more than 32 deep; allowed: at most 32");
  CHECK(parse_error("[" + std::string(100'000, '[')).find("nested more than 32") != std::string::npos);
  std::string dotted = "a";
  for (int i = 0; i < 100'000; ++i) dotted += ".a";
  for (const std::string& text : {dotted + " = 1\n", "[" + dotted + "]\n", "x = {" + dotted + " = 1}\n"}) {
    CHECK(parse_error(text).find("a key has more than 32 dots; allowed: at most 32") != std::string::npos);
  }
  // Brackets in strings and comments do not count as nesting, nor do the dots of numbers.
  CHECK(parse_error("# " + std::string(100, '[') + "\nx = \"" + std::string(100, '[') + "\"\ny = '''\n" +
                    std::string(100, '{') + "'''\n") == "");
  std::string numbers = "x = [";
  for (int i = 0; i < 20'000; ++i) numbers += "1.5, ";
  CHECK(parse_error(numbers + "]\n") == "");
}

TEST_CASE("files that cannot be read are refused") {
  auto error = [](const std::string& path) { return error_of([&] { Document::parse_file(path); }); };
  CHECK(error("") == "no file name is given");
  CHECK(error("/nowhere/at/all.toml") == "/nowhere/at/all.toml: there is no such file");
  CHECK(error("/tmp") == "/tmp: is a directory; allowed: a TOML file");
  CHECK(error("/dev/zero") == "/dev/zero: is larger than 16 MiB; allowed: a TOML file of at most 16 MiB");
  TemporaryFile file("x = 3\n");
  CHECK(Document::parse_file(file.path).root().integer("x", 0, 9) == 3);
}

TEST_CASE("overrides set, create and are refused by their own name") {
  auto document = Document::parse_text("[training]\nmicro_batch = 2\n[[slow]]\nfactor = 0.5\n", "f.toml");
  for (const char* assignment : {"training.micro_batch=3", "training.name = \"a b\"", "training.word=1f1b",
                                 "cluster.fabric.kind=switch", "slow[0].factor=0.25", "slow[1].factor=1",
                                 "training.list=[1, 2]", "path=lab/x.toml"}) {
    document.set(assignment);
  }
  auto root = document.root();
  auto training = root.section("training");
  CHECK(training.integer("micro_batch", 1, 9) == 3);
  CHECK(training.text("name") == "a b");
  CHECK(training.text("word") == "1f1b");
  CHECK(root.section("cluster").section("fabric").text("kind") == "switch");
  CHECK(root.text("path") == "lab/x.toml");
  REQUIRE(root.sections("slow").size() == 2);
  CHECK(root.sections("slow")[0].number("factor", kPositive) == 0.25);
  CHECK(training.integers("list", 0, 9) == std::vector<std::int64_t>{1, 2});

  document.set("training.micro_batch=-1");
  CHECK(error_of([&] { training.integer("micro_batch", 1, 9); }) ==
        "--set training.micro_batch=-1: training.micro_batch is -1; allowed: an integer from 1 to 9");
  document.set("training.list=[1, 99]");
  CHECK(error_of([&] { training.integers("list", 1, 9); }) ==
        "--set training.list=[1, 99]: training.list[1] is 99; allowed: an integer from 1 to 9");

  const std::pair<std::string, std::string> refused[] = {
      {"training", "--set training: there is no \"=\"; allowed: --set section.key=value"},
      {"=1", "--set =1: \"\" is not the name of a key; allowed: section.key or section.key[0].key"},
      {"a..b=1",
       "--set a..b=1: \"a..b\" is not the name of a key; allowed: section.key or section.key[0].key"},
      {"a[x]=1",
       "--set a[x]=1: \"a[x]\" is not the name of a key; allowed: section.key or section.key[0].key"},
      {"a=1\nb=2", "--set a=1\\x0Ab=2: the value has a line break; allowed: one line"},
      {"a=\xFF", "--set a=\\xFF: the value is not UTF-8"},
      {"a=" + std::string(40, '['),
       "--set a=" + std::string(40, '[') + ": the value is nested too deep; allowed: at most 32"},
      {"path.x=1", "--set path.x=1: path is a string \"lab/x.toml\"; allowed: a table, to set a key in it"},
      {"slow[9].factor=1", "--set slow[9].factor=1: slow has 2 elements; allowed: an index from 0 to 2"},
      {"path[0]=1", "--set path[0]=1: path is a string \"lab/x.toml\"; allowed: an array"},
  };
  for (const auto& [assignment, message] : refused) {
    CAPTURE(assignment);
    CHECK(error_of([&, text = assignment] { document.set(text); }) == message);
  }
  document.set("a=1");
  REQUIRE(document.root().has("a"));
  document.set("a=");  // removes the key
  CHECK(!document.root().has("a"));
  CHECK(error_of([&] { document.set("a=[1, "); }).substr(0, 36) == "--set a=[1, : the value is not TOML:");
}

TEST_CASE("absent keys are filled in, table by table") {
  auto document = Document::parse_text("x = 1\n[a]\ny = 2\n[a.b]\nz = 3\n", "own");
  auto defaults =
      Document::parse_text("x = 10\nw = 11\n[a]\ny = 12\nv = 13\n[a.b]\nz = 14\n[a.c]\nu = 15\n", "defaults");
  CHECK(document.fill_in(defaults) == std::vector<std::string>{"x", "a.y", "a.b.z"});
  auto root = document.root();
  auto a = root.section("a");
  CHECK(root.integer("x", 0, 99) == 1);
  CHECK(root.integer("w", 0, 99) == 11);
  CHECK(a.integer("y", 0, 99) == 2);
  CHECK(a.integer("v", 0, 99) == 13);
  CHECK(a.section("b").integer("z", 0, 99) == 3);
  CHECK(a.section("c").integer("u", 0, 99) == 15);
  CHECK(error_of([&] { a.integer("v", 0, 9); }) ==
        "defaults:5:5: a.v is 13; allowed: an integer from 0 to 9");
  CHECK(error_of([&] { a.integer("y", 0, 1); }) == "own:3:5: a.y is 2; allowed: an integer from 0 to 1");
}

TEST_CASE("preset names stay inside their folder") {
  for (const char* name : {"", "..", "../x", "a/b", "/etc/passwd", "a b", ".hidden", "no-such-preset"}) {
    CAPTURE(name);
    CHECK(preset_path("models", name).empty());
  }
  auto folder = std::filesystem::temp_directory_path() / ("rehearse_data_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "topologies/presets/devices");
  std::ofstream(folder / "topologies/presets/devices/b.toml") << "x = 1\n";
  std::ofstream(folder / "topologies/presets/devices/a.toml") << "x = 1\n";
  std::ofstream(folder / "topologies/presets/devices/a.txt") << "x = 1\n";
  ::setenv("REHEARSE_DATA", folder.c_str(), 1);
  CHECK(preset_names("topologies/devices") == std::vector<std::string>{"a", "b"});
  CHECK(preset_path("topologies/devices", "a") == (folder / "topologies/presets/devices/a.toml").string());
  CHECK(preset_path("topologies/devices", "c").empty());
  CHECK(preset_names("nothing").empty());
  ::unsetenv("REHEARSE_DATA");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the values of a document, flat and in the order of the file") {
  Document document = Document::parse_text(
      "b = 1\n[a]\nx = \"text\"\nlist = [1, 2.5]\n[[a.slow]]\nfactor = 0.5\n[c]\nd.e = true\n", "file");
  document.set("a.x=other");
  document.set("a.new=3");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"b", "1"},     {"a.x", "other"}, {"a.list", "[1, 2.5]"}, {"a.slow[0].factor", "0.5"},
      {"a.new", "3"}, {"c.d.e", "true"}};
  CHECK(document.values() == expected);
}
