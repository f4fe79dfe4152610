// Tests traces of rehearse as timelines: kinds, columns, waits, arrows, counters, summaries.
#include <fstream>

#include "gui/models/comparison/op_totals.hpp"
#include "gui/models/trace/trace_file.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/gui_timeline_checks.hpp"

using namespace rehearse::gui;

namespace {

// Two stages; times in us. The second waits from 0 to 14 and after its forward pass.
constexpr const char* kPipeline = R"json({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,
 "args":{"name":"stage 0, data 0-3 (4 ranks)","role":"worker","ranks":4,"stage":0}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"compute"}},
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"send forward"}},
{"ph":"M","name":"process_name","pid":2,"tid":0,
 "args":{"name":"stage 1, data 0-3 (4 ranks)","role":"worker","ranks":4,"stage":1}},
{"ph":"M","name":"process_sort_index","pid":2,"tid":0,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"compute"}},
{"ph":"M","name":"thread_name","pid":2,"tid":2,"args":{"name":"receive forward"}},
{"ph":"M","name":"thread_name","pid":2,"tid":3,"args":{"name":"gradients"}},
{"ph":"X","name":"forward 0","cat":"forward","pid":1,"tid":1,"ts":0.000,"dur":10.000,"args":{"op":0,"kind":"compute",
 "layer":"0-3","microbatch":0,"flops":5e9,"step":0,"ready_us":0.000,"deps":[],"status":"done","critical":true}},
{"ph":"X","name":"send forward 0","cat":"forward","pid":1,"tid":2,"ts":10.000,"dur":4.500,"args":{"op":1,
 "kind":"exchange","purpose":"pipeline transfer","microbatch":0,"bytes":1000,"step":0,"ready_us":10.000,"deps":[0],"status":"done","critical":true}},
{"ph":"X","name":"receive forward 0","cat":"forward","pid":2,"tid":2,"ts":10.000,"dur":4.500,"args":{"op":0,
 "kind":"exchange","purpose":"pipeline transfer","microbatch":0,"bytes":1000,"step":0,"ready_us":0.000,"deps":[],"status":"done"}},
{"ph":"X","name":"forward 0","cat":"forward","pid":2,"tid":1,"ts":14.500,"dur":10.000,"args":{"op":1,
 "kind":"compute","microbatch":0,"step":0,"ready_us":14.500,"deps":[0],"status":"done"}},
{"ph":"X","name":"all-reduce bucket 0","cat":"gradient_sync","pid":2,"tid":3,"ts":27.000,"dur":3.000,"args":{"op":2,
 "kind":"all-reduce","purpose":"gradient sync","bytes":4e6,"algorithm":"ring","members":4,"step":0,"ready_us":24.500,"deps":[1,0]}},
{"ph":"X","name":"optimizer","cat":"optimizer","pid":2,"tid":1,"ts":30.000,"dur":1.250,"args":{"op":3,
 "kind":"compute","step":0,"ready_us":30.000,"deps":[2],"status":"done"}},
{"ph":"s","bp":"e","id":1,"name":"message","cat":"message","pid":1,"tid":2,"ts":10.000},
{"ph":"f","bp":"e","id":1,"name":"message","cat":"message","pid":2,"tid":2,"ts":14.499},
{"ph":"C","name":"memory","pid":1,"ts":0.000,"args":{"bytes":100}},
{"ph":"C","name":"memory","pid":1,"ts":5.000,"args":{"bytes":300}},
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"busiest links"}},
{"ph":"C","name":"node0.nic0.out","pid":0,"ts":10.000,"args":{"bytes_per_s":2.5e9}}
],"otherData":{"generator":"rehearse","scenario":"two, \"quoted\" ] }"}}
)json";

}  // namespace

TEST_CASE("A trace of ours in columns") {
  const Timeline timeline = parse_timeline(kPipeline, "pipeline.json");
  check_timeline(timeline);
  CHECK(timeline.problems.empty());
  CHECK(timeline.writer == Timeline::Writer::rehearse);
  CHECK(timeline.other_data == R"({"generator":"rehearse","scenario":"two, \"quoted\" ] }"})");
  CHECK((timeline.begin == 0 && timeline.end == 31'250 && timeline.origin == 0));

  REQUIRE(timeline.processes.size() == 2);
  const Process& second = timeline.processes[1];
  CHECK(timeline.processes[0].name == "stage 0, data 0-3 (4 ranks)");
  CHECK((second.stage == "stage 1" && second.role == "worker" && second.members == 4));
  REQUIRE(second.last_track - second.first_track == 3);
  CHECK(timeline.tracks[second.first_track + 1].name == "receive forward");

  const SpanId forward = span_named(timeline, 0, "forward 0");
  CHECK(timeline.spans.kind[forward] == Kind::compute);
  CHECK(timeline.spans.pass[forward] == rehearse::gui::Pass::forward);
  CHECK((timeline.spans.op[forward] == 0 && timeline.spans.step[forward] == 0));
  CHECK((timeline.spans.microbatch[forward] == 0 && timeline.spans.flops[forward] == 5e9F));
  CHECK(timeline.spans.critical[forward]);
  CHECK(timeline.detail_of(forward).substr(0, 14) == R"({"op":0,"kind")");

  const SpanId receive = span_named(timeline, 1, "receive forward 0");
  CHECK(timeline.spans.kind[receive] == Kind::communication);
  CHECK((timeline.spans.ready[receive] == 0 && timeline.spans.bytes[receive] == 1000));
  const SpanId waited = receive - 1;  // on the same row
  CHECK(timeline.row_of(waited) == timeline.row_of(receive));
  CHECK(timeline.name_of(waited) == "waiting for the pipeline");
  CHECK(timeline.spans.kind[waited] == Kind::bubble);
  CHECK((timeline.spans.begin[waited] == 0 && timeline.spans.end[waited] == 10'000));
  CHECK((timeline.spans.op[waited] == 0 && timeline.spans.microbatch[waited] == 0));

  const SpanId reduce = span_named(timeline, 1, "all-reduce bucket 0");
  CHECK(timeline.strings[timeline.spans.algorithm[reduce]] == "ring");
  CHECK((timeline.spans.members[reduce] == 4 && timeline.spans.bytes[reduce] == 4e6F));
  CHECK(timeline.name_of(reduce - 1) == "waiting for a peer");
  CHECK(timeline.spans.kind[reduce - 1] == Kind::waiting);
  CHECK(timeline.spans.begin[reduce - 1] == 24'500);
  CHECK(std::vector<std::int32_t>(timeline.dependencies.begin() + timeline.first_dependency[reduce],
                                  timeline.dependencies.begin() + timeline.first_dependency[reduce + 1]) ==
        std::vector<std::int32_t>{1, 0});

  REQUIRE(timeline.flows.size() == 1);
  CHECK(timeline.name_of(timeline.flows[0].from) == "send forward 0");
  CHECK(timeline.flows[0].to == receive);
  CHECK(timeline.flows_into(receive).size() == 1);

  REQUIRE(timeline.counters.size() == 2);
  CHECK((timeline.counters[0].name == "memory" && timeline.counters[0].unit == "bytes"));
  CHECK(timeline.counters[0].process == 0);
  CHECK(timeline.counters[0].time == std::vector<Time>{0, 5000});
  CHECK(timeline.counters[0].value == std::vector<double>{100, 300});
  CHECK((timeline.counters[1].name == "node0.nic0.out" && timeline.counters[1].process == -1));
}

TEST_CASE("The summary of a rank tells each instant once") {
  const Timeline timeline = parse_timeline(kPipeline, "pipeline.json");
  using Told = std::vector<std::tuple<Time, Time, std::string>>;
  CHECK(summary_told(timeline, 0) ==
        Told{{0, 10'000, "forward"}, {10'000, 14'500, "exposed pipeline transfer"}});
  CHECK(summary_told(timeline, 1) == Told{{0, 10'000, "waiting for the pipeline"},
                                          {10'000, 14'500, "exposed pipeline transfer"},
                                          {14'500, 24'500, "forward"},
                                          {24'500, 27'000, "waiting for a peer"},
                                          {27'000, 30'000, "exposed gradient sync"},
                                          {30'000, 31'250, "optimizer"}});
}

TEST_CASE("Kernels stand in tracks of their own and count nowhere") {
  // The first stage's forward kernel, and a kernel that outlasts its op.
  const std::string kernels = R"json({"ph":"M","name":"thread_name","pid":1,"tid":3,
"args":{"name":"kernels of GPU stream 7"}},
{"ph":"X","name":"gemm","cat":"kernel","pid":1,"tid":3,"ts":1.000,"dur":4.000,
"args":{"kind":"kernel","stream":7,"correlation":12,"launched_by":0,"step":0}},
{"ph":"X","name":"ncclDevKernel_SendRecv","cat":"kernel","pid":1,"tid":3,"ts":10.000,"dur":6.000,
"args":{"kind":"kernel","stream":7,"correlation":13,"launched_by":1,"step":0}},
)json";
  std::string with = kPipeline;
  with.insert(with.find("{\"ph\":\"M\""), kernels);
  const Timeline plain = parse_timeline(kPipeline, "pipeline.json"),
                 timeline = parse_timeline(with, "kernels.json");
  check_timeline(timeline);
  CHECK(timeline.writer == Timeline::Writer::rehearse);
  REQUIRE(timeline.tracks.size() == plain.tracks.size() + 1);
  CHECK(timeline.tracks[2].name == "kernels of GPU stream 7");
  for (int process = 0; process < 2; ++process)
    CHECK(summary_told(timeline, process) == summary_told(plain, process));
  const TimeRange all{0, plain.end};
  const OpTotalsOfRange totals = op_totals(timeline, all), before = op_totals(plain, all);
  REQUIRE(totals.ops.size() == before.ops.size());
  for (std::size_t i = 0; i < totals.ops.size(); ++i) {
    CHECK(totals.ops[i].name == before.ops[i].name);
    CHECK(totals.ops[i].seconds == before.ops[i].seconds);
  }
}

TEST_CASE("A file that is none") {
  Progress progress;
  CHECK_THROWS_AS(read_timeline("/no/such/file.json", progress), rehearse::InputError);
  for (const char* text :
       {"", "hello", "{}", "[]", "{\"traceEvents\":[]}", "{\"traceEvents\":7}", "\"text\"", "[1,2]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_timeline(text, "some.json"), rehearse::InputError);
  }
}
