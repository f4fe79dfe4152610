// Tests that the table of runs follows the session and changes it.
#include <QAbstractItemModelTester>
#include <QMimeData>
#include <QSignalSpy>
#include <memory>

#include "gui/models/runs/run_list.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

namespace {

rehearse::gui::Run run_of(const std::string& name, double step_s,
                          rehearse::gui::Run::Source source = rehearse::gui::Run::Source::predicted) {
  rehearse::gui::Run run;
  run.name = name;
  run.source = source;
  run.figures.step_time_s = step_s;
  run.figures.samples_per_s = step_s > 0 ? 100 / step_s : 0;
  return run;
}

struct Table {
  Table() : tester(&list, QAbstractItemModelTester::FailureReportingMode::Fatal) {
    a = session.add(run_of("a", 0.5));
    b = session.add(run_of("b", 0.6, rehearse::gui::Run::Source::measured));
    c = session.add(run_of("c", 0, rehearse::gui::Run::Source::profiler));
  }
  std::string cell(int row, int column) const {
    return list.data(list.index(row, column)).toString().toStdString();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (int row = 0; row < list.rowCount(); ++row) names.push_back(cell(row, RunList::name));
    return names;
  }
  Session session;
  RunList list{session};
  QAbstractItemModelTester tester;
  int a = 0, b = 0, c = 0;
};

}  // namespace

TEST_CASE("Runs are told with their difference to the base") {
  const Table t;
  const std::vector<std::vector<std::string>> rows = {
      {"a", "predicted", "500.0 ms", "200", "base"},
      {"b", "measured", "600.0 ms", "167", "+20.0 %"},  // 0.6 / 0.5; 100 / 0.6
      {"c", "profiler", "-", "-", ""},
  };
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < RunList::kColumns; ++column) {
      CAPTURE(row, column);
      CHECK(t.cell(row, column) == rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)]);
    }
}

TEST_CASE("A narrow list tells the rest beneath") {
  const Table t;
  const auto detail = [&](int row, int column) {
    return t.list.data(t.list.index(row, column), RunList::DetailRole).toString().toStdString();
  };
  CHECK(detail(1, RunList::name) == "measured");
  CHECK(detail(1, RunList::step_time) == "167/s");
  CHECK(detail(2, RunList::step_time) == "");
  CHECK(t.list.data(t.list.index(1, 0), Qt::ToolTipRole).toString().contains("167 samples/s"));
}

TEST_CASE("Differences and times as text") {
  CHECK(difference_text(1.5, 1) == "+50.0 %");
  CHECK(difference_text(0.9, 1) == "-10.0 %");
  CHECK(difference_text(0.99999, 1) == "0.0 %");
  CHECK(difference_text(9.9, 1) == "+890.0 %");
  CHECK(difference_text(21.54, 1) == "21.5 x");
  CHECK(difference_text(0, 1).isEmpty());
  CHECK(difference_text(1, 0).isEmpty());
  CHECK(step_text(76.828) == "76.83 s");
  CHECK(step_text(0) == "-");
}

TEST_CASE("What is hidden is no base and has no colour") {
  Table t;
  const auto place = [&](int row) { return t.list.data(t.list.index(row, 0), RunList::PlaceRole).toInt(); };
  CHECK(t.list.setData(t.list.index(0, 0), Qt::Unchecked, Qt::CheckStateRole));
  CHECK_FALSE(t.session.is_shown(t.a));
  CHECK(t.cell(0, RunList::difference) == "-16.7 %");  // 0.5 / 0.6
  CHECK(t.cell(1, RunList::difference) == "base");
  CHECK(place(0) == -1);
  CHECK(place(1) == 0);
  CHECK(place(2) == 1);
}

TEST_CASE("Runs are moved, named and taken away, and what was selected stays selected") {
  Table t;
  const QPersistentModelIndex of_b = t.list.index(1, 0);
  t.session.set_base(t.c);
  CHECK(t.names() == std::vector<std::string>{"c", "a", "b"});
  CHECK(of_b.row() == 2);
  t.session.move(t.c, 1);
  CHECK(t.names() == std::vector<std::string>{"a", "c", "b"});
  t.session.move(t.a, 99);
  CHECK(t.names() == std::vector<std::string>{"c", "b", "a"});
  CHECK(t.list.setData(t.list.index(1, 0), "  B two ", Qt::EditRole));
  CHECK(t.session.run(t.b)->name == "B two");
  CHECK_FALSE(t.list.setData(t.list.index(1, 0), " ", Qt::EditRole));
  QSignalSpy removed(&t.list, &QAbstractItemModel::rowsRemoved);
  t.session.remove(t.c);
  CHECK(removed.count() == 1);
  CHECK(t.names() == std::vector<std::string>{"B two", "a"});
  CHECK(of_b.row() == 0);
  CHECK(t.list.row_of(t.c) == -1);
}

TEST_CASE("A row is dragged to another place") {
  struct Case {
    int from, to;  // dropped before row `to`; -1: see below
    std::vector<std::string> names;
  };
  const std::vector<Case> cases = {{0, 2, {"b", "a", "c"}},
                                   {2, 0, {"c", "a", "b"}},
                                   {0, 3, {"b", "c", "a"}},
                                   {1, 1, {"a", "b", "c"}},
                                   {0, -1, {"b", "c", "a"}}};  // onto the empty space below
  for (const Case& c : cases) {
    Table t;
    CAPTURE(c.from, c.to);
    const std::unique_ptr<QMimeData> data(t.list.mimeData({t.list.index(c.from, 0)}));
    CHECK(t.list.dropMimeData(data.get(), Qt::MoveAction, c.to, 0, {}));
    CHECK(t.names() == c.names);
  }
}

TEST_CASE("The table follows a run that becomes known better") {
  Table t;
  QSignalSpy changed(&t.list, &QAbstractItemModel::dataChanged);
  rehearse::gui::Run run = *t.session.run(t.c);
  run.figures.step_time_s = 0.25;
  t.session.replace(run);
  CHECK(changed.count() == 1);
  CHECK(t.cell(2, RunList::difference) == "-50.0 %");
}
