// Tests that events are split in one pass as simdjson splits them, and what is left to simdjson.
#include <fstream>
#include <random>
#include <sstream>

#include "gui/models/trace/json_events.hpp"
#include "gui/models/trace/trace_events.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

using namespace rehearse::gui;

namespace {

// An event as text, and the reasons for which events could not be read.
struct EventsTold {
  std::vector<std::string> events, problems;
};

std::string text_of_all(const Event& event) {
  std::ostringstream text;
  text << event.phase << event.binds_enclosing;
  for (const Token token : {event.name, event.category, event.pid, event.tid, event.time, event.duration,
                            event.id, event.scope, event.arguments_text})
    text << '\n' << token;
  for (const Argument& argument : event.arguments)
    text << '\n' << argument.key << '=' << argument.value << '/' << static_cast<int>(argument.known);
  return text.str();
}

// Reads the events of a trace. `slowly`: all of them with simdjson.
EventsTold told(const std::string& trace, bool slowly) {
  EventsTold result;
  const auto source = text_source(trace);
  const EventScanner::Fail fail = [&](const BadPlace& place) {
    result.problems.push_back(std::to_string(place.event) + " " + std::to_string(place.byte) + " " +
                              place.why);
  };
  EventScanner scanner(*source, fail);
  EventParser parser;
  for (EventBatch batch; scanner.next(batch);) {
    if (slowly)
      for (EventFields& fields : batch.fields) fields.known = false;
    parser.parse(
        batch,
        [&](const Event& event) -> const char* {
          result.events.push_back(text_of_all(event));
          return nullptr;
        },
        fail);
  }
  return result;
}

void check_both_ways(const std::string& trace) {
  const EventsTold quickly = told(trace, false), slowly = told(trace, true);
  CHECK(quickly.events == slowly.events);
  CHECK(quickly.problems == slowly.problems);
}

}  // namespace

TEST_CASE("An event is split in one pass, or left to simdjson") {
  struct Case {
    std::string event;
    bool is_split;
  };
  std::string deep = "{\"args\":{\"a\":";
  for (int i = 0; i < 40; ++i) deep += '[';
  deep += std::string(40, ']') + "}}";
  for (
      const auto& [event, is_split] : std::vector<Case>{
          {"{}", true},
          {R"({"ph":"X","ts":1,"dur":2.5,"name":"a","cat":"b","pid":1,"tid":"t","id":"0x1","scope":"s"})",
           true},
          {"{ \"ph\" :\t\"X\" ,\r\n \"args\" : { } }", true},
          {R"({"args":{"op":1,"kind":"compute","deps":[1,2],"o":{"p":[{"q":null}]},"x":-1e5,"y":true}})",
           true},
          {R"({"name":"a \"quoted\" \\ } text \u00e9","bp":"e"})", true},
          {"{\"name\":\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"}", true},
          {"{\"name\":\"12345678901234567890123456789012345678901234567890\"}", true},
          {R"({"args":17,"name":{"a":1}})", true},
          {R"({"args":{"Bytes":1,"In msg nelems":2,"dtype":"int","Group size":3,"Sequence number":4,"Fwd thread id":5,
"action":"x","purpose":"y","members":1,"critical":true,"ready_us":1,"algorithm":"ring","microbatch":1,"flops":1}})",
           true},
          {"{\"name\":\"\xFF\"}", false},
          {"{\"name\":\"\xC3\"}", false},
          {"{\"name\":\"a\tb\"}", false},
          {R"({"ts":1,})", false},
          {R"({"ts":,"a":1})", false},
          {R"({"ts" 1})", false},
          {R"({"args":{"a":[1 2]}})", false},
          {deep, false}}) {
    CAPTURE(event);
    EventFields fields;
    ArgumentList arguments;
    const std::string text = event + '\0' + std::string(kReadAhead, ' ');
    const char* const end = split_event(text.data(), text.data(), fields, arguments);
    CHECK(fields.known == is_split);
    CHECK((end == text.data() + event.size()) == is_split);
    if (!is_split) CHECK(arguments.count == 0);
    check_both_ways("[" + event + ",\n" + event + "]");
    // However it is cut off, nothing behind the text is read.
    for (std::size_t bytes = 1; bytes < event.size(); ++bytes) {
      const std::string cut = event.substr(0, bytes) + '\0' + std::string(kReadAhead, '"');
      EventFields none;
      CHECK(split_event(cut.data(), cut.data(), none, arguments) == nullptr);
    }
  }
}

TEST_CASE("A profiler's trace is read the same in one pass and with simdjson, and so is a damaged one") {
  std::stringstream whole;
  whole << std::ifstream(REHEARSE_TESTS_DIR "/traces/gpu-kernels.json").rdbuf();
  const std::string text = whole.str();
  REQUIRE(told(text, false).events.size() > 50);
  check_both_ways(text);
  std::mt19937 random(2);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  constexpr std::string_view kBytes = "{}[]\",:\\\n0eE-.\xFFtnX \xC3\xA9";
  const std::size_t tries = rehearse::testing::kSanitized ? 100 : 500;
  for (std::size_t i = 0; i < tries; ++i) {
    std::string damaged = text.substr(0, 12'000);
    for (std::size_t n = below(6) + 1; n > 0; --n)
      damaged[below(damaged.size())] = kBytes[below(kBytes.size())];
    check_both_ways(damaged);
  }
}
