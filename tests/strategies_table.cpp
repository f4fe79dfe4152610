// Checks the table of gradient strategies.
#include <algorithm>
#include <fstream>

#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("every strategy says what it is, and has a name and a file of its own") {
  for (const GradientStrategyEntry* entry : gradient_strategies()) {
    CAPTURE(entry->name);
    CHECK(find_gradient_strategy(entry->name) == entry);
    CHECK_FALSE(entry->summary.empty());
    CHECK_FALSE(entry->more.empty());
    CHECK(entry->keys.find("gradients = \"" + std::string(entry->name) + "\"") != std::string::npos);
    std::string file(entry->name);
    std::replace(file.begin(), file.end(), '-', '_');
    CHECK(
        std::ifstream(std::string(REHEARSE_TESTS_DIR) + "/../simulator/strategies/gradients/" + file + ".cpp")
            .good());
  }
  CHECK(find_gradient_strategy("no-such-strategy") == nullptr);
}
