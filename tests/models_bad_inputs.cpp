// Checks that invalid model files and Hugging Face configs are refused.
#include "models/model.hpp"
#include "tests/bad_inputs.hpp"

using namespace rehearse;

namespace {

void read(const std::string& key, const std::string& file) {
  Document document = Document::parse_text("[model]\n" + key + " = \"" + file + "\"\n", "job.toml");
  Section section = document.root().section("model");
  read_model(section, "");
}

}  // namespace

TEST_CASE("every bad model file is refused in the expected words") {
  test::check_bad_inputs("models", ".toml", 30, [](const std::string& file) { read("file", file); });
}

TEST_CASE("every bad config.json is refused in the expected words") {
  test::check_bad_inputs("huggingface", ".json", 20,
                         [](const std::string& file) { read("huggingface", file); });
}
