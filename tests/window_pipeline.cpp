// Checks the overview of a pipeline: one row per stage, all visible; several runs; the critical path through
// the stages.
#include <QAction>
#include <QLineEdit>
#include <QTabWidget>

#include "gui/models/timeline/arrow_times.hpp"
#include "gui/models/timeline/rank_kinds.hpp"
#include "gui/models/trace/trace_file.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/timeline/minimap.hpp"
#include "gui/views/timeline/timeline_axis.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "gui/views/timeline/timeline_legend.hpp"
#include "tests/window_support.hpp"
#include "tests/window_timeline.hpp"

using namespace rehearse::gui;

namespace {

TimelineView& timeline_of(MainWindow& window) {
  return *static_cast<TimelineView*>(window.view("timeline"));
}

// Returns a pipeline whose stages each have `ranks` identical ranks.
std::shared_ptr<const Timeline> wave(int stages, int microbatches, int ranks = 1) {
  TimelineBuilder b;
  for (int stage = 0; stage < stages; ++stage)
    for (int rank = 0; rank < ranks; ++rank) {
      b.process("stage " + std::to_string(stage) + ", data " + std::to_string(rank), 1,
                "stage " + std::to_string(stage));
      const auto spans = [&](const char* forward, const char* backward) {
        for (int i = 0; i < microbatches; ++i)
          b.span(forward, (stage + i) * 10 * us, (stage + i + 1) * 10 * us, Kind::compute, Pass::forward, i);
        for (int i = 0; i < microbatches; ++i) {
          const Time begin = (2 * stages - stage + microbatches + 2 * i) * 10 * us;
          b.span(backward, begin, begin + 20 * us, Kind::compute, Pass::backward, i);
        }
      };
      b.track("compute");
      spans("forward", "backward");
      if (rank == 0 && stage == 0) b.critical();
      b.track("send forward").span("send", 0, 1);
      b.summary();
      spans("forward", "backward");
    }
  Timeline timeline = *b.build();
  find_kinds(timeline);
  return std::make_shared<const Timeline>(std::move(timeline));
}

int lines_of(TimelineView& view, Line::Type type) {
  const auto& lines = view.scene().lines();
  return static_cast<int>(
      std::count_if(lines.begin(), lines.end(), [&](const Line& line) { return line.type == type; }));
}

// Like Shown, but does not expand all tracks.
struct Glance {
  Session session;
  ViewState state;
  TimelineView view{session, state};
  explicit Glance(std::shared_ptr<const Timeline> timeline, QSize size = {1230, 480}) {
    session.add(run_of(std::move(timeline)));
    view.resize(size);
    view.show();
    REQUIRE(QTest::qWaitForWindowExposed(&view, rehearse::test::kPatienceMs));
    view.canvas().setFocus();
    settle();
  }
  void settle() {
    REQUIRE(QTest::qWaitFor([this] { return view.scene().ready(); }, rehearse::test::kPatienceMs));
  }
  int run() const { return session.runs().front()->id; }
  const Line& line_of(int process) {
    for (const Line& line : view.scene().lines())
      if (line.process == process && line.type != Line::Type::run) return line;
    FAIL("process " << process << " is not shown");
    return view.scene().lines().front();
  }
  void click_name(const Line& line) {
    QTest::mouseClick(&view.labels(), Qt::LeftButton, {},
                      QPoint(80, line.y - view.scene().scroll() + line.height / 2));
  }
};

}  // namespace

TEST_CASE("A pipeline opens with a row a stage, all of them in sight") {
  for (const int stages : {2, 8, 48, 100}) {
    CAPTURE(stages);
    Glance glance(wave(stages, 12));
    TimelineView& view = glance.view;
    CHECK(lines_of(view, Line::Type::process) == stages);
    CHECK(lines_of(view, Line::Type::row) == 0);
    CHECK(view.scene().greatest_scroll() == 0);
    CHECK(glance.line_of(0).height >= 2);
    // Forward and backward passes differ in every row.
    const QImage image = view.canvas().grab().toImage();
    const bool dark = is_dark(view.palette());
    for (const int stage : {0, stages - 1}) {
      const auto colour_at = [&](Time time) {
        const Line& line = glance.line_of(stage);
        return image
            .pixelColor(static_cast<int>(std::lround(view.scene().scale().x(time))), line.y + line.height / 2)
            .rgb();
      };
      CHECK(colour_at((stage + 6) * 10 * us) == colour_of(Kind::compute, Pass::forward, dark).rgb());
      const Time back = (2 * stages - stage + 12 + 12) * 10 * us;
      CHECK(colour_at(back + 3 * us) == colour_of(Kind::compute, Pass::backward, dark).rgb());
    }
  }
}

TEST_CASE("Rows of a pipeline follow the height, and readable ones scroll where nothing helps") {
  Glance glance(wave(16, 8));
  const int before = glance.line_of(0).height;
  glance.view.resize(1230, 330);
  CHECK(glance.line_of(0).height < before);
  CHECK(glance.view.scene().greatest_scroll() == 0);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_Plus, Qt::ControlModifier);
  CHECK(glance.line_of(0).height > before);
  CHECK(glance.view.scene().greatest_scroll() > 0);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_H);
  CHECK(glance.view.scene().greatest_scroll() == 0);
  Glance many(wave(400, 2));
  CHECK(many.line_of(0).height >= 12);
}

TEST_CASE("A click or Enter on a stage's name shows its tracks, and again its row") {
  Glance glance(wave(48, 4));
  const int low = glance.line_of(7).height;
  glance.click_name(glance.line_of(7));
  CHECK(lines_of(glance.view, Line::Type::row) == 2);
  CHECK(glance.line_of(7).height >= 18);
  CHECK(glance.line_of(8).height == low);  // the others keep their height
  glance.click_name(glance.line_of(7));
  CHECK(lines_of(glance.view, Line::Type::row) == 0);
  // A double click has the effect of a single one.
  const Line& line = glance.line_of(7);
  const QPoint at(80, line.y + line.height / 2);
  QTest::mouseClick(&glance.view.labels(), Qt::LeftButton, {}, at);
  QTest::mouseDClick(&glance.view.labels(), Qt::LeftButton, {}, at);
  QTest::mouseRelease(&glance.view.labels(), Qt::LeftButton, {}, at);
  CHECK(lines_of(glance.view, Line::Type::row) != 0);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_H);
  CHECK(lines_of(glance.view, Line::Type::row) == 0);
  TimelineLabels& labels = glance.view.labels();
  labels.setFocus(Qt::TabFocusReason);
  QTest::keyClick(&labels, Qt::Key_Home);
  QTest::keyClick(&labels, Qt::Key_Down);
  QTest::keyClick(&labels, Qt::Key_Return);
  CHECK(lines_of(glance.view, Line::Type::row) == 2);
  CHECK_FALSE(glance.line_of(0).collapsed);
  QTest::keyClick(&labels, Qt::Key_Return);
  CHECK(lines_of(glance.view, Line::Type::row) == 0);
}

TEST_CASE("A click on a stage's row selects what it does then") {
  Glance glance(wave(8, 4));
  const Line& line = glance.line_of(3);
  QTest::mouseClick(
      &glance.view.canvas(), Qt::LeftButton, {},
      QPoint(static_cast<int>(glance.view.scene().scale().x(55 * us)), line.y + line.height / 2));
  REQUIRE(glance.state.selected());
  const Timeline& timeline = *glance.session.runs().front()->timeline;
  const SpanId span = glance.state.selected()->span;
  CHECK(timeline.process_of(span) == 3);
  CHECK(timeline.rows[static_cast<std::size_t>(timeline.row_of(span))].track >= 0);  // not a summary's span
  CHECK(timeline.spans.pass[span] == Pass::forward);
  CHECK(timeline.spans.microbatch[span] == 2);
}

TEST_CASE("Replicas of a stage are one row until somebody asks") {
  Glance glance(wave(4, 4, 3));
  CHECK(lines_of(glance.view, Line::Type::group) == 4);
  CHECK(lines_of(glance.view, Line::Type::process) == 0);
  const Line group = glance.line_of(3);
  CHECK(glance.view.labels().text_of(group) == "stage 1, data 0-2");
  CHECK(group.group->ranks == 3);
  const auto* made = glance.view.scene().groups().find(group.group->ref);
  REQUIRE((made && made->summary));
  CHECK(made->summary->timeline.spans.microbatch[2] == 2);
  CHECK(made->summary->timeline.spans.pass[2] == Pass::forward);
  glance.click_name(group);
  CHECK(lines_of(glance.view, Line::Type::process) == 3);
  CHECK(lines_of(glance.view, Line::Type::row) == 0);
  glance.click_name(glance.line_of(4));
  CHECK(lines_of(glance.view, Line::Type::row) == 2);
}

TEST_CASE("Names stand beside as many low rows as there is room for") {
  Glance glance(wave(48, 2));
  TimelineLabels& labels = glance.view.labels();
  const int top = glance.line_of(0).y, bottom = glance.line_of(47).bottom();
  REQUIRE(glance.line_of(0).height < labels.fontMetrics().height());
  // Names do not touch: lines of pixels with and without ink alternate.
  const QImage image = labels.grab().toImage();
  const QRgb ground = labels.palette().color(QPalette::AlternateBase).rgb();
  int names = 0;
  bool inked = false;
  for (int y = top; y < bottom; ++y) {
    bool ink = false;
    for (int x = 24; x < 120; ++x) ink = ink || qGray(image.pixel(x, y)) < qGray(ground) - 100;
    names += ink && !inked ? 1 : 0;
    inked = ink;
  }
  CHECK(names >= 6);
  CHECK(names <= 48 / 2);
}

TEST_CASE("Several runs are summaries that are all in sight, and one that is expanded by hand stays so") {
  Glance glance(wave(48, 8));
  for (int i = 0; i < 2; ++i) glance.session.add(run_of(wave(48, 8)));
  glance.settle();
  CHECK(glance.view.scene().greatest_scroll() == 0);
  CHECK(lines_of(glance.view, Line::Type::run) == 3);
  CHECK(lines_of(glance.view, Line::Type::process) == 3 * 48);
  CHECK(glance.view.scene().lines().front().summary);
  const int low = glance.line_of(0).height;
  glance.click_name(glance.view.scene().lines().front());
  CHECK_FALSE(glance.view.scene().lines().front().summary);
  CHECK(glance.line_of(0).height > low);
  glance.session.add(run_of(wave(48, 8)));
  CHECK_FALSE(glance.view.scene().lines().front().summary);
  CHECK(glance.view.scene().lines().back().height == 1);
  // A run that the user collapses shows only its header.
  glance.click_name(glance.view.scene().lines().front());
  CHECK(glance.view.scene().lines().front().collapsed);
  CHECK(glance.view.scene().lines()[1].type == Line::Type::run);
}

TEST_CASE("Runs without a pipeline show their tracks if they fit") {
  TimelineBuilder b;
  for (int rank = 0; rank < 8; ++rank)
    b.process("rank " + std::to_string(rank)).track("compute").span("x", 0, us).summary().span("x", 0, us);
  const auto timeline = b.build();
  Glance high(timeline, {1230, 600});
  CHECK(lines_of(high.view, Line::Type::row) == 8);
  CHECK(high.view.scene().greatest_scroll() == 0);
  Glance low(timeline, {1230, 300});
  CHECK(lines_of(low.view, Line::Type::row) == 0);
  CHECK(low.view.scene().greatest_scroll() == 0);
}

TEST_CASE("No arrow of a simulated or recorded pipeline runs backward in time") {
  for (const QString& path :
       {pipeline_trace(),
        QString(REHEARSE_TESTS_DIR "/../benchmarks/recorded/emulated/star-4-16mb-data-x-pipeline.json.gz")}) {
    CAPTURE(path.toStdString());
    Progress progress;
    const Timeline timeline = read_timeline(path.toStdString(), progress);
    REQUIRE(timeline.flows.size() > 10);
    int wrong = 0;
    for (const Flow& flow : timeline.flows) {
      const ArrowTimes times = arrow_times(timeline, flow.from, flow.to);
      const SpanColumns& spans = timeline.spans;
      const bool right = times.leaves <= times.arrives && times.leaves >= spans.begin[flow.from] &&
                         times.leaves <= spans.end[flow.from] && times.arrives >= spans.begin[flow.to] &&
                         times.arrives <= spans.end[flow.to];
      wrong += right ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("The critical path has a row of its own, and keys go along it through the stages") {
  Glance glance(two_stages());
  CHECK(lines_of(glance.view, Line::Type::path) == 0);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_X);
  REQUIRE(lines_of(glance.view, Line::Type::path) == 1);
  CHECK(glance.view.scene().greatest_scroll() == 0);
  const Line path = glance.view.scene().lines()[1];
  REQUIRE(path.type == Line::Type::path);
  CHECK(glance.view.labels().text_of(path) == "Critical path");
  // forward 0, forward 1, then a gap until backward 1 (spans 0, 1 and 3).
  const QImage image = glance.view.canvas().grab().toImage();
  const bool dark = is_dark(glance.view.palette());
  const auto colour_at = [&](Time time) {
    return image
        .pixelColor(static_cast<int>(glance.view.scene().scale().x(time)), path.y + path.height / 2 + 6)
        .rgb();
  };
  CHECK(colour_at(50 * us) == colour_of(Kind::compute, Pass::forward, dark).rgb());
  CHECK(colour_at(800 * us) == colour_of(Kind::compute, Pass::backward, dark).rgb());
  CHECK(colour_at(500 * us) == glance.view.palette().color(QPalette::Base).rgb());
  // A click on the path selects the span itself.
  QTest::mouseClick(&glance.view.canvas(), Qt::LeftButton, {},
                    QPoint(static_cast<int>(glance.view.scene().scale().x(150 * us)), path.y + 8));
  REQUIRE(glance.state.selected());
  CHECK(glance.state.selected()->span == 1);
  glance.state.set_visible({0, 100 * us});
  QTest::keyClick(&glance.view.canvas(), Qt::Key_J);
  CHECK(glance.state.selected()->span == 3);
  CHECK(glance.state.visible().contains(800 * us));
  QTest::keyClick(&glance.view.canvas(), Qt::Key_J);  // the last span of the path
  CHECK(glance.state.selected()->span == 3);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_J, Qt::ShiftModifier);
  CHECK(glance.state.selected()->span == 1);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_X);
  CHECK(lines_of(glance.view, Line::Type::path) == 0);
}

TEST_CASE("The minimap shows where the critical path runs") {
  Glance glance(two_stages());
  const QImage before = glance.view.minimap().grab().toImage();
  QTest::keyClick(&glance.view.canvas(), Qt::Key_X);
  const QImage after = glance.view.minimap().grab().toImage();
  // The entire path is in stage 0, above the middle.
  bool above = false, below = false;
  for (int y = 4; y < after.height() - 4; ++y)
    for (int x = 8; x < after.width() - 8; ++x)
      if (before.pixel(x, y) != after.pixel(x, y)) (y < after.height() / 2 ? above : below) = true;
  CHECK(above);
  CHECK_FALSE(below);
}

TEST_CASE("What the critical path is made of is told in full") {
  Glance glance(two_stages(), {500, 480});
  Run run = *glance.session.runs().front();
  run.figures.path_by_kind = {{"forward", 18.96},           {"recompute", 16.12},    {"backward", 36.77},
                              {"pipeline transfer", 0.276}, {"gradient sync", 0.01}, {"optimizer", 0.002}};
  glance.session.replace(std::move(run));
  const int low = glance.view.legend().sizeHint().height();
  QTest::keyClick(&glance.view.canvas(), Qt::Key_X);
  CHECK(glance.view.legend().path_text().contains("pipeline transfer 276.0 ms (0.4 %)"));
  CHECK(glance.view.legend().path_text().contains("optimizer 2.000 ms (< 0.1 %)"));
  CHECK(glance.view.legend().sizeHint().height() >= 3 * low);  // on several lines at this width
}

TEST_CASE("A second prediction is brought into sight and compared") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace()});
  settle(window);
  TimelineView& view = timeline_of(window);
  window.state().set_visible({0, 1000});
  auto* scenario = static_cast<ScenarioView*>(window.view("scenario"));
  CHECK(window.view("why")->isVisible());
  scenario->run();
  REQUIRE(wait_for([&] { return window.session().runs().size() == 2 && window.settled(); }));
  const auto run = window.session().current();
  CHECK(run == window.session().runs().back());
  for (const auto& shown : window.session().shown()) {
    CHECK(window.state().visible().begin <= shown->figures.step.begin - shown->aligned);
    CHECK(window.state().visible().end >= shown->figures.step.end - shown->aligned);
  }
  CHECK(view.scene().greatest_scroll() == 0);
  CHECK(window.view("compare")->isVisible());
}

TEST_CASE("Keys of the timeline work as soon as something is open, and typing stays typing") {
  MainWindow window;
  shown(window);
  QTest::qWait(1);
  auto* form = window.view("scenario");
  form->setFocus();
  window.open_files({ring_trace()});
  settle(window);
  const TimeRange before = window.state().visible();
  REQUIRE(window.focusWidget());
  QTest::keyClick(window.focusWidget(), Qt::Key_W);
  CHECK(window.state().visible().length() < before.length());
  // Shortcuts also work from a tab bar, which takes no letters.
  auto* tabs = window.findChild<QTabBar*>();
  REQUIRE(tabs);
  tabs->setFocus();
  const TimeRange between = window.state().visible();
  QTest::keyClick(tabs, Qt::Key_S);
  CHECK(window.state().visible().length() > between.length());
  QLineEdit& search = timeline_of(window).search_field();
  search.setFocus();
  const TimeRange last = window.state().visible();
  QTest::keyClicks(&search, "wasd");
  CHECK(search.text() == "wasd");
  CHECK(window.state().visible() == last);
  // A run that arrives while the user types does not take the focus.
  window.open_files({servers_trace()});
  search.setFocus();
  settle(window);
  CHECK(window.focusWidget() == &search);
}

TEST_CASE("Bookmarks are named where they stand") {
  Glance glance(two_stages());
  TimelineAxis& axis = glance.view.axis();
  glance.state.set_cursor(300 * us);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_M);
  REQUIRE(glance.state.bookmarks().size() == 1);
  QTest::keyClick(&glance.view.canvas(), Qt::Key_F2);
  REQUIRE(axis.editor());
  QTest::keyClicks(axis.editor(), "first stall wasd");
  QTest::keyClick(axis.editor(), Qt::Key_Return);
  CHECK(axis.editor() == nullptr);
  CHECK(glance.state.bookmarks()[0].text == "first stall wasd");
  CHECK(glance.state.visible() == TimeRange{0, 920 * us});  // the letters typed were not taken as shortcuts
  CHECK(glance.view.canvas().hasFocus());
  // A double click on the flag edits its text; Escape keeps the old text.
  const QPoint flag(static_cast<int>(glance.view.scene().scale().x(300 * us)) + 5, 5);
  QTest::mouseDClick(&axis, Qt::LeftButton, {}, flag);
  REQUIRE(axis.editor());
  QTest::keyClicks(axis.editor(), "other");
  QTest::keyClick(axis.editor(), Qt::Key_Escape);
  CHECK(axis.editor() == nullptr);
  CHECK(glance.state.bookmarks()[0].text == "first stall wasd");
}
