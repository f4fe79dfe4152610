// Tests the summary of a group: what most of its ranks do at each instant.
#include "gui/models/timeline/group_summary.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

struct Told {
  Time begin, end;
  std::string name;
  Kind kind;
  bool operator==(const Told&) const = default;
};

std::vector<Told> told(const GroupSummary& summary) {
  const SpanColumns& spans = summary.timeline.spans;
  std::vector<Told> all;
  for (SpanId s = summary.timeline.rows[0].first; s < summary.timeline.rows[0].last; ++s)
    all.push_back({spans.begin[s], spans.end[s], summary.timeline.name_of(s), spans.kind[s]});
  return all;
}

// Returns summaries of three processes, the third of which represents two ranks. Spans: name, begin, end,
// kind.
std::shared_ptr<const Timeline> three() {
  TimelineBuilder b;
  b.process("a").track("compute").span("x", 0, 100);
  b.summary().span("computing", 0, 60).span("exposed all-reduce", 60, 100, Kind::communication);
  b.process("b").track("compute").span("x", 0, 100);
  b.summary().span("computing", 0, 50).span("exposed all-gather", 50, 100, Kind::communication);
  b.process("c", 2).track("compute").span("x", 0, 100);
  b.summary().span("waiting", 0, 40, Kind::waiting).span("exposed all-reduce", 70, 110, Kind::communication);
  return b.build();
}

}  // namespace

TEST_CASE("A group does what most of its ranks do") {
  const auto timeline = three();
  using enum Kind;
  struct Case {
    const char* what;
    std::vector<int> processes;
    std::vector<Told> told;
  };
  const std::vector<Case> cases = {
      {"one rank is itself",
       {0},
       {{0, 60, "computing", compute}, {60, 100, "exposed all-reduce", communication}}},
      // 50 to 60: one computes, one communicates: the first kind in the list wins. From 60 on both
      // communicate under different names: the one that was seen first wins.
      {"ties", {0, 1}, {{0, 60, "computing", compute}, {60, 100, "exposed all-gather", communication}}},
      // The third counts twice: 2 to 2 until 40. Then the first two decide, and from 70 on three of four.
      {"a rank counts as many as it stands for",
       {0, 1, 2},
       {{0, 60, "computing", compute},
        {60, 70, "exposed all-gather", communication},
        {70, 110, "exposed all-reduce", communication}}},
      {"gaps stay", {2}, {{0, 40, "waiting", waiting}, {70, 110, "exposed all-reduce", communication}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto summary = group_summary(*timeline, c.processes, false);
    REQUIRE(summary);
    const auto got = told(*summary);
    CHECK(got.size() == c.told.size());
    CHECK(got == c.told);
    CHECK(summary->timeline.begin == c.told.front().begin);
    CHECK(summary->timeline.end == c.told.back().end);
  }
}

TEST_CASE("Without summaries all rows of the ranks are told of") {
  TimelineBuilder b;
  b.process("a").track("compute").span("x", 0, 10).span("y", 20, 30, Kind::copy);
  const auto summary = group_summary(*b.build(), {0}, false);
  CHECK(told(*summary) == std::vector<Told>{{0, 10, "x", Kind::compute}, {20, 30, "y", Kind::copy}});
}

TEST_CASE("How many ranks do what at a time") {
  const auto timeline = three();
  const auto text = [&](Time time) {
    std::string all;
    for (const Doing& doing : doing_at(*timeline, {0, 1, 2}, time))
      all += (all.empty() ? "" : ", ") + std::to_string(doing.ranks) + " " + doing.name;
    return all;
  };
  CHECK(text(10) == "2 computing, 2 waiting");
  CHECK(text(45) == "2 computing");
  CHECK(text(80) == "3 exposed all-reduce, 1 exposed all-gather");
  CHECK(text(200).empty());
}

TEST_CASE("A long row of a group has its mipmap, and what is cancelled comes to nothing") {
  TimelineBuilder b;
  b.process("a").track("compute").span("x", 0, 1);
  b.summary();
  for (int i = 0; i < 5000; ++i)
    b.span(i % 2 ? "computing" : "waiting", i * 10, i * 10 + 10, i % 2 ? Kind::compute : Kind::waiting);
  const auto timeline = b.build();
  const auto summary = group_summary(*timeline, {0}, false);
  CHECK(summary->timeline.rows[0].last == 5000);
  CHECK_FALSE(summary->mipmap.empty());
  CHECK(group_summary(*timeline, {0}, true) == nullptr);
}
