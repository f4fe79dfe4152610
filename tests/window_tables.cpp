// Checks that tables of the window that show the same data agree: Table and Compare.
#include <QtTest>

#include <QTableView>

#include "gui/models/comparison/op_totals.hpp"
#include "gui/views/comparison/compare_view.hpp"
#include "gui/views/comparison/ops_view.hpp"
#include "simulator/trace/op_seconds.hpp"
#include "tests/gui_timeline_builder.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;
using rehearse::gui::TimelineBuilder;

namespace {

double number_at(const ValueTable& table, const QString& row_name, int column) {
  for (int row = 0; row < table.rowCount(); ++row)
    if (table.index(row, 0).data().toString() == row_name)
      return table.index(row, column).data(ValueTable::kSortRole).toDouble();
  return -1;
}

}  // namespace

TEST_CASE("Table and Compare tell the same time of the same work beside parameter servers") {
  MainWindow window;
  shown(window);
  window.open_files({ring_trace(), servers_trace()});
  settle(window);
  const Session::RunPointer run = window.session().runs()[1];
  REQUIRE(run->judged);
  window.session().set_current(run->id);
  window.show_view("table");
  const ValueTable& ops = static_cast<OpsView*>(window.view("table"))->table().table();
  REQUIRE(wait_for([&] { return number_at(ops, "backward", 3) > 0; }));
  window.show_view("compare");
  const ValueTable& compared = static_cast<CompareView*>(window.view("compare"))->ops_table().table();
  REQUIRE(wait_for([&] { return number_at(compared, "backward", 2) > 0; }));
  for (const char* op : {"forward", "backward"}) {
    CAPTURE(op);
    CHECK(number_at(ops, op, 3) == Approx(number_at(compared, op, 2)).epsilon(1e-4));
  }
  CHECK(number_at(ops, "backward", 3) == Approx(194.6).epsilon(0.001));
  CHECK(ops.headerData(3, Qt::Horizontal, Qt::ToolTipRole).toString().contains("averaged over the ranks"));
  CHECK(
      compared.headerData(1, Qt::Horizontal, Qt::ToolTipRole).toString().contains("averaged over the ranks"));
}

TEST_CASE("Means are over the ranks whose role does the work") {
  TimelineBuilder b;
  b.process("workers", 4).track("compute").span("backward 0", 0, 100).span("update", 100, 110);
  b.process("servers", 2).track("compute").span("update", 100, 140);
  b.process("workers, another stage", 4).track("compute").span("forward 0", 0, 60);
  auto timeline = *b.build();
  timeline.processes[0].role = timeline.processes[2].role = "worker";
  timeline.processes[1].role = "server";
  for (const OpTotals& op : op_totals(timeline, {0, 140}).ops) {
    CAPTURE(op.name);
    const bool update = op.name == "update";
    CHECK(op.ranks == (update ? 10 : 8));
    CHECK(op.mean(op.seconds) == Approx(update                 ? (4 * 10 + 2 * 40) / 10.0 * 1e-9
                                        : op.name == "forward" ? 30e-9
                                                               : 50e-9));
  }
}
