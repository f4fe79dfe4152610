// Tests where programs search shipped data: in $REHEARSE_DATA, beside the program, in the source tree.
#include <filesystem>
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

// Copies a device's preset under another name below `place`.
void put_device(const fs::path& place, const std::string& name) {
  const fs::path folder = place / "topologies/presets/devices";
  fs::create_directories(folder);
  fs::copy_file(fs::path(REHEARSE_TESTS_DIR) / "../topologies/presets/devices/a100-80.toml",
                folder / (name + ".toml"));
}

}  // namespace

TEST_CASE("data are looked for in an order, and a moved installation finds its own") {
  const Scratch scratch;
  const fs::path tree = scratch.path("tree"), moved = scratch.path("moved"), own = scratch.path("own");
  fs::create_directories(tree / "bin");
  fs::copy_file(std::string(REHEARSE_BIN_DIR) + "/rehearse", tree / "bin/rehearse");
  put_device(tree / "share/rehearse", "installed");
  put_device(own, "owned");
  fs::rename(tree, moved);
  struct Case {
    const char* what;
    std::string environment, program, listed, not_listed;
  };
  const std::string built = std::string(REHEARSE_BIN_DIR) + "/rehearse";
  for (const Case& one : {
           Case{"the source tree", "", built, "a100-80", "installed"},
           Case{"beside the program", "", moved / "bin/rehearse", "installed", "a100-80"},
           Case{"REHEARSE_DATA", "REHEARSE_DATA=" + own.string(), moved / "bin/rehearse", "owned",
                "installed"},
           Case{"an empty REHEARSE_DATA", "REHEARSE_DATA=", moved / "bin/rehearse", "installed", "a100-80"},
           Case{"a REHEARSE_DATA without devices", "REHEARSE_DATA=" + scratch.path(""),
                moved / "bin/rehearse", "installed", "a100-80"},
       }) {
    CAPTURE(one.what);
    const Outcome run =
        run_shell("env -u REHEARSE_DATA " + one.environment + " " + one.program + " list devices");
    CHECK(run.status == 0);
    CHECK(run.out.find(one.listed) != std::string::npos);
    CHECK(run.out.find(one.not_listed) == std::string::npos);
  }
}

TEST_CASE("messages name the folders that were searched") {
  const Scratch scratch;
  fs::create_directories(scratch.path("models/presets"));
  fs::create_directories(scratch.path("benchmarks/measurements"));
  struct Case {
    std::string data, arguments, told;
  };
  for (const Case& one : {
           Case{scratch.path("none"), "list models",
                "REHEARSE_DATA: is \"" + scratch.path("none") + "\", which is not a folder; allowed: "},
           Case{scratch.path(""), "validate nothing",
                "there is no such table; allowed: none, because nothing was found in " +
                    scratch.path("benchmarks/measurements") + ", "},
       }) {
    CAPTURE(one.arguments);
    const Outcome run = run_rehearse(one.arguments, "REHEARSE_DATA=" + one.data);
    CHECK(run.status == 2);
    CAPTURE(run.err);
    CHECK(run.err.find(one.told) != std::string::npos);
  }
}
