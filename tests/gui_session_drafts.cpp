// Tests scenarios in a session file: those with a separate file, and the text of those with unsaved changes.
#include <QTemporaryDir>
#include <fstream>

#include "gui/models/session/session_file.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;
using rehearse::InputError;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  try {
    read_session(path);
  } catch (const InputError& error) {
    return std::string(error.what()).substr(path.rfind('/') + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("Scenarios of a session are read as they were written") {
  const QTemporaryDir folder;
  const std::string here = folder.path().toStdString(), path = here + "/work.rehearse";
  SavedSession session;
  session.drafts = {
      {here + "/below/ring.toml", "ring", "", {}},
      {"/elsewhere/servers.toml", "servers", "", "[model]\npreset = \"mlp\"  # \xc3\xa4 \\ \"\n"},
      {"", "untitled", here + "/below", ""}};
  session.current_draft = 1;
  write_session(session, path);
  const SavedSession read = read_session(path);
  REQUIRE(read.drafts.size() == 3);
  CHECK(read.current_draft == 1);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(read.drafts[i].path == session.drafts[i].path);
    CHECK(read.drafts[i].name == session.drafts[i].name);
    CHECK(read.drafts[i].folder == session.drafts[i].folder);
    CHECK(read.drafts[i].text == session.drafts[i].text);
  }
  CHECK(text_of(path).find("\"below/ring.toml\"") != std::string::npos);  // can move with it
}

TEST_CASE("Older sessions name one scenario, or none") {
  const QTemporaryDir folder;
  const std::string here = folder.path().toStdString(), path = here + "/work.rehearse";
  for (const std::string scenario : {"", "ring.toml"}) {
    write_session({}, path);
    std::string text = text_of(path);
    const auto drafts = text.find("  \"drafts\": [],\n  \"current_draft\": -1,\n");
    REQUIRE(drafts != std::string::npos);
    text.erase(drafts, std::string("  \"drafts\": [],\n  \"current_draft\": -1,\n").size());
    text.replace(text.find("\"scenario\": \"\""), 14, "\"scenario\": \"" + scenario + '"');
    std::ofstream(path) << text;
    const SavedSession read = read_session(path);
    CHECK(read.drafts.size() == (scenario.empty() ? 0 : 1));
    CHECK(read.current_draft == (scenario.empty() ? -1 : 0));
    if (scenario.empty()) continue;
    CHECK(read.drafts[0].path == here + "/ring.toml");
    CHECK(read.drafts[0].name == "ring");
    CHECK_FALSE(read.drafts[0].text);
  }
}

TEST_CASE("What is wrong with a session's scenarios is told with its place") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/broken.rehearse";
  const auto text = [](const std::string& drafts, int current) {
    return R"({"rehearse_session": 1, "runs": [], "current": -1, "scenario": "", "drafts": )" + drafts +
           R"(, "current_draft": )" + std::to_string(current) + "}";
  };
  const std::string good = R"({"path": "", "name": "a", "folder": "", "text": "b"})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {text("3", -1), "broken.rehearse: drafts is 3; allowed: an array"},
      {text("[4]", -1), "broken.rehearse: drafts[0] is 4; allowed: an object"},
      {text('[' + good + R"(, {"path": "", "name": "a", "folder": ""}])", 0),
       "broken.rehearse: drafts[1].text is missing"},
      {text(R"([{"path": "a", "name": 3}])", 0), "broken.rehearse: drafts[0].name is 3; allowed: a string"},
      {text(R"([{"path": "a", "name": "b", "colour": 1}])", 0),
       "broken.rehearse: drafts[0] is an object with \"colour\"; allowed: path, name, folder, text"},
      {text('[' + good + ']', 1), "broken.rehearse: current_draft is 1; allowed: an integer from -1 to 0"},
  };
  for (const auto& [broken, message] : cases) CHECK(error_of(path, broken) == message);
}
