// Tests a span's details against its columns, its links, and the bus bandwidth factors of nccl-tests.
#include "gui/models/tracks/span_details.hpp"

#include <QAbstractItemModelTester>

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

std::string field(const SpanDetails& details, const std::string& label) {
  for (const auto& f : details.fields)
    if (f.label == label) return f.value;
  return "(none)";
}
SpanId link(const SpanDetails& details, const std::string& label) {
  for (const auto& f : details.fields)
    if (f.label == label) return f.link;
  return kNoSpan;
}

}  // namespace

TEST_CASE("Bus bandwidth by nccl-tests' PERFORMANCE.md") {
  for (const int n : {2, 3, 8, 1024}) {
    CHECK(bus_factor("all-reduce", n) == Approx(2.0 * (n - 1) / n));
    for (const char* kind : {"all-gather", "reduce-scatter", "all-to-all"})
      CHECK(bus_factor(kind, n) == Approx((n - 1.0) / n));
    for (const char* kind : {"broadcast", "reduce", "exchange"}) CHECK(bus_factor(kind, n) == 1);
  }
}

TEST_CASE("Amounts") {
  CHECK(amount_text(0, "B") == "0 B");
  CHECK(amount_text(999, "B") == "999 B");
  CHECK(amount_text(1000, "B") == "1.00 kB");
  CHECK(amount_text(12345678, "B") == "12.3 MB");
  CHECK(amount_text(999.96e6, "B") == "1.00 GB");
  CHECK(amount_text(99.97e6, "B") == "100 MB");
  CHECK(amount_text(9.996e6, "B") == "10.0 MB");
  CHECK(amount_text(312e12, "FLOP/s") == "312 TFLOP/s");
}

TEST_CASE("Details of computing") {
  const rehearse::gui::Run run = run_of(two_stages());
  const SpanDetails details = details_of(run, 2);
  CHECK(details.title == "backward 0");
  CHECK(field(details, "Duration") == "200.0 us");
  CHECK(field(details, "Begins") == "420 us");
  CHECK(field(details, "Kind") == "compute, backward");
  CHECK(field(details, "Rank") == "stage 0 (2 ranks)");
  CHECK(field(details, "Stream") == "compute");
  CHECK(field(details, "Micro-batch") == "0");
  CHECK(field(details, "Work") == "2.00 GFLOP");
  CHECK(field(details, "Achieved") == "10.0 TFLOP/s");  // 2e9 / 200 us
  CHECK(field(details, "Bytes") == "(none)");
  CHECK(field(details, "Critical path") == "(none)");
  CHECK(field(details_of(run, 3), "Critical path") == "yes");
}

TEST_CASE("Details of what is sent, in the step's time") {
  rehearse::gui::Run run = run_of(two_stages());
  run.aligned = 50'000;
  const SpanDetails details = details_of(run, 16);
  CHECK(field(details, "Begins") == "150.0 us");
  CHECK(field(details, "Ready") == "60.0 us");
  CHECK(field(details, "Waited") == "90.00 us");
  CHECK(field(details, "Bytes") == "1.00 MB");
  CHECK(field(details, "Bandwidth") == "100 GB/s");  // 1 MB in 10 us
  CHECK(field(details, "Waited for") == "send 1, stage 0 (2 ranks)");
  CHECK(link(details, "Waited for") == 5);
  CHECK(link(details, "Sent by") == 5);
}

TEST_CASE("A collective's bandwidths") {
  TimelineBuilder b;
  b.process("worker").track("gradients");
  b.span("all-reduce bucket 0", 0, 1'000'000, Kind::communication).transfer(64e6F, 8, "ring");
  const rehearse::gui::Run run = run_of(b.build());
  const SpanDetails details = details_of(run, 0);
  CHECK(field(details, "Algorithm") == "ring");
  CHECK(field(details, "Members") == "8");
  CHECK(field(details, "Algorithm bandwidth") == "64.0 GB/s");
  CHECK(field(details, "Bus bandwidth") == "112 GB/s");  // x 2 x 7 / 8
}

TEST_CASE("Links of spans") {
  const auto timeline = two_stages();
  using Type = SpanLink::Type;
  const auto spans = [&](SpanId of, Type type) {
    std::vector<SpanId> found;
    for (const SpanLink& l : links_of(*timeline, of))
      if (l.type == type) found.push_back(l.span);
    return found;
  };
  CHECK(spans(4, Type::dependency) == std::vector<SpanId>{0});
  CHECK(spans(4, Type::receiver) == std::vector<SpanId>{14});
  CHECK(spans(0, Type::dependent) == std::vector<SpanId>{4});
  CHECK(spans(9, Type::dependency) == std::vector<SpanId>{14});  // the transfer, not its wait
  CHECK(spans(9, Type::waited_for) == std::vector<SpanId>{14});
  CHECK(spans(11, Type::dependency) == std::vector<SpanId>{16});
  CHECK(spans(11, Type::waited_for) == std::vector<SpanId>{10});  // last to end on its stream
  CHECK(spans(16, Type::previous) == std::vector<SpanId>{14});
  CHECK(spans(0, Type::next) == std::vector<SpanId>{1});
  CHECK(links_of(*timeline, 7).empty());  // a summary's span
}

TEST_CASE("Along the arrows") {
  const auto timeline = two_stages();
  CHECK(forward_from(*timeline, 4) == 14);
  CHECK(back_from(*timeline, 14) == 4);
  CHECK(forward_from(*timeline, 14) == 9);
  CHECK(back_from(*timeline, 9) == 14);
  CHECK(back_from(*timeline, 0) == kNoSpan);
  CHECK(forward_from(*timeline, 3) == kNoSpan);
}

TEST_CASE("The table of details is a model") {
  SpanDetailsModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const rehearse::gui::Run run = run_of(two_stages());
  model.set_details(details_of(run, 16));
  REQUIRE(model.rowCount() > 5);
  CHECK(model.columnCount() == 2);
  CHECK(model.index(0, 0).data() == "Duration");
  CHECK(model.index(0, 1).data() == "10.00 us");
  bool linked = false;
  for (int r = 0; r < model.rowCount(); ++r)
    linked = linked || model.index(r, 1).data(SpanDetailsModel::LinkRole).toUInt() == 5;
  CHECK(linked);
  model.set_details({});
  CHECK(model.rowCount() == 0);
}
