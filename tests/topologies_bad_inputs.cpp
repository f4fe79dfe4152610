// Checks that invalid cluster and device files are refused.
#include "tests/bad_inputs.hpp"
#include "topologies/cluster.hpp"

using namespace rehearse;

TEST_CASE("every bad cluster file is refused in the expected words") {
  test::check_bad_inputs("clusters", ".toml", 30, [](const std::string& file) {
    Document document = Document::parse_text("[cluster]\nfile = \"" + file + "\"\n", "job.toml");
    Section section = document.root().section("cluster");
    read_cluster(section, "");
  });
}

TEST_CASE("every bad device file is refused in the expected words") {
  test::check_bad_inputs("devices", ".toml", 12, [](const std::string& file) {
    Document document = Document::parse_file(file);
    Section root = document.root();
    read_device(root);
  });
}
