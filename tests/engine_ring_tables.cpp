// Tests that rings at fidelity `chunk`, which use only the order of their steps, send the same messages at
// the same times as they do from their message tables.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kExact = 1e-12;
// Scales all times up, because SimGrid treats events within one nanosecond as simultaneous.
constexpr double kSlower = 1e8, kMoreBytes = 1e7;

struct Messages {
  Trace trace;
  std::map<std::pair<int, int>, std::vector<ChunkMessage>> sent;  // by sender and receiver, in order
};

// Simulates the run and returns its messages, which the child process passes on in a temporary file.
Messages messages_of(const Run& run, const Cluster& cluster, EngineOptions options, bool by_tables) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  options.ring_tables = by_tables;
  options.on_message = [file](const ChunkMessage& message) {
    std::fwrite(&message, sizeof message, 1, file);
    std::fflush(file);
  };
  Messages all{simulate_in_child(run, cluster, options), {}};
  std::rewind(file);
  ChunkMessage message;
  while (std::fread(&message, sizeof message, 1, file) == 1)
    all.sent[{message.from, message.to}].push_back(message);
  std::fclose(file);
  // Messages on different channels that end at the same time can arrive in either order.
  for (auto& [ends, sent] : all.sent)
    std::stable_sort(sent.begin(), sent.end(), [](const ChunkMessage& a, const ChunkMessage& b) {
      return a.begin_s < b.begin_s * (1 - kExact);
    });
  return all;
}

void check_alike(const Run& run, ClusterParts parts, const EngineOptions& options) {
  parts.fabric.latency_s *= kSlower;
  parts.node.device_latency_s *= kSlower;
  parts.node.nic_bandwidth *= kMoreBytes / kSlower;
  parts.node.device_bandwidth *= kMoreBytes / kSlower;
  const auto cluster = make_cluster(parts);
  const Messages steps = messages_of(run, *cluster, options, false),
                 tables = messages_of(run, *cluster, options, true);
  CHECK(worst_difference(steps.trace, tables.trace) < kExact);
  CHECK(steps.trace.bytes_total == Approx(tables.trace.bytes_total).epsilon(kExact));
  CHECK(steps.trace.engine.events == tables.trace.engine.events);
  REQUIRE_FALSE(steps.sent.empty());
  REQUIRE(steps.sent.size() == tables.sent.size());
  for (const auto& [ends, sent] : steps.sent) {
    CAPTURE(ends.first, ends.second);
    REQUIRE(tables.sent.count(ends) == 1);
    const std::vector<ChunkMessage>& other = tables.sent.at(ends);
    REQUIRE(sent.size() == other.size());
    for (std::size_t m = 0; m < sent.size(); ++m) {
      CAPTURE(m);
      CHECK(sent[m].bytes == Approx(other[m].bytes).epsilon(kExact));
      CHECK(sent[m].begin_s == Approx(other[m].begin_s).epsilon(kExact));
      CHECK(sent[m].end_s == Approx(other[m].end_s).epsilon(kExact));
    }
  }
}

// Each member computes, for a different time each, and then runs the collective twice.
Run after_computing(CollectiveKind kind, int members, double bytes, int channels) {
  Schedule s = ring_schedule(members, bytes * kMoreBytes, channels);
  s.works = {work(1e-4 * kSlower)};
  Program& program = s.programs[0];
  program.streams = {"compute", "gradients"};
  Op op = program.ops[0];
  op.stream = 1;
  op.after = {{0}};
  op.collective.kind = kind;
  Op again = op;
  again.name = "again";
  again.after.clear();
  program.ops = {compute("c", 0, 0), op, again};
  return one_job(std::move(s), first_endpoints(members));
}

EngineOptions in_chunks(double chunk_bytes, Protocol protocol = Protocol::ideal) {
  EngineOptions options = ideal(Fidelity::chunk, false);
  options.protocol = protocol;
  options.chunk_bytes = chunk_bytes * kMoreBytes;
  return options;
}

}  // namespace

TEST_CASE("rings send the messages of their tables, at the same times") {
  using enum CollectiveKind;
  for (const CollectiveKind kind : {all_reduce, reduce_scatter, all_gather})
    for (const int n : {2, 3, 5, 8})
      for (const int pieces : {1, 4}) {
        CAPTURE(kCollectiveNames[static_cast<std::size_t>(kind)], n, pieces);
        const double bytes = 1e6 * n;
        const EngineOptions options = in_chunks(pieces > 1 ? 1e6 / pieces : 0);
        const Run run = after_computing(kind, n, bytes, 0);
        check_alike(run, star_of(n), options);
        ClusterParts uneven = star_of(n);
        uneven.slow_links = {{"node1.nic0", 0.3}};
        uneven.slow_devices = {{n - 1, 0.5}, {0, 0.8}};
        check_alike(run, uneven, options);
      }
}

TEST_CASE("rings of several channels send the messages of their tables, at the same times") {
  using enum CollectiveKind;
  for (const CollectiveKind kind : {all_reduce, reduce_scatter, all_gather})
    for (const int channels : {1, 0})
      for (const double chunk_bytes : {0.0, 3e4}) {
        CAPTURE(kCollectiveNames[static_cast<std::size_t>(kind)], channels, chunk_bytes);
        ClusterParts parts = dgx_like(2);
        parts.slow_devices = {{3, 0.5}};
        const Run run = after_computing(kind, 16, 1.6e6, channels);
        check_alike(run, parts, in_chunks(chunk_bytes));
        check_alike(run, parts, in_chunks(chunk_bytes, Protocol::nccl));
      }
}
