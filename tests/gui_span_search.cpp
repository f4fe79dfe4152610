// Tests searching for spans by name and by terms.
#include "gui/models/tracks/span_search.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

TEST_CASE("Searches of two stages find") {
  const auto timeline = two_stages();
  struct Case {
    const char* text;
    std::vector<SpanId> spans;
  };
  const std::vector<Case> cases = {
      {"forward 0", {0, 9}},
      {"FORWARD", {0, 1, 9, 11}},
      {"mb:1", {1, 3, 5, 11, 12, 15, 16}},
      {"kind:bubble", {13, 15}},
      {"kind:comm mb:0", {4, 14}},
      {"pass:backward", {2, 3, 10, 12}},
      {"backward mb:1", {3, 12}},
      {"kind:bubble kind:comm mb:1", {5, 15, 16}},
      {"op:3", {5, 15, 16}},
      {"step:0 send", {4, 5}},
      {"step:1", {}},
      {"computing", {}},  // only in summaries
      {"", {}},
      {"   ", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const SearchQuery query = parse_query(c.text);
    CHECK(query.problem.empty());
    const Hits hits = find_spans(*timeline, query, false);
    CHECK(hits.spans == c.spans);
    CHECK(std::is_permutation(hits.by_time.begin(), hits.by_time.end(), c.spans.begin(), c.spans.end()));
    CHECK(std::is_sorted(hits.by_time.begin(), hits.by_time.end(), [&](SpanId a, SpanId b) {
      return timeline->spans.begin[a] < timeline->spans.begin[b];
    }));
    for (const SpanId s : c.spans) CHECK(hits.contains(s));
    CHECK(!hits.contains(7));
  }
  CHECK(find_spans(*timeline, parse_query("forward"), true).spans.empty());
}

TEST_CASE("Terms that mean nothing are told") {
  CHECK(
      parse_query("kind:foo").problem ==
      "kind:foo: no such kind; known: compute, communication, waiting, bubble, data, checkpoint, copy, host, "
      "annotation, other");
  CHECK(parse_query("mb:x").problem == "mb:x: not a number");
  CHECK(parse_query("pass:sideways").problem ==
        "pass:sideways: no such pass; known: none, forward, backward, optimizer, "
        "recompute, weights");
  CHECK(parse_query("layer: 3").name == "layer: 3");
  CHECK(find_spans(*two_stages(), parse_query("forward mb:x"), false).spans.empty());
}
