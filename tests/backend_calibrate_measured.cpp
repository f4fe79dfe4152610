// Tests calibrations that measure: ranks on this machine, links of an emulated cluster, and the resulting
// files.
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "backend/calibrate/calibrate.hpp"
#include "backend/calibrate/host_calibrate.hpp"
#include "backend/calibrate/link_ranks.hpp"
#include "backend/calibrate/write_profile.hpp"
#include "backend/emulate/network.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "backend/host/launch.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
namespace fs = std::filesystem;

namespace {

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "rehearse-calibrate-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  fs::path path;
};

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const InputError& e) {
    return e.what();
  } catch (const RunError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("ranks measure messages and collectives between them", "[alone]") {
  // Each rank is a separate process; if a check fails in one of them, the launch throws its error.
  const auto expect = [](bool holds, const char* what) {
    if (!holds) throw RunError(what);
  };
  LaunchOptions options;
  options.ranks = 3;
  options.patience_s = 20;
  const std::string said = refusal([&] {
    launch(options, [&](Transport& transport) {
      LinkRanks ranks(transport, machine_name());
      if (transport.rank() != 0) return ranks.follow();
      const std::vector<LinkTrial> trials = ranks.trials();
      // Messages within the node, and six kinds of collectives over 2 and over all 3 ranks.
      expect(trials.size() == 13, "not 13 trials");
      int messages = 0;
      for (const LinkTrial& trial : trials) {
        messages += trial.ranks == 0;
        expect(trial.reach == Reach::in_node, "one machine is one node");
        double small_s = 1, large_s = 1;
        for (int i = 0; i < 5; ++i) {
          small_s = std::min(small_s, trial.time_s(64));
          large_s = std::min(large_s, trial.time_s(4e6));
        }
        expect(small_s > 1e-7, "faster than a system call");
        expect(small_s < 0.5, "a small message takes half a second");
        expect(large_s > 4e6 / 1e12, "faster than any memory");
        expect(large_s > small_s, "4 MB are faster than 64 B");
      }
      expect(messages == 1, "not one trial of messages");
      ranks.end();
    });
  });
  CHECK(said == "accepted");
}

// Four ranks on nodes given by name: two pairs, alternating nodes, nodes of three ranks and one, and a node
// each.
TEST_CASE("links in nodes and between them are told apart", "[alone][release]") {
  struct Case {
    const char* nodes;                                  // one letter per rank
    int in_node, between_nodes;                         // number of trials
    std::vector<int> in_node_members, between_members;  // members of the message trials
  };
  // A node of two ranks has one group of them, a node of three has two; between nodes there is one group with
  // a rank on each node and, if it differs, one of all ranks.
  const Case cases[] = {{"aabb", 1 + 6, 1 + 2 * 6, {0, 1}, {0, 2}},
                        {"abab", 1 + 6, 1 + 2 * 6, {0, 2}, {0, 1}},
                        {"aaab", 1 + 2 * 6, 1 + 2 * 6, {0, 1}, {0, 3}},
                        {"abcd", 0, 1 + 2 * 6, {}, {0, 1}}};
  for (const Case& c : cases) {
    CAPTURE(c.nodes);
    LaunchOptions options;
    options.ranks = 4;
    options.patience_s = 20;
    const std::string said = refusal([&] {
      launch(options, [&](Transport& transport) {
        LinkRanks ranks(transport, std::string(1, c.nodes[transport.rank()]));
        if (transport.rank() != 0) return ranks.follow();
        int count[2] = {};
        std::set<std::array<int, 3>> different;
        for (const LinkTrial& trial : ranks.trials()) {
          const auto reach = static_cast<std::size_t>(trial.reach);
          ++count[reach];
          different.insert(
              {static_cast<int>(reach), trial.ranks, trial.ranks > 0 ? static_cast<int>(trial.kind) : 0});
          if (trial.ranks == 0 &&
              trial.members != (trial.reach == Reach::in_node ? c.in_node_members : c.between_members))
            throw RunError("messages between the wrong ranks");
          if (!(trial.time_s(4096) > 0)) throw RunError("takes no time");
        }
        ranks.end();
        if (count[0] != c.in_node || count[1] != c.between_nodes) throw RunError("other trials");
        if (static_cast<int>(different.size()) != c.in_node + c.between_nodes)
          throw RunError("two for one table of the profile");
      });
    });
    CHECK(said == "accepted");
  }
}

TEST_CASE("calibrate writes profiles of this machine that a scenario runs on", "[alone]") {
  TemporaryFolder folder;
  HostArithmetic host;
  CalibrateArguments arguments;
  arguments.arithmetic = &host;
  arguments.folder = folder.path.string();
  arguments.name = "here";
  arguments.most_s = 3;
  arguments.command = "rehearse-run calibrate";
  arguments.links = {
      {Reach::in_node, 0, CollectiveKind::all_reduce, [](double bytes) { return 20e-6 + bytes / 1.2e9; }},
      {Reach::between_nodes, 0, CollectiveKind::all_reduce,
       [](double bytes) { return bytes < 65000 ? 12e-6 + bytes / 0.4e9 : 80e-6 + bytes / 1.1e9; }}};
  std::ostringstream out, err;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(run_calibrate(arguments, out) == 0);
  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(took_s < 120);  // includes touching memory and filling large arrays, which are not measured
  CHECK(err.str().empty());
  CHECK(out.str().find("gemm_efficiency") != std::string::npos);
  CHECK(out.str().find("between-nodes") != std::string::npos);

  const Scenario scenario = read_scenario_text(
      "[model]\npreset = \"mlp\"\n[training]\nglobal_batch = 64\nprecision = \"fp32\"\n"
      "[cluster.node]\ndevice_file = \"here-device.toml\"\ndevices = 2\ninterconnect = "
      "\"pcie\"\npcie_gb_per_s = 10\nnic_gbps = 10\n[cluster.fabric]\nkind = \"switch\"\n[cluster]\nnodes "
      "= 2\n[simulation]\nprotocol = \"measured\"\nlink_profile = \"here-links.toml\"\n",
      (folder.path / "job.toml").string());
  const Device& device = scenario.cluster->node().device;
  CHECK(device.name == "here");
  CHECK(device.title == host.device_name());
  const double peak = device.peak_flops[static_cast<std::size_t>(Precision::fp32)].value;
  CHECK(peak > 1e7);
  CHECK(peak < 1e12);  // for a single core
  for (const Sourced* number :
       {&device.memory_bandwidth, &device.memory_efficiency, &device.gemm_efficiency,
        &device.kernel_overhead_s, &device.optimizer_bytes_per_parameter, &device.memory_bytes}) {
    CAPTURE(number->source);
    CHECK(number->value > 0);
    CHECK(number->basis == Basis::measured);
    CHECK(number->source.find("`rehearse-run calibrate`") != std::string::npos);
  }
  CHECK(device.gemm_efficiency.value < 10);  // a fit to 3 s of measurements on a busy machine
  const Protocol& protocol = scenario.engine.protocol;
  REQUIRE(protocol.links);
  CHECK(1e6 * protocol.links->messages(Reach::in_node)->ranges[0].latency_s.value ==
        Approx(20).epsilon(1e-3));
  CHECK(protocol.links->messages(Reach::between_nodes)->ranges.size() == 2);

  arguments.arithmetic = nullptr;
  arguments.link_gbps = 16;  // 2 GB/s
  CHECK(run_calibrate(arguments, out) == 0);
  const LinkProfile relative = read_link_profile_file((folder.path / "here-links.toml").string());
  CHECK(relative.messages(Reach::in_node)->ranges[0].efficiency.value == Approx(0.6).epsilon(1e-3));
}

TEST_CASE("ranks that others are measured without wait for their turn", "[alone][release]") {
  TemporaryFolder folder;
  HostCalibrateArguments arguments;
  arguments.compute = false;
  arguments.ranks = 3;
  arguments.patience_s = 4;  // the third rank waits during the messages and six collectives of the first two
  arguments.common.most_s = 14;
  arguments.common.folder = folder.path.string();
  arguments.common.name = "three";
  std::ostringstream out, err;
  CHECK(refusal([&] { run_host_calibrate(arguments, out); }) == "accepted");
  const LinkProfile links = read_link_profile_file((folder.path / "three-links.toml").string());
  CHECK(links.curves.size() == 1 + 2 * 6);
}

TEST_CASE("calibration finds the rates of an emulated cluster's links", "[alone][release]") {
  if (const std::string missing = emulation_missing(); !missing.empty()) SKIP(missing);
  TemporaryFolder folder;
  const fs::path file = folder.path / "slow.toml";
  // So slow that 64 KiB take 11 ms, compared to which the delays of a busy machine are small.
  std::ofstream(file) << "[model]\npreset = \"mlp\"\n[training]\nglobal_batch = 64\nprecision = \"fp32\"\n"
                         "[cluster]\npreset = \"cpu-cluster\"\nnodes = 2\nnic_gbps = 0.05\n";
  const double payload = 0.05e9 / 8 * 1448 / 1514;
  // One or two seconds per trial give few sizes to fit, and a busy machine adds noise. The test only checks
  // that the shaped link's rate was measured, and not this machine's, which is hundreds of times higher.
  const auto near = [&](const LinkCurve* curve) {
    REQUIRE(curve != nullptr);
    const double bandwidth = curve->ranges.back().bandwidth.value;
    return bandwidth > payload / 5 && bandwidth < payload * 5;
  };
  bool found = false;
  for (int i = 0; i < 3 && !found; ++i) {
    const test::Outcome outcome =
        test::run_program("rehearse-run", "calibrate --emulate " + file.string() +
                                              " --seconds 14 --name slow --out " + folder.path.string());
    CAPTURE(i, outcome.out, outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(outcome.out.find("the links carry 5.978 MB/s of payload") != std::string::npos);
    const LinkProfile links = read_link_profile_file((folder.path / "slow-links.toml").string());
    CHECK(links.title.find("2 ranks in the emulated cluster of slow") != std::string::npos);
    CHECK(links.messages(Reach::in_node) == nullptr);
    found = near(links.messages(Reach::between_nodes));
    using enum CollectiveKind;
    for (const CollectiveKind kind :
         {all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce}) {
      const LinkCurve* curve = links.collective(kind, Reach::between_nodes, 2);
      CHECK(curve->ranks == 2);
      found = found && near(curve);
    }
    if (!found) WARN("not found in " << outcome.out);
  }
  CHECK(found);
  const test::Outcome both =
      test::run_program("rehearse-run", "calibrate --only-compute --emulate " + file.string());
  CHECK(both.status == 2);
}

TEST_CASE("calibrate refuses what it cannot use before it measures") {
  CalibrateArguments arguments;
  std::ostringstream out;
  arguments.folder = "/no/such/folder";
  CHECK(refusal([&] { run_calibrate(arguments, out); }) ==
        "/no/such/folder: is not a folder; allowed: a folder to write the profiles to");
  arguments.folder = ".";
  arguments.base_device = "h2000";
  CHECK(
      refusal([&] { run_calibrate(arguments, out); }).starts_with("there is no device \"h2000\"; allowed: "));
}

TEST_CASE("ranks are what the user says, and no link is written as faster than it is", "[alone]") {
  struct Case {
    const char* option;
    Reach reach;
  };
  for (const Case& c : {Case{"", Reach::in_node}, Case{"--ranks-are devices", Reach::in_node},
                        Case{"--ranks-are nodes", Reach::between_nodes}}) {
    CAPTURE(c.option);
    const TemporaryFolder folder;
    // This machine's memory is far faster than 10 Mbit/s.
    const test::Outcome run = test::run_program(
        "rehearse-run",
        std::string("calibrate --only-links --seconds 1 --link-gbps 0.01 --name here --out ") +
            folder.path.string() + " " + c.option);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK(run.out.find("Messages of up to ") != std::string::npos);
    CHECK(run.out.find("seemed faster than the links") != std::string::npos);
    const LinkProfile profile = read_link_profile_file((folder.path / "here-links.toml").string());
    REQUIRE(profile.messages(c.reach) != nullptr);
    CHECK(profile.messages(c.reach == Reach::in_node ? Reach::between_nodes : Reach::in_node) == nullptr);
    for (const LinkCurve& curve : profile.curves)
      for (const SizeRange& range : curve.ranges) CHECK(range.efficiency.high <= 1);
  }
  CHECK(test::run_program("rehearse-run", "calibrate --ranks-are racks")
            .err.find("--ranks-are: is \"racks\"; allowed: nodes, devices") != std::string::npos);
}
