// Tests the calibration of GPUs and of NCCL between them on the stand-in.
#ifdef REHEARSE_HAVE_CUDA

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/costs/link_profile.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"
#include "topologies/device.hpp"

using namespace rehearse;

namespace {

test::Outcome calibrate(const test::Scratch& scratch, const std::string& arguments,
                        const std::string& environment) {
  return test::run_on_stand_in(
      "rehearse-run", "calibrate --device gpu --name gpu --out " + scratch.path("") + " " + arguments,
      environment);
}

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) all.push_back(field);
  return all;
}

}  // namespace

TEST_CASE("a GPU's profile has its own memory, units and times") {
  const test::Scratch scratch;
  const test::Outcome outcome = calibrate(scratch, "--only-compute --seconds 2", "STAND_IN_MEMORY_MB=3072");
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  Document document = Document::parse_file(scratch.path("gpu-device.toml"));
  Section root = document.root();
  const Device device = read_device(root);
  CHECK(device.title == "GPU stand-in");
  CHECK(device.memory_bytes.value == Approx(3072.0 * 1048576));
  CHECK(device.memory_bytes.source.find("as its driver reports it") != std::string::npos);
  CHECK(device.compute_units == 132);
  CHECK(device.compute_capability == 90);
  CHECK(device.kernel_overhead_s.value > 0);
  CHECK(device.kernel_overhead_s.value < 1e-3);
  CHECK(device.kernel_overhead_s.source.find("one empty kernel after another") != std::string::npos);
  const std::string text = test::read_file(scratch.path("gpu-device.toml"));
  CHECK(text.find("the host, which issues an empty kernel in ") != std::string::npos);
  CHECK(text.find("Other programs used the processor") == std::string::npos);
}

TEST_CASE("links between GPUs are NCCL's, a profile for each algorithm that is forced") {
  const test::Scratch scratch;
  const test::Outcome outcome =
      calibrate(scratch,
                "--only-links --seconds 6 --nccl-algorithms Tree,NVLS --nccl-protocols auto,LL --table " +
                    scratch.path("all.csv"),
                "STAND_IN_GPUS=2");
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  struct Case {
    const char* file;
    std::size_t curves;  // number, of messages and collectives
    const char* algorithm;
    const char* protocol;
  };
  // NVLS has no LL protocol.
  const Case cases[] = {{"gpu-tree-links.toml", 2, "Tree", ""},
                        {"gpu-tree-ll-links.toml", 2, "Tree", "LL"},
                        {"gpu-nvls-links.toml", 4, "NVLS", ""}};
  std::set<std::vector<std::string>> forced;
  for (const Case& c : cases) {
    CAPTURE(c.file);
    const LinkProfile links = read_link_profile_file(scratch.path(c.file));
    CHECK(links.curves.size() == c.curves);
    CHECK(links.title.find("NCCL ") == 0);
    CHECK(links.title.find(", 2 ranks on 1 machine") != std::string::npos);
    if (*c.algorithm != '\0')
      CHECK(links.title.find(std::string("NCCL_ALGO=") + c.algorithm) != std::string::npos);
    if (*c.protocol != '\0')
      CHECK(links.title.find(std::string("NCCL_PROTO=") + c.protocol) != std::string::npos);
    CHECK(links.hardware.find("GPU stand-in, ") == 0);
    forced.insert(std::vector<std::string>{c.algorithm, c.protocol});
  }
  CHECK(outcome.out.find("busbw") != std::string::npos);
  std::istringstream table(test::read_file(scratch.path("all.csv")));
  std::string line;
  std::getline(table, line);
  CHECK(line.find("kind,where,ranks,algorithm,protocol,bytes,count,type,redop,time_us,") == 0);
  std::set<std::vector<std::string>> seen;
  while (std::getline(table, line)) {
    CAPTURE(line);
    const std::vector<std::string> row = fields(line);
    REQUIRE(row.size() == 14);
    seen.insert({row[3], row[4]});
    const double factor =
        row[0] == "reduce-scatter" || row[0] == "all-gather" || row[0] == "all-to-all" ? 0.5 : 1;
    const double algorithm = std::stod(row[12]);
    CHECK(algorithm == Approx(std::stod(row[5]) / std::stod(row[9]) / 1e3).epsilon(1e-4));
    CHECK(std::stod(row[13]) == Approx(factor * algorithm).epsilon(1e-4));
  }
  CHECK(seen == forced);
}

TEST_CASE("ranks share a GPU in a calibration only if they are told to") {
  const test::Scratch scratch;
  const test::Outcome refused = calibrate(scratch, "--ranks 3 --seconds 3", "STAND_IN_GPUS=2");
  CHECK(refused.status == 1);
  CHECK(refused.err.find("2 ranks would share a GPU; allowed: a GPU for each rank, or --oversubscribe") !=
        std::string::npos);
  const test::Outcome shared =
      calibrate(scratch, "--only-links --ranks 3 --seconds 3 --oversubscribe", "STAND_IN_GPUS=2");
  INFO(shared.out << shared.err);
  REQUIRE(shared.status == 0);
  CHECK(shared.out.find("Note: 2 ranks share a GPU: ") != std::string::npos);
  CHECK(test::read_file(scratch.path("gpu-links.toml")).find("# 2 ranks share a GPU: ") != std::string::npos);
  CHECK(read_link_profile_file(scratch.path("gpu-links.toml")).curves.size() == 1 + 2 * 6);
}

TEST_CASE("a rank that dies ends the measurement of links") {
  const test::Scratch scratch;
  const test::Outcome outcome =
      calibrate(scratch, "--only-links --seconds 3", "STAND_IN_GPUS=2 STAND_IN_FAULT='die 1 100'");
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("rank 1 was ended by signal 9") != std::string::npos);
}

TEST_CASE("options of NCCL are refused where they mean nothing") {
  struct Case {
    const char* arguments;
    const char* said;
  };
  const Case cases[] = {
      {"--oversubscribe", "allowed with --device gpu"},
      {"--nccl-algorithms Ring", "allowed with --device gpu"},
      {"--device gpu --nccl-algorithms ring,Tree", "allowed: "},
      {"--device gpu --nccl-algorithms NVLS,PAT --nccl-protocols LL,LL128", "allowed with them: Simple"},
      {"--device gpu --table /no/such/folder/t.csv", "is not in a folder that exists"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arguments);
    const test::Outcome outcome =
        test::run_on_stand_in("rehearse-run", std::string("calibrate ") + c.arguments, "STAND_IN_GPUS=2");
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find(c.said) != std::string::npos);
  }
}

#endif
