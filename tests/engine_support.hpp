// Provides hand-made clusters and runs for the engine's tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/engine/engine.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"
#include "tests/schedule_builders.hpp"
#include "topologies/cluster.hpp"

namespace rehearse::testing {

inline constexpr double kBandwidth = 1e9, kHopLatency = 1e-6;  // of a link; a route on the star has two links
inline constexpr double kTolerance = 1e-3;                     // relative, of times that formulas give
inline constexpr Fidelity kAllFidelities[] = {Fidelity::chunk, Fidelity::flow, Fidelity::analytic,
                                              Fidelity::automatic};

inline const char* name(Fidelity f) {
  return kFidelityNames[static_cast<std::size_t>(f)].data();
}

// Returns nodes of one device on one switch, with 2 links per route.
inline ClusterParts star(int nodes, double bandwidth = kBandwidth, double hop_latency_s = kHopLatency) {
  ClusterParts parts;
  parts.name = "star";
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 1;
  parts.node.interconnect = Node::Interconnect::none;
  parts.node.nics = 1;
  parts.node.nic_bandwidth = bandwidth;
  parts.fabric.kind = Fabric::Kind::single_switch;
  parts.fabric.latency_s = hop_latency_s;
  parts.nodes = nodes;
  return parts;
}

inline ClusterParts leaf_spine(int nodes, int nodes_per_leaf, int spines, double oversubscription) {
  ClusterParts parts = star(nodes);
  parts.name = "leaf-spine";
  parts.fabric.kind = Fabric::Kind::leaf_spine;
  parts.fabric.nodes_per_leaf = nodes_per_leaf;
  parts.fabric.spines = spines;
  parts.fabric.oversubscription = oversubscription;
  return parts;
}

inline Run one_job(Schedule schedule, std::vector<int> endpoints, int repeats = 1) {
  Job job;
  job.name = "job";
  job.phases = {{std::make_shared<Schedule>(std::move(schedule)), repeats}};
  job.endpoints = std::move(endpoints);
  Run run;
  run.jobs = {std::move(job)};
  return run;
}

inline std::vector<int> first_endpoints(int n, int stride = 1) {
  std::vector<int> endpoints(n);
  for (int i = 0; i < n; ++i) endpoints[i] = i * stride;
  return endpoints;
}

// Returns one all-reduce over the entire axis "data" of n ranks.
inline Schedule ring_schedule(int n, double bytes, int channels = 0) {
  Schedule s;
  s.roles = {role("worker", {{"data", n}})};
  Program p;
  p.name = "worker";
  p.streams = {"gradients"};
  p.ops = {all_reduce("all-reduce", 0, {{{0}}}, bytes, {}, channels)};
  s.programs = {p};
  return s;
}

inline EngineOptions ideal(Fidelity fidelity, bool fold = true) {
  EngineOptions o;
  o.fidelity = fidelity;
  o.protocol = Protocol::ideal;
  o.fold = fold;
  return o;
}

inline double run_time_s(const Run& run, const ClusterParts& parts, const EngineOptions& options) {
  return simulate_in_child(run, *make_cluster(parts), options).end_s;
}

using OpRun = std::tuple<int, int, int, int, int, int>;  // job, role, rank, op, step, iteration

// Returns the end time of every op of every rank, in seconds.
std::map<OpRun, double> ends(const Trace& trace);

// Returns the largest relative difference between the end times of the same op in two traces. The test fails
// unless both traces have the same ops.
double worst_difference(const Trace& one, const Trace& other);

// Checks that every op ends at the same time and that the network carries the same bytes, folded and
// unfolded. If `coarser`, the folded run must have fewer classes.
inline void check_folding(const Run& run, const Cluster& cluster, EngineOptions options, bool coarser) {
  const Trace folded = simulate_in_child(run, cluster, options);
  options.fold = false;
  const Trace whole = simulate_in_child(run, cluster, options);
  CHECK(worst_difference(folded, whole) < 1e-9);
  CHECK(folded.bytes_total == Approx(whole.bytes_total).epsilon(1e-9));
  if (coarser) CHECK(folded.classes.size() < whole.classes.size());
}

}  // namespace rehearse::testing
