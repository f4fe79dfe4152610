// Tests the command `collective`, which predicts the table of nccl-tests.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/commands/collective/collective_sizes.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

TEST_CASE("sizes of a collective: numbers with binary suffixes, lists and ranges") {
  constexpr double kK = 1024;
  struct Case {
    const char* text;
    std::vector<double> bytes;
  };
  for (const Case& one :
       {Case{"8", {8}}, Case{"64K", {64 * kK}}, Case{"1M,4m", {kK * kK, 4 * kK * kK}},
        Case{"8G", {8 * kK * kK * kK}}, Case{"8..64*2", {8, 16, 32, 64}}, Case{"8..100", {8, 16, 32, 64}},
        Case{"1K..3K+1K", {kK, 2 * kK, 3 * kK}}, Case{"8..1K*8,5", {8, 64, 512, 5}}, Case{"8..8+1", {8}}}) {
    CAPTURE(one.text);
    CHECK(parse_collective_sizes(one.text) == one.bytes);
  }
  CHECK(parse_collective_sizes("8..8G*2").size() == 31);
  for (const char* wrong : {"", "K", "1Q", "-8", "8..", "..8", "64..8", "8..64*1", "8..64+0", "8,,16", "3",
                            "2048G", "8..1G+1", "8..64*x", "99999999999999999999", "8 "}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(parse_collective_sizes(wrong),
                      contains_text("--bytes: ") && contains_text("; allowed: sizes from"));
  }
}

TEST_CASE("bus bandwidth factors of nccl-tests' doc/PERFORMANCE.md") {
  CHECK(bus_factor(Exchange::all_reduce, 8) == Approx(1.75));
  CHECK(bus_factor(Exchange::all_reduce, 2) == Approx(1));
  for (const Exchange kind : {Exchange::all_gather, Exchange::reduce_scatter, Exchange::all_to_all})
    CHECK(bus_factor(kind, 8) == Approx(0.875));
  for (const Exchange kind : {Exchange::broadcast, Exchange::reduce, Exchange::send_receive})
    CHECK(bus_factor(kind, 8) == 1);
}

TEST_CASE("a collective's table has nccl-tests' columns") {
  const Outcome run = run_rehearse("collective all-reduce --cluster dgx-a100 --nodes 2 --bytes 8..8G*8");
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  check_golden("collective-2x-dgx-a100.txt", run.out);
}

TEST_CASE("a collective's JSON holds times and bandwidths that belong together") {
  struct Case {
    const char* kind;
    double factor;  // for 16 ranks
    const char* algorithm;
  };
  for (const Case& one :
       {Case{"all-reduce", 2 * 15 / 16.0, nullptr}, Case{"all-gather", 15 / 16.0, "ring"},
        Case{"reduce-scatter", 15 / 16.0, "ring"}, Case{"all-to-all", 15 / 16.0, ""},
        Case{"broadcast", 1, "ring"}, Case{"reduce", 1, "ring"}, Case{"send-receive", 1, ""}}) {
    CAPTURE(one.kind);
    const Outcome run = run_rehearse(std::string("collective ") + one.kind +
                                     " --cluster dgx-a100 --nodes 2 --bytes 1K,64M --format json");
    REQUIRE(run.status == 0);
    const json rows = json::parse(run.out);
    REQUIRE(rows.size() == 2);
    const double bytes[] = {1024, 67108864};
    for (std::size_t i = 0; i < 2; ++i) {
      const json& row = rows[i];
      CHECK(row.at("kind") == one.kind);
      CHECK(row.at("bytes") == bytes[i]);
      const double time_s = row.at("time_s"), algbw = row.at("algbw_gb_per_s");
      CHECK(time_s > 0);
      CHECK(algbw == Approx(bytes[i] / time_s / 1e9));
      CHECK(row.at("busbw_gb_per_s").get<double>() == Approx(algbw * one.factor));
      if (one.algorithm != nullptr) CHECK(row.at("algorithm") == one.algorithm);
      CHECK_FALSE(row.at("protocol").get<std::string>().empty());
    }
    CHECK(rows[1].at("time_s") > rows[0].at("time_s"));
  }
}

TEST_CASE("send-receive and all-to-all move what nccl-tests says they move") {
  // Two nodes with one GPU and a NIC of 25 GB/s each: a send moves 256 MiB to the other rank, an all-to-all
  // half of it.
  const Scratch scratch;
  const std::string pair = scratch.write(
      "pair.toml",
      "[node]\ndevice = \"a100-80\"\ndevices = 1\nnics = 1\nnic_gbps = 200\n[fabric]\nkind = \"switch\"\n");
  const auto time_s = [&](const std::string& kind) {
    const Outcome run =
        run_rehearse("collective " + kind + " --cluster " + pair + " --nodes 2 --bytes 256M --format json");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out)[0].at("time_s").get<double>();
  };
  const Outcome alone = run_rehearse("collective all-reduce --cluster " + pair);
  CHECK(alone.status == 2);
  CHECK(alone.err.find("--nodes: pair has one device in all; allowed: ") == 0);
  const double bytes_s = 268435456 / (0.96 * 25e9);  // the share of a NIC's bandwidth that NCCL reaches
  CHECK(time_s("send-receive") == Approx(bytes_s).epsilon(0.01));
  CHECK(time_s("all-to-all") == Approx(bytes_s / 2).epsilon(0.01));
}

TEST_CASE("NVLink pairs on PCIe reach what nccl-tests measured") {
  // NVIDIA/nccl-tests issue 178: 8 A100 PCIe in NV12 pairs, two sockets; up to 12 GB, 208 GB/s of bus
  // bandwidth on the GPUs 0 and 1, and 20 on the GPUs 0 to 2.
  const Scratch scratch;
  const std::string node =
      "[node]\ndevice = \"a100-80-pcie\"\ndevices = 8\ninterconnect = \"nvlink-mesh\"\nnvlink_gb_per_s = 25\n"
      "nvlink = [{a=0,b=1,count=12},{a=2,b=3,count=12},{a=4,b=5,count=12},{a=6,b=7,count=12}]\n"
      "pcie_gb_per_s = 31.5\ndevice_latency_us = 0.6\n";
  const std::string fabric = "[fabric]\nkind = \"switch\"\n";
  const std::string pairs = scratch.write("pairs.toml", node + fabric);
  const std::string sockets =
      scratch.write("sockets.toml", node + "sockets = 2\ninter_socket_gb_per_s = 62.4\n" + fabric);
  const std::string slow =
      scratch.write("slow.toml", node + "sockets = 2\ninter_socket_gb_per_s = 20.8\n" + fabric);
  const auto busbw = [](const std::string& cluster, int devices) {
    const Outcome run = run_rehearse("collective all-reduce --cluster " + cluster + " --devices " +
                                     std::to_string(devices) + " --bytes 8G --format json");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out)[0].at("busbw_gb_per_s").get<double>();
  };
  for (const std::string& cluster : {pairs, sockets}) {
    CHECK(busbw(cluster, 2) == Approx(208).epsilon(0.05));
    CHECK(busbw(cluster, 3) == Approx(20).epsilon(0.25));
    CHECK(busbw(cluster, 8) == Approx(24).epsilon(0.02));  // NCCL's own figure for PCIe 4.0
  }
  CHECK(busbw(slow, 4) == Approx(24).epsilon(0.02));  // inside a socket
  CHECK(busbw(slow, 8) == Approx(24 * 20.8 / 31.5).epsilon(0.02));
}

TEST_CASE("show writes the output of nvidia-smi topo -m as a cluster file that opens") {
  const Scratch scratch;
  const std::string matrix =
      scratch.write("topo.txt",
                    "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV12\tSYS\tSYS\nGPU1\tNV12\t X "
                    "\tSYS\tSYS\nGPU2\tSYS\tSYS\t X \tNV12\nGPU3\tSYS\tSYS\tNV12\t X \n");
  const Outcome shown = run_rehearse("show " + matrix);
  CAPTURE(shown.err);
  REQUIRE(shown.status == 0);
  const std::string cluster = scratch.write("written.toml", shown.out);
  CHECK(run_rehearse("show " + cluster).out.find("sockets                             2, 62.4 GB/s") !=
        std::string::npos);
  CHECK(run_rehearse("collective all-reduce --cluster " + cluster + " --bytes 1G").status == 0);
  const Outcome wrong = run_rehearse("show " + scratch.write("wrong.txt", "GPU0 GPU1\nGPU0 X\n"));
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("wrong.txt:2:1: 1 connections of GPU0; allowed: 2") != std::string::npos);
}

TEST_CASE("a collective's alternatives are what NCCL could choose, and hold its choice") {
  struct Case {
    const char* arguments;
    std::vector<std::string> pairs;
  };
  const std::vector<std::string> rings = {"ring LL", "ring LL128", "ring Simple"};
  std::vector<std::string> with_trees = rings;
  with_trees.insert(with_trees.end(), {"tree LL", "tree LL128", "tree Simple"});
  std::vector<std::string> with_nvls = with_trees;
  with_nvls.push_back("nvls Simple");
  for (const Case& one :
       {Case{"all-reduce --cluster dgx-a100 --nodes 2", with_trees},
        Case{"all-reduce --cluster dgx-h100", with_nvls},
        Case{"all-gather --cluster dgx-h100 --nodes 2", rings},
        Case{"all-reduce --cluster aws-p4de --nodes 2", {"ring Simple", "tree Simple"}},
        Case{"all-to-all --cluster dgx-h100", {}}, Case{"all-reduce --cluster cpu-cluster --nodes 4", {}}}) {
    CAPTURE(one.arguments);
    const std::string line = std::string("collective ") + one.arguments + " --bytes 64K,256M";
    const Outcome run = run_rehearse(line + " --alternatives --format json");
    REQUIRE(run.status == 0);
    for (const json& row : json::parse(run.out)) {
      std::vector<std::string> pairs;
      bool held = one.pairs.empty();
      for (const json& other : row.at("alternatives")) {
        pairs.push_back(other.at("algorithm").get<std::string>() + " " +
                        other.at("protocol").get<std::string>());
        if (other.at("algorithm") == row.at("algorithm") && other.at("protocol") == row.at("protocol")) {
          held = true;
          CHECK(other.at("time_s").get<double>() == Approx(row.at("time_s").get<double>()));
        }
      }
      CHECK(pairs == one.pairs);
      CHECK(held);
    }
    // The table of nccl-tests stays as it is, and what follows are comments.
    const std::string plain = run_rehearse(line).out, text = run_rehearse(line + " --alternatives").out;
    CHECK(text.starts_with(plain));
    CHECK((text.size() == plain.size()) == one.pairs.empty());
    const std::string csv = run_rehearse(line + " --alternatives --format csv").out;
    for (const std::string& pair : one.pairs) {
      CHECK(text.find(pair) != std::string::npos);
      CHECK(csv.find("," + pair + " time_s") < csv.find('\n'));
    }
  }
}

TEST_CASE("rings of GPUs that cannot reach each other are bound by host memory") {
  // NVIDIA/nccl issue 1639: 8 RTX 5090 on PCIe 5.0, two processors with 614 GB/s of memory together: 28 GB/s
  // of bus bandwidth, and 35 on four of them. The same with GPUs that can: 0.762 of PCIe.
  const Scratch scratch;
  const auto busbw = [&](const std::string& device, const std::string& devices) {
    const std::string cluster =
        scratch.write("pcie.toml", "[node]\ndevice = \"" + device +
                                       "\"\ndevices = 8\ninterconnect = \"pcie\"\npcie_gb_per_s = 63\n"
                                       "cpu_gb_per_s = 614\n[fabric]\nkind = \"switch\"\n");
    const Outcome run = run_rehearse("collective all-reduce --algorithm ring --cluster " + cluster +
                                     " --devices " + devices + " --bytes 8G --format json");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out)[0].at("busbw_gb_per_s").get<double>();
  };
  CHECK(busbw("rtx-5090", "8") == Approx(28).epsilon(0.02));
  CHECK(busbw("rtx-5090", "4") == Approx(35).epsilon(0.02));
  CHECK(busbw("rtx-pro-6000", "8") == Approx(0.762 * 63).epsilon(0.02));
}

TEST_CASE("a collective takes the time that it takes in a training step") {
  // Compares one all-reduce of all gradients after the backward pass, from --trace, with the command for as
  // many bytes.
  const Scratch scratch;
  for (const std::string cluster :
       {"preset = \"dgx-a100\"\nnodes = 2\n", "preset = \"dgx1-v100\"\nnodes = 1\n",
        "preset = \"aws-p5\"\nnodes = 4\n"})
    for (const std::string algorithm : {"auto", "ring", "tree"})
      for (const int width : {16, 1024, 16384}) {
        const std::string scenario = scratch.write(
            "step.toml", "[model.multi_layer_perceptron]\nwidths = [" + std::to_string(width) + ", " +
                             std::to_string(width) + "]\n[training]\nglobal_batch = 64\n[cluster]\n" +
                             cluster + "[strategy]\nall_reduce = \"" + algorithm +
                             "\"\nbucket_mb = 100000\nfirst_bucket_mb = 100000\noverlap = false\n");
        CAPTURE(cluster, algorithm, width);
        const std::string trace = scratch.path("trace.json");
        const Outcome step = run_rehearse("simulate " + scenario + " --trace " + trace);
        CAPTURE(step.err);
        REQUIRE(step.status == 0);
        double bytes = 0, step_s = 0;
        const json events = json::parse(read_file(trace));
        for (const json& event : events.at("traceEvents"))
          if (event.contains("args") && event.at("args").contains("algorithm")) {
            bytes = event.at("args").at("bytes");
            step_s = event.at("dur").get<double>() * 1e-6;
          }
        REQUIRE(bytes > 0);
        const std::string preset = cluster.substr(10, cluster.find('"', 10) - 10),
                          nodes = cluster.substr(cluster.find("nodes = ") + 8, 1);
        const Outcome alone = run_rehearse("collective all-reduce --cluster " + preset + " --nodes " + nodes +
                                           " --algorithm " + algorithm + " --format json --bytes " +
                                           std::to_string(static_cast<long long>(bytes)));
        CAPTURE(alone.err);
        REQUIRE(alone.status == 0);
        CHECK(json::parse(alone.out)[0].at("time_s").get<double>() == Approx(step_s).epsilon(1e-4));
      }
}

TEST_CASE("wrong arguments of collective are named") {
  struct Case {
    const char* arguments;
    const char* said;
  };
  for (const Case& one : {
           Case{"all-reduc --cluster dgx-a100", "KIND: is \"all-reduc\"; allowed: all-reduce, "},
           Case{"all-reduce", "--cluster is required"},
           Case{"all-reduce --cluster dgx-a10", "--cluster: is \"dgx-a10\"; allowed: aws-p2.8xlarge, "},
           Case{"all-reduce --cluster dgx-a100 --nodes 1 --devices 9",
                "--devices: is 9; allowed: 2 to 8, the devices of 1 x dgx-a100 (8 GPUs)"},
           Case{"all-reduce --cluster dgx-a100 --devices 1", "--devices: "},
           Case{"all-reduce --cluster dgx-a100 --nodes 0", "--nodes: "},
           Case{"all-reduce --cluster dgx-a100 --bytes 1Q", "--bytes: \"1Q\" is not a size; allowed: "},
           Case{"all-reduce --cluster dgx-a100 --software gloo",
                "--software: is \"gloo\"; allowed: nccl-tests, xla"},
           Case{"all-gather --cluster dgx-a100 --algorithm tree",
                "--algorithm: is \"tree\" for all-gather; allowed: auto, ring"},
           Case{"all-reduce --cluster dgx-a100 --algorithm torus --bytes 8",
                "--algorithm: is \"torus\", for a group with a fabric that is not a torus; allowed: "},
           Case{"all-reduce --cluster dgx-a100 --algorithm rings",
                "--algorithm: is \"rings\"; allowed: ring, tree, "},
       }) {
    CAPTURE(one.arguments);
    const Outcome run = run_rehearse(std::string("collective ") + one.arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CAPTURE(run.err);
    CHECK(run.err.find(one.said) != std::string::npos);
  }
}

TEST_CASE("devices are shared out over the nodes that are asked for") {
  const auto headline = [](const std::string& arguments) {
    const Outcome run = run_rehearse("collective all-reduce --bytes 64M --cluster dgx-a100 " + arguments);
    return run.status == 0 ? run.out.substr(0, run.out.find(':')) : run.err;
  };
  CHECK(headline("--devices 2 --nodes 2") == "# all-reduce on 2 x dgx-a100 (2 GPUs)");
  CHECK(headline("--devices 16 --nodes 4") == "# all-reduce on 4 x dgx-a100 (16 GPUs)");
  CHECK(headline("--devices-per-node 4 --nodes 2") == "# all-reduce on 2 x dgx-a100 (8 GPUs)");
  CHECK(headline("--devices-per-node 4 --devices 12") == "# all-reduce on 3 x dgx-a100 (12 GPUs)");
  CHECK(headline("--devices 2") == "# all-reduce on the first 2 devices of 1 x dgx-a100 (8 GPUs)");
  CHECK(headline("--devices 3 --nodes 2").find("--devices: is 3 on 2 nodes; allowed: a multiple of 2") !=
        std::string::npos);
  CHECK(headline("--devices 17 --nodes 2").find("--devices: is 17; allowed: 2 to 16") != std::string::npos);
}

// One ring over one NIC of each node: 2 (n - 1) / n S / B = S / B for two ranks.
TEST_CASE("keys of the cluster can be overridden for one collective") {
  const std::string command =
      "collective all-reduce --bytes 1G --cluster dgx-a100 --devices 2 --nodes 2 --format json --set "
      "cluster.nic_gbps=";
  const auto busbw = [&](const std::string& gbps) {
    const Outcome run = run_rehearse(command + gbps);
    REQUIRE(run.status == 0);
    return nlohmann::json::parse(run.out)[0].at("busbw_gb_per_s").get<double>();
  };
  CHECK(busbw("100") == Approx(12.5).epsilon(0.06));
  CHECK(busbw("50") == Approx(6.25).epsilon(0.06));
  const Outcome wrong = run_rehearse("collective all-reduce --cluster dgx-a100 --set training.micro_batch=2");
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("unknown section [training]") != std::string::npos);
}
