// Tests that files are written completely or not at all, and never over an input.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
namespace fs = std::filesystem;

namespace {

long files_in(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file takes its place when it is complete") {
  const Scratch scratch;
  const std::string path = scratch.write("out", "before");
  {
    OutputFile file(path);
    REQUIRE(write(file.descriptor(), "half", 4) == 4);
    CHECK(read_file(path) == "before");
  }
  CHECK(read_file(path) == "before");  // not committed
  CHECK(files_in(scratch.path("")) == 1);
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  write_whole_file(path, "after");
  CHECK(read_file(path) == "after");
  CHECK((fs::status(path).permissions() & fs::perms::all) == static_cast<fs::perms>(0640));
  CHECK(files_in(scratch.path("")) == 1);
  CHECK_THROWS_WITH(write_whole_file(scratch.path("no/file"), "x"),
                    scratch.path("no/file") + ": cannot be written: No such file or directory");
}

TEST_CASE("links are followed, and what is no regular file is written straight") {
  const Scratch scratch;
  const std::string path = scratch.write("out", "before");
  fs::create_symlink("out", scratch.path("link"));
  fs::create_symlink("new", scratch.path("dangling"));
  write_whole_file(scratch.path("link"), "after");
  CHECK(fs::is_symlink(scratch.path("link")));
  CHECK(read_file(path) == "after");
  write_whole_file(scratch.path("dangling"), "made");
  CHECK(fs::is_symlink(scratch.path("dangling")));
  CHECK(read_file(scratch.path("new")) == "made");
  CHECK_NOTHROW(write_whole_file("/dev/null", "gone"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH(write_whole_file("/dev/full", "x"),
                    "/dev/full: cannot be written: No space left on device");
  // A name of the maximum length.
  const std::string longest = scratch.path(std::string(255, 'n'));
  write_whole_file(longest, "x");
  CHECK(read_file(longest) == "x");
}

TEST_CASE("what was read is not overwritten, whatever it is called") {
  const Scratch scratch;
  const std::string path = scratch.write("in.toml", "a = 1\n"), other = scratch.write("other.toml", "");
  fs::create_symlink("in.toml", scratch.path("symbolic"));
  fs::create_hard_link(path, scratch.path("hard"));
  const FilesRead files_read;
  read_text_file(path, "scenario", 100);
  REQUIRE(files_read.paths() == std::vector<std::string>{path});
  for (const std::string& name :
       {std::string("in.toml"), std::string("./in.toml"), std::string("symbolic"), std::string("hard")}) {
    CAPTURE(name);
    CHECK_THROWS_AS(refuse_to_overwrite("--trace", scratch.path(name), files_read.paths()), InputError);
  }
  CHECK_THROWS_WITH(refuse_to_overwrite("--trace", path, files_read.paths()),
                    "--trace " + path + " would overwrite this file, which is read; allowed: another file");
  for (const std::string& name : {other, scratch.path("new"), std::string("/dev/null")}) {
    CAPTURE(name);
    CHECK_NOTHROW(refuse_to_overwrite("--trace", name, {path, "/dev/null"}));
  }
}
