// Tests that what moves of ranks leave out changes nothing: the trace of a run whose equal parts are laid out
// once against that of the same run laid out completely, bit for bit.
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// tensor x data x pipeline on nodes of `tensor` devices: sums inside a node, stages that send to the next
// one, gradients over the replicas by a ring, and an all-to-all of neighbouring replicas.
Schedule grid(int tensor, int data, int pipeline, int neighbours) {
  Schedule s;
  s.roles = {role("worker", {{"tensor", tensor}, {"data", data}, {"pipeline", pipeline}})};
  for (int stage = 0; stage < pipeline; ++stage) s.works.push_back(work(1e-3 * (stage + 1)));
  for (int stage = 0; stage < pipeline; ++stage) {
    Program p;
    p.name = "stage";
    p.where = {{2, stage}};
    p.streams = {"compute", "gradients"};
    for (int m = 0; m < 3; ++m) {
      if (stage > 0) p.ops.push_back(exchange("r", 0, {receive(Peer::along(2, -1), 1e6)}));
      p.ops.push_back(compute("c", 0, stage));
      p.ops.push_back(all_reduce("t", 0, {{{0}}}, 1e6));
      GroupAxis near;
      near.axis = 1;
      near.block = neighbours;
      p.ops.push_back(all_reduce("e", 0, {{near}}, 1e5));
      p.ops.back().collective.kind = CollectiveKind::all_to_all;
      if (stage + 1 < pipeline) p.ops.push_back(exchange("s", 0, {send(Peer::along(2, 1), 1e6)}));
      p.ops.push_back(all_reduce("d", 1, {{{1}}}, 1e7, {{static_cast<int>(p.ops.size()) - 1, 0}}));
    }
    s.programs.push_back(p);
  }
  return s;
}

ClusterParts nodes_of(ClusterParts parts, int devices) {
  parts.node.devices = devices;
  parts.node.nics = devices;
  parts.node.interconnect = Node::Interconnect::nvswitch;
  parts.node.device_bandwidth = 20 * kBandwidth;
  return parts;
}

}  // namespace

TEST_CASE("equal parts of a cluster that are laid out once give the trace of the complete layout") {
  struct Case {
    const char* fabric;
    ClusterParts parts;
    int tensor, data, pipeline, neighbours;
  };
  ClusterParts rail = nodes_of(leaf_spine(24, 4, 4, 1), 4);
  rail.fabric.kind = Fabric::Kind::rail;
  const Case cases[] = {
      {"switch", nodes_of(star(24), 4), 4, 8, 3, 4},
      {"leaves of four", nodes_of(leaf_spine(24, 4, 4, 2), 4), 4, 8, 3, 2},
      {"two leaves share a turn of the spines", nodes_of(leaf_spine(48, 4, 32, 2), 4), 4, 24, 2, 4},
      {"several replicas in a node", nodes_of(leaf_spine(24, 4, 4, 1), 4), 1, 48, 2, 8},
      {"rails", rail, 4, 8, 3, 8},
  };
  for (const Case& c : cases)
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::automatic, Fidelity::analytic})
      for (const Protocol& protocol : {Protocol(Protocol::ideal), Protocol(Protocol::nccl)}) {
        CAPTURE(c.fabric, name(fidelity));
        const auto cluster = make_cluster(c.parts);
        Run run = one_job(grid(c.tensor, c.data, c.pipeline, c.neighbours),
                          first_endpoints(c.tensor * c.data * c.pipeline), 2);
        EngineOptions options = ideal(fidelity);
        options.protocol = protocol;
        const Trace once = simulate_in_child(run, *cluster, options);
        run.jobs.front().start_s.assign(run.jobs.front().endpoints.size(),
                                        0);  // then no moves are looked for
        const Trace all = simulate_in_child(run, *cluster, options);
        REQUIRE(once.classes.size() == all.classes.size());
        for (std::size_t i = 0; i < all.classes.size(); ++i)
          CHECK(once.classes[i].ranks == all.classes[i].ranks);
        CHECK(once.spans.rank_class == all.spans.rank_class);
        CHECK(once.spans.op == all.spans.op);
        CHECK(once.spans.ready_s == all.spans.ready_s);
        CHECK(once.spans.begin_s == all.spans.begin_s);
        CHECK(once.spans.end_s == all.spans.end_s);
        CHECK(once.spans.latency_s == all.spans.latency_s);
        CHECK(once.bytes_total == all.bytes_total);
        CHECK(once.engine.events == all.engine.events);
        REQUIRE(once.link_use.size() == all.link_use.size());
        for (std::size_t l = 0; l < all.link_use.size(); ++l) {
          CHECK(once.link_use[l].link == all.link_use[l].link);
          CHECK(once.link_use[l].members == all.link_use[l].members);
          CHECK(once.link_use[l].bytes == all.link_use[l].bytes);
        }
      }
}

// Of 8 replicas on leaves of four nodes, some send over a spine on their ring, but their cards limit them.
TEST_CASE("ranks that only links tell apart that never limit a flow are folded") {
  for (const double oversubscription : {1.0, 4.0}) {
    CAPTURE(oversubscription);
    const auto cluster = make_cluster(nodes_of(leaf_spine(24, 4, 4, oversubscription), 4));
    const Run run = one_job(grid(4, 8, 3, 4), first_endpoints(96), 2);
    const Trace folded = simulate_in_child(run, *cluster, ideal(Fidelity::flow));
    CHECK(folded.classes.size() == 3);  // the stages
    EngineOptions whole = ideal(Fidelity::flow);
    whole.fold = false;
    const Trace every = simulate_in_child(run, *cluster, whole);
    CHECK(folded.end_s == Approx(every.end_s).epsilon(1e-9));
    CHECK(folded.bytes_total == Approx(every.bytes_total).epsilon(1e-9));
    double folded_bytes = 0, bytes = 0;
    for (const LinkUse& use : folded.link_use) folded_bytes += use.bytes * use.members;
    for (const LinkUse& use : every.link_use) bytes += use.bytes * use.members;
    CHECK(folded_bytes == Approx(bytes).epsilon(1e-9));
  }
}
