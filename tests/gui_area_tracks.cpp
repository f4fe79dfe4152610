// Tests which rows an area counts when they are selected header by header.
#include "gui/models/tracks/area_tracks.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

using Rows = std::vector<std::pair<int, int>>;

// Returns a run with ranks 0 and 2 of stage 0 and rank 1 of stage 1, with one row each.
std::shared_ptr<const Run> ranks() {
  TimelineBuilder b;
  for (const char* stage : {"0", "1", "0"})
    b.process(std::string("rank of ") + stage, 1, stage).track("compute").span("x", 0, 1);
  Run run = run_of(b.build());
  run.id = 7;
  return std::make_shared<const Run>(std::move(run));
}

}  // namespace

TEST_CASE("Rows under a line, shown or collapsed") {
  const auto run = ranks();
  LayoutOptions grouped, folded, closed, filtered;
  grouped.grouping = folded.grouping = Grouping::stage;
  folded.collapsed_groups = {{7, Grouping::stage, "0"}};
  closed.collapsed = {{7, kRunItself}};
  filtered.filter = "of 1";
  struct Case {
    const char* what;
    const LayoutOptions* options;
    std::size_t line;
    Rows rows;
  };
  const std::vector<Case> cases = {
      {"run", &grouped, 0, {{7, 0}, {7, 1}, {7, 2}}},
      {"open group", &grouped, 1, {{7, 0}, {7, 2}}},
      {"rank", &grouped, 4, {{7, 2}}},
      {"row", &grouped, 5, {{7, 2}}},
      {"second group", &grouped, 6, {{7, 1}}},
      {"collapsed group", &folded, 1, {{7, 0}, {7, 2}}},
      {"collapsed run", &closed, 0, {{7, 0}, {7, 1}, {7, 2}}},
      {"what the filter leaves", &filtered, 0, {{7, 1}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(rows_under(lay_out({run}, *c.options), c.line, {run}) == c.rows);
  }
}

TEST_CASE("Rows go into an area and out of it together") {
  const Area area{{0, 10}, {{1, 1}, {1, 2}, {2, 5}}};
  struct Case {
    const char* what;
    Rows rows;
    Chosen chosen;
    Rows after;
  };
  const std::vector<Case> cases = {
      {"all of them go out", {{1, 1}, {1, 2}}, Chosen::all, {{2, 5}}},
      {"some: the rest comes in", {{1, 2}, {1, 3}}, Chosen::some, {{1, 1}, {1, 2}, {1, 3}, {2, 5}}},
      {"none: they come in", {{1, 0}}, Chosen::none, {{1, 0}, {1, 1}, {1, 2}, {2, 5}}},
      {"everything", {{1, 1}, {1, 2}, {2, 5}}, Chosen::all, {}},
      {"nothing there", {}, Chosen::none, {{1, 1}, {1, 2}, {2, 5}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(chosen_of(area, c.rows) == c.chosen);
    const Area after = toggled(area, c.rows);
    CHECK(after.rows == c.after);
    CHECK(after.range == area.range);
  }
}
