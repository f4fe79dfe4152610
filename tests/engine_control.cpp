// Tests engine features that no strategy needs in this form: asynchronous servers, failing links, several
// jobs, phases.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Returns a schedule in which workers compute, push and pull `rounds` times; the server answers them first
// come, first served.
Schedule asynchronous_server(int workers, int rounds, double bytes) {
  Schedule s;
  s.roles = {role("worker", {{"data", workers}}), role("server", {{"server", 1}})};
  s.works = {work(1.0), work(0.01)};
  Program worker, server;
  worker.name = "worker";
  worker.streams = {"main"};
  Op repeat;
  repeat.name = "rounds";
  repeat.kind = OpKind::repeat_begin;
  repeat.count = rounds;
  Op end = repeat;
  end.kind = OpKind::repeat_end;
  worker.ops = {repeat, compute("gradient", 0, 0), exchange("push", 0, {send(Peer::member(1, 0.0), bytes)}),
                exchange("pull", 0, {receive(Peer::member(1, 0.0), bytes, 1)}), end};
  server.name = "server";
  server.role = 1;
  server.streams = {"main"};
  repeat.count = 0;
  server.ops = {repeat, exchange("take a push", 0, {receive(Peer::any(0), bytes)}), compute("update", 0, 1),
                exchange("answer", 0, {send(Peer::sender(), bytes, 1)}), end};
  s.programs = {worker, server};
  return s;
}

std::vector<double> ends_of(const Trace& trace, const std::string& op, int rank) {
  std::vector<double> ends;
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    if (trace.op_of(i).name == op && trace.classes[trace.spans.rank_class[i]].ranks.front() == rank)
      ends.push_back(trace.spans.end_s[i]);
  std::sort(ends.begin(), ends.end());
  return ends;
}

}  // namespace

TEST_CASE("an asynchronous server of three ops serves whoever comes first") {
  // Worker 1 runs at half speed: rounds take 1 s + push + update + pull and 2 s + ...; with 1 MB on 1 GB/s
  // and no latency, a push or pull takes 1 ms.
  ClusterParts parts = star(3, kBandwidth, 0);
  parts.slow_devices = {{1, 0.5}};
  const Trace trace = simulate_in_child(one_job(asynchronous_server(2, 4, 1e6), {0, 1, 2}),
                                        *make_cluster(parts), ideal(Fidelity::flow));
  const double service = 0.001 + 0.01 + 0.001;
  const std::vector<double> fast = ends_of(trace, "pull", 0), slow = ends_of(trace, "pull", 1);
  REQUIRE(fast.size() == 4);
  REQUIRE(slow.size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(slow[i] == Approx((i + 1) * (2 + service)).epsilon(1e-6));
  // The fast worker's pushes never coincide with the slow one's: 1.012, 2.024, 3.036, 4.048 against 2.001,
  // 4.013.
  CHECK(fast[0] == Approx(1 + service).epsilon(1e-6));
  CHECK(fast[3] >= 4 * (1 + service) * (1 - 1e-9));
  std::map<int, int> served;
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    if (trace.spans.sender[i] >= 0) ++served[trace.spans.sender[i]];
  CHECK(served[0] == 4);
  CHECK(served[1] == 4);
}

TEST_CASE("a link that dies fails its job with the ops named, another job on the switch goes on") {
  Run run = one_job(ring_schedule(4, 1e9), {0, 1, 2, 3});
  run.jobs.push_back(one_job(ring_schedule(4, 1e9), {4, 5, 6, 7}).jobs[0]);
  run.jobs[1].name = "other";
  const auto cluster = make_cluster(star(8));
  Event death;
  death.kind = Event::Kind::link_death;
  death.time_s = 0.5;
  death.link = cluster->find_links("node2.nic0.out").at(0);
  run.events = {death};
  for (Fidelity fidelity : {Fidelity::chunk, Fidelity::flow, Fidelity::automatic, Fidelity::analytic}) {
    CAPTURE(static_cast<int>(fidelity));
    const Trace trace = simulate_in_child(run, *cluster, ideal(fidelity));
    REQUIRE(trace.job_failed == std::vector<bool>{true, false});
    REQUIRE(trace.failures.size() == 1);
    CHECK(trace.failures[0].find("link") != std::string::npos);
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
      const bool first = trace.classes[trace.spans.rank_class[i]].job == 0;
      CHECK((trace.spans.status[i] == Status::done) == !first);
      CHECK(trace.spans.end_s[i] == Approx(first ? 0.5 : 1.5 + 12e-6).epsilon(1e-6));
    }
  }
}

TEST_CASE("a device that dies fails its job at that instant") {
  Schedule s = ring_schedule(4, 1e9);
  Run run = one_job(s, {0, 1, 2, 3});
  Event death;
  death.kind = Event::Kind::device_death;
  death.time_s = 0.25;
  death.endpoint = 1;
  run.events = {death};
  const Trace trace = simulate_in_child(run, *make_cluster(star(4)), ideal(Fidelity::flow));
  CHECK(trace.job_failed[0]);
  int failed = 0;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    CHECK(trace.spans.end_s[i] == Approx(0.25));
    failed += trace.spans.status[i] == Status::failed;
  }
  CHECK(failed == 1);
}

TEST_CASE("a link that loses half its capacity in mid-transfer delays it by what is left") {
  Run run = one_job(ring_schedule(2, 1e9), {0, 1});  // 1 GB each way on 1 GB/s: 1 s
  const auto cluster = make_cluster(star(2, kBandwidth, 0));
  Event slower;
  slower.kind = Event::Kind::link_capacity;
  slower.time_s = 0.5;
  slower.link = cluster->find_links("node1.nic0.in").at(0);
  slower.factor = 0.5;
  run.events = {slower};
  CHECK(simulate_in_child(run, *cluster, ideal(Fidelity::automatic)).end_s == Approx(1.5).epsilon(1e-6));
}

TEST_CASE("a device that slows down in mid-compute is slower from then on") {
  Schedule s;
  s.roles = {role("worker", {{"data", 2}})};
  s.works = {work(1.0)};
  Program p;
  p.name = "worker";
  p.streams = {"compute"};
  p.ops = {compute("a", 0, 0), compute("b", 0, 0)};
  s.programs = {p};
  Run run = one_job(s, {0, 1});
  Event slower;
  slower.kind = Event::Kind::device_speed;
  slower.time_s = 0.5;
  slower.endpoint = 1;
  slower.factor = 0.25;
  run.events = {slower};
  const Trace trace = simulate_in_child(run, *make_cluster(star(2)), ideal(Fidelity::automatic));
  CHECK(ends_of(trace, "b", 0) == std::vector<double>{2.0});
  CHECK(ends_of(trace, "a", 1).at(0) == Approx(0.5 + 0.5 / 0.25));
  CHECK(ends_of(trace, "b", 1).at(0) == Approx(2.5 + 4.0));
}

TEST_CASE("streams overlap, dependencies and steps order them") {
  // Each step computes for 1 s and sends a message of 2 s on another stream; the next step's computation
  // waits for it.
  Schedule s;
  s.roles = {role("worker", {{"ring", 2}})};
  s.works = {work(1.0)};
  Program p;
  p.name = "worker";
  p.streams = {"compute", "network"};
  p.ops = {compute("c", 0, 0, {{1, 1}}),
           exchange("x", 1, {send(Peer::along(0, 1, true), 2e9), receive(Peer::along(0, -1, true), 2e9)},
                    {{0, 0}}),
           compute("beside x", 0, 0)};
  s.programs = {p};
  const Trace trace =
      simulate_in_child(one_job(s, {0, 1}, 3), *make_cluster(star(2, kBandwidth, 0)), ideal(Fidelity::flow));
  CHECK(trace.classes.size() == 1);  // both ranks do the same
  CHECK(ends_of(trace, "c", 0) == std::vector<double>{1.0, 4.0, 7.0});
  CHECK(ends_of(trace, "beside x", 0) == std::vector<double>{2.0, 5.0, 8.0});
  CHECK(ends_of(trace, "x", 0).back() == Approx(9.0));
}

TEST_CASE("counters: a stale-synchronous worker runs at most `staleness` rounds ahead") {
  // Each worker signals "done, round i" to all; before round i it waits until both have finished round i - 2.
  Schedule s;
  s.roles = {role("worker", {{"data", 2}})};
  s.works = {work(1.0)};
  Program p;
  p.name = "worker";
  p.streams = {"main"};
  Op begin, end, wait, tell;
  begin.name = end.name = "rounds";
  begin.kind = OpKind::repeat_begin;
  begin.count = 6;
  end.kind = OpKind::repeat_end;
  wait.name = "not too far ahead";
  wait.kind = OpKind::wait_until;
  wait.counter = {"done", -2, 1};
  wait.at_least = 2;
  tell.name = "done";
  tell.kind = OpKind::signal;
  tell.counter = {"done", 0, 1};
  tell.signalled = {Peer::each(0)};
  Op first = wait;  // rounds 0 and 1 wait for nothing: their counters are set in advance
  first.name = "open the window";
  first.kind = OpKind::signal;
  first.counter = {"done", -2, 0};
  first.signalled = {Peer::each(0)};
  Op second = first;
  second.counter = {"done", -1, 0};
  p.ops = {first, second, begin, wait, compute("round", 0, 0), tell, end};
  s.programs = {p};
  ClusterParts parts = star(2);
  parts.slow_devices = {{1, 0.25}};  // rounds of 4 s
  const Trace trace = simulate_in_child(one_job(s, {0, 1}), *make_cluster(parts), ideal(Fidelity::flow));
  const std::vector<double> fast = ends_of(trace, "round", 0), slow = ends_of(trace, "round", 1);
  REQUIRE(fast.size() == 6);
  CHECK(slow.back() == Approx(24));
  // Round i of the fast worker begins when the slow one has finished round i - 2, at 4 (i - 1).
  CHECK(fast[0] == Approx(1));
  CHECK(fast[1] == Approx(2));
  for (int i = 2; i < 6; ++i) CHECK(fast[i] == Approx(4.0 * (i - 1) + 1));
}

TEST_CASE("phases: a job goes on with fewer ranks, and no step begins after a phase's time is over") {
  Run run = one_job(ring_schedule(4, 1e9), {0, 1, 2, 3}, 100);  // 1.5 s per step
  run.jobs[0].phases[0].until_s = 4.0;                          // steps begin at 0, 1.5, 3.0
  run.jobs[0].phases.push_back({std::make_shared<Schedule>(ring_schedule(2, 1e9)), 2});  // 1 s per step
  const Trace trace =
      simulate_in_child(run, *make_cluster(star(4, kBandwidth, 0)), ideal(Fidelity::automatic));
  CHECK(trace.end_s == Approx(3 * 1.5 + 2 * 1.0).epsilon(1e-6));
}

TEST_CASE("callbacks run in simulated order") {
  // The simulation runs in a child process, so its callbacks must write to shared memory.
  Schedule s;
  s.roles = {role("worker", {{"data", 3}})};
  s.works = {work(1.0)};
  Program p;
  p.name = "worker";
  p.streams = {"compute"};
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  int* order = static_cast<int*>(page);  // the count, then the ranks
  Op op = compute("c", 0, 0);
  op.arithmetic = [order](const OpMoment& m) { order[++order[0]] = m.rank; };
  p.ops = {op};
  s.programs = {p};
  ClusterParts parts = star(3);
  parts.slow_devices = {{0, 0.5}, {1, 0.9}};
  simulate_in_child(one_job(s, {0, 1, 2}), *make_cluster(parts), ideal(Fidelity::automatic));
  CHECK(std::vector<int>(order + 1, order + 1 + order[0]) == std::vector<int>{2, 1, 0});
  munmap(page, 4096);
}

TEST_CASE("what SimGrid could not count is refused with the op named") {
  CHECK_THROWS_AS(run_time_s(one_job(ring_schedule(2, 3e14), {0, 1}), star(2), ideal(Fidelity::flow)),
                  RunError);
  CHECK(run_time_s(one_job(ring_schedule(2, 1e14), {0, 1}), star(2), ideal(Fidelity::flow)) == Approx(1e5));
  EngineOptions options = ideal(Fidelity::chunk);
  options.chunk_bytes = 1024;
  CHECK_THROWS_AS(run_time_s(one_job(ring_schedule(2, 1e12), {0, 1}), star(2), options), RunError);
}

TEST_CASE("a bad schedule is refused before it runs") {
  Schedule s = ring_schedule(2, 1e6);
  s.programs[0].ops.push_back(exchange("lonely send", 0, {send(Peer::along(0, 1), 8)}));
  CHECK_THROWS_AS(simulate_in_child(one_job(s, {0, 1}), *make_cluster(star(2)), ideal(Fidelity::flow)),
                  RunError);
}
