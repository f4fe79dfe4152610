// Tests traces of PyTorch's profiler: the timelines against sums over the numbers in their files.
//
// tests/traces/ddp-gloo-rank*.json.gz were written by PyTorch 2.15.0 on two CPU cores, by two processes of
//   model = DDP(Sequential(Linear(256, 512), ReLU(), Linear(512, 10)))      # gloo, one thread each
//   optimizer = SGD(model.parameters(), lr=0.1)
//   data = DataLoader(TensorDataset(randn(160, 256), randint(10, (160,))), batch_size=32)
//   with profile(activities=[CPU], schedule=schedule(wait=1, warmup=1, active=3)) as p:
//     for x, y in data:
//       optimizer.zero_grad(); cross_entropy(model(x), y).backward(); optimizer.step(); p.step()
//   p.export_chrome_trace(f"ddp-gloo-rank{rank}.json.gz")
// tests/traces/gpu-kernels.json is made by hand in the same format: rank 5 of 8, two steps of 1000.5 us.
#include <map>
#include <optional>

#include "gui/models/trace/trace_file.hpp"
#include "tests/catch.hpp"
#include "tests/gui_timeline_checks.hpp"

using namespace rehearse::gui;

namespace {

const std::string kTraces = REHEARSE_TESTS_DIR "/traces/";

Timeline read(const std::string& name) {
  Progress progress;
  Timeline timeline = read_timeline(kTraces + name, progress);
  CHECK(progress.share == 1);
  check_timeline(timeline);
  return timeline;
}

struct Total {
  int spans = 0;
  Time time = 0;
  bool operator==(const Total&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Total& total) {
  return out << total.spans << " spans, " << total.time << " ns";
}
Total total_of(const Timeline& timeline, Kind kind, std::optional<rehearse::gui::Pass> pass = {}) {
  Total total;
  for (const Row& row : timeline.rows)
    for (SpanId s = row.first; row.track >= 0 && s < row.last; ++s) {
      if (timeline.spans.kind[s] != kind || (pass && timeline.spans.pass[s] != *pass)) continue;
      ++total.spans;
      total.time += timeline.spans.end[s] - timeline.spans.begin[s];
    }
  return total;
}

std::map<std::string, Time> summary_totals(const Timeline& timeline, int process) {
  std::map<std::string, Time> totals;
  for (const auto& [begin, end, name] : summary_told(timeline, process)) totals[name] += end - begin;
  return totals;
}

int process_named(const Timeline& timeline, const std::string& name) {
  for (std::size_t p = 0; p < timeline.processes.size(); ++p)
    if (timeline.processes[p].name == name) return static_cast<int>(p);
  FAIL("no process " << name);
  return -1;
}

}  // namespace

// The expected values are sums of `dur` by `cat` in the files; names that are communication or data count
// separately.
TEST_CASE("Two ranks of DDP over gloo") {
  struct Case {
    const char* file;
    Time collectives, data, host, annotations, computing;
  };
  for (const auto& [file, collectives, data, host, annotations, computing] :
       {Case{"ddp-gloo-rank0.json.gz", 177'945 + 7'699'149, 1'386'086, 7'618'325 - 177'945,
             25'551'517 - 1'386'086 - 7'699'149 + 15'216'609, 2'630'768},
        Case{"ddp-gloo-rank1.json.gz", 3'266'067 + 6'091'392, 1'259'528, 13'803'894 - 3'266'067,
             20'384'137 - 1'259'528 - 6'091'392 + 11'758'029, 2'681'071}}) {
    CAPTURE(file);
    const Timeline timeline = read(file);
    CHECK(timeline.problems.empty());
    CHECK(timeline.writer == Timeline::Writer::pytorch);
    const int rank = file[13] - '0';
    CHECK((rank_of(timeline).rank == rank && rank_of(timeline).world_size == 2));
    // 3 steps: c10d::allreduce_ and gloo:all_reduce of one bucket each; 3 batches; 1026 operators in all.
    CHECK(total_of(timeline, Kind::communication) == Total{6, collectives});
    CHECK(total_of(timeline, Kind::data) == Total{3, data});
    CHECK(total_of(timeline, Kind::host) == Total{1023, host});
    CHECK(total_of(timeline, Kind::annotation) == Total{18 - 3 - 3 + 1, annotations});
    // fwdbwd arrows: as many as the file's 's' events
    CHECK(timeline.flows.size() == 21);
    const int process = process_named(timeline, "rank " + std::to_string(rank) + ", host");
    CHECK(timeline.tracks[timeline.processes[process].first_track].name.find("(python)") !=
          std::string::npos);
    // The union of the main thread's operators, minus the union of data loading and communication.
    auto totals = summary_totals(timeline, process);
    CHECK(totals["compute"] == computing);
    CHECK(totals["exposed all-reduce"] > 0);
    CHECK(totals["idle"] > 0);
  }
}

TEST_CASE("What an operator belongs to is told by its name, its step and what encloses it") {
  const Timeline timeline = read("ddp-gloo-rank0.json.gz");
  const auto of = [&](const char* name) {
    const SpanId span = span_named(timeline, 0, name);
    REQUIRE(span != kNoSpan);
    return std::pair{timeline.spans.pass[span], timeline.spans.step[span]};
  };
  CHECK(of("aten::linear") ==
        std::pair{rehearse::gui::Pass::forward, 2});  // ProfilerStep#2; has a sequence number
  CHECK(of("AddmmBackward0") == std::pair{rehearse::gui::Pass::backward, 2});
  CHECK(of("aten::threshold_backward") == std::pair{rehearse::gui::Pass::backward, 2});
  CHECK(of("aten::mm") == std::pair{rehearse::gui::Pass::backward, 2});
  CHECK(of("aten::add_") == std::pair{rehearse::gui::Pass::optimizer, 2});  // in Optimizer.step#SGD.step
  CHECK(of("aten::select") ==
        std::pair{rehearse::gui::Pass::none, 2});  // in the data loader, despite its number
}

TEST_CASE("The ranks of a job as one timeline") {
  std::vector<Timeline> ranks;
  ranks.push_back(read("ddp-gloo-rank1.json.gz"));
  ranks.push_back(read("ddp-gloo-rank0.json.gz"));
  // Both files have the same baseTimeNanoseconds, so the origins are the `ts` of their first spans, in ns.
  const Time apart = ranks[0].origin - ranks[1].origin;
  const std::size_t spans = ranks[0].spans.size() + ranks[1].spans.size();
  const Time end0 = ranks[1].end, end1 = ranks[0].end;
  const Timeline all = merged(std::move(ranks));
  check_timeline(all);
  CHECK(all.problems.empty());
  CHECK(all.spans.size() == spans);
  CHECK(all.end == std::max(end0 + std::max<Time>(0, -apart), end1 + std::max<Time>(0, apart)));
  CHECK(all.flows.size() == 42);
  const int first = process_named(all, "rank 0: host"), second = process_named(all, "rank 1: host");
  CHECK(first < second);
  const auto step = [&](int process) { return all.spans.begin[span_named(all, process, "ProfilerStep#2")]; };
  CHECK(std::abs(step(second) - step(first) - apart) < 1'000'000);
  CHECK(total_of(all, Kind::communication) == Total{12, 177'945 + 7'699'149 + 3'266'067 + 6'091'392});
  CHECK(summary_totals(all, second)["compute"] == 2'681'071);
}

TEST_CASE("Ranks without a clock in common all begin at 0") {
  const char* const kOne =
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":2}]})";
  std::vector<Timeline> ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(parse_timeline(kOne, "rank.json"));
  const Timeline all = merged(std::move(ranks));
  check_timeline(all);
  REQUIRE(all.problems.size() == 1);
  CHECK(all.problems[0] == "the traces of the ranks have no common clock: each begins at time 0");
  CHECK((all.processes.size() == 2 && all.processes[1].name == "trace 2: process 0"));
  CHECK(all.end == 2000);
}

TEST_CASE("Kernels, NCCL and memory copies of a GPU") {
  const Timeline timeline = read("gpu-kernels.json");
  CHECK(timeline.problems.empty());
  CHECK(timeline.writer == Timeline::Writer::pytorch);
  CHECK((rank_of(timeline).rank == 5 && rank_of(timeline).world_size == 8));
  CHECK(timeline.origin == 1'700'000'000'000'000'000);  // more digits than a double in microseconds can hold
  CHECK(timeline.end == 1'995'000);
  // Durations in ns, from the file, for each of the two steps.
  CHECK(total_of(timeline, Kind::compute) == Total{6, 2 * (200'333 + 255'250 + 60'750)});
  CHECK(total_of(timeline, Kind::communication) == Total{2, 2 * 349'625});
  CHECK(total_of(timeline, Kind::copy) == Total{4, 2 * (25'250 + 1'500)});
  CHECK(total_of(timeline, Kind::data) == Total{2, 2 * 50'000});
  // 12 operators, 12 launches, 2 collectives that are only launched, and the profiler's overhead.
  CHECK(total_of(timeline, Kind::host) == Total{27, 736'000 + 86'000 + 2 * 20'000 + 4'000});
  CHECK(total_of(timeline, Kind::annotation) ==
        Total{7, 2 * 990'000 + 2 * 90'000 + 2 * (905'875 - 70'250) + 1'995'000});
  CHECK(total_of(timeline, Kind::compute, rehearse::gui::Pass::forward) ==
        Total{2, 2 * 200'333});  // by what launched them
  CHECK(total_of(timeline, Kind::compute, rehearse::gui::Pass::backward) == Total{2, 2 * 255'250});
  CHECK(total_of(timeline, Kind::compute, rehearse::gui::Pass::optimizer) == Total{2, 2 * 60'750});

  const int gpu = process_named(timeline, "rank 5, GPU 0");
  const Process& process = timeline.processes[gpu];
  REQUIRE(process.last_track - process.first_track == 2);
  const Track& stream = timeline.tracks[process.first_track];
  CHECK(stream.name == "stream 7");
  CHECK(stream.last_row - stream.first_row == 2);  // kernels below the annotation of their step
  CHECK(timeline.tracks[process.first_track + 1].name == "stream 20");
  const SpanId reduce = timeline.rows[timeline.tracks[process.first_track + 1].first_row].first;
  CHECK(timeline.spans.bytes[reduce] == 262144 * 4);
  CHECK((timeline.spans.members[reduce] == 8 && timeline.spans.step[reduce] == 3));
  CHECK(timeline.spans.begin[reduce] == 450'500);

  REQUIRE(timeline.flows.size() == 12);
  REQUIRE(timeline.flows_into(reduce).size() == 1);
  const SpanId launch = timeline.flows[timeline.flows_into(reduce)[0]].from;
  CHECK(timeline.name_of(launch) == "cudaLaunchKernelExC");
  CHECK(timeline.spans.begin[launch] == 435'000);

  // From the first kernel of the first step to the last of the second: NCCL overlaps with the backward pass
  // for 600.75 - 450.5 us; the rest is exposed.
  auto totals = summary_totals(timeline, gpu);
  const Time step = 1'000'500, first = 70'250, last = 905'875;
  CHECK(totals["compute"] == 1'032'666);
  CHECK(totals["exposed all-reduce"] == 2 * (349'625 - (600'750 - 450'500)));
  CHECK(totals["copy"] == 2 * (25'250 + 1'500));
  CHECK(totals["idle"] == step + last - first - 1'032'666 - 398'750 - 53'500);

  REQUIRE(timeline.counters.size() == 1);
  CHECK((timeline.counters[0].name == "memory of GPU 0" && timeline.counters[0].unit == "bytes"));
  CHECK(timeline.counters[0].value == std::vector<double>{1048576, 2097152});
}
