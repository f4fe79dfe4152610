// The README's page on strategies of one's own shows real code: each of its lines stands in the file that it
// names, in the same order.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "simulator/strategies/gradient_strategy.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

const std::string kRoot = std::string(REHEARSE_TESTS_DIR) + "/../";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("the README's example of a strategy is the one in the tree") {
  const std::vector<std::string> readme = lines_of(kRoot + "README.md"),
                                 source = lines_of(kRoot + "simulator/strategies/first_device.cpp");
  const auto page = std::find(readme.begin(), readme.end(), "## A strategy of your own");
  REQUIRE(page != readme.end());
  const auto end =
      std::find_if(page + 1, readme.end(), [](const std::string& line) { return line.starts_with("## "); });
  int shown = 0;
  bool code = false;
  auto at = source.begin();
  for (auto line = page; line != end; ++line) {
    if (line->starts_with("```")) {
      code = *line == "```cpp";
      continue;
    }
    if (!code || line->empty()) continue;
    CAPTURE(*line);
    at = std::find(at, source.end(), *line);
    REQUIRE(at != source.end());
    ++at;
    ++shown;
  }
  CHECK(shown > 20);
  CHECK(source.size() < 130);  // "in about 100 lines"
}

TEST_CASE("every strategy says what it is, and has a name and a file of its own") {
  for (const GradientStrategyEntry* entry : gradient_strategies()) {
    CAPTURE(entry->name);
    CHECK(find_gradient_strategy(entry->name) == entry);
    CHECK_FALSE(entry->summary.empty());
    CHECK_FALSE(entry->more.empty());
    CHECK(entry->keys.find("gradients = \"" + std::string(entry->name) + "\"") != std::string::npos);
    std::string file(entry->name);
    std::replace(file.begin(), file.end(), '-', '_');
    CHECK(std::ifstream(kRoot + "simulator/strategies/" + file + ".cpp").good());
  }
  CHECK(find_gradient_strategy("no-such-strategy") == nullptr);
}
