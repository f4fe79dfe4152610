// Tests that bad sweep files are refused.
#include "models/text/document.hpp"
#include "simulator/commands/sweep/sweep_points.hpp"
#include "tests/bad_inputs.hpp"

using namespace rehearse;

TEST_CASE("every bad sweep file is refused in the expected words") {
  test::check_bad_inputs("sweeps", ".toml", 20, [](const std::string& file) {
    parse_sweep_file(read_text_file(file, "sweep file"), file);
  });
}
