// Drives the timeline by mouse and keys, as a user does.
#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <QtTest>

#include "gui/views/parts/command.hpp"
#include "gui/views/timeline/minimap.hpp"
#include "gui/views/timeline/selection_view.hpp"
#include "gui/views/timeline/timeline_legend.hpp"
#include "tests/catch.hpp"
#include "tests/window_timeline.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

TEST_CASE("Without a run the timeline says what to do") {
  Session session;
  ViewState state;
  TimelineView view(session, state);
  view.resize(800, 400);
  view.show();
  bool told = false;
  for (const QLabel* label : view.findChildren<QLabel*>())
    told = told || (label->isVisible() && label->text().contains("Open a trace"));
  CHECK(told);
  CHECK(!view.canvas().isVisible());
  session.add(run_of(two_stages()));
  CHECK(view.canvas().isVisible());
  session.remove(session.runs().front()->id);
  CHECK(!view.canvas().isVisible());
}

TEST_CASE("The whole time is shown at first, of all runs by where their steps begin") {
  Shown shown;
  CHECK(shown.state.visible() == TimeRange{0, 920 * us});
  Run other = run_of(two_stages());
  other.aligned = 100 * us;
  shown.session.add(std::move(other));
  CHECK(shown.state.whole() == TimeRange{-100 * us, 920 * us});
  CHECK(shown.state.visible() == shown.state.whole());
  shown.key(Qt::Key_E, Qt::ShiftModifier);
  CHECK(shown.rows_shown() == 8);
}

TEST_CASE("Zoom by key and wheel keeps the time under the mouse") {
  Shown shown;
  const QPoint mouse(300, 100);
  const auto time_there = [&] { return static_cast<double>(shown.view.scene().scale().time(mouse.x())); };
  QTest::mouseMove(shown.canvas(), mouse);
  REQUIRE(QTest::qWaitFor([&] { return shown.state.cursor().has_value(); }, kPatienceMs));
  const double before = time_there();
  const Time length = shown.state.visible().length();
  shown.key(Qt::Key_W);
  CHECK(shown.state.visible().length() == Approx(length / 2).margin(2));
  CHECK(time_there() == Approx(before).margin(static_cast<double>(length) / 1000));
  shown.wheel(mouse, 3, Qt::ControlModifier);
  CHECK(static_cast<double>(shown.state.visible().length()) ==
        Approx(static_cast<double>(length) / 2 * std::pow(0.8, 3)).epsilon(0.001));
  CHECK(time_there() == Approx(before).margin(static_cast<double>(length) / 1000));
  shown.key(Qt::Key_S);
  shown.key(Qt::Key_0);
  CHECK(shown.state.visible() == shown.state.whole());
}

TEST_CASE("Pan by key, wheel and drag, and back") {
  Shown shown;
  shown.state.set_visible({100 * us, 300 * us});
  shown.key(Qt::Key_D);
  CHECK(shown.state.visible() == TimeRange{140 * us, 340 * us});
  shown.key(Qt::Key_Left);
  CHECK(shown.state.visible() == TimeRange{100 * us, 300 * us});
  shown.wheel({100, 100}, -1, Qt::ShiftModifier);
  CHECK(shown.state.visible() == TimeRange{120 * us, 320 * us});
  const double ns = 1 / shown.view.scene().scale().pixels_per_ns();
  shown.drag({400, 80}, {300, 80}, Qt::MiddleButton);
  CHECK(static_cast<double>(shown.state.visible().begin) == Approx(120 * us + 100 * ns).margin(2));
  shown.drag({300, 80}, {400, 80}, Qt::LeftButton, Qt::ShiftModifier);
  CHECK(static_cast<double>(shown.state.visible().begin) == Approx(120 * us).margin(3));
  CHECK(!shown.state.area());
  shown.state.set_visible({0, 50 * us});
  shown.key(Qt::Key_Left, Qt::AltModifier);
  CHECK(static_cast<double>(shown.state.visible().begin) == Approx(120 * us).margin(3));
  shown.key(Qt::Key_Right, Qt::AltModifier);
  CHECK(shown.state.visible() == TimeRange{0, 50 * us});
}

TEST_CASE("A click selects the span under it, also in a collapsed rank, and empty room nothing") {
  Shown shown;
  const struct {
    int row;
    Time time;
    SpanId span;
  } cases[] = {{0, 50 * us, 0},   {0, 150 * us, 1}, {0, 500 * us, 2},  {1, 205 * us, 5},
               {3, 300 * us, 10}, {4, 50 * us, 13}, {4, 105 * us, 14}, {0, 300 * us, kNoSpan}};
  for (const auto& c : cases) {
    CAPTURE(c.row, c.time);
    QTest::mouseClick(shown.canvas(), Qt::LeftButton, {}, shown.at(c.row, c.time));
    CHECK(shown.selected() == c.span);
  }
  shown.state.set_collapsed({shown.run, 0}, true);
  const Line& line = shown.view.scene().lines()[1];
  REQUIRE((line.type == Line::Type::process && line.collapsed));
  QTest::mouseClick(shown.canvas(), Qt::LeftButton, {},
                    {static_cast<int>(shown.view.scene().scale().x(500 * us)), line.y + line.height / 2});
  CHECK(shown.selected() == 2);
}

TEST_CASE("A double click and F zoom to a span") {
  Shown shown;
  QTest::mouseDClick(shown.canvas(), Qt::LeftButton, {}, shown.at(0, 500 * us));
  CHECK(shown.selected() == 2);
  CHECK(shown.state.visible() == TimeRange{400 * us, 640 * us});
  shown.key(Qt::Key_F);  // already zoomed to the span: shows everything
  CHECK(shown.state.visible() == shown.state.whole());
  shown.key(Qt::Key_F);
  CHECK(shown.state.visible() == TimeRange{400 * us, 640 * us});
}

TEST_CASE("Dragging selects an area with the totals of what lies in it, its edges move, Esc clears") {
  Shown shown;
  SelectionView selection(shown.session, shown.state);
  shown.drag(shown.at(0, 50 * us), shown.at(1, 500 * us));
  REQUIRE(shown.state.area());
  Area area = *shown.state.area();
  CHECK(area.rows == std::vector<std::pair<int, int>>{{shown.run, 0}, {shown.run, 1}});
  const double pixel = 1 / shown.view.scene().scale().pixels_per_ns();
  CHECK(static_cast<double>(area.range.begin) == Approx(50 * us).margin(pixel));
  CHECK(static_cast<double>(area.range.end) == Approx(500 * us).margin(pixel));
  // forward 0 from 50 us on, forward 1, backward 0 until 500 us; both sends.
  const auto total = [&](const QString& name) {
    for (int r = 0; r < selection.totals().rowCount(); ++r)
      if (selection.totals().index(r, AreaTotalsModel::kName).data() == name)
        return selection.totals().index(r, AreaTotalsModel::kTotal).data(Qt::UserRole).toDouble();
    return -1.0;
  };
  CHECK(total("forward") == Approx(150 * us).margin(pixel));
  CHECK(total("backward") == Approx(80 * us).margin(pixel));
  CHECK(total("communication") == 20 * us);
  CHECK(selection.heading().text().contains("2 rows, 5 spans"));
  // Moves the right edge to 620 us.
  shown.drag(shown.at(0, area.range.end), shown.at(0, 620 * us));
  CHECK(shown.state.area()->range.begin == area.range.begin);
  CHECK(static_cast<double>(shown.state.area()->range.end) == Approx(620 * us).margin(pixel));
  CHECK(total("backward") == Approx(200 * us).margin(pixel));
  shown.key(Qt::Key_Escape);
  CHECK(!shown.state.area());
  CHECK(selection.totals().rowCount() == 0);
  shown.key(Qt::Key_A, Qt::ControlModifier);
  REQUIRE(shown.state.area());
  CHECK(shown.state.area()->rows.size() == 4);
  CHECK(shown.state.area()->range == shown.state.visible());
}

TEST_CASE("A search counts its hits and goes through them by time") {
  Shown shown;
  shown.key(Qt::Key_Slash);
  CHECK(shown.view.search_field().hasFocus());
  QTest::keyClicks(&shown.view.search_field(), "forward");
  shown.settle();
  CHECK(shown.view.hit_label().text() == "4 hits");
  CHECK(shown.state.search() == "forward");
  std::vector<SpanId> order;
  for (int i = 0; i < 5; ++i) {
    QTest::keyClick(&shown.view.search_field(), Qt::Key_Return);
    order.push_back(shown.selected());
  }
  CHECK(order == std::vector<SpanId>{0, 1, 9, 11, 0});
  CHECK(shown.view.hit_label().text() == "1 of 4");
  QTest::keyClick(&shown.view.search_field(), Qt::Key_Return, Qt::ShiftModifier);
  CHECK(shown.selected() == 11);
  QTest::keyClick(&shown.view.search_field(), Qt::Key_Escape);
  CHECK(shown.state.search().isEmpty());
  CHECK(!shown.view.search_field().hasFocus());
  shown.state.set_search("kind:nonsense");
  CHECK(shown.view.hit_label().text() == "not understood");
  CHECK(shown.view.hit_label().toolTip().contains("communication"));
  shown.state.set_search("nobody");
  shown.settle();
  CHECK(shown.view.hit_label().text() == "nothing found");
}

TEST_CASE("Keys go along rows, between rows and along arrows") {
  Shown shown;
  shown.key(Qt::Key_Period);  // the first visible span
  CHECK(shown.selected() == 0);
  shown.key(Qt::Key_Period);
  CHECK(shown.selected() == 1);
  shown.key(Qt::Key_Comma);
  CHECK(shown.selected() == 0);
  shown.key(Qt::Key_Comma);
  CHECK(shown.selected() == 0);
  shown.key(Qt::Key_Down);
  CHECK(shown.selected() == 4);
  shown.key(Qt::Key_BracketRight);  // from sender to receiver
  CHECK(shown.selected() == 14);
  shown.key(Qt::Key_BracketRight);
  CHECK(shown.selected() == 9);
  shown.key(Qt::Key_BracketLeft);
  shown.key(Qt::Key_BracketLeft);
  CHECK(shown.selected() == 4);
  shown.key(Qt::Key_Up);
  CHECK(shown.selected() == 1);  // is running at the middle of the send
  shown.key(Qt::Key_R);
  REQUIRE(shown.state.area());
  CHECK(shown.state.area()->range == TimeRange{100 * us, 200 * us});
  CHECK(shown.state.area()->rows == std::vector<std::pair<int, int>>{{shown.run, 0}});
}

TEST_CASE("What is selected elsewhere comes into sight") {
  TimelineBuilder b;
  for (int p = 0; p < 100; ++p)
    b.process("rank " + std::to_string(p)).track("compute").span("work", p * us, (p + 1) * us);
  Shown shown(b.build());
  CHECK(shown.view.scene().greatest_scroll() > 1000);
  shown.state.set_visible({0, 10 * us});
  shown.state.set_search("work");
  shown.settle();
  shown.state.select(SpanRef{shown.run, 80});
  shown.view.scene().reveal({shown.run, 80});
  const QRectF rect = shown.view.scene().rect_of({shown.run, 80});
  CHECK(QRectF(shown.canvas()->rect()).contains(rect));
  CHECK(shown.state.visible().length() == 10 * us);
  shown.wheel({100, 100}, 100);
  CHECK(shown.view.scene().scroll() == 0);
  shown.key(Qt::Key_PageDown);
  CHECK(shown.view.scene().scroll() == shown.canvas()->height());
  const int height = shown.view.scene().row_height();
  shown.key(Qt::Key_Plus, Qt::ControlModifier);
  CHECK(shown.view.scene().row_height() > height);
}

TEST_CASE("Bookmarks of moments and ranges, made and removed") {
  Shown shown;
  shown.state.select(SpanRef{shown.run, 2});
  shown.state.set_cursor(std::nullopt);
  shown.key(Qt::Key_M);
  shown.key(Qt::Key_M, Qt::ShiftModifier);
  REQUIRE(shown.state.bookmarks().size() == 2);
  CHECK(shown.state.bookmarks()[0].range == TimeRange{420 * us, 420 * us});
  CHECK(shown.state.bookmarks()[1].range == TimeRange{420 * us, 620 * us});
  CHECK(shown.state.bookmarks()[1].text.contains("200.0 us"));
  shown.key(Qt::Key_Delete);
  REQUIRE(shown.state.bookmarks().size() == 1);
  CHECK(shown.state.bookmarks()[0].range.length() == 0);
}

TEST_CASE("The critical path is marked with what it is made of") {
  Shown shown;
  CHECK(shown.view.legend().path_text().isEmpty());
  Run run = *shown.session.run(shown.run);
  run.figures.path_by_kind = {{"backward", 0.0003}, {"forward", 0.0001}};
  shown.session.replace(std::move(run));
  shown.settle();
  const auto colour_of_row = [&](int row, Time time) {
    const QPoint at = shown.at(row, time);
    return shown.view.canvas().grab().toImage().pixelColor(at.x(), at.y() + 6);
  };
  const QColor on_path = colour_of_row(0, 80 * us), beside = colour_of_row(3, 180 * us);
  shown.key(Qt::Key_X);
  CHECK(shown.state.shows_critical_path());
  CHECK(shown.view.legend().path_text() ==
        "Critical path of run: backward 300.0 us (75.0 %), forward 100.0 us (25.0 %)");
  // forward 0 of stage 0 is on the path, forward 0 of stage 1 is not.
  CHECK(colour_of_row(0, 80 * us) == on_path);
  CHECK(colour_of_row(3, 180 * us) != beside);
}

TEST_CASE("The minimap's handle moves and zooms what is visible") {
  Shown shown;
  shown.state.set_visible({230 * us, 460 * us});
  Minimap& map = shown.view.minimap();
  const double width = map.width();
  const auto drag = [&](double from, double to) {
    const QPoint a(static_cast<int>(from * width), map.height() / 2),
        b(static_cast<int>(to * width), map.height() / 2);
    QTest::mousePress(&map, Qt::LeftButton, {}, a);
    QMouseEvent move(QEvent::MouseMove, b, map.mapToGlobal(b), Qt::NoButton, Qt::LeftButton, {});
    QApplication::sendEvent(&map, &move);
    QTest::mouseRelease(&map, Qt::LeftButton, {}, b);
  };
  const double pixel = 920.0 * us / width;
  drag(0.375, 0.625);
  CHECK(shown.state.visible().length() == 230 * us);
  CHECK(static_cast<double>(shown.state.visible().begin) == Approx(460 * us).margin(3 * pixel));
  drag(0.75, 0.9);  // its right edge
  CHECK(static_cast<double>(shown.state.visible().begin) == Approx(460 * us).margin(3 * pixel));
  CHECK(static_cast<double>(shown.state.visible().end) == Approx(0.9 * 920 * us).margin(3 * pixel));
}

TEST_CASE("Details tell of a span, and their links lead on") {
  Shown shown;
  SelectionView selection(shown.session, shown.state);
  selection.resize(500, 400);
  selection.show();
  QAbstractItemModelTester details(&selection.details(),
                                   QAbstractItemModelTester::FailureReportingMode::Fatal);
  QAbstractItemModelTester totals(&selection.totals(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  CHECK(selection.shown_table() == nullptr);
  shown.state.select(SpanRef{shown.run, 16});
  CHECK(selection.heading().text().contains("receive 1"));
  CHECK(selection.shown_table() == &selection.details());
  const QAbstractItemModel& table = *selection.links_table().model();
  CHECK(selection.details_table().model()->rowCount() + table.rowCount() == selection.details().rowCount());
  int sender = -1;
  for (int r = 0; r < table.rowCount(); ++r)
    if (table.index(r, 0).data() == "Sent by") sender = r;
  REQUIRE(sender >= 0);
  selection.links_table().setCurrentIndex(table.index(sender, 1));
  QTest::keyClick(&selection.links_table(), Qt::Key_Return);
  CHECK(shown.selected() == 5);
  selection.activateWindow();
  selection.details_table().setFocus();
  REQUIRE(QTest::qWaitForWindowActive(&selection, kPatienceMs));
  selection.details_table().clearSelection();
  QTest::keyClick(&selection.details_table(), Qt::Key_C, Qt::ControlModifier);
  CHECK(QApplication::clipboard()->text().startsWith("Duration\t10.00 us\n"));
  shown.state.select(Area{{0, 920 * us}, {{shown.run, 0}}});
  selection.totals_table().setFocus();
  QTest::keyClick(&selection.totals_table(), Qt::Key_C, Qt::ControlModifier);
  CHECK(QApplication::clipboard()->text().toStdString() ==
        "backward\t2\t400.0 us\t200.0 us\t200.0 us\t200.0 us\t43.5 %\n"
        "forward\t2\t200.0 us\t100.0 us\t100.0 us\t100.0 us\t21.7 %\n");
  shown.session.remove(shown.run);
  shown.state.forget_run(shown.run);
  CHECK(selection.shown_table() == nullptr);
}

TEST_CASE("Every action of the timeline tells what it does and where it stands") {
  Shown shown;
  std::set<QString> keys;
  for (const QAction* action : shown.view.actions()) {
    CAPTURE(action->text().toStdString());
    CHECK(!action->text().isEmpty());
    CHECK(action->toolTip().size() > 10);
    CHECK(QStringList{"&File", "&Edit", "&View", "&Go", "&Select", "&Run", "&Help"}.contains(
        menu_of(*action).section(menu::kBelow, 0, 0)));
    for (const QKeySequence& key : action->shortcuts()) CHECK(keys.insert(key.toString()).second);
  }
  for (const QWidget* widget : shown.view.findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible()) continue;
    CAPTURE(widget->metaObject()->className());
    CHECK((!widget->accessibleName().isEmpty() || qobject_cast<const QLineEdit*>(widget->parentWidget())));
  }
}
