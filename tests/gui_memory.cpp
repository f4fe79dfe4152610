// Tests the memory of stages as the window shows it against the simulator's own figures.
#include <QAbstractItemModelTester>
#include <algorithm>
#include <numeric>

#include "gui/models/memory/live_memory.hpp"
#include "gui/models/memory/memory_stages.hpp"
#include "gui/models/topology/link_users.hpp"
#include "tests/catch.hpp"
#include "tests/gui_runs.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

gui::Run run_of(const std::string& name) {
  return judged_run(recorded(name), name);
}

double sum(const BytesByPart& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace

TEST_CASE("The fullest stage's stack is the memory use of the run") {
  for (const char* const name :
       {"star-4-16mb-pipeline", "star-4-16mb-data-x-pipeline", "star-4-16mb-ring", "star-4-16mb-server"}) {
    CAPTURE(name);
    const gui::Run run = run_of(name);
    const RunMemory memory = memory_of(run);
    const double capacity = run.judged->run.scenario.cluster->node().device.memory_bytes.value;
    const MemoryUse use = memory_use(run.judged->step, 0, capacity);
    REQUIRE(memory.fullest >= 0);
    const StageMemory& fullest = memory.stages[memory.fullest];
    CHECK(fullest.name == use.fullest);
    CHECK(fullest.parts[0] == Approx(use.weights));
    CHECK(fullest.parts[1] == Approx(use.gradients));
    CHECK(fullest.parts[2] == Approx(use.optimizer));
    CHECK(fullest.parts[3] == Approx(use.activations));
    CHECK(fullest.parts[4] == Approx(use.buffers).margin(1e-9));
    CHECK(fullest.total == Approx(use.total));
    CHECK(memory.capacity == capacity);
    CHECK(memory.fits == use.fits);
    for (const StageMemory& stage : memory.stages) CHECK(sum(stage.parts) == Approx(stage.total));
  }
}

TEST_CASE("Stages and servers have a stack each") {
  CHECK(memory_of(run_of("star-4-16mb-pipeline")).stages.size() == 4);
  CHECK(memory_of(run_of("star-4-16mb-data-x-pipeline")).stages.size() == 2);
  CHECK(memory_of(run_of("star-4-16mb-ring")).stages.size() == 1);
  const RunMemory served = memory_of(run_of("star-4-16mb-server"));
  REQUIRE(served.stages.size() == 2);
  CHECK(std::count_if(served.stages.begin(), served.stages.end(), [](const auto& s) { return s.server; }) ==
        1);
}

TEST_CASE("Memory over time is as full as the stack, and begins with what always lies there") {
  const gui::Run run = run_of("star-4-16mb-pipeline");
  for (const StageMemory& stage : memory_of(run).stages) {
    CAPTURE(stage.name);
    const MemorySeries series = memory_over_time(run, stage.rank_class);
    REQUIRE_FALSE(series.time.empty());
    CHECK(std::is_sorted(series.time.begin(), series.time.end()));
    CHECK(series.most >= stage.total * (1 - 1e-9));
    const BytesByPart persistent = by_part(memory_timeline(run.judged->step, stage.rank_class, 0).persistent);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(series.parts[p].front() == Approx(persistent[p]));
      CHECK(series.parts[p].back() == Approx(persistent[p]));
    }
    CHECK(series.parts[3].back() == Approx(0).margin(1e-3));
    CHECK(series.at(series.time.front() - 1) == series.time.size());
    CHECK(series.at(series.time.front()) == 0);
    CHECK(series.at(series.time.back() + 5) == series.time.size() - 1);
  }
}

TEST_CASE("The tensors of a moment add up to the memory over time, and those of the peak to the stack") {
  for (const char* const name :
       {"star-4-16mb-pipeline", "star-4-16mb-data-x-pipeline", "star-4-16mb-server"}) {
    CAPTURE(name);
    const gui::Run run = run_of(name);
    for (const StageMemory& stage : memory_of(run).stages) {
      CAPTURE(stage.name);
      const LiveMemory live(run, stage);
      REQUIRE(live.known());
      CHECK(live.peak().peak);
      CHECK(live.peak().largest.bytes == Approx(stage.total));
      const MemorySeries series = memory_over_time(run, stage.rank_class);
      std::size_t alike = 0;
      for (std::size_t i = 0; i < series.time.size(); ++i) {
        const MomentTensors moment = live.at(series.time[i]);
        double total = 0, in_rows = moment.largest.others_bytes;
        for (const std::vector<double>& part : series.parts) total += part[i];
        for (const TensorRow& row : moment.largest.rows) in_rows += row.bytes;
        CHECK(in_rows == Approx(moment.largest.bytes).margin(1e-3));
        CHECK(moment.largest.rows.size() <= 10);
        alike += std::abs(moment.largest.bytes - total) <= 1e-6 * total ? 1 : 0;
      }
      // Where steps overlap, the tensors of a moment are those of the later one.
      CHECK(alike >= series.time.size() * 9 / 10);
      double persistent = 0;
      for (const double bytes : memory_timeline(run.judged->step, stage.rank_class, 0).persistent)
        persistent += bytes;
      CHECK(live.at(series.time.back() + 1'000'000'000).largest.bytes == Approx(persistent));
    }
  }
}

TEST_CASE("The table of tensors has a row for each, and one for the others") {
  TensorRow row;
  row.name = "activations";
  row.count = 4;
  row.bytes = 3.0 * (1 << 20);
  row.layers = {{0, 2}, {8, 8}};
  row.microbatches = {{0, 3}};
  row.born_s = 0.001;
  row.born_in = "forward 0";
  row.freed_s = 0.0125;
  row.freed_in = "backward 3";
  TensorRow always;
  always.name = "weights 0";
  always.kind = TensorKind::weight;
  always.bytes = 1 << 20;
  MomentTensors moment{true, 0.004, "backward 0", {{row, always}, 5.0 * (1 << 20), 1 << 20, 2}};
  const TableData table = tensor_table(moment);
  const auto text = [&](std::size_t r) {
    QStringList cells;
    for (const Cell& cell : table.rows[r]) cells << cell.text;
    return cells.join("|").toStdString();
  };
  REQUIRE(table.rows.size() == 3);
  CHECK(table.columns.size() == table.rows[0].size());
  CHECK(text(0) ==
        "activations x 4|3.0 MiB|60.0 %|0-2, 8|0-3|1.00 ms|forward 0|12.50 ms|backward 3|activation");
  CHECK(text(1) == "weights 0|1.0 MiB|20.0 %|||always||||weight");
  CHECK(text(2) == "2 others|1.0 MiB|20.0 %|||||||");
  CHECK(moment_text(moment) == "Peak: 5.0 MiB, 4.000 ms into the step, in \"backward 0\"");
  moment.peak = false;
  moment.op.clear();
  CHECK(moment_text(moment) == "At the cursor: 5.0 MiB, 4.000 ms into the step");
  ValueTable model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.set(table);
  CHECK(model.rowCount() == 3);
  CHECK_FALSE(LiveMemory().known());
  CHECK(LiveMemory().at(5).largest.rows.empty());
}

TEST_CASE("Of other runs the figures tell the fullest device, or nothing") {
  gui::Run run;
  CHECK(memory_of(run).stages.empty());
  CHECK(memory_of(run).sentence == "its memory use is unknown");
  run.figures.memory = {10 << 20, 20 << 20, 40 << 20, 20 << 20, 0, 90 << 20, 64 << 20, false, "stage 1"};
  const RunMemory memory = memory_of(run);
  REQUIRE(memory.stages.size() == 1);
  CHECK(memory.stages[0].total == 90 << 20);
  CHECK_FALSE(memory.fits);
  CHECK(memory.sentence == "does not fit: stage 1 is the fullest: 90.0 MiB of 64.0 MiB");
  CHECK(memory_over_time(run, 0).time.empty());
}

TEST_CASE("Users of a link add up to what it carried, by kind as well") {
  const RecordedRun run = recorded("tree-2to1-8-16mb-data-x-pipeline");
  const LinkUsage usage(run.trace, run.scenario.cluster);
  const Timeline nothing;
  const RowSpans spans(run.trace, nothing);
  const double end = run.trace.end_s;
  for (const auto& [from, to] : {std::pair(0.0, end), std::pair(end / 3, end / 2)}) {
    const LinkUsage::Load load = usage.load(from, to);
    for (const LinkUsage::Busy& busy : usage.busiest(load, 5)) {
      const UsersOfLink all = users_of(usage, run.trace, spans, busy.link, from, to, 1'000'000);
      CHECK(all.bytes == Approx(busy.bytes));
      double bytes = 0, share = 0, by_kind = 0;
      int count = 0;
      for (const LinkUser& user : all.users) {
        bytes += user.bytes;
        share += user.share;
      }
      for (const KindOfUse& kind : all.kinds) {
        by_kind += kind.bytes;
        count += kind.users;
      }
      CHECK(bytes == Approx(busy.bytes));
      CHECK(by_kind == Approx(busy.bytes));
      CHECK(share == Approx(1));
      CHECK(count == static_cast<int>(all.users.size()));
      const UsersOfLink few = users_of(usage, run.trace, spans, busy.link, from, to, 2);
      CHECK(few.users.size() == std::min<std::size_t>(2, all.users.size()));
      CHECK(few.users.size() + few.left_out == all.users.size());
      CHECK(few.bytes == Approx(all.bytes));
    }
  }
}

TEST_CASE("The tables keep what Qt asks of models") {
  LinkUsersModel users;
  BusiestLinksModel links;
  QAbstractItemModelTester users_tester(&users, QAbstractItemModelTester::FailureReportingMode::Fatal);
  QAbstractItemModelTester links_tester(&links, QAbstractItemModelTester::FailureReportingMode::Fatal);
  LinkUser user;
  user.op = "send forward 3";
  user.begin = 2'000'000;
  user.bytes = 1.5e6;
  user.share = 0.25;
  users.set_users({user, user}, 500'000);
  CHECK(users.rowCount() == 2);
  CHECK(users.index(0, LinkUsersModel::begin).data().toString() == "1.500 ms");
  CHECK(users.index(1, LinkUsersModel::bytes).data().toString() == "1.50 MB");
  CHECK(users.index(1, LinkUsersModel::share).data().toString() == "25 %");
  links.set_links({{"leaf0-spine1", {3, 15, 0.64, 2e9}, 25e9}});
  CHECK(links.index(0, BusiestLinksModel::link).data().toString() == "leaf0-spine1");
  CHECK(links.index(0, BusiestLinksModel::alike).data().toString() == "+ 15");
  CHECK(links.index(0, BusiestLinksModel::use).data().toString() == "64 %");
  CHECK(links.index(0, BusiestLinksModel::capacity).data().toString() == "25 GB/s");
  users.set_users({}, 0);
  CHECK(users.rowCount() == 0);
}

TEST_CASE("Figures of links are short") {
  const std::vector<std::pair<double, std::string>> shares = {
      {0, "0 %"}, {1e-5, "< 0.01 %"}, {0.0005, "0.05 %"}, {0.011, "1.1 %"}, {0.64, "64 %"}, {1, "100 %"}};
  for (const auto& [share, text] : shares) CHECK(share_text(share) == text);
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999.7) == "1.00 kB");
  CHECK(bytes_text(12'345'678) == "12.3 MB");
  CHECK(rate_text(25e9) == "25 GB/s");
  CHECK(time_range_text({0, 3'000'000}) == "0 to 3.00 ms");
  CHECK(time_range_text({12'300'000'000, 14'500'000'000}) == "12.30 to 14.50 s");
  CHECK(memory_text(72.0 * (1ull << 30)) == "72.0 GiB");
}
