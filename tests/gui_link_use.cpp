// Tests what links carry over an interval, who uses them, and which span of the timeline shows it.
#include <algorithm>
#include <map>

#include "gui/models/timeline/row_spans.hpp"
#include "gui/models/topology/link_use.hpp"
#include "gui/models/trace/trace_file.hpp"
#include "simulator/report/recorded_run.hpp"
#include "tests/catch.hpp"
#include "tests/gui_runs.hpp"
#include "tests/topologies_cases.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::gui;
using rehearse::test::TraceParts;

namespace {

// Returns n nodes with one device and one NIC of 25 GB/s each, on one switch.
std::shared_ptr<const Cluster> star(int nodes) {
  ClusterParts parts = gpu_nodes(nodes, 1, 1);
  parts.node.pcie_bandwidth = 0;
  return make_cluster(parts);
}

// Returns one all-reduce of 100 bytes over all ranks, from 1 s to 3 s, after a second of computation.
Trace all_reduce_of(int ranks, Algorithm algorithm = Algorithm::ring) {
  TraceParts parts;
  parts.data = ranks;
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  Op sync = rehearse::test::all_reduce("all-reduce", {0});
  sync.collective.algorithm = algorithm;
  parts.classes = {
      {"worker", all, {rehearse::test::compute("forward"), sync}, {{0, 0, 0, 1}, {1, 1, 1, 3}}, {}}};
  return rehearse::test::make_trace(parts);
}

// Returns two stages, where the first sends 50 bytes twice to the second in overlapping intervals.
Trace two_messages() {
  TraceParts parts;
  parts.pipeline = 2;
  const auto send = [](const char* name, int tag) {
    Op op = rehearse::test::message(name, rehearse::test::kSend, rehearse::test::kPipeline, 1, {}, 1 + tag);
    op.messages.front().tag = tag;
    return op;
  };
  const auto receive = [](const char* name, int tag) {
    Op op =
        rehearse::test::message(name, rehearse::test::kReceive, rehearse::test::kPipeline, -1, {}, 1 + tag);
    op.messages.front().tag = tag;
    return op;
  };
  parts.classes = {{"stage 0",
                    {0},
                    {send("send a", 0), send("send b", 1)},
                    {{0, 0, 1, 3}, {1, 0, 2, 4}},
                    {{rehearse::test::kPipeline, 0}}},
                   {"stage 1",
                    {1},
                    {receive("receive a", 0), receive("receive b", 1)},
                    {{0, 0, 1, 3}, {1, 0, 2, 4}},
                    {{rehearse::test::kPipeline, 1}}}};
  return rehearse::test::make_trace(parts);
}

LinkId link_named(const Cluster& cluster, const std::string& name) {
  const std::vector<LinkId> found = cluster.find_links(name);
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace

TEST_CASE("A ring all-reduce puts 2 (n-1)/n of its bytes on every link, each way") {
  for (const int n : {2, 4, 7}) {
    const auto cluster = star(n);
    const Trace trace = all_reduce_of(n);
    const LinkUsage usage(trace, cluster);
    const double each = 2.0 * (n - 1) / n * 100;
    const LinkUsage::Load all = usage.load(0, 3), half = usage.load(1, 2), none = usage.load(0, 1);
    CHECK(usage.used_links() == 2 * static_cast<std::size_t>(n));
    for (LinkId link = 0; link < cluster->links(); ++link) {
      CHECK(usage.bytes(all, link) == Approx(each));
      CHECK(usage.bytes(half, link) == Approx(each / 2));
      CHECK(usage.use(half, link) == Approx(each / 2 / 25e9));
      CHECK(usage.bytes(none, link) == 0);
    }
    const auto busiest = usage.busiest(all, 3);
    REQUIRE(busiest.size() == 1);
    CHECK(busiest[0].link == 0);
    CHECK(busiest[0].like_it == 2 * n - 1);
    CHECK(busiest[0].use == Approx(each / 3 / 25e9));
  }
}

TEST_CASE("Other all-reduces put on the links what their plans say") {
  // With n = 2^k members, each sends 2 (n-1)/n of the buffer in halving and doubling.
  const int n = 8;
  const auto cluster = star(n);
  const Trace trace = all_reduce_of(n, Algorithm::halving_doubling);
  const LinkUsage usage(trace, cluster);
  const LinkUsage::Load all = usage.load(0, 3);
  for (LinkId link = 0; link < cluster->links(); ++link)
    CHECK(usage.bytes(all, link) == Approx(2.0 * (n - 1) / n * 100));
  // In recursive doubling, each sends the whole buffer k times.
  const Trace doubling = all_reduce_of(n, Algorithm::recursive_doubling);
  const LinkUsage doubling_usage(doubling, cluster);
  const LinkUsage::Load all_of_it = doubling_usage.load(0, 3);
  for (LinkId link = 0; link < cluster->links(); ++link)
    CHECK(doubling_usage.bytes(all_of_it, link) == Approx(3 * 100.0));
  // Two trees: every member but the root sends half of the buffer up each tree, and gets it back.
  const Trace trees = all_reduce_of(n, Algorithm::tree);
  const LinkUsage tree_usage(trees, cluster);
  double sum = 0;
  for (LinkId link = 0; link < cluster->links(); ++link) sum += tree_usage.bytes(tree_usage.load(0, 3), link);
  CHECK(sum == Approx(2 * 2 * (n - 1) * 100.0));  // out and in; up and down
}

TEST_CASE("Transfers that overlap add up, and each is named with its bytes") {
  const auto cluster = star(2);
  const Trace trace = two_messages();
  const LinkUsage usage(trace, cluster);
  const LinkId out = link_named(*cluster, "node0.nic0.out"), in = link_named(*cluster, "node1.nic0.in");
  const LinkId unused = link_named(*cluster, "node1.nic0.out");
  // 25 bytes per second from 1 s to 3 s, and from 2 s to 4 s.
  const std::vector<std::tuple<double, double, double>> cases = {{0, 4, 100},      {0, 1, 0},  {1, 2, 25},
                                                                 {2, 3, 50},       {3, 4, 25}, {1.5, 3.5, 75},
                                                                 {2.25, 2.75, 25}, {4, 9, 0}};
  for (const auto& [begin, end, bytes] : cases) {
    CAPTURE(begin, end);
    for (const LinkId link : {out, in}) CHECK(usage.bytes(usage.load(begin, end), link) == Approx(bytes));
    CHECK(usage.bytes(usage.load(begin, end), unused) == 0);
  }
  const std::vector<double> plot = usage.use_over_time(out, 0, 4, 4);
  const std::vector<double> rates = {0, 25, 50, 25};
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(plot[i] == Approx(rates[i] / 25e9));
  const auto rows = [&](double begin, double end) {
    std::vector<std::size_t> found;
    for (const LinkUsage::User& user : usage.users(out, begin, end)) {
      CHECK(user.bytes == 50);
      found.push_back(user.row);
    }
    return found;
  };
  CHECK(rows(0, 4) == std::vector<std::size_t>{0, 1});
  CHECK(rows(0, 2) == std::vector<std::size_t>{0});
  CHECK(rows(3, 4) == std::vector<std::size_t>{1});
  CHECK(usage.users(unused, 0, 4).empty());
  CHECK(usage.links_of(0) == std::vector<LinkId>{out, in});
  CHECK(usage.links_of(2).empty());  // receives
}

TEST_CASE("Links carry what the executor counted") {
  for (const char* const name :
       {"tree-2to1-8-16mb-ring", "star-4-16mb-server", "tree-2to1-8-16mb-data-x-pipeline",
        "star-4-16mb-halving-doubling", "nodes-2x4-8mb-hierarchical"}) {
    CAPTURE(name);
    const RecordedRun run = recorded(name);
    const LinkUsage usage(run.trace, run.scenario.cluster);
    const LinkUsage::Load all = usage.load(0, run.trace.end_s + 1);
    REQUIRE_FALSE(run.trace.link_use.empty());
    for (const LinkUse& use : run.trace.link_use) {
      CAPTURE(run.scenario.cluster->link_name(use.link));
      CHECK(usage.bytes(all, use.link) == Approx(use.bytes));
    }
  }
}

TEST_CASE("Rows of the trace and spans of the timeline are found by each other") {
  const RecordedRun run = recorded("star-4-16mb-pipeline");
  for (const Time origin : {0, 12'345}) {
    const Timeline timeline = timeline_of(run.trace, origin);
    const RowSpans spans(run.trace, timeline);
    std::size_t waits = 0;
    for (std::size_t row = 0; row < run.trace.spans.size(); ++row) {
      const SpanId span = spans.span_of(row);
      REQUIRE(span != kNoSpan);
      CHECK(timeline.spans.begin[span] == spans.time_of(run.trace.spans.begin_s[row]));
      CHECK(timeline.spans.op[span] == run.trace.spans.op[row]);
      CHECK(spans.row_of(span) == row);
    }
    for (SpanId span = 0; span < timeline.spans.size(); ++span) {
      if (timeline.spans.kind[span] != Kind::waiting) continue;
      ++waits;
      REQUIRE(spans.row_of(span) != kNoTraceRow);
      CHECK(spans.time_of(run.trace.spans.begin_s[spans.row_of(span)]) == timeline.spans.end[span]);
    }
    CHECK(waits > 0);
    CHECK(spans.seconds_of(spans.time_of(1.5)) == 1.5);
  }
  // As the window reads it.
  Progress progress;
  const Timeline read = read_timeline(
      std::string(REHEARSE_TESTS_DIR) + "/../benchmarks/recorded/emulated/star-4-16mb-pipeline.json.gz",
      progress);
  const RowSpans found(run.trace, read);
  for (std::size_t row = 0; row < run.trace.spans.size(); ++row) {
    REQUIRE(found.span_of(row) != kNoSpan);
    CHECK(found.row_of(found.span_of(row)) == row);
    CHECK(read.name_of(found.span_of(row)) == run.trace.op_of(row).name);
    CHECK(read.spans.begin[found.span_of(row)] == found.time_of(run.trace.spans.begin_s[row]));
  }
  // Repeated executions of an op are distinguished by their times.
  Trace trace = two_messages();
  for (std::vector<int>* column : {&trace.spans.op, &trace.spans.iteration}) column->at(1) = 0;
  trace.spans.iteration[1] = 1;
  const Timeline timeline = timeline_of(trace, 0);
  const RowSpans spans(trace, timeline);
  for (std::size_t row = 0; row < trace.spans.size(); ++row) CHECK(spans.row_of(spans.span_of(row)) == row);
  CHECK(spans.row_of(kNoSpan) == kNoTraceRow);
}
