// Tests the comparison of runs, and ops by kind, against sums computed by hand and the simulator's own
// comparison.
#include <QAbstractItemModelTester>

#include "gui/models/comparison/comparison.hpp"
#include "simulator/report/comparison.hpp"
#include "simulator/trace/op_seconds.hpp"
#include "tests/catch.hpp"
#include "tests/gui_recorded.hpp"
#include "tests/gui_timeline_builder.hpp"

namespace rehearse::gui {
namespace {

constexpr Time kMs = 1'000'000;

std::shared_ptr<const Run> made(const std::string& name, double step_s, std::vector<BreakdownPart> parts) {
  auto run = std::make_shared<Run>();
  run->name = name;
  run->figures.step_time_s = step_s;
  if (step_s > 0) run->figures.samples_per_s = 32 / step_s;
  run->figures.breakdown = std::move(parts);
  run->timeline = std::make_shared<Timeline>();
  return run;
}

}  // namespace

TEST_CASE("Kinds of op are names without their numbers") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"backward 3, layers 5-12", "backward"},
      {"backward 0", "backward"},
      {"all-reduce bucket 4", "all-reduce bucket"},
      {"fwd mb 3 layer 2", "fwd mb layer"},
      {"recompute 1, layer 7", "recompute"},
      {"optimizer", "optimizer"},
      {"ProfilerStep#12", "ProfilerStep"},
      {"sm80_xmma_gemm_f32f32_128x64", "sm80_xmma_gemm_f32f32_128x64"},
      {"void kernel<float2, 4>(int)", "void kernel<float2, 4>(int)"},
      {"42", "(a number)"}};
  for (const auto& [name, kind] : cases) CHECK(kind_of_name(name) == kind);
}

TEST_CASE("Ops are counted where they lie in the stretch, folded ranks as often as they are") {
  TimelineBuilder builder;
  builder.process("ranks 0-3", 4).track("compute");
  builder.span("forward 0", 0, 10 * kMs, Kind::compute).flops(2e9F);
  builder.span("backward 0", 10 * kMs, 40 * kMs, Kind::compute).flops(4e9F);
  builder.track("network");
  builder.span("all-reduce bucket 0", 10 * kMs, 30 * kMs, Kind::waiting);
  builder.span("all-reduce bucket 0", 30 * kMs, 50 * kMs, Kind::communication).bytes(1e6F);
  builder.process("rank 4").track("compute");
  builder.span("forward 1", 5 * kMs, 20 * kMs, Kind::compute).flops(2e9F);
  builder.summarize();
  const OpTotalsOfRange all = op_totals(builder.done(), {0, 50 * kMs});
  CHECK(all.ranks == 5);
  REQUIRE(all.ops.size() == 3);  // waiting and summaries are not ops
  CHECK(all.ops[0].name == "backward");
  CHECK(all.ops[0].seconds == Approx(4 * 0.03));
  CHECK(all.ops[1].name == "all-reduce bucket");
  CHECK(all.ops[1].bytes == Approx(4e6));
  CHECK(all.ops[2].name == "forward");
  CHECK(all.ops[2].count == 5);
  CHECK(all.ops[2].seconds == Approx(4 * 0.01 + 0.015));
  CHECK(all.ops[2].shortest == 10 * kMs);
  CHECK(all.ops[2].longest == 15 * kMs);
  CHECK(all.ops[2].flops == Approx(1e10));

  const OpTotalsOfRange cut = op_totals(builder.done(), {8 * kMs, 12 * kMs});
  REQUIRE(cut.ops.size() == 2);
  CHECK(cut.ops[0].name == "forward");
  CHECK(cut.ops[0].seconds == Approx(4 * 0.002 + 0.004));
  CHECK(cut.ops[0].whole_s == Approx(4 * 0.01 + 0.015));
  const std::atomic<bool> cancelled = true;
  CHECK(op_totals(builder.done(), {0, 50 * kMs}, &cancelled).ops.empty());

  ValueTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.set(rows_of(all));
  CHECK(table.index(0, 3).data().toString().toStdString() == "24.00");  // 4 of 5 ranks, 30 ms each
  CHECK(table.headerData(3, Qt::Horizontal, Qt::DisplayRole).toString() == "total (ms)");
  CHECK(table.index(1, 9).data().toString().toStdString() == "50.00");  // 1 MB in 20 ms
  CHECK(table.headerData(9, Qt::Horizontal, Qt::DisplayRole).toString() == "bandwidth (MB/s)");
  CHECK(table.index(2, 10).data().toDouble() == Approx(0.1818).epsilon(1e-3));  // 1e10 in 55 ms
  table.set(rows_of(op_totals(Timeline{}, {0, 0})));
  CHECK(table.rowCount() == 0);
}

TEST_CASE("A sentence is told from breakdowns where nothing more is known") {
  using K = Kind;
  const auto base =
      made("a", 0.1, {{"compute", K::compute, 0.06}, {"exposed communication", K::communication, 0.04}});
  struct Case {
    std::shared_ptr<const Run> other;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {made("b", 0.13, {{"compute", K::compute, 0.058}, {"exposed communication", K::communication, 0.072}}),
       "B is 1.30 x slower: +32.0 ms exposed communication, -2.0 ms compute."},
      {made("b", 0.05, {{"compute", K::compute, 0.05}}),
       "B is 2.00 x faster: -40.0 ms exposed communication, -10.0 ms compute."},
      // exposed times are summed, because the base does not split them by purpose
      {made("b", 0.102,
            {{"compute", K::compute, 0.06},
             {"exposed gradient sync", K::communication, 0.03},
             {"exposed pipeline transfer", K::communication, 0.012}}),
       "B is 2.0 % slower: +2.0 ms exposed communication."},
      {made("b", 0.1, {{"compute", K::compute, 0.06}, {"exposed communication", K::communication, 0.04}}),
       "B takes as long as A."},
      {made("b", 0, {}), ""}};
  for (const Case& c : cases) CHECK(difference_sentence(*base, *c.other, "A", "B") == c.sentence);
}

TEST_CASE("Breakdowns are compared part by part, and what is waited for in one") {
  using K = Kind;
  const Runs runs = {
      made("x", 1, {{"compute", K::compute, 0.5}, {"waiting for slower ranks", K::waiting, 0.5}}),
      made("x", 2,
           {{"compute", K::compute, 0.6},
            {"exposed gradient sync", K::communication, 0.9},
            {"waiting for servers", K::waiting, 0.5}})};
  CHECK(names_of(runs) == std::vector<std::string>{"x", "x (2)"});
  const std::vector<ComparedPart> parts = compared_breakdowns(runs);
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].name == "exposed gradient sync");
  CHECK(parts[1].seconds == std::vector<double>{0, 0.9});
  CHECK(parts[2].seconds == std::vector<double>{0.5, 0.5});

  ValueTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.set(compared_figures(runs, names_of(runs)));
  REQUIRE(table.columnCount() == 5);
  CHECK(table.index(0, 0).data().toString() == "step time (s)");
  CHECK(table.index(0, 3).data().toString().toStdString() == "+1.00");
  CHECK(table.index(0, 4).data().toString() == "+100.0");
  CHECK(table.index(0, 3).data(ValueTable::kToneRole).toInt() == static_cast<int>(Tone::worse));
  CHECK(table.index(1, 4).data().toString() == "-50.0");  // samples/s
  CHECK(table.index(0, 1).data(Qt::TextAlignmentRole).value<Qt::Alignment>().testFlag(Qt::AlignRight));
  CHECK(as_text(table, {table.index(0, 0), table.index(0, 3)}) == "figure\tdelta\nstep time (s)\t+1.00\n");
}

TEST_CASE("What an op's time did") {
  struct Case {
    ComparedOp::Amount base, other;
    Change change;
  };
  const std::vector<Case> cases = {
      {{1, 1.0}, {1, 1.005}, Change::equal},   {{1, 1.0}, {1, 1.02}, Change::increased},
      {{1, 1.0}, {2, 0.5}, Change::decreased}, {{0, 0}, {1, 1}, Change::added},
      {{1, 1}, {0, 0}, Change::removed},       {{0, 0}, {0, 0}, Change::equal}};
  for (const Case& c : cases) CHECK(change_of(c.base, c.other) == c.change);
}

TEST_CASE("Judged runs are compared as the simulator compares them") {
  const auto ring = std::make_shared<Run>(test::run_of(test::recorded("star-4-16mb-ring"), "ring"));
  const auto pipeline =
      std::make_shared<Run>(test::run_of(test::recorded("star-4-16mb-pipeline"), "pipeline"));
  const Runs runs = {ring, pipeline};
  CHECK(difference_sentence(*ring, *pipeline, "A", "B") ==
        rehearse::difference_sentence(ring->judged->result(), pipeline->judged->result(), "A", "B"));
  const std::vector<ComparedOp> ops = compared_ops(runs);
  std::size_t found = 0;
  for (const OpSeconds& op : seconds_by_op(pipeline->judged->step, 0))
    for (const ComparedOp& compared : ops)
      if (compared.name == op.name && compared.kind == op.kind) {
        CHECK(compared.amounts[1].seconds == op.seconds);
        CHECK(compared.amounts[1].count == op.count);
        ++found;
      }
  CHECK(found >= 4);
  const auto sync =
      std::find_if(ops.begin(), ops.end(), [](const ComparedOp& op) { return op.name == "gradient sync"; });
  REQUIRE(sync != ops.end());
  CHECK(change_of(sync->amounts[0], sync->amounts[1]) == Change::removed);
  // The largest differences come first.
  for (std::size_t i = 1; i < ops.size(); ++i)
    CHECK(std::abs(ops[i - 1].amounts[1].seconds - ops[i - 1].amounts[0].seconds) >=
          std::abs(ops[i].amounts[1].seconds - ops[i].amounts[0].seconds));

  // From the spans alone the times are the same, grouped by op name.
  const auto unjudged = std::make_shared<Run>(*pipeline);
  unjudged->judged = nullptr;
  const std::vector<ComparedOp> from_spans = compared_ops({unjudged, unjudged});
  double by_spans = 0, by_ops = 0;
  for (const ComparedOp& op : from_spans)
    if (op.kind == "compute") by_spans += op.amounts[0].seconds;
  for (const ComparedOp& op : ops)
    if (op.kind == "compute") by_ops += op.amounts[1].seconds;
  CHECK(by_spans == Approx(by_ops).epsilon(1e-3));

  ValueTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.set(rows_of(ops, {"ring", "pipeline"}));
  CHECK(table.columnCount() == 11);
  CHECK(table.rowCount() == static_cast<int>(ops.size()));
}

}  // namespace rehearse::gui
