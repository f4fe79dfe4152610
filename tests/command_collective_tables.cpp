// Tests `validate` on tables of measured collectives, and the accuracy of the predictions for the shipped
// tables.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/commands/validate/collective_table.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

constexpr const char* kPrinted = R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid    100 on      node0 device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid    100 on      node0 device  1 [0x0f] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     2097152        524288     float     sum      -1    53.43   39.25   39.25      0    51.13   41.01   41.01      0
   104857600      26214400     float     sum      -1    644.6  162.66  162.66      0    640.1  163.80  163.80      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 101.5
)";

}  // namespace

TEST_CASE("nccl-tests' output is a table: sizes, times out of place, ranks and collective") {
  REQUIRE(is_collective_table(kPrinted));
  const MeasurementTable table = parse_collective_table(kPrinted, "a.txt");
  REQUIRE(table.rows.size() == 2);
  const PublishedRow& row = table.rows[1];
  CHECK(row.id == "104857600");
  CHECK(row.measured_step_s == Approx(644.6e-6));
  CHECK(row.collective->bytes == 104857600);
  CHECK(row.collective->listed_ranks == 2);
  CHECK(row.collective->kind == "all-reduce");
}

// bus bandwidth = algorithm bandwidth x 2 (n - 1) / n for an all-reduce, x (n - 1) / n for an all-gather:
// doc/PERFORMANCE.md of NVIDIA/nccl-tests.
TEST_CASE("the number of ranks of a printed table, and from what it follows") {
  const auto printed = [](const std::string& ranks, const std::string& row) {
    return "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 50331648\n# Using devices\n" + ranks +
           "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   "
           "busbw  error\n" +
           "    33554432       8388608   float     sum   " + row +
           "  5e-07   1962.0   17.10   32.07  5e-07\n";
  };
  const std::string one = "#   Rank  0 Pid   1001 on node-a device  0 [0x10] A100-SXM4-40GB\n",
                    two = one + "#   Rank  1 Pid   1001 on node-a device  1 [0x10] A100-SXM4-40GB\n";
  struct Case {
    std::string text, settings;
    int devices;
    std::string note;
  };
  for (const Case& c : {
           Case{printed(one, "1960.0   17.12   32.10"), "cluster.nodes=2", 16,
                "16 devices, from the ratio of bus bandwidth to algorithm bandwidth in the log (the log "
                "lists 1 rank)"},
           Case{printed(one, "1960.0   17.12   32.10"), "", 16,
                "16 devices, from the ratio of bus bandwidth to algorithm bandwidth in the log (the log "
                "lists 1 rank)"},
           Case{printed(two, "1960.0   17.12   17.12"), "", 2, "2 devices, as many as the log lists"},
           Case{printed("", "1960.0   17.12   29.96"), "", 8,
                "8 devices, from the ratio of bus bandwidth to algorithm bandwidth in the log"},
           Case{printed(two, "1960.0   17.12   29.96"), "", 8,
                "8 devices, from the ratio of bus bandwidth to algorithm bandwidth in the log (the log lists "
                "2 ranks)"},
           Case{printed(two, "1960.0   17.12   32.10"), "devices=4", 4, ""},
           Case{printed(one, "1960.0   17.12   32.10"), "cluster.devices_per_node=4,cluster.nodes=4", 16, ""},
           // 2 (n - 1) / n is 1.9978 to 2.0 for 900 ranks and more.
           Case{printed(one, "1960.0   17.12   34.20"), "cluster.nodes=128", 1024,
                "All devices of the cluster are taken, because the log does not tell their number exactly ("},
           // Cut short in the second row.
           Case{printed(one, "1960.0   17.12   32.10") + "    46137344      11534336   float     su", "", 16,
                "16 devices, from the ratio"},
       }) {
    CAPTURE(c.text, c.settings);
    std::vector<std::string> settings = {"cluster.preset=dgx-a100-40"};
    std::istringstream in(c.settings);
    for (std::string setting; std::getline(in, setting, ',');) settings.push_back(setting);
    const MeasurementTable table = parse_collective_table(c.text, "t.txt");
    REQUIRE(table.rows.size() == 1);
    const PredictedCollective predicted = predict_collectives(table, settings).front();
    CHECK(predicted.devices == c.devices);
    CHECK_THAT(predicted.note, contains_text(c.note));
    CHECK(predicted.note.empty() == c.note.empty());
  }
}

TEST_CASE("a table of collectives takes a cluster from a file") {
  const Scratch scratch;
  const std::string cluster =
      scratch.write("lab.toml",
                    "[node]\ndevice = \"a100-80\"\ndevices = 8\ninterconnect = "
                    "\"nvswitch\"\nnvlink_gb_per_s = 300\nnic_gbps = 100\n[fabric]\nkind = \"switch\"\n");
  const std::string file = scratch.write("printed.txt", kPrinted);
  const Outcome run = run_rehearse("validate " + file + " --set cluster.file=" + cluster);
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.find("2 devices, as many as the log lists") != std::string::npos);
  const Outcome none = run_rehearse("validate " + file + " --set cluster.file=none.toml");
  CHECK(none.status == 2);
  CHECK(none.err.find("none.toml") != std::string::npos);
}

TEST_CASE("what collective prints is a table in which nothing is off") {
  const Scratch scratch;
  for (const std::string kind : {"all-reduce", "all-gather", "send-receive"}) {
    CAPTURE(kind);
    const std::string sizes = " --bytes 1K..1G*32";
    const Outcome printed = run_rehearse("collective " + kind + " --cluster dgx-a100 --nodes 2" + sizes);
    REQUIRE(printed.status == 0);
    const std::string file = scratch.write("printed.txt", printed.out);
    const Outcome run = run_rehearse(
        "validate " + file + " --set cluster.preset=dgx-a100 --set cluster.nodes=2 --set collective=" + kind +
        " --format json");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json table = json::parse(run.out)[0];
    CHECK(table.at("rows").size() == 5);
    CHECK(table.at("mean_absolute_error").get<double>() < 0.005);  // rounding of the last printed digit
  }
}

TEST_CASE("no call is shorter than the host takes to issue it") {
  const std::string columns = "id,source,collective,cluster.preset,cluster.nodes,bytes,";
  const std::string row = "a,b,all-reduce,dgx-a100,1,1048576,";
  const double alone_s =
      predict_collectives(parse_collective_table(columns + "measured_time_us\n" + row + "1\n", "t.csv"),
                          {})[0]
          .time_s;
  for (const double issue_us : {0.0, 0.5e6 * alone_s, 1e6 * alone_s, 3e6 * alone_s}) {
    const std::string text =
        columns + "issue_us,measured_time_us\n" + row + std::to_string(issue_us) + ",1\n";
    CHECK(predict_collectives(parse_collective_table(text, "t.csv"), {})[0].time_s ==
          Approx(std::max(alone_s, 1e-6 * issue_us)).epsilon(1e-6));
  }
}

TEST_CASE("wrong tables of collectives are refused") {
  const std::string header =
      "id,source,collective,cluster.preset,cluster.nodes,devices,bytes,measured_time_us\n";
  struct Case {
    std::string text, said;
  };
  for (const Case& one : {
           Case{header, "t.csv: the table has no rows"},
           Case{"id,source,measured_time_us\nx,y,1\n",
                "t.csv:1:1: column \"bytes\" is missing; required: id, source, bytes, measured_time_us"},
           Case{"id,source,bytes,measured_time_us,nodes\n",
                "t.csv:1:1: column \"nodes\" is unknown; allowed in a table of collectives: id, "},
           Case{header + "a,b,all-reduc,dgx-a100,1,8,8,1\n",
                "t.csv:2:1: collective is \"all-reduc\"; allowed: all-reduce, "},
           Case{header + "a,b,all-reduce,dgx-a10,1,8,8,1\n",
                "t.csv:2:1: cluster.preset is \"dgx-a10\"; allowed: "},
           Case{header + "a,b,all-reduce,dgx-a100,0,8,8,1\n", "t.csv:2:1: cluster.nodes is \"0\"; allowed: "},
           Case{header + "a,b,all-reduce,dgx-a100,1.5,8,8,1\n",
                "t.csv:2:1: cluster.nodes is \"1.5\"; allowed: "},
           Case{header + "a,b,all-reduce,dgx-a100,1,8,1M,1\n",
                "t.csv:2:1: bytes is \"1M\"; allowed: a number"},
           Case{header + "a,b,all-reduce,dgx-a100,1,8,8,0\n",
                "t.csv:2:1: measured_time_us is \"0\"; allowed: "},
           Case{"id,source,bytes,issue_us,measured_time_us\na,b,8,-1,1\n",
                "t.csv:2:1: issue_us is \"-1\"; allowed: a number from 0"},
           Case{header + "a,b,all-reduce,dgx-a100,1,8,8\n", "t.csv:2:1: the row has 7 fields; allowed: 8"},
           Case{"# size count type redop root time algbw\n8 2 float\n",
                "t.csv:2:1: the row has 3 columns; allowed: 6 or more"},
       }) {
    CAPTURE(one.text);
    REQUIRE(is_collective_table(one.text));
    CHECK_THROWS_WITH(parse_collective_table(one.text, "t.csv"), contains_text(one.said));
  }
  const Scratch scratch;
  const std::string file = scratch.write("printed.txt", kPrinted);
  struct Argument {
    std::string arguments, said;
  };
  for (const Argument& one :
       {Argument{"", "the row names no cluster; allowed: a name in the column cluster.preset"},
        Argument{" --set training.micro_batch=2",
                 "\"training.micro_batch\" is not a key of tables of collectives"},
        Argument{" --set cluster.preset=workstation-10gb", "--set: cluster.preset is \"workstation-10gb\""},
        Argument{" --set cluster.preset=dgx-a100 --set devices=9 --set cluster.nodes=1", "9 devices on "}}) {
    CAPTURE(one.arguments);
    const Outcome run = run_rehearse("validate " + file + one.arguments);
    CHECK(run.status == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(one.said) != std::string::npos);
  }
}

TEST_CASE("how exact the shipped collectives are predicted") {
  // Mean absolute errors in per cent, separately for rows that set constants and for all others (the column
  // `note` says which are which); 0 means no rows. Fails if a change moves one of them by more than half a
  // point.
  struct Pinned {
    double below_mib_seen, below_mib, from_mib_seen, from_mib;
  };
  const std::map<std::string, std::map<std::string, Pinned>> expected = {
      {"nccl-lut-a100",
       {{"2 GPUs", {0, 0, 6.1, 3.9}},
        {"4 GPUs", {0, 0, 2.8, 3.4}},
        {"5 GPUs", {0, 0, 1.7, 2.8}},
        {"7 GPUs", {0, 0, 4.2, 2.1}},
        {"8 GPUs", {0, 0, 2.5, 2.7}}}},
      {"nccl-lut-v100",
       {{"2 GPUs", {0, 0, 2.5, 2.2}},
        {"4 GPUs", {0, 0, 6.7, 7}},
        {"5 GPUs", {0, 0, 2, 0.9}},
        {"7 GPUs", {0, 0, 8, 8.3}},
        {"8 GPUs", {0, 0, 8, 17.3}}}},
      {"nccl-tests-published",
       {{"DGX H100", {0, 16.8, 2.5, 2.4}},
        {"2 x p5", {3, 13.5, 4.1, 7.9}},
        {"2 x p5, EKS", {0, 0, 0, 33.2}},
        {"2 x 8 B200, InfiniBand", {2, 14.3, 0, 7.2}},
        {"2 x 8 B200, RoCE", {0, 0, 0, 8}},
        {"8 B200, timed by PyTorch", {1.4, 4.7, 10.6, 9.4}},
        {"2 x 8 A100, RoCE", {0, 0, 0, 1.5}},
        {"96 GPUs, InfiniBand", {0, 0, 0, 1.5}},
        {"GB200 NVL72", {0, 0, 0, 5.8}},
        {"2 x GB200 NVL72", {0, 0, 0, 7.3}},
        {"2 x A3 High", {0, 0, 1.3, 25.6}},
        {"H200, rings", {0, 0, 0.1, 0}},
        {"H200, NVLS", {0, 0, 1.5, 0}},
        {"B200, rings", {0, 0, 0.2, 0}},
        {"B200, NVLS", {0, 0, 2.4, 0}}}},
      {"nccl-links",
       {{"2 x p4de", {3.5, 3.1, 3.7, 8.1}},
        {"2 to 4 x p4d", {0, 0, 0, 32.7}},
        {"4 to 128 x 8 H100", {0, 0, 0.7, 2}},
        {"32 x 8 H100", {0, 0, 0, 25.7}},
        {"20 x GB200 NVL72", {0, 0, 0, 59.5}}}},
      {"xla-collectives",
       {{"H100, all-gather", {18.6, 18.2, 3.8, 4.3}},
        {"H100, all-reduce", {20.6, 11.9, 11.2, 6.5}},
        {"H100, all-to-all", {37.4, 38.9, 13.8, 22.3}},
        {"H100, reduce-scatter", {31.1, 45.6, 7.8, 9.3}},
        {"B200, all-gather", {27.7, 27.7, 11.8, 9.1}},
        {"B200, all-reduce", {30.5, 41.1, 4.4, 4.7}},
        {"B200, all-to-all", {20.1, 16.9, 19.9, 18.4}},
        {"B200, reduce-scatter", {28.9, 36.4, 6.4, 12.8}},
        {"GB200, all-gather", {5.9, 5.9, 7.1, 8.7}},
        {"GB200, all-reduce", {2.8, 4.2, 5.3, 8.4}},
        {"GB200, all-to-all", {9.4, 9.5, 8.4, 11}},
        {"GB200, reduce-scatter", {3.7, 4, 7.7, 8.3}},
        {"GB300, all-gather", {0, 10.7, 0, 7.6}},
        {"GB300, all-reduce", {0, 4.5, 0, 7}},
        {"GB300, all-to-all", {0, 7.9, 0, 9.9}},
        {"GB300, reduce-scatter", {0, 6.6, 0, 9.9}}}},
  };
  for (const auto& [name, groups] : expected) {
    const Outcome run = run_rehearse("validate " + name + " --format json");
    CAPTURE(name, run.err);
    REQUIRE(run.status == 0);
    struct Sum {
      double error = 0;
      int rows = 0;
      double mean() const { return rows > 0 ? 100 * error / rows : 0; }
    };
    std::map<std::string, std::array<Sum, 4>> sums;
    std::map<std::string, double> bytes_of;
    for (const PublishedRow& row : read_measurements(measurement_path(name)).rows)
      bytes_of[row.id] = row.collective->bytes;
    const json table = json::parse(run.out)[0];
    for (const json& row : table.at("rows")) {
      const bool seen = row.at("note").get<std::string>().rfind("one of the rows that set", 0) == 0,
                 small = bytes_of.at(row.at("id")) < 1048576;
      Sum& sum = sums[row.at("group")][(small ? 0 : 2) + (seen ? 0 : 1)];
      sum.error += std::abs(row.at("error").get<double>());
      ++sum.rows;
    }
    CHECK(sums.size() == groups.size());
    for (const auto& [group, pinned] : groups) {
      CAPTURE(group);
      const std::array<Sum, 4>& sum = sums[group];
      CHECK(sum[0].mean() == Approx(pinned.below_mib_seen).margin(0.5));
      CHECK(sum[1].mean() == Approx(pinned.below_mib).margin(0.5));
      CHECK(sum[2].mean() == Approx(pinned.from_mib_seen).margin(0.5));
      CHECK(sum[3].mean() == Approx(pinned.from_mib).margin(0.5));
    }
  }
}
