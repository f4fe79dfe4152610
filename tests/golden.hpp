// Compares texts with golden files, which contain the expected text.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.hpp"

namespace rehearse::test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Checks `found` against the golden file. REHEARSE_UPDATE_GOLDEN=1 overwrites the file instead; review the
// difference before committing it.
inline void check_golden(const std::string& name, const std::string& found) {
  const std::string path = std::string(REHEARSE_TESTS_DIR) + "/golden/" + name;
  if (std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << found;
  CAPTURE(path);
  CHECK(found == read_file(path));
}

}  // namespace rehearse::test
