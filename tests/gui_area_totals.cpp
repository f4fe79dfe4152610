// Tests the totals of an area against sums computed by hand.
#include "gui/models/tracks/area_totals.hpp"

#include <QAbstractItemModelTester>

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

constexpr Time us = 1000;

const AreaTotal& named(const std::vector<AreaTotal>& totals, const char* name) {
  for (const AreaTotal& total : totals)
    if (total.name == name) return total;
  FAIL(std::string("no ") + name);
  return totals.front();
}

}  // namespace

TEST_CASE("Totals of an area over two rows") {
  Session session;
  Run run = run_of(two_stages());
  run.aligned = 20 * us;
  const int id = session.add(std::move(run));
  // From 50 us to 470 us of the timeline, on the compute streams of both stages.
  const Area area{{30 * us, 450 * us}, {{id, 0}, {id, 3}}};
  const auto parts = parts_of(area, session);
  CHECK(spans_in(parts) == 6);
  const AreaTotals totals = totals_of(parts, false);
  CHECK(totals.rows == 2);
  CHECK(totals.spans == 6);
  const AreaTotal& forward = named(totals.by_kind, "forward");
  CHECK(forward.count == 4);
  CHECK(forward.total == (50 + 100 + 100 + 60) * us);
  CHECK(forward.least == 50 * us);
  CHECK(forward.most == 100 * us);
  CHECK(forward.mean() == Approx(77.5 * us));
  CHECK(forward.share == Approx(310.0 / 840));
  const AreaTotal& backward = named(totals.by_kind, "backward");
  CHECK(backward.count == 2);
  CHECK(backward.total == (50 + 200) * us);
  CHECK(totals.by_kind.front().name == "forward");
  CHECK(named(totals.by_name, "backward 0").count == 2);
  CHECK(named(totals.by_name, "forward 1").total == (100 + 60) * us);
  CHECK(totals.by_name.size() == 3);
}

TEST_CASE("Names of several runs are added up together, and runs that are gone are left out") {
  Session session;
  const int one = session.add(run_of(two_stages())), two = session.add(run_of(two_stages()));
  const Area area{{0, 100 * us}, {{one, 0}, {two, 0}}};
  CHECK(named(totals_of(parts_of(area, session), false).by_name, "forward 0").total == 200 * us);
  session.remove(one);
  CHECK(named(totals_of(parts_of(area, session), false).by_name, "forward 0").total == 100 * us);
}

TEST_CASE("An empty area, and one that nobody waits for") {
  Session session;
  const int id = session.add(run_of(two_stages()));
  CHECK(totals_of(parts_of({{2000 * us, 3000 * us}, {{id, 0}}}, session), false).by_kind.empty());
  CHECK(totals_of(parts_of({{0, 900 * us}, {{id, 0}}}, session), true).spans == 0);
}

TEST_CASE("The table of totals is a model with numbers to sort by") {
  AreaTotalsModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  Session session;
  const int id = session.add(run_of(two_stages()));
  model.set_totals(totals_of(parts_of({{0, 920 * us}, {{id, 0}, {id, 1}}}, session), false).by_kind);
  REQUIRE(model.rowCount() == 3);
  CHECK(model.index(0, AreaTotalsModel::kName).data() == "backward");
  CHECK(model.index(0, AreaTotalsModel::kTotal).data() == "400.0 us");
  CHECK(model.index(0, AreaTotalsModel::kTotal).data(Qt::UserRole).toLongLong() == 400 * us);
  CHECK(model.index(2, AreaTotalsModel::kName).data() == "communication");
  CHECK(model.index(2, AreaTotalsModel::kCount).data() == "2");
  CHECK(model.index(0, AreaTotalsModel::kShare).data() == "21.7 %");  // 400 of 2 x 920
  CHECK(model.headerData(AreaTotalsModel::kShare, Qt::Horizontal, Qt::DisplayRole) == "Share");
}
