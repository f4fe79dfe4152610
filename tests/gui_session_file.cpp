// Tests session files: what is written can be read again, and errors in a file are reported.
#include <QTemporaryDir>
#include <fstream>

#include "gui/models/session/session_file.hpp"
#include "gui/models/tracks/track_layout.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;
using rehearse::InputError;
using rehearse::RunError;

namespace {

rehearse::gui::Run run_of(const std::string& path, const std::string& name) {
  rehearse::gui::Run run;
  run.path = path;
  run.name = name;
  auto timeline = std::make_shared<Timeline>();
  timeline->end = 1000;
  run.timeline = timeline;
  return run;
}

std::string error_in(const std::string& folder, const std::string& text) {
  const std::string path = folder + "/broken.rehearse";
  std::ofstream(path) << text;
  try {
    read_session(path);
  } catch (const InputError& error) {
    return std::string(error.what()).substr(folder.size() + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("A session is read as it was written") {
  const QTemporaryDir folder;
  const std::string here = folder.path().toStdString();
  Session session;
  ViewState state;
  const int first = session.add(run_of(here + "/traces/a.json", "ring"));
  const int second = session.add(run_of("/elsewhere/c.json.gz", "servers"));
  session.set_shown(second, false);
  session.set_current(first);
  state.set_whole({0, 1000});
  state.set_visible({10, 20});
  state.set_grouping(Grouping::stage);
  state.set_filter("gpu0");
  state.show_critical_path(true);
  state.show_flows(false);
  state.set_collapsed({second, 3}, true);
  state.set_collapsed({first, kRunItself}, true);
  state.set_collapsed(GroupRef{second, Grouping::stage, "3"}, true);
  state.set_pinned({first, 2}, true);
  state.set_bookmarks({{{5, 5}, "here, \"quoted\""}, {{5, 9}, "range"}});

  const std::string path = here + "/work.rehearse";
  write_session(saved(session, state, here + "/s.toml"), path);
  const SavedSession read = read_session(path);
  REQUIRE(read.runs.size() == 2);
  CHECK(read.runs[0].path == here + "/traces/a.json");
  CHECK(read.runs[0].name == "ring");
  CHECK(read.runs[0].shown);
  CHECK(read.runs[1].path == "/elsewhere/c.json.gz");
  CHECK_FALSE(read.runs[1].shown);
  CHECK(read.current == 0);
  CHECK(read.scenario == here + "/s.toml");
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  CHECK(text.find("\"traces/a.json\"") != std::string::npos);  // relative: can move with it

  Session again;
  ViewState there;
  const std::vector<int> ids = {again.add(run_of("a", "ring")), again.add(run_of("c", "servers"))};
  there.set_whole({0, 1000});
  restore(read, ids, again, there);
  CHECK(again.is_shown(ids[0]));
  CHECK_FALSE(again.is_shown(ids[1]));
  CHECK(again.current()->id == ids[0]);
  CHECK(there.visible() == TimeRange{10, 20});
  CHECK(there.grouping() == Grouping::stage);
  CHECK(there.filter() == "gpu0");
  CHECK(there.shows_critical_path());
  CHECK_FALSE(there.shows_flows());
  CHECK(there.shows_counters());
  CHECK(there.collapsed() == std::set<ViewState::ProcessRef>{{ids[0], kRunItself}, {ids[1], 3}});
  CHECK(there.collapsed_groups() == std::set<GroupRef>{{ids[1], Grouping::stage, "3"}});
  CHECK(there.pinned() == std::vector<ViewState::ProcessRef>{{ids[0], 2}});
  CHECK(there.bookmarks() == state.bookmarks());
}

TEST_CASE("Traces that will be gone are kept beside the session") {
  const QTemporaryDir folder, temporary;
  const std::string here = folder.path().toStdString(), gone = temporary.path().toStdString();
  std::ofstream(gone + "/run.json.gz") << "a trace";
  SavedSession session;
  session.runs = {{here + "/own.json", "own", true}, {gone + "/run.json.gz", "made here", true}};
  keep_traces(session, gone, here + "/work.rehearse");
  CHECK(session.runs[0].path == here + "/own.json");
  CHECK(session.runs[1].path == here + "/work-traces/2-run.json.gz");
  std::ifstream kept(session.runs[1].path);
  CHECK(std::string(std::istreambuf_iterator<char>(kept), {}) == "a trace");
  session.runs = {{gone + "/none.json", "", true}};
  CHECK_THROWS_AS(keep_traces(session, gone, here + "/work.rehearse"), RunError);
}

TEST_CASE("Runs that could not be opened leave the rest of a session as it was") {
  SavedSession from;
  from.runs = {{"gone.json", "gone", true}, {"here.json", "here", true}};
  from.current = 0;
  from.pinned = {{0, 1}, {1, 1}};
  Session session;
  ViewState state;
  const int here = session.add(run_of("here.json", "here"));
  restore(from, {0, here}, session, state);
  CHECK(session.current()->id == here);
  CHECK(state.pinned() == std::vector<ViewState::ProcessRef>{{here, 1}});
}

TEST_CASE("Sessions of before groups could be collapsed are read") {
  const QTemporaryDir folder;
  const std::string path = folder.path().toStdString() + "/old.rehearse";
  write_session({}, path);
  std::ifstream written(path);
  std::string text(std::istreambuf_iterator<char>(written), {});
  const auto from = text.find(",\n  \"collapsed_groups\": []");
  REQUIRE(from != std::string::npos);
  text.erase(from, text.rfind('\n', text.rfind('}')) - from);
  std::ofstream(path) << text;
  CHECK(read_session(path).collapsed_groups.empty());
}

TEST_CASE("What is wrong with a session file is told") {
  const QTemporaryDir folder;
  const std::string here = folder.path().toStdString();
  const std::string good_head =
      R"({"rehearse_session": 1, "runs": [{"path": "a", "name": "b", "shown": true}],)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "broken.rehearse: is empty; allowed: JSON"},
      {"{", "broken.rehearse:1:2: the JSON ends too early"},
      {"[]", "broken.rehearse: the file is an array; allowed: an object"},
      {R"({"runs": []})", "broken.rehearse: rehearse_session is missing"},
      {R"({"rehearse_session": 9})",
       "broken.rehearse: rehearse_session is 9; allowed: 1, the version that this program writes"},
      {R"({"rehearse_session": 1, "runs": [{"path": 3}]})",
       "broken.rehearse: runs[0].path is 3; allowed: a string"},
      {good_head + R"("current": 1})", "broken.rehearse: current is 1; allowed: an integer from -1 to 0"},
  };
  for (const auto& [text, message] : cases) CHECK(error_in(here, text) == message);
  CHECK_THROWS_AS(read_session(here + "/none.rehearse"), InputError);
  CHECK_THROWS_AS(write_session({}, here + "/no/such/folder.rehearse"), RunError);
}
