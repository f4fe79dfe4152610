// Checks golden cases of refused inputs: tests/bad_inputs/KIND/NAME.EXTENSION, with the exact message in
// NAME.expected.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "models/text/error.hpp"
#include "tests/catch.hpp"

namespace rehearse::test {

// Calls `read` with the file's name inside its folder, so that messages do not depend on where the tests run.
// REHEARSE_UPDATE_GOLDEN=1 writes the expected messages instead.
inline void check_bad_inputs(const std::string& kind, const std::string& extension, int at_least,
                             const std::function<void(const std::string&)>& read) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(REHEARSE_TESTS_DIR) / "bad_inputs" / kind);
  const bool update = std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr;
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(".")) {
    const std::string name = entry.path().stem().string();
    CAPTURE(kind, name);
    if (entry.path().extension() == ".expected") {
      CHECK(fs::exists(name + extension));  // no golden file without its input
      continue;
    }
    ++cases;
    std::string found = "accepted\n";
    try {
      read(name + extension);
    } catch (const InputError& error) {
      found = std::string(error.what()) + "\n";
    }
    if (update) std::ofstream(name + ".expected", std::ios::binary) << found;
    std::stringstream expected;
    expected << std::ifstream(name + ".expected", std::ios::binary).rdbuf();
    CHECK(found == expected.str());
  }
  CHECK(cases >= at_least);
  fs::current_path(before);
}

}  // namespace rehearse::test
