// Checks which tracks the timeline shows, in which order, and which of them an area includes.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QtTest>

#include "gui/views/parts/appearance.hpp"
#include "gui/views/timeline/selection_view.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "tests/window_timeline.hpp"

using namespace rehearse::gui;

TEST_CASE("Boxes beside the names choose the tracks that an area counts") {
  Shown shown;
  SelectionView selection(shown.session, shown.state);
  TimelineLabels& labels = shown.view.labels();
  const auto spans = [&] {
    int sum = 0;
    for (int r = 0; r < selection.totals().rowCount(); ++r)
      sum += selection.totals().index(r, AreaTotalsModel::kCount).data(Qt::UserRole).toInt();
    return sum;
  };
  const auto line = [&](Line::Type type, int process, int row = -1) {
    const auto& lines = shown.view.scene().lines();
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].type == type && lines[i].process == process && (row < 0 || lines[i].row == row))
        return static_cast<int>(i);
    FAIL("no such line");
    return -1;
  };
  const auto click_box = [&](int at) {
    const Line& where = shown.view.scene().lines()[static_cast<std::size_t>(at)];
    QTest::mouseClick(&labels, Qt::LeftButton, {}, labels.box_of(where).center());
  };
  using Rows = std::vector<std::pair<int, int>>;
  const int run = shown.run;
  const QImage plain = labels.grab().toImage();
  shown.key(Qt::Key_A, Qt::ControlModifier);
  REQUIRE(shown.state.area());
  CHECK(labels.grab().toImage() != plain);  // the boxes are shown
  // Rows 0 and 1 of stage 0 have 4 and 2 spans, rows 3 and 4 of stage 1 have 4 and 4.
  CHECK(spans() == 14);
  click_box(line(Line::Type::row, 0, 1));
  CHECK(shown.state.area()->rows == Rows{{run, 0}, {run, 3}, {run, 4}});
  CHECK(spans() == 12);
  CHECK_FALSE(shown.state.collapsed().contains({run, 0}));  // a box does not collapse
  click_box(line(Line::Type::process, 0));                  // partly chosen: chooses all
  CHECK(spans() == 14);
  click_box(line(Line::Type::process, 0));
  CHECK(shown.state.area()->rows == Rows{{run, 3}, {run, 4}});
  CHECK(spans() == 8);
  shown.state.set_collapsed({run, 1}, true);
  click_box(line(Line::Type::process, 1));  // collapsed: toggles all its rows
  CHECK(shown.state.area()->rows.empty());
  CHECK(spans() == 0);
  CHECK(selection.heading().text().contains("no track is chosen"));
  shown.state.set_collapsed({run, 1}, false);
  // A group is toggled by its header.
  shown.state.set_grouping(Grouping::stage);
  shown.key(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
  click_box(line(Line::Type::group, 1));
  CHECK(shown.state.area()->rows == Rows{{run, 3}, {run, 4}});
  // Dragging an edge keeps the choice.
  const Time end = shown.state.area()->range.end;
  shown.drag(shown.at(3, end) - QPoint(1, 0), shown.at(3, 600 * us));
  CHECK(shown.state.area()->range.end < end);
  CHECK(shown.state.area()->rows == Rows{{run, 3}, {run, 4}});

  // By keys: move through the names, Space chooses, arrows collapse.
  shown.state.set_grouping(Grouping::none);
  labels.setFocus(Qt::TabFocusReason);
  REQUIRE(labels.hasFocus());
  QTest::keyClick(&labels, Qt::Key_Home);
  QTest::keyClick(&labels, Qt::Key_Down);
  CHECK(labels.current() == line(Line::Type::process, 0));
  QTest::keyClick(&labels, Qt::Key_Space);
  CHECK(shown.state.area()->rows.size() == 4);
  QTest::keyClick(&labels, Qt::Key_Down);
  QTest::keyClick(&labels, Qt::Key_T);  // the command's shortcut
  CHECK(shown.state.area()->rows == Rows{{run, 1}, {run, 3}, {run, 4}});
  QTest::keyClick(&labels, Qt::Key_Up);
  QTest::keyClick(&labels, Qt::Key_Left);
  CHECK(shown.state.collapsed().contains({run, 0}));
  QTest::keyClick(&labels, Qt::Key_Right);
  CHECK(shown.state.collapsed().empty());
  QTest::keyClick(&labels, Qt::Key_End);
  CHECK(labels.current() == static_cast<int>(shown.view.scene().lines().size()) - 1);
  QTest::keyClick(&labels, Qt::Key_Escape);  // still a shortcut
  CHECK_FALSE(shown.state.area());
  QTest::keyClick(&labels, Qt::Key_Home);
  QTest::keyClick(&labels, Qt::Key_Space);  // without an area, it collapses
  CHECK(shown.rows_shown() == 0);
}

TEST_CASE("Ranks collapse, stand first, are grouped and filtered") {
  Shown shown;
  CHECK(shown.rows_shown() == 4);
  // By the triangle of stage 0.
  const Line stage = shown.view.scene().lines()[1];
  QTest::mouseClick(&shown.view.labels(), Qt::LeftButton, {}, QPoint(12, stage.y + stage.height / 2));
  CHECK(shown.state.collapsed().contains({shown.run, 0}));
  CHECK(shown.rows_shown() == 2);
  shown.key(Qt::Key_E, Qt::ShiftModifier);
  CHECK(shown.rows_shown() == 4);
  shown.key(Qt::Key_C, Qt::ShiftModifier);
  CHECK(shown.rows_shown() == 0);
  shown.key(Qt::Key_E, Qt::ShiftModifier);
  shown.state.select(SpanRef{shown.run, 10});
  shown.key(Qt::Key_C);
  CHECK(shown.state.collapsed() == std::set<ViewState::ProcessRef>{{shown.run, 1}});
  shown.key(Qt::Key_E);
  shown.key(Qt::Key_P);
  REQUIRE(shown.state.pinned().size() == 1);
  CHECK(shown.view.scene().lines()[0].type == Line::Type::pinned);
  CHECK(shown.view.scene().lines()[1].process == 1);
  shown.key(Qt::Key_P);
  CHECK(shown.state.pinned().empty());
  auto* grouping = shown.view.findChild<QComboBox*>();
  REQUIRE(grouping);
  grouping->setFocus();
  QTest::keyClicks(grouping, "By stage");
  QTest::keyClick(grouping, Qt::Key_Return);
  shown.state.set_grouping(Grouping::stage);
  CHECK(shown.view.labels().text_of(shown.view.scene().lines()[1]) == "Stage 0");
  shown.state.set_grouping(Grouping::none);
  CHECK(grouping->currentIndex() == 0);
  QTest::keyClicks(&shown.view.filter_field(), "receive");
  CHECK(shown.rows_shown() == 1);
  CHECK(shown.view.labels().text_of(shown.view.scene().lines()[1]) == "stage 1");
  shown.state.set_filter({});
  CHECK(shown.view.filter_field().text().isEmpty());
  CHECK(shown.view.labels().text_of(shown.view.scene().lines()[1]) == "stage 0");  // x2 is at the right
  shown.key(Qt::Key_K);
  CHECK(std::none_of(shown.view.scene().lines().begin(), shown.view.scene().lines().end(),
                     [](const Line& line) { return line.type == Line::Type::counter; }));
}

TEST_CASE("Groups collapse to one row that shows what most of their ranks do") {
  constexpr int kStages = 3, kRanks = 4;
  TimelineBuilder b;
  for (int stage = 0; stage < kStages; ++stage)
    for (int rank = 0; rank < kRanks; ++rank) {
      b.process("stage " + std::to_string(stage) + " rank " + std::to_string(rank), 1, std::to_string(stage));
      b.track("compute").span("work", 0, 100 * us);
      b.summary().span("computing", 0, 60 * us).span("waiting", 60 * us, 100 * us, Kind::waiting);
    }
  Shown shown(b.build());
  const auto lines = [&]() -> const std::vector<Line>& { return shown.view.scene().lines(); };
  const auto header = [&](const std::string& name) {
    for (const Line& line : lines())
      if (line.group && line.group->ref.name == name) return line;
    FAIL("no group " << name);
    return Line{};
  };
  const auto click_on = [&](const Line& line, int x) {
    QTest::mouseClick(&shown.view.labels(), Qt::LeftButton, {},
                      QPoint(x, line.y - shown.view.scene().scroll() + line.height / 2));
  };
  const auto action = [&](const QString& text) {
    for (QAction* one : shown.view.actions())
      if (one->text() == text) return one;
    FAIL("no action " << text.toStdString());
    return static_cast<QAction*>(nullptr);
  };
  shown.state.set_grouping(Grouping::none);
  CHECK_FALSE(action("Collapse all groups")->isEnabled());
  shown.state.set_grouping(Grouping::stage);
  CHECK(shown.rows_shown() == 0);  // one row per stage until the user expands it
  shown.key(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK(action("Collapse all groups")->isEnabled());
  REQUIRE(shown.rows_shown() == kStages * kRanks);

  // Collapsed by its triangle, and expanded again by its name.
  click_on(header("1"), 9);
  CHECK(shown.state.collapsed_groups() == std::set<GroupRef>{{shown.run, Grouping::stage, "1"}});
  CHECK(shown.rows_shown() == (kStages - 1) * kRanks);
  CHECK(header("1").collapsed);
  CHECK(shown.view.labels().text_of(header("1")) == "Stage 1");
  shown.settle();
  const auto* made = shown.view.scene().groups().find(header("1").group->ref);
  REQUIRE((made && made->summary));
  CHECK(made->summary->timeline.spans.end[0] == 60 * us);
  // The colours painted there: computing for six tenths, then waiting.
  const QImage image = shown.canvas()->grab().toImage();
  const auto colour_at = [&](Time time) {
    return image.pixelColor(static_cast<int>(shown.view.scene().scale().x(time)), header("1").y + 4);
  };
  CHECK(colour_at(20 * us).rgb() ==
        colour_of(Kind::compute, Pass::none, is_dark(shown.canvas()->palette())).rgb());
  CHECK(colour_at(90 * us).rgb() != colour_at(20 * us).rgb());
  // An area over a group includes all its rows.
  const int y = header("1").y + header("1").height / 2;
  shown.drag({100, y}, {400, y});
  REQUIRE(shown.state.area());
  CHECK(shown.state.area()->rows.size() == kRanks);
  shown.key(Qt::Key_Escape);
  click_on(header("1"), 80);
  CHECK(shown.state.collapsed_groups().empty());

  // By key: first the selected span's group, then all.
  shown.state.select(SpanRef{shown.run, 0});
  shown.key(Qt::Key_G);
  CHECK(shown.state.collapsed_groups() == std::set<GroupRef>{{shown.run, Grouping::stage, "0"}});
  CHECK(shown.view.scene().rect_of({shown.run, 0}).y() == header("0").y);  // it is in the group's row
  shown.key(Qt::Key_G);
  CHECK(shown.state.collapsed_groups().empty());
  shown.key(Qt::Key_G, Qt::ShiftModifier);
  CHECK(shown.rows_shown() == 0);
  CHECK(static_cast<int>(shown.state.collapsed_groups().size()) == kStages);
  shown.state.set_grouping(Grouping::none);  // the collapsed groups belong to the grouping
  CHECK(shown.rows_shown() == kStages * kRanks);
  shown.state.set_grouping(Grouping::stage);
  CHECK(shown.rows_shown() == 0);
  QTest::mouseDClick(shown.canvas(), Qt::LeftButton, {}, QPoint(300, header("2").y + 8));
  CHECK(shown.rows_shown() == kRanks);
  shown.key(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
  CHECK(shown.rows_shown() == kStages * kRanks);
}
