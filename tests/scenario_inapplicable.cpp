// Checks keys that do not apply beside others: a file's are ignored with a note (golden files
// tests/bad_inputs/inapplicable/NAME.expected), those of "--set" are refused.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/text/document.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/in_folder.hpp"

using namespace rehearse;
using rehearse::test::InFolder;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kIgnored = "Ignored, because it does not apply: ";

std::string ignored_notes(const Scenario& scenario) {
  std::string notes;
  for (const std::string& note : scenario.notes)
    if (note.starts_with(kIgnored))
      notes += note.substr(kIgnored.size(), note.size() - kIgnored.size() - 1) + "\n";
  return notes;
}

std::string refused_with(const std::string& path, const Overrides& overrides) {
  try {
    read_scenario_file(path, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Returns the assignment that sets a key to the value that a file gives it; empty if it gives none.
std::string assignment_in(const std::string& path, const std::string& key) {
  const Document document = Document::parse_file(path);
  for (const auto& [name, value] : document.values())
    if (name == key) return name + "=" + value;
  return "";
}

}  // namespace

TEST_CASE("keys of a file that do not apply are ignored with a note, and refused in --set") {
  InFolder folder(fs::path(REHEARSE_TESTS_DIR) / "bad_inputs" / "inapplicable");
  const bool update = std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr;
  int cases = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(".")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().stem().string(), path = name + ".toml";
    CAPTURE(name);
    ++cases;
    const Scenario scenario = read_scenario_file(path);
    CHECK(!scenario.ignored.empty());
    const std::string notes = ignored_notes(scenario);
    if (update) std::ofstream(name + ".expected", std::ios::binary) << notes;
    std::stringstream expected;
    expected << std::ifstream(name + ".expected", std::ios::binary).rdbuf();
    CHECK(notes == expected.str());

    // Removing these keys gives the same scenario.
    std::vector<std::string> unset;
    for (const std::string& key : scenario.ignored) unset.push_back(key + "=");
    const Scenario without = read_scenario_file(path, unset);
    CHECK(without.ignored.empty());
    CHECK(without.settings == scenario.settings);

    // Asked for explicitly, a key is refused in the same words.
    const std::string asked = assignment_in(path, scenario.ignored.front());
    if (asked.empty()) continue;  // a preset sets it
    ++refused;
    const std::string message = refused_with(path, {asked}), first = notes.substr(0, notes.find('\n'));
    CHECK(message.starts_with("--set " + scenario.ignored.front() + "="));
    CHECK(message.substr(message.find(": ")) == first.substr(first.find(": ")));
    // At a point of a sweep it is ignored, and the note says where it comes from.
    const Scenario varied = read_scenario_file(path, {std::vector<std::string>{}, {asked}});
    CHECK(varied.ignored.front() == scenario.ignored.front());
    CHECK(ignored_notes(varied).starts_with("--vary " + scenario.ignored.front() + "="));
  }
  CHECK(cases >= 40);
  CHECK(refused >= 40);
}

TEST_CASE("an empty value of --set removes a key, whose default then counts") {
  InFolder folder(fs::path(REHEARSE_TESTS_DIR).parent_path() / "simulator/scenarios");
  const Scenario base = read_scenario_file("gpt3-175b.toml");
  CHECK(base.training.micro_batch == 1);
  const Scenario set = read_scenario_file("gpt3-175b.toml", {"strategy.tensor=2", "strategy.data="});
  CHECK(set.strategy.tensor == 2);
  CHECK(set.strategy.data == 8);
  // The last assignment of a key counts.
  const Scenario again =
      read_scenario_file("gpt3-175b.toml", {"strategy.tensor=2", "strategy.data=", "strategy.tensor="});
  CHECK(again.strategy.tensor == 1);
  CHECK(again.strategy.data == 16);
  CHECK(refused_with("gpt3-175b.toml", {"strategy.tensr="}) ==
        "--set strategy.tensr=: unknown key \"tensr\" in [strategy]; did you mean \"tensor\"?");
  CHECK(refused_with("gpt3-175b.toml", {"training.global_batch="}).find("training.global_batch") !=
        std::string::npos);
}
