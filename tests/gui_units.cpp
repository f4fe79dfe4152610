// Tests that each quantity has the same unit everywhere: rates, memory, links; and figures that a trace
// lacks.
#include "gui/models/comparison/comparison.hpp"
#include "gui/models/comparison/figures.hpp"
#include "gui/models/runs/run_facts.hpp"
#include "gui/models/runs/run_list.hpp"
#include "gui/models/topology/link_users.hpp"
#include "simulator/report/format.hpp"
#include "tests/catch.hpp"
#include "tests/gui_runs.hpp"

namespace rehearse::gui {

TEST_CASE("Rates of samples are told alike") {
  Session session;
  Run run;
  run.name = "run";
  run.figures.step_time_s = 0.1;
  run.figures.samples_per_s = 60'260;
  session.add(run);
  const RunList list(session);
  bool told = false;
  for (int column = 0; column < list.columnCount(); ++column)
    told = told || list.index(0, column).data().toString() == QString::fromStdString(with_prefix(60'260));
  CHECK(told);
  CHECK(with_prefix(60'260) == "60.3 k");
}

TEST_CASE("Links have their bandwidth, devices their memory as a counter's capacity") {
  Run run = judged_run(recorded("star-4-16mb-server"), "servers");
  const Cluster& cluster = *run.judged->run.scenario.cluster;
  Timeline timeline = *run.timeline;
  timeline.counters = {{cluster.link_name(0), "bytes_per_s", -1, {0}, {1}},
                       {"no such link", "bytes_per_s", -1, {0}, {1}},
                       {"memory", "bytes", 0, {0}, {1}},
                       {"other", "%", 0, {0}, {1}}};
  run.capacities = capacities_of(timeline, *run.judged);
  REQUIRE(run.capacities.size() == 4);
  CHECK(run.capacity_of(0) == cluster.bandwidth(0));
  CHECK(run.capacity_of(1) == 0);
  CHECK(run.capacity_of(2) == cluster.node().device.memory_bytes.value);
  CHECK(run.capacity_of(3) == 0);
  CHECK(run.capacity_of(4) == 0);
  CHECK(rate_text(3.125e9) == "3.12 GB/s");
}

TEST_CASE("A trace that tells little says so instead of naming nothing as the bottleneck") {
  Timeline timeline;
  timeline.writer = Timeline::Writer::pytorch;
  timeline.spans.begin = {0, 0};
  timeline.spans.end = {300, 300};
  timeline.spans.kind = {Kind::compute, Kind::compute};
  timeline.spans.name = {0, 0};
  timeline.spans.pass = {Pass::none, Pass::none};
  timeline.spans.fill_unknown();
  timeline.end = 1000;
  timeline.processes.resize(1);
  timeline.processes[0].last_track = 1;
  timeline.tracks.push_back({"stream 7", 0, 7, 0, 1});
  timeline.rows = {{0, 0, 0, 1}, {0, -1, 1, 2}};
  timeline.processes[0].summary_row = 1;
  const RunFigures figures = figures_of(timeline);
  CHECK(figures.bottleneck.rfind("Bottleneck: unknown; in 70.0 % of the step the trace records no work", 0) ==
        0);
}

TEST_CASE("Ops of one name but two kinds are told apart") {
  ComparedOp reduce{"gradient sync", "all-reduce", {{1, 0.1}, {}}},
      push{"gradient sync", "exchange", {{}, {2, 0.2}}}, forward{"forward", "compute", {{1, 1}, {1, 1}}};
  const TableData rows = rows_of({reduce, push, forward}, {"ring", "servers"});
  CHECK(rows.rows[0][0].text == "gradient sync (all-reduce)");
  CHECK(rows.rows[1][0].text == "gradient sync (exchange)");
  CHECK(rows.rows[2][0].text == "forward");
}

}  // namespace rehearse::gui
