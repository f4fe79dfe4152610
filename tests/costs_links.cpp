// Tests costs of messages over TCP and over measured links: headers, size ranges, and the profile's file.
#include <algorithm>
#include <string>

#include "simulator/costs/link_profile.hpp"
#include "simulator/costs/transfer.hpp"
#include "tests/bad_inputs.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

LinkProfile profile_of(const std::string& text) {
  Document document = Document::parse_text(
      "title = \"lab\"\ndate = \"2026-11-21\"\nhardware = \"two hosts\"\nversions = \"Linux 6.1\"\n" + text,
      "links.toml");
  Section root = document.root();
  return read_link_profile(root);
}

// Returns a measured protocol. Between nodes: 20 us and 0.5 GB/s below 64 KiB, 50 us and 0.9 of the link
// above; inside nodes: 2 us and 0.8 of the link; an all-reduce of 4 ranks between nodes: 30 us per step.
Protocol measured() {
  Protocol protocol = Protocol::measured;
  protocol.links = std::make_shared<LinkProfile>(profile_of(R"(
[[message]]
where = "between-nodes"
range = [
  {from_bytes = 0, latency_us = {value = 20, low = 18, high = 25}, gb_per_s = {value = 0.5}, error = 0.02},
  {from_bytes = 65536, latency_us = {value = 50}, efficiency = {value = 0.9, low = 0.85, high = 0.92}},
]
[[message]]
where = "in-node"
range = [{from_bytes = 0, latency_us = {value = 2}, efficiency = {value = 0.8}}]
[[collective]]
kind = "all-reduce"
where = "between-nodes"
ranks = 4
range = [{from_bytes = 0, latency_us = {value = 30}, efficiency = {value = 0.7}}]
)"));
  return protocol;
}

TransferShape shape(int ranks, int nodes, double link, double hop_latency_s, int channels = 1) {
  TransferShape s;
  s.ranks = ranks;
  s.nodes = nodes;
  s.channels = channels;
  s.ring_bandwidth = link * channels;
  s.hop_latency_s = hop_latency_s;
  return s;
}

}  // namespace

TEST_CASE("a link profile's ranges, spreads and sources arrive") {
  const LinkProfile p = *measured().links;
  CHECK(p.title == "lab");
  CHECK(p.date == "2026-11-21");
  CHECK(p.hardware == "two hosts");
  CHECK(p.versions == "Linux 6.1");
  CHECK(p.basis == Basis::measured);
  const LinkCurve& far = *p.messages(Reach::between_nodes);
  REQUIRE(far.ranges.size() == 2);
  CHECK(far.ranges[0].latency_s.value == Approx(20e-6));
  CHECK(far.ranges[0].latency_s.low == Approx(18e-6));
  CHECK(far.ranges[0].latency_s.high == Approx(25e-6));
  CHECK(far.ranges[0].bandwidth.value == Approx(5e8));
  CHECK(far.ranges[0].bandwidth.high == Approx(5e8));  // no bound known
  CHECK(far.ranges[0].error == 0.02);
  CHECK(far.ranges[1].efficiency.value == 0.9);
  CHECK(&far.range_of(0) == &far.ranges[0]);
  CHECK(&far.range_of(65535) == &far.ranges[0]);
  CHECK(&far.range_of(65536) == &far.ranges[1]);
  CHECK(&far.range_of(1e12) == &far.ranges[1]);
}

TEST_CASE("a collective takes the measured group that is nearest, else messages") {
  const auto group = [](int ranks) {
    return "[[collective]]\nkind = \"all-reduce\"\nwhere = \"in-node\"\nranks = " + std::to_string(ranks) +
           "\nrange = [{from_bytes = 0, latency_us = {value = 1}, efficiency = {value = 1}}]\n";
  };
  const LinkProfile p = profile_of(
      "[[message]]\nwhere = \"in-node\"\nrange = [{from_bytes = 0, latency_us = {value = 1}, efficiency = "
      "{value = 1}}]\n" +
      group(2) + group(8));
  struct Case {
    CollectiveKind kind;
    Reach reach;
    int ranks, found;  // -1: none
  };
  const Case cases[] = {{CollectiveKind::all_reduce, Reach::in_node, 2, 2},
                        {CollectiveKind::all_reduce, Reach::in_node, 3, 2},
                        {CollectiveKind::all_reduce, Reach::in_node, 4, 8},  // as close to 2 in ratio
                        {CollectiveKind::all_reduce, Reach::in_node, 64, 8},
                        {CollectiveKind::all_gather, Reach::in_node, 8, 0},
                        {CollectiveKind::all_reduce, Reach::between_nodes, 8, -1}};
  for (const Case& c : cases) {
    CAPTURE(c.ranks);
    const LinkCurve* curve = p.collective(c.kind, c.reach, c.ranks);
    CHECK((curve ? curve->ranks : -1) == c.found);
  }
}

TEST_CASE("TCP on Ethernet carries 1448 bytes in 1538, or in the 1514 that a shaper counts") {
  CHECK(tcp_efficiency(38) == Approx(1448.0 / 1538).epsilon(1e-12));
  CHECK(tcp_efficiency(14) == Approx(1448.0 / 1514).epsilon(1e-12));
  Protocol tcp = Protocol::tcp;
  for (const int nodes : {1, 2})
    for (const double overhead : {38.0, 14.0}) {
      CAPTURE(nodes, overhead);
      tcp.frame_overhead_bytes = overhead;
      TransferShape s = shape(2, nodes, 1.25e8, 25e-6);
      s.tree_latency_s = 50e-6;
      const double efficiency = nodes > 1 ? tcp_efficiency(overhead) : 1;
      for (const TransferCost& cost : {message_cost(1e6, s, tcp), tree_cost(1e6, s, tcp),
                                       ring_cost(CollectiveKind::all_gather, 1e6, s, tcp)}) {
        CHECK(cost.efficiency == Approx(efficiency).epsilon(1e-12));
        CHECK(cost.startup_s == 0);
      }
      CHECK(message_cost(1e6, s, tcp).step_latency_s == 25e-6);
      CHECK(tree_cost(1e6, s, tcp).step_latency_s == 50e-6);
    }
}

TEST_CASE("measured messages cost what their range says, on top of the route") {
  struct Case {
    const char* what;
    int nodes;
    double link, bytes;
    double latency_us, efficiency;
  };
  const Case cases[] = {
      {"small, on a link of 1 GB/s", 2, 1e9, 1e4, 20 + 5, 0.5},
      {"on a link as slow as what was measured", 2, 2.5e8, 1e4, 20 + 5, 1},
      {"large", 2, 1e9, 1e6, 50 + 5, 0.9},
      {"in a node", 1, 1e9, 1e6, 2 + 5, 0.8},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferCost cost = message_cost(c.bytes, shape(2, c.nodes, c.link, 5e-6), measured());
    CHECK(1e6 * cost.step_latency_s == Approx(c.latency_us).epsilon(1e-9));
    CHECK(cost.efficiency == Approx(c.efficiency).epsilon(1e-9));
    CHECK(cost.startup_s == 0);
    CHECK(cost.steps == 1);
    CHECK(cost.bytes_per_edge == c.bytes);
  }
}

TEST_CASE("steps of measured collectives cost what messages of their size do") {
  struct Case {
    const char* what;
    CollectiveKind kind;
    int ranks, channels;
    double bytes, chunk_bytes;
    double latency_us, efficiency;
  };
  using enum CollectiveKind;
  const Case cases[] = {
      {"a group that was measured", all_reduce, 4, 1, 1e6, 0, 30, 0.7},
      {"gathered in parts of 80 kB", all_gather, 8, 1, 640e3, 0, 50, 0.9},
      {"of 40 kB on each of two channels", all_gather, 8, 2, 640e3, 0, 20, 0.5},
      {"in pieces of 40 kB", all_gather, 8, 1, 640e3, 50e3, 20, 0.5},
      {"80 kB to each", all_to_all, 8, 1, 80e3, 0, 50, 0.9},
      {"60 kB to each", all_to_all, 8, 1, 60e3, 0, 20, 0.5},
      {"a chain in pieces of at most 512 KiB", broadcast, 4, 1, 1e8, 0, 50, 0.9},
      {"a chain in pieces of 50 kB", reduce, 4, 1, 1e8, 50e3, 20, 0.5},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferShape s = shape(c.ranks, c.ranks, 1e9, 0, c.channels);
    const TransferCost cost = ring_cost(c.kind, c.bytes, s, measured(), c.chunk_bytes);
    const TransferCost ideal = ring_cost(c.kind, c.bytes, s, Protocol::ideal);
    CHECK(1e6 * cost.step_latency_s == Approx(c.latency_us).epsilon(1e-9));
    CHECK(cost.efficiency == Approx(c.efficiency).epsilon(1e-9));
    CHECK(cost.steps == ideal.steps);
    CHECK(cost.bytes_per_edge == ideal.bytes_per_edge);
    // A chain's last edge begins once the first piece has passed all other edges.
    const bool chain = c.kind == broadcast || c.kind == reduce;
    const double piece = chain ? piece_of(c.bytes, c.chunk_bytes > 0 ? c.chunk_bytes : 524288) : 0;
    CHECK(cost.filling_s == Approx((c.ranks - 2) * piece / (c.efficiency * 1e9)).epsilon(1e-9));
  }
}

// (n - 2 + k) pieces on each channel's chain of n ranks, where k is the number of pieces of a message.
TEST_CASE("over TCP a chain takes the time until its last edge begins") {
  struct Case {
    CollectiveKind kind;
    int ranks, nodes, channels;
    double bytes, chunk_bytes;
    double pieces;  // per channel
  };
  using enum CollectiveKind;
  const Case cases[] = {
      {broadcast, 8, 8, 1, 4194304, 0, 8},  {reduce, 8, 8, 1, 4194304, 0, 8},
      {broadcast, 8, 8, 2, 4194304, 0, 4},  {broadcast, 3, 3, 1, 4194304, 1048576, 4},
      {broadcast, 4, 4, 1, 1e3, 0, 1},      {reduce, 2, 2, 1, 1e8, 0, std::ceil(1e8 / 524288)},
      {broadcast, 16, 2, 1, 4194304, 0, 8}, {broadcast, 8, 1, 1, 4194304, 0, 8},
  };
  for (const Case& c : cases) {
    CAPTURE(c.ranks, c.channels, c.bytes);
    const TransferShape s = shape(c.ranks, c.nodes, 1e9, 0, c.channels);
    const TransferCost cost = ring_cost(c.kind, c.bytes, s, Protocol::tcp, c.chunk_bytes);
    const double link = (c.nodes > 1 ? tcp_efficiency(38) : 1) * 1e9,
                 piece_s = c.bytes / c.channels / c.pieces / link;
    CHECK(cost.filling_s + cost.bytes_per_edge / (cost.efficiency * s.ring_bandwidth) ==
          Approx((c.ranks - 2 + c.pieces) * piece_s).epsilon(1e-9));
  }
}

TEST_CASE("every bad link profile is refused in the expected words") {
  test::check_bad_inputs("links", ".toml", 14, [](const std::string& file) { read_link_profile_file(file); });
}
