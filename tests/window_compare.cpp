// Drives the views of figures, comparisons and plots as a user does.
#include <QtTest>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QTemporaryDir>
#include <QToolTip>
#include <cmath>
#include <fstream>

#include "gui/views/comparison/compare_view.hpp"
#include "gui/views/comparison/ops_view.hpp"
#include "gui/views/comparison/why_view.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/tables/plan_view.hpp"
#include "gui/views/tables/scaling_view.hpp"
#include "simulator/report/comparison.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"
#include "tests/gui_recorded.hpp"

namespace rehearse::gui {
namespace {

using rehearse::test::kPatienceMs;

QString all_text(const QWidget& view) {
  QString text;
  for (const QLabel* label : view.findChildren<QLabel*>())
    if (label->isVisibleTo(&view)) text += label->text() + "\n";
  return text;
}

// Checks that every visible control has a name, and every action a shortcut, a tooltip and a menu.
void check_manners(const QWidget& view) {
  CHECK_FALSE(view.accessibleName().isEmpty());
  for (const QAction* action : view.actions()) {
    CAPTURE(action->text().toStdString());
    CHECK_FALSE(action->shortcut().isEmpty());
    CHECK_FALSE(action->toolTip().isEmpty());
    CHECK_FALSE(action->property("menu").toString().isEmpty());
  }
  for (const QWidget* control : view.findChildren<QWidget*>())
    if (control->focusPolicy() & Qt::TabFocus && control->isVisibleTo(&view) &&
        (qobject_cast<const QTableView*>(control) != nullptr ||
         qobject_cast<const QComboBox*>(control) != nullptr ||
         qobject_cast<const QLineEdit*>(control) != nullptr)) {
      CAPTURE(control->metaObject()->className());
      CHECK_FALSE(control->accessibleName().isEmpty());
    }
}

Run measured() {
  static const Run run = test::run_of(test::recorded("star-4-16mb-ring"), "measured ring");
  return run;
}
Run pipeline() {
  static const Run run = test::run_of(test::recorded("star-4-16mb-pipeline"), "measured pipeline");
  return run;
}

void trigger(QWidget& view, const QString& text) {
  for (QAction* action : view.actions())
    if (action->text().contains(text)) return action->trigger();
  FAIL("no action " << text.toStdString());
}

}  // namespace

TEST_CASE("The views say what to do when no run is open") {
  Session session;
  ViewState state;
  const std::vector<std::pair<std::unique_ptr<QWidget>, QString>> views = [&] {
    std::vector<std::pair<std::unique_ptr<QWidget>, QString>> all;
    all.emplace_back(std::make_unique<WhyView>(session, state), "Open a trace");
    all.emplace_back(std::make_unique<CompareView>(session, state), "Open two runs");
    all.emplace_back(std::make_unique<OpsView>(session, state), "Open a trace");
    all.emplace_back(std::make_unique<ScalingView>(session, state), "rehearse sweep");
    all.emplace_back(std::make_unique<AccuracyView>(session, state), "rehearse validate");
    all.emplace_back(std::make_unique<PlanView>(session, state), "rehearse plan");
    return all;
  }();
  for (const auto& [view, says] : views) {
    view->resize(900, 300);
    view->show();
    CAPTURE(says.toStdString());
    CHECK(all_text(*view).contains(says));
    check_manners(*view);
  }
}

TEST_CASE("The current run's figures and sentences are told, and follow it") {
  Session session;
  ViewState state;
  WhyView view(session, state);
  view.resize(1280, 320);
  view.show();
  const int ring = session.add(measured());
  const QString text = all_text(view);
  const Result result = session.current()->judged->result();
  CHECK(text.contains(QString::fromStdString(result.scenario.cluster->title).toHtmlEscaped()));
  for (const std::string& sentence :
       {bottleneck_sentence(result), critical_path_sentence(result), memory_sentence(result)})
    CHECK(text.contains(QString::fromStdString(sentence.substr(sentence.find(": ") + 2)).toHtmlEscaped()));
  CHECK(text.contains("MFU"));
  auto bars = view.findChildren<StackedBars*>();
  REQUIRE(bars.size() == 2);
  double shown_s = 0;
  for (const BarPart& part : bars[0]->bars().front().parts) shown_s += part.seconds;
  CHECK(shown_s == Approx(result.metrics.step_time_s).epsilon(0.01));

  session.add(pipeline());
  CHECK(all_text(view).contains("pipeline 4"));
  session.set_current(ring);
  CHECK_FALSE(all_text(view).contains("pipeline 4"));
  trigger(view, "Copy the report");
  CHECK(QApplication::clipboard()->text().contains("Bottleneck: "));
  check_manners(view);

  Run profile;
  profile.name = "profile";
  profile.source = Run::Source::profiler;
  Timeline timeline;
  timeline.problems = {"the file ends in the middle of an event"};
  profile.timeline = std::make_shared<Timeline>(timeline);
  profile.figures.step_time_s = 0.01;
  profile.figures.breakdown = {{"compute", Kind::compute, 0.01}};
  session.add(profile);
  CHECK(all_text(view).contains("the file ends in the middle of an event"));
  profile.timeline = nullptr;
  session.add(profile);
  CHECK(all_text(view).contains("is being read"));
}

TEST_CASE("Nothing of the bars is cut off, at any width") {
  StackedBars bars;
  bars.set({breakdown_bar(pipeline().figures)});
  for (const int width : {240, 500, 1280, 2560}) {
    const StackedBars::Layout layout = bars.layout_for(width);
    CAPTURE(width);
    double length = 0;
    for (const StackedBars::Segment& segment : layout.segments) length += segment.box.width();
    CHECK(length == Approx(width).margin(0.5));
    for (const StackedBars::LegendEntry& entry : layout.legend) {
      CHECK(entry.box.right() <= std::max<double>(width, entry.box.width()));
      CHECK(entry.box.bottom() <= bars.heightForWidth(width));
    }
  }
  // If several runs share a scale, the longer run has the longer bar, and each part is named once.
  Run a = measured(), b = measured();
  b.figures.step_time_s /= 2;
  b.figures.samples_per_s *= 2;  // as many samples per step
  for (BreakdownPart& part : b.figures.breakdown) part.seconds /= 2;
  const Runs runs = {std::make_shared<Run>(a), std::make_shared<Run>(b)};
  bars.set(breakdown_bars(runs, {"a", "b"}));
  const StackedBars::Layout layout = bars.layout_for(800);
  std::array<double, 2> lengths{};
  for (const StackedBars::Segment& segment : layout.segments) lengths[segment.bar] += segment.box.width();
  CHECK(lengths[0] == Approx(2 * lengths[1]).epsilon(1e-6));
  CHECK(layout.legend.size() == bars.bars()[0].parts.size());
  CHECK(bars.accessibleDescription().contains("a: compute"));
}

TEST_CASE("Two runs are compared by a sentence, bars and tables that sort and filter") {
  Session session;
  ViewState state;
  CompareView view(session, state);
  view.resize(1280, 320);
  view.show();
  session.add(measured());
  QCoreApplication::processEvents();
  CHECK(all_text(view).contains("Only measured ring is shown"));
  QSignalSpy compared(&view, &CompareView::compared);
  const int second = session.add(pipeline());
  REQUIRE(compared.wait(kPatienceMs));
  const QString sentence = QString::fromStdString(rehearse::difference_sentence(
      measured().judged->result(), pipeline().judged->result(), "measured ring", "measured pipeline"));
  CHECK(all_text(view).remove(QRegularExpression("<[^>]*>")).contains(sentence.toHtmlEscaped()));
  CHECK(view.figures_table().table().columnCount() == 5);

  trigger(view, "kinds of op");
  const QTableView& ops = view.ops_table();
  CHECK(ops.isVisible());
  CHECK_FALSE(view.figures_table().isVisible());
  const int all = ops.model()->rowCount();
  REQUIRE(all > 3);
  auto* filter = view.findChild<QLineEdit*>();
  QTest::keyClicks(filter, "GRADIENT");
  CHECK(ops.model()->rowCount() == 1);
  CHECK(ops.model()->index(0, 5).data().toString() == "removed");
  filter->clear();
  const_cast<QTableView&>(ops).sortByColumn(1, Qt::DescendingOrder);  // the base's total
  for (int row = 1; row < all; ++row)
    CHECK(ops.model()->index(row - 1, 1).data(ValueTable::kSortRole).toDouble() >=
          ops.model()->index(row, 1).data(ValueTable::kSortRole).toDouble());
  const_cast<QTableView&>(ops).selectRow(0);
  QTest::keyClick(const_cast<QTableView*>(&ops), Qt::Key_C, Qt::ControlModifier);
  CHECK(QApplication::clipboard()->text().startsWith("op\tmeasured ring (ms)"));
  check_manners(view);

  session.set_shown(second, false);
  CHECK(QTest::qWaitFor([&] { return all_text(view).contains("Only measured ring"); }, kPatienceMs));
}

TEST_CASE("Ops are counted over what is visible, the step or the whole run") {
  Session session;
  ViewState state;
  OpsView view(session, state);
  view.resize(1280, 320);
  view.show();
  QSignalSpy counted(&view, &OpsView::counted);
  session.add(pipeline());
  REQUIRE(counted.wait(kPatienceMs));
  const auto forwards = [&] {
    const ValueTable& table = view.table().table();
    for (int row = 0; row < table.rowCount(); ++row)
      if (table.index(row, 0).data().toString() == "forward") return table.index(row, 2).data().toDouble();
    return 0.0;
  };
  const double of_step = forwards();
  CHECK(of_step > 0);
  trigger(view, "of the run");
  REQUIRE(counted.wait(kPatienceMs));
  CHECK(forwards() == Approx(8 * of_step));  // as many steps were recorded
  trigger(view, "visible time");
  state.set_visible({0, session.current()->figures.step.length()});
  CHECK(QTest::qWaitFor([&] { return std::abs(forwards() - of_step) < 1e-9; }, kPatienceMs));
  const_cast<TableView&>(view.table()).selectRow(0);
  QTest::keyClick(const_cast<TableView*>(&view.table()), Qt::Key_Return);
  CHECK(state.search() == view.table().currentIndex().siblingAtColumn(0).data().toString());
  check_manners(view);
}

namespace {

// Returns whether a ring in the colour of text surrounds a point of the view.
bool is_ringed(QWidget& view, QPoint place) {
  const QImage image = view.grab().toImage();
  const QColor text = view.palette().color(QPalette::WindowText);
  int painted = 0;
  for (int y = -11; y <= 11; ++y)
    for (int x = -11; x <= 11; ++x) {
      const double away = std::hypot(x, y);
      if (away < 7 || away > 10 || !image.rect().contains(place + QPoint(x, y))) continue;
      const QColor at = image.pixelColor(place + QPoint(x, y));
      painted += std::abs(at.lightness() - text.lightness()) < 60 ? 1 : 0;
    }
  return painted > 40;  // 2 pixels wide and 53 long, smoothed
}

}  // namespace

TEST_CASE("A sweep's curves are drawn, and its points told") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/sweep.csv";
  const std::string columns =
      "point,cluster.nodes,strategy.all_reduce,step_time_s,samples_per_s,devices,status,error\n";
  std::ofstream(path) << columns << "1,1,ring,1,32,4,ok,\n2,1,tree,1,30,4,ok,\n3,2,ring,1.25,51.2,8,ok,\n"
                      << "4,2,tree,1,60,8,ok,\n5,4\n";
  Session session;
  ViewState state;
  ScalingView view(session, state);
  view.resize(1280, 400);
  view.show();
  Progress progress;
  view.show_sweep(QString::fromStdString(path), std::get<ReadSweep>(read_results(path, progress)));
  CHECK(view.curves().size() == 2);
  CHECK(all_text(view).contains("line 6 has 2 fields"));
  CHECK(view.table().model()->rowCount() == 4);
  for (const SweepFigure figure : {SweepFigure::speed_up, SweepFigure::efficiency, SweepFigure::step_time})
    for (const char* name : {"Logarithmic, across", "Logarithmic, up", "Ideal"}) {
      view.set_figure(figure);
      trigger(view, name);
      CHECK(view.curves().size() == 2);
    }
  QCoreApplication::processEvents();
  const std::optional<QPoint> place = view.place_of(2);
  REQUIRE(place);
  QWidget* under = view.childAt(*place);
  REQUIRE(under);
  CHECK_FALSE(is_ringed(view, *place));
  QTest::mouseClick(under, Qt::LeftButton, {}, under->mapFrom(&view, *place));
  CHECK(view.table().current_row() == 2);
  CHECK(is_ringed(view, *place));
  CHECK(QToolTip::text().contains("8 devices, nodes 2, all_reduce ring: 1.25 s"));
  check_manners(view);
}

TEST_CASE("Predictions stand beside measurements, from a file and from open runs") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/validation.csv";
  std::ofstream(path) << "run,topology,strategy,ranks,measured_step_s,predicted_step_s\n"
                      << "a,star,\"data 4, micro-batch 8, ring all-reduce, fp32\",4,0.1,0.105\n"
                      << "b,star,\"pipeline 4, 1F1B, micro-batch 8, fp32\",4,0.2,0.15\nc,star,x,4,zero,1\n";
  Session session;
  ViewState state;
  AccuracyView view(session, state);
  view.resize(1280, 400);
  view.show();
  Progress progress;
  view.show_validation(QString::fromStdString(path), std::get<AccuracyTable>(read_results(path, progress)));
  CHECK(all_text(view).contains("2 runs: median error 15.0 %, worst -25.0 % (b)."));
  CHECK(all_text(view).contains("line 4: measured_step_s is \"zero\""));
  QCoreApplication::processEvents();
  const std::optional<QPoint> place = view.place_of(1);
  REQUIRE(place);
  QWidget* under = view.childAt(*place);
  REQUIRE(under);
  CHECK_FALSE(is_ringed(view, *place));
  QTest::mouseClick(under, Qt::LeftButton, {}, under->mapFrom(&view, *place));
  CHECK(view.table().current_row() == 1);
  CHECK(is_ringed(view, *place));
  CHECK(QToolTip::text().contains("b: measured 200 ms, predicted 150 ms (-25.0 %)"));
  check_manners(view);

  Run prediction = measured();
  prediction.source = Run::Source::predicted;
  prediction.figures.step_time_s *= 1.02;
  session.add(measured());
  session.add(prediction);
  CHECK(QTest::qWaitFor([&] { return view.points().size() == 3; }, kPatienceMs));
  CHECK(view.points().front().error() == Approx(0.02));
  view.close_file();
  CHECK(view.points().size() == 1);
}

TEST_CASE("The views follow the palette") {
  Session session;
  ViewState state;
  WhyView view(session, state);
  session.add(measured());
  view.resize(1000, 320);
  view.show();
  const QImage light = view.grab().toImage();
  view.setPalette(palette_of(Theme::dark));
  const QImage dark = view.grab().toImage();
  const auto ground = [](const QImage& image) {
    return image.pixelColor(image.width() - 3, image.height() - 3).lightness();
  };
  CHECK(ground(light) > 180);
  CHECK(ground(dark) < 80);
}

}  // namespace rehearse::gui
