// Tests CSV files as in RFC 4180, and curves through a sweep's points.
#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <fstream>

#include "gui/models/tables/result_file.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

constexpr const char* kHeader =
    "point,cluster.nodes,strategy.all_reduce,step_time_s,samples_per_s,tokens_per_s,devices,mfu,compute_s,"
    "exposed_communication_s,data_stall_s,pipeline_bubble_s,other_s,memory_bytes,fits,network_bytes_per_step,"
    "status,error,sweep\n";

std::string line(int point, int nodes, const char* how, double step_s, double samples) {
  return std::to_string(point) + "," + std::to_string(nodes) + "," + how + "," + std::to_string(step_s) +
         "," + std::to_string(samples) + ",0," + std::to_string(4 * nodes) +
         ",0.5,1,1,0,0,0,1073741824,true,1,ok,,ab\n";
}

// Weak scaling: with twice the nodes, a ring keeps 80 % of its efficiency, a tree all of it.
SweepTable two_curves() {
  return sweep_of(parse_csv(kHeader + line(2, 1, "tree", 1, 30) + line(1, 1, "ring", 1, 32) +
                                line(4, 2, "tree", 1, 60) + line(3, 2, "ring", 1.25, 51.2),
                            "s.csv"));
}

}  // namespace

TEST_CASE("CSV is read by RFC 4180, and broken lines are told") {
  struct Case {
    const char* text;
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> problems;
  };
  const std::vector<Case> cases = {{"a,b\n1,2\n", {{"1", "2"}}, {}},
                                   {"a,b\r\n1,2\r\n", {{"1", "2"}}, {}},
                                   {"\xEF\xBB\xBF"
                                    "a,b\n1,2",
                                    {{"1", "2"}},
                                    {}},
                                   {"a,b\n\"1,5\",\"say \"\"x\"\"\"\n", {{"1,5", "say \"x\""}}, {}},
                                   {"a,b\n\"two\nlines\",2\n3,4\n", {{"two\nlines", "2"}, {"3", "4"}}, {}},
                                   {"a,b\n,\n\n", {{"", ""}}, {}},
                                   {"a,b\n1\n1,2,3\n4,5\n",
                                    {{"4", "5"}},
                                    {"line 2 has 1 field; allowed: 2, as in the header",
                                     "line 3 has 3 fields; allowed: 2, as in the header"}},
                                   {"a,b\n1,2\n\"x,3\n", {{"1", "2"}}, {"line 3: a quote is not closed"}}};
  for (const Case& c : cases) {
    const CsvFile file = parse_csv(c.text, "x.csv");
    CAPTURE(c.text);
    CHECK(file.header == std::vector<std::string>{"a", "b"});
    std::vector<std::vector<std::string>> rows;
    for (const CsvRow& row : file.rows) rows.push_back(row.fields);
    CHECK(rows == c.rows);
    CHECK(file.problems == c.problems);
  }
  for (const char* text : {"", "\n", "\"a\n"}) CHECK_THROWS_AS(parse_csv(text, "x.csv"), InputError);
  CHECK_THROWS_AS(read_csv("/no/such/file.csv"), InputError);
}

TEST_CASE("Which CSV a file is") {
  const QTemporaryDir folder;
  const auto kind = [&](const std::string& text) {
    const std::string path = folder.path().toStdString() + "/x.csv";
    std::ofstream(path) << text;
    Progress progress;
    const ResultFile file = read_results(path, progress);
    return std::holds_alternative<ReadSweep>(file) ? CsvKind::sweep : CsvKind::validation;
  };
  CHECK(kind(kHeader) == CsvKind::sweep);
  CHECK(kind("run,topology,measured_step_s,predicted_step_s\n") == CsvKind::validation);
  CHECK_THROWS_AS(kind("a,b\n1,2\n"), InputError);
  CHECK_THROWS_AS(kind(""), InputError);
  Progress progress;
  CHECK_THROWS_AS(read_results("/no/such/file.csv", progress), InputError);
}

TEST_CASE("Reading results tells how far it is, and stops when it is told to") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/x.csv";
  std::ofstream(path) << kHeader + line(1, 1, "ring", 1, 32) + line(2, 1, "tree", 1, 30);
  Progress progress;
  const ResultFile file = read_results(path, progress);
  REQUIRE(std::holds_alternative<ReadSweep>(file));
  CHECK(std::get<ReadSweep>(file).sweep.points.size() == 2);
  CHECK(std::get<ReadSweep>(file).rows.rows.size() == 2);
  CHECK(progress.share > 0.5);
  progress.cancelled = true;
  CHECK_THROWS_AS(read_results(path, progress), Cancelled);
}

TEST_CASE("Curves of a sweep") {
  const SweepTable table = two_curves();
  CHECK(table.problems.empty());
  CHECK(table.varied == std::vector<std::string>{"cluster.nodes", "strategy.all_reduce"});
  CHECK(table.numeric_axes() == std::vector<std::string>{"devices", "cluster.nodes"});
  struct Case {
    SweepFigure figure;
    std::vector<double> ring, ideal;
  };
  const std::vector<Case> cases = {
      {SweepFigure::step_time, {1, 1.25}, {1, 1}}, {SweepFigure::samples, {32, 51.2}, {32, 64}},
      {SweepFigure::mfu, {50, 50}, {50, 50}},      {SweepFigure::samples_per_device, {8, 6.4}, {8, 8}},
      {SweepFigure::speed_up, {1, 1.6}, {1, 2}},   {SweepFigure::efficiency, {100, 80}, {100, 100}}};
  for (const Case& c : cases)
    for (const char* axis : {"devices", "cluster.nodes"}) {
      const std::vector<Curve> curves = curves_of(table, axis, c.figure);
      REQUIRE(curves.size() == 2);
      CHECK(curves[0].name == "all_reduce ring");
      CHECK(curves[1].name == "all_reduce tree");
      const std::vector<CurvePoint> ideal = ideal_curve(table, curves[0], c.figure);
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(curves[0].points[i].y == Approx(c.ring[i]));
        CHECK(ideal[i].y == Approx(c.ideal[i]));
      }
      CHECK(curves[0].points[1].x == (axis == std::string("devices") ? 8 : 2));
    }
  CHECK(curves_of(table, "devices", SweepFigure::tokens).empty());  // none are known
  CHECK(description_of(table, table.points[2]) ==
        "8 devices, nodes 2, all_reduce ring: 1.25 s, 51.2 samples/s, MFU 50.0 %");
}

TEST_CASE("Points without a result stay in the table, and broken ones are told") {
  const SweepTable table = sweep_of(parse_csv(kHeader + line(1, 1, "ring", 1, 32) +
                                                  "2,2,ring,,,,,,,,,,,,,,refused,\"no, not so\",ab\n" +
                                                  "3,4,ring,x,1,1,1,1,1,1,1,1,1,1,true,1,ok,,ab\n" +
                                                  "4,8,ring,1,1,1,1,1,1,1,1,1,1,1,true,1,well,,ab\n",
                                              "s.csv"));
  REQUIRE(table.points.size() == 2);
  CHECK(table.points[1].error == "no, not so");
  CHECK(table.problems ==
        std::vector<std::string>{"line 4: step_time_s is \"x\"; allowed: a number above 0",
                                 "line 5: its status is \"well\"; allowed: ok, refused, failed"});
  CHECK(curves_of(table, "cluster.nodes", SweepFigure::samples).at(0).points.size() == 1);
  ValueTable rows;
  const QAbstractItemModelTester tester(&rows, QAbstractItemModelTester::FailureReportingMode::Fatal);
  rows.set(rows_of(table));
  CHECK(rows.rowCount() == 2);
  CHECK(rows.index(1, rows.columnCount() - 1).data().toString() == "refused: no, not so");
  CHECK(rows.index(1, 4).data().toString().isEmpty());
  CHECK_THROWS_AS(sweep_of(parse_csv("a,b\n1,2\n", "s.csv")), InputError);
}

TEST_CASE("The course of many points is kept by few: their ends, lows and highs") {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < 10'000; ++i) points.push_back({static_cast<double>(i), 100 - 0.01 * i, i});
  points[4321].y = 500;
  points[7000].y = -3;
  const auto course = course_of(points, 200);
  CHECK(course.size() == 200);
  CHECK(course.front().row == 0);
  CHECK(course.back().row == 9999);
  for (const std::size_t row : {4321U, 7000U})
    CHECK(std::any_of(course.begin(), course.end(), [&](const CurvePoint& p) { return p.row == row; }));
  for (std::size_t i = 1; i < course.size(); ++i) CHECK(course[i - 1].x < course[i].x);
  CHECK(course_of(points, 10'000).size() == 10'000);
  CHECK(course_of({}, 5).empty());
}
