// Changes the working folder for a test, so that file names in messages are relative to it wherever the tests
// run.
#pragma once

#include <filesystem>

namespace rehearse::test {

struct InFolder {
  explicit InFolder(const std::filesystem::path& folder) : before(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~InFolder() { std::filesystem::current_path(before); }
  std::filesystem::path before;
};

}  // namespace rehearse::test
