// Tests traces that are broken, truncated or unusual: readable parts are loaded, and problems are reported.
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "gui/models/trace/json_events.hpp"
#include "gui/models/trace/trace_events.hpp"
#include "gui/models/trace/trace_file.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/gui_timeline_checks.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::gui;

namespace {

std::string x(const std::string& name, double ts, double dur, const std::string& more = "") {
  std::ostringstream text;
  text << R"({"ph":"X","name":")" << name << R"(","pid":1,"tid":1,"ts":)" << ts << R"(,"dur":)" << dur << more
       << "}";
  return text.str();
}

// Returns the names of the spans on all tracks, by row and time.
std::vector<std::string> names(const Timeline& timeline) {
  std::vector<std::string> result;
  for (const Row& row : timeline.rows)
    for (SpanId s = row.first; row.track >= 0 && s < row.last; ++s) result.push_back(timeline.name_of(s));
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Times to the last digit") {
  struct Case {
    const char* text;
    std::optional<Time> ns;
  };
  for (const auto& [text, ns] : {Case{"0", 0},
                                 Case{"1.5", 1500},
                                 Case{"12.345", 12'345},
                                 Case{"12.3454", 12'345},
                                 Case{"12.3455", 12'346},
                                 Case{"-0.25", -250},
                                 Case{"\"7.001\"", 7001},
                                 Case{"1700000000000000.123", 1'700'000'000'000'000'123},
                                 Case{"1.7e15", 1'700'000'000'000'000'000},
                                 Case{"2.5E-1", 250},
                                 Case{"9e99", {}},
                                 Case{"4e15", {}},
                                 Case{"99999999999999999999", {}},
                                 Case{"null", {}},
                                 Case{"", {}},
                                 Case{"\"\"", {}},
                                 Case{"1.5.2", {}},
                                 Case{"true", {}},
                                 Case{"-", {}},
                                 Case{"1,5", {}}}) {
    CAPTURE(text);
    CHECK(nanoseconds_of(text) == ns);
  }
}

TEST_CASE("Texts without their escapes") {
  struct Case {
    const char *token, *text;
  };
  for (const auto& [token, text] :
       {Case{R"("plain")", "plain"}, Case{R"("a\"b\\c\/d")", "a\"b\\c/d"}, Case{R"("\n\t")", "\n\t"},
        Case{R"("\u00e9\u20ac")", "\xC3\xA9\xE2\x82\xAC"}, Case{R"("\ud83d\ude00")", "\xF0\x9F\x98\x80"},
        Case{R"("\ud83d!")", "\xEF\xBF\xBD!"}, Case{R"("\u12")", "\xEF\xBF\xBD"}, Case{"17", "17"}}) {
    CAPTURE(token);
    CHECK(text_of(token) == text);
  }
}

TEST_CASE("Forms of the file") {
  const std::string a = x("a", 1, 2), b = x("b", 4, 1);
  for (const std::string& text : {"{\"traceEvents\":[" + a + "," + b + "]}", "[" + a + "," + b + "]",
                                  "[" + a + ",\n" + b, "[\n" + a + ",\n" + b + ",\n",
                                  "\xEF\xBB\xBF { \"a\" : [1,{\"b\":\"]}\"}], \"traceEvents\" : [ " + a +
                                      " , " + b + " ] , \"c\" : 1.5e3 } "}) {
    CAPTURE(text);
    const Timeline timeline = parse_timeline(text, "trace.json");
    check_timeline(timeline);
    CHECK(names(timeline) == Names{"a", "b"});
    CHECK(timeline.problems.empty());
    CHECK((timeline.origin == 1000 && timeline.end == 4000));
  }
}

TEST_CASE("Spans that begin and end, that nest, and that belong to no thread") {
  const char* const kText = R"([
{"ph":"B","name":"outer","pid":"p","tid":"main","ts":10},
{"ph":"B","name":"inner","pid":"p","tid":"main","ts":12},
{"ph":"E","pid":"p","tid":"main","ts":"15.5"},
{"ph":"E","pid":"p","tid":"main","ts":20},
{"ph":"b","cat":"request","name":"one","id":"0x1","pid":"p","ts":11},
{"ph":"b","cat":"request","name":"two","id":"0x2","pid":"p","ts":13},
{"ph":"n","cat":"request","name":"half","id":"0x2","pid":"p","ts":14},
{"ph":"e","cat":"request","name":"one","id":"0x1","pid":"p","ts":16},
{"ph":"e","cat":"request","name":"two","id":"0x2","pid":"p","ts":18},
{"ph":"S","cat":"","name":"old","id":7,"pid":"p","ts":10},
{"ph":"F","cat":"","name":"old","id":7,"pid":"p","ts":12},
{"ph":"C","name":"queue","pid":"p","ts":10,"args":{"in":1,"out":2}},
{"ph":"O","name":"thing","id":1,"pid":"p","ts":10},
{"ph":"i","name":"moment","pid":"p","tid":"main","ts":10},
{"ph":"E","pid":"p","tid":"main","ts":30},
{"ph":"B","name":"open","pid":"p","tid":"main","ts":19}])";
  const Timeline timeline = parse_timeline(kText, "trace.json");
  check_timeline(timeline);
  REQUIRE(timeline.processes.size() == 1);
  CHECK(timeline.processes[0].name == "p");
  REQUIRE(timeline.tracks.size() == 3);
  CHECK((timeline.tracks[0].name == "main" && timeline.tracks[0].last_row == 2));
  CHECK(names(timeline) == Names{"outer", "inner", "open", "one", "two", "old"});
  const SpanId inner = span_named(timeline, 0, "inner");
  CHECK((timeline.spans.begin[inner] == 2000 && timeline.spans.end[inner] == 5500));
  const SpanId two = span_named(timeline, 0, "two");
  CHECK((timeline.spans.begin[two] == 3000 && timeline.spans.end[two] == 8000));
  CHECK(timeline.tracks[timeline.rows[timeline.row_of(two)].track].name == "request");
  CHECK(timeline.end == 10'000);  // "open" lasts until the end
  REQUIRE(timeline.counters.size() == 2);
  CHECK((timeline.counters[0].name == "queue.in" && timeline.counters[1].name == "queue.out"));
  REQUIRE(timeline.problems.size() == 3);
  CHECK(timeline.problems[0].find("event 15 at byte ") == 0);
  CHECK(timeline.problems[0].find("an end (E) without a beginning (B)") != std::string::npos);
}

TEST_CASE("Arrows belong to the spans around their ends") {
  const std::string text = "[" + x("sender", 0, 10) + "," + x("inside", 2, 3) + "," + x("later", 20, 5) + R"(,
{"ph":"s","id":1,"cat":"f","name":"f","pid":1,"tid":1,"ts":3},
{"ph":"t","id":1,"cat":"f","name":"f","pid":1,"tid":1,"ts":7,"bp":"e"},
{"ph":"f","id":1,"cat":"f","name":"f","pid":1,"tid":1,"ts":15},
{"ph":"f","id":2,"cat":"f","name":"f","pid":1,"tid":1,"ts":15},
{"ph":"s","id":3,"cat":"f","name":"f","pid":1,"tid":1,"ts":50}])";
  const Timeline timeline = parse_timeline(text, "trace.json");
  check_timeline(timeline);
  REQUIRE(timeline.flows.size() == 2);
  const SpanId sender = span_named(timeline, 0, "sender"), inside = span_named(timeline, 0, "inside"),
               later = span_named(timeline, 0, "later");
  CHECK((timeline.flows[0].from == sender && timeline.flows[0].to == later));
  CHECK((timeline.flows[1].from == inside && timeline.flows[1].to == sender));
  REQUIRE(timeline.problems.size() == 1);
  CHECK(timeline.problems[0].substr(0, 17) == "2 ends of arrows ");
}

TEST_CASE("What is broken is left out and told, the rest is there") {
  const std::string a = x("a", 1, 2), b = x("b", 4, 1), c = x("c", 6, 1);
  struct Case {
    std::string broken, told;
    Names names;
    const char* between = ",\n";
  };
  for (const auto& [broken, told, expected, between] :
       {Case{R"({"ph":"X","name":"no time"})", "no time (ts)", {"a", "b", "c"}},
        Case{R"({"name":"no phase","ts":1})", "no phase (ph)", {"a", "b", "c"}},
        Case{R"({"ph":"X","ts":1,"dur":"long"})", "a duration (dur) that is not a number", {"a", "b", "c"}},
        Case{R"({"ph":"X","ts":1,"dur":-1})", "a negative duration (dur)", {"a", "b", "c"}},
        Case{R"({"ph":"X" "ts":1})", "invalid JSON", {"a", "b", "c"}},
        Case{R"({"ph":"X","name":"quote,"ts":1})", "a string without its closing quote", {"a", "b", "c"}},
        Case{R"({"ph":"X","args":{"x":1,"ts":1})", "no closing bracket", {"a", "b", "c"}},
        Case{R"({"ph":"X","args":[1,2}})", "brackets that do not match", {"a", "b", "c"}},
        Case{"17", "not an object", {"a", "b", "c"}, ","},
        Case{R"({"ph":"X","args":[1,2}})", "brackets that do not match", {"a", "b", "c"}, ","},
        Case{"{\"ph\":\"X\",\"name\":\"\xFF\\u0041\x01\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":1}",
             "",
             {"a", "?A ", "b", "c"}}}) {
    const std::string text =
        "{\"traceEvents\":[\n" + a + between + broken + between + b + between + c + "]}\n";
    CAPTURE(text);
    const Timeline timeline = parse_timeline(text, "trace.json");
    check_timeline(timeline);
    CHECK(names(timeline) == expected);
    if (told.empty()) {
      CHECK(timeline.problems.empty());
    } else {
      REQUIRE(timeline.problems.size() >= 1);
      CHECK(timeline.problems[0].find("event 2 at byte ") == 0);
      CHECK(timeline.problems[0].find(told) != std::string::npos);
    }
  }
}

TEST_CASE("What is wrong many times is told once") {
  std::string text = "[" + x("a", 0, 1);
  for (int i = 0; i < 1500; ++i) text += ",\n{\"ph\":\"X\",\"name\":\"b\"}";
  const Timeline timeline = parse_timeline(text + "]", "trace.json");
  REQUIRE(timeline.problems.size() == 1);
  CHECK(timeline.problems[0] == "event 2 at byte 55: no time (ts); 1,499 more like these");
}

TEST_CASE("More than one window of text, and an event larger than one") {
  const std::string large(3 << 20, 'x');
  std::string text = "{\"traceEvents\":[" + x("first", 0, 1);
  for (int i = 1; i <= 30'000; ++i) {
    text += ",\n" + x("span", 2.0 * i, 1, R"(,"args":{"text":"a } \" ] {"})");
    if (i == 15'000) text += "," + x("large", 100'000, 1, ",\"args\":{\"text\":\"" + large + "\"}");
  }
  const Timeline timeline = parse_timeline(text + "]}", "trace.json");
  check_timeline(timeline);
  CHECK(timeline.problems.empty());
  CHECK(names(timeline).size() == 30'002);
}

TEST_CASE("Deep nesting") {
  std::string text = "[" + x("0", 0, 1000);
  for (int i = 1; i < 40; ++i) text += "," + x(std::to_string(i), i, 1000 - 2 * i);
  const Timeline timeline = parse_timeline(text + "]", "trace.json");
  check_timeline(timeline);
  CHECK((timeline.rows.size() == 32 || timeline.rows.size() == 33));  // possibly with the summary
  REQUIRE(timeline.problems.size() == 1);
  CHECK(timeline.problems[0] == "8 spans are nested more than 32 levels deep and are not shown");
}

TEST_CASE("A gzipped trace that is cut off") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("rehearse-cut-" + std::to_string(getpid()) + ".json.gz");
  std::string text = "{\"traceEvents\":[";
  for (int i = 0; i < 20'000; ++i)
    text += (i == 0 ? "" : ",\n") + x("span " + std::to_string(i * 7919 % 20'000), i, 1);
  {
    gzFile file = gzopen(path.c_str(), "wb");
    REQUIRE(file != nullptr);
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0);
    gzclose(file);
  }
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::ofstream(path, std::ios::binary) << bytes.str().substr(0, bytes.str().size() / 2);
  Progress progress;
  const Timeline timeline = read_timeline(path, progress);
  std::remove(path.c_str());
  check_timeline(timeline);
  CHECK((names(timeline).size() > 1000 && names(timeline).size() < 20'000));
  bool told = false;
  for (const std::string& problem : timeline.problems)
    told = told || problem.find("the gzipped file is cut off") != std::string::npos;
  CHECK(told);
}

TEST_CASE("Reading can be cancelled") {
  const std::string path = REHEARSE_TESTS_DIR "/traces/gpu-kernels.json";
  Progress progress;
  progress.cancelled = true;
  CHECK_THROWS_AS(read_timeline(path, progress), Cancelled);
}

// Whatever the file contains, the result is a sound timeline or an error.
TEST_CASE("Any prefix and any damage") {
  std::stringstream whole;
  whole << std::ifstream(REHEARSE_TESTS_DIR "/traces/gpu-kernels.json").rdbuf();
  const std::string text = whole.str();
  std::size_t read = 0;
  const auto survives = [&](const std::string& damaged) {
    try {
      check_timeline(parse_timeline(damaged, "trace.json"));
      ++read;
    } catch (const rehearse::InputError&) {
    }
  };
  const std::string beginning = text.substr(0, 6000);
  // Under sanitizers, only every fifth prefix; the fuzzer of traces covers the rest.
  constexpr std::size_t kEvery = rehearse::testing::kSanitized ? 5 : 1;
  for (std::size_t bytes = 0; bytes <= beginning.size(); bytes += kEvery) survives(text.substr(0, bytes));
  CHECK(read > 4500 / kEvery);
  std::mt19937 random(1);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  constexpr std::string_view kBytes = "{}[]\",:\\\n0eE-.\xFFtnX ";
  read = 0;
  for (std::size_t i = 0; i < 2000 / kEvery; ++i) {
    std::string damaged = text.substr(0, 12'000);
    for (std::size_t n = below(4) + 1; n > 0; --n) {
      const std::size_t at = below(damaged.size());
      switch (below(3)) {
        case 0:
          damaged[at] = kBytes[below(kBytes.size())];
          break;
        case 1:
          damaged.erase(at, below(40));
          break;
        default:
          damaged.insert(at, damaged.substr(below(damaged.size()), below(40)));
          break;
      }
    }
    survives(damaged);
  }
  CHECK(read > 1900 / kEvery);
}
