// Tests the layout of lines: filtered, grouped, collapsed, pinned; and finding them again.
#include "gui/models/tracks/track_layout.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

std::shared_ptr<const gui::Run> run_with_id(std::shared_ptr<const Timeline> timeline, int id) {
  gui::Run run = run_of(std::move(timeline));
  run.id = id;
  return std::make_shared<const gui::Run>(std::move(run));
}

// Describes lines as text: "R" run, "P" pinned, "g" group, "p2" process, "r5" row, "C" counters, "c0"
// counter.
std::string shape(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    if (!text.empty()) text += ' ';
    switch (line.type) {
      case Line::Type::run:
        text += "R" + std::to_string(line.run);
        break;
      case Line::Type::path:
        text += "X";
        break;
      case Line::Type::pinned:
        text += "P";
        break;
      case Line::Type::group:
        text += "g";
        break;
      case Line::Type::process:
        text += "p" + std::to_string(line.process);
        break;
      case Line::Type::row:
        text += "r" + std::to_string(line.row);
        break;
      case Line::Type::counters:
        text += "C";
        break;
      case Line::Type::counter:
        text += "c" + std::to_string(line.counter);
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("Lines by filter, collapsed, pinned and counters") {
  // In two_stages(), rows 0 and 1 belong to stage 0, 2 is its summary, 3 and 4 belong to stage 1.
  const auto run = run_with_id(two_stages(), 1);
  struct Case {
    const char* what;
    LayoutOptions options;
    const char* shape;
  };
  LayoutOptions none, no_counters, filtered, by_track, closed, pinned, shut, all;
  no_counters.counters = false;
  filtered.filter = "STAGE 1";
  by_track.filter = "receive";
  closed.collapsed = {{1, 0}};
  pinned.pinned = {{1, 1}};
  shut.collapsed = {{1, kRunItself}};
  all.collapsed = {{1, kRunCounters}};
  const std::vector<Case> cases = {
      {"all", none, "R1 p0 r0 r1 c0 p1 r3 r4 C c1"},
      {"no counters", no_counters, "R1 p0 r0 r1 p1 r3 r4"},
      {"filter by rank", filtered, "R1 p1 r3 r4"},
      {"filter by track", by_track, "R1 p1 r4"},
      {"collapsed", closed, "R1 p0 p1 r3 r4 C c1"},
      {"pinned", pinned, "P p1 r3 r4 R1 p0 r0 r1 c0 C c1"},
      {"run collapsed", shut, "R1"},
      {"counters collapsed", all, "R1 p0 r0 r1 c0 p1 r3 r4 C"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto lines = lay_out({run}, c.options);
    CHECK(shape(lines) == c.shape);
    int y = 0;
    for (const Line& line : lines) {
      CHECK(line.y == y);
      CHECK(line.height > 0);
      y = line.bottom();
    }
    CHECK(height_of(lines) == y);
  }
}

TEST_CASE("Ranks of a group stand together, in the order in which groups come") {
  TimelineBuilder b;
  for (const char* stage : {"0", "1", "0", "1"})
    b.process(std::string("rank of ") + stage, 1, stage).track("compute").span("x", 0, 1);
  const auto run = run_with_id(b.build(), 4);
  LayoutOptions options;
  options.grouping = Grouping::stage;
  CHECK(shape(lay_out({run}, options)) == "R4 g p0 r0 p2 r2 g p1 r1 p3 r3");
  options.grouping = Grouping::node;  // unknown for all: one group
  CHECK(shape(lay_out({run}, options)) == "R4 g p0 r0 p1 r1 p2 r2 p3 r3");
  gui::Run known = *run;
  known.nodes = {"node0", "node0", "node1", "node0"};
  CHECK(shape(lay_out({std::make_shared<const gui::Run>(known)}, options)) ==
        "R4 g p0 r0 p1 r1 p3 r3 g p2 r2");
}

TEST_CASE("Collapsed groups show one line, which stands for all rows of its ranks") {
  TimelineBuilder b;
  for (const char* stage : {"0", "1", "0", "1"})
    b.process(std::string("rank of ") + stage, 2, stage).track("compute").span("x", 0, 1);
  const auto run = run_with_id(b.build(), 4);
  LayoutOptions options;
  options.grouping = Grouping::stage;
  options.collapsed_groups = {{4, Grouping::stage, "0"}};
  auto lines = lay_out({run}, options);
  CHECK(shape(lines) == "R4 g g p1 r1 p3 r3");
  CHECK(lines[1].collapsed);
  CHECK(lines[1].height >= options.row_height);
  REQUIRE(lines[1].group);
  CHECK(lines[1].group->ref == GroupRef{4, Grouping::stage, "0"});
  CHECK(lines[1].group->processes == std::vector<int>{0, 2});
  CHECK(lines[1].group->ranks == 4);
  using Rows = std::vector<std::pair<int, int>>;
  CHECK(rows_of_lines(lines, 1, 1, {run}) == Rows{{4, 0}, {4, 2}});
  CHECK(rows_of_lines(lines, 1, 4, {run}) == Rows{{4, 0}, {4, 1}, {4, 2}});
  CHECK(rows_of_lines(lines, 2, 2, {run}) == Rows{{4, 1}, {4, 3}});  // only the header of an open group
  CHECK(line_of_row(lines, *run->timeline, 4, 2) == 1);
  CHECK(line_of_row(lines, *run->timeline, 4, 3) == 6);
  // A rank that is filtered out or pinned elsewhere does not belong to the group.
  options.pinned = {{4, 0}};
  lines = lay_out({run}, options);
  CHECK(shape(lines) == "P p0 r0 R4 g p1 r1 p3 r3 g");
  CHECK(lines[9].group->processes == std::vector<int>{2});
  CHECK(line_of_row(lines, *run->timeline, 4, 0) == 2);
  // Another grouping has separate settings.
  options.grouping = Grouping::role;
  CHECK(shape(lay_out({run}, options)) == "P p0 r0 R4 g p1 r1 p2 r2 p3 r3");
}

TEST_CASE("Lines are found by height and by row") {
  const auto one = run_with_id(two_stages(), 1), two = run_with_id(two_stages(), 2);
  LayoutOptions options;
  options.collapsed = {{2, 0}};
  const auto lines = lay_out({one, two}, options);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(line_at(lines, lines[i].y) == static_cast<int>(i));
    CHECK(line_at(lines, lines[i].bottom() - 1) == static_cast<int>(i));
  }
  CHECK(line_at(lines, -1) == -1);
  CHECK(line_at(lines, height_of(lines)) == -1);
  const auto found = [&](int run, int row) {
    return lines[static_cast<std::size_t>(line_of_row(lines, *one->timeline, run, row))];
  };
  CHECK((found(1, 3).type == Line::Type::row && found(1, 3).run == 1 && found(1, 3).row == 3));
  CHECK((found(2, 1).type == Line::Type::process && found(2, 1).run == 2));  // inside its collapsed rank
  CHECK(found(1, 2).type == Line::Type::process);                            // a summary
}

TEST_CASE("Rows between two lines") {
  const auto run = run_with_id(two_stages(), 1);
  using Rows = std::vector<std::pair<int, int>>;
  LayoutOptions options;
  const auto open = lay_out({run}, options);  // R p0 r0 r1 c0 p1 r3 r4 C c1
  CHECK(rows_of_lines(open, 2, 3, {run}) == Rows{{1, 0}, {1, 1}});
  CHECK(rows_of_lines(open, 0, 9, {run}) == Rows{{1, 0}, {1, 1}, {1, 3}, {1, 4}});
  CHECK(rows_of_lines(open, 5, 6, {run}) == Rows{{1, 3}});
  CHECK(rows_of_lines(open, 1, 1, {run}) == Rows{{1, 0}, {1, 1}});  // only a header: the rows of its rank
  CHECK(rows_of_lines(open, 4, 4, {run}).empty());
  options.collapsed = {{1, 0}};
  const auto closed = lay_out({run}, options);  // R p0 p1 r3 r4 ...
  CHECK(rows_of_lines(closed, 1, 3, {run}) == Rows{{1, 0}, {1, 1}, {1, 3}});
}

TEST_CASE("Parts of names are found whatever the case") {
  CHECK(holds("Stage 12, data 0", "stage 12"));
  CHECK(holds("abc", ""));
  CHECK(!holds("abc", "abcd"));
  CHECK(!holds("", "a"));
}
