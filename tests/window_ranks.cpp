// Drives the Ranks view as a user does.
#include <QtTest>

#include <QAction>
#include <QLabel>
#include <QTemporaryDir>
#include <fstream>

#include "gui/views/comparison/ranks_view.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

RanksView& ranks_of(MainWindow& window) {
  return *static_cast<RanksView*>(window.view("ranks"));
}

QString stragglers_of(const RanksView& view) {
  for (const QLabel* label : view.findChildren<QLabel*>())
    if (label->accessibleName() == "Stragglers") return label->text().remove(QRegularExpression("<[^>]*>"));
  return {};
}

int column_of(const RanksView& view, const QString& title) {
  for (int column = 0; column < view.table().table().columnCount(); ++column)
    if (view.table().table().headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().startsWith(title))
      return column;
  return -1;
}

// Returns a trace of eight workers that sum their gradients; the third computes at three quarters of the
// speed.
QString trace_with_a_slow_device() {
  static const QTemporaryDir folder;
  const QString scenario = folder.filePath("slow.toml"), trace = folder.filePath("slow.json.gz");
  std::ofstream(scenario.toStdString()) << R"([model]
preset = "resnet50"
[training]
global_batch = 512
micro_batch = 64
optimizer = "momentum"
[cluster]
preset = "dgx-a100"
nodes = 1
[[cluster.slow]]
device = 2
factor = 0.75
[strategy]
data = 8
pipeline = 1
)";
  QProcess process;
  process.start(REHEARSE_BIN_DIR "/rehearse", {"simulate", scenario, "--trace", trace});
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  INFO(process.readAllStandardError().toStdString());
  REQUIRE(process.exitCode() == 0);
  return trace;
}

}  // namespace

TEST_CASE("The slow rank is named, and a click selects a rank on the timeline") {
  MainWindow window;
  shown(window, {1280, 800});
  window.open_files({trace_with_a_slow_device()});
  settle(window);
  window.show_view("ranks");
  RanksView& view = ranks_of(window);
  REQUIRE(wait_for([&] { return !stragglers_of(view).isEmpty() && view.table().model()->rowCount() > 0; }));
  CHECK(stragglers_of(view).contains("data 2 (rank 2) is late; others wait "));
  CHECK(stragglers_of(view).contains("longer than the median rank"));
  REQUIRE(view.ranks().size() == 1);
  const auto& ranks = view.ranks().front().times.ranks;
  REQUIRE(ranks.size() == 2);  // the slow one, and seven identical ones
  const bool second = ranks[1].members == 1;
  const RankTime &slow = ranks[second ? 1 : 0], &others = ranks[second ? 0 : 1];
  CHECK(slow.members == 1);
  CHECK(others.members == 7);
  CHECK(slow.computing_s() > 1.2 * others.computing_s());
  CHECK(slow.late_s == Approx(others.of(RankPart::waiting)).epsilon(0.05));
  for (const RankTime& rank : ranks)
    CHECK(rank.step_s() == Approx(window.session().current()->figures.step_time_s).epsilon(1e-3));

  auto& table = const_cast<TableView&>(view.table());
  table.sortByColumn(column_of(view, "late"), Qt::DescendingOrder);
  const QModelIndex top = table.model()->index(0, 0);
  CHECK(view.rank_of(table.row_of(top)) == &slow);
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(top).center());
  REQUIRE(window.state().area());
  for (const auto& [run, row] : window.state().area()->rows)
    CHECK(window.session().current()->timeline->rows[static_cast<std::size_t>(row)].process == slow.process);
  CHECK(view.isVisible());  // the selection does not hide the view
  table.setFocus();
  QTest::keyClick(&table, Qt::Key_Down);
  CHECK(window.session()
            .current()
            ->timeline->rows[static_cast<std::size_t>(window.state().area()->rows.front().second)]
            .process == others.process);
}

TEST_CASE("Several runs are blocks that stay together however their ranks are sorted") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace(), pipeline_trace()});
  settle(window);
  window.show_view("ranks");
  RanksView& view = ranks_of(window);
  REQUIRE(wait_for([&] { return view.ranks().size() == 2; }));
  const QAbstractItemModel& rows = *view.table().model();
  const int all = rows.rowCount();
  REQUIRE(all == 2 + 1 + 8);
  auto& table = const_cast<TableView&>(view.table());
  for (const auto order : {Qt::AscendingOrder, Qt::DescendingOrder})
    for (const char* by : {"rank", "forward", "pipeline"}) {
      CAPTURE(by);
      table.sortByColumn(column_of(view, by), order);
      CHECK(rows.index(0, 0).data().toString() == "ring");
      CHECK(rows.index(2, 0).data().toString() == "pipeline");
      for (const int row : {0, 2}) CHECK(view.rank_of(table.row_of(rows.index(row, 0))) == nullptr);
    }
  // The Why view gives the same total.
  const auto& pipeline = view.ranks()[1].times.ranks;
  double computing_s = 0, ranks = 0;
  for (const RankTime& rank : pipeline) {
    computing_s += rank.members * rank.computing_s();
    ranks += rank.members;
  }
  const Session::RunPointer run = window.session().run(view.ranks()[1].run);
  CHECK(ranks == run->figures.devices);
  CHECK(computing_s / ranks == Approx(run->figures.breakdown.front().seconds).epsilon(0.02));

  CHECK_FALSE(view.accessibleName().isEmpty());
  CHECK_FALSE(view.table().accessibleName().isEmpty());
  const QStringList shortcuts = {"Ctrl+Shift+N", "Alt+K"};
  for (const QString& keys : shortcuts) {
    int found = 0;
    for (const QAction* action : window.findChildren<QAction*>())
      found += !menu_of(*action).isEmpty() && action->shortcuts().contains(QKeySequence(keys)) ? 1 : 0;
    CHECK(found == 1);
  }
}
