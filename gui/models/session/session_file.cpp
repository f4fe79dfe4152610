#include "gui/models/session/session_file.hpp"

#include <fmt/format.h>

#include <QSaveFile>
#include <algorithm>
#include <filesystem>

#include "gui/models/tracks/track_layout.hpp"
#include "models/text/error.hpp"
#include "simulator/report/json_reader.hpp"

namespace rehearse::gui {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kFarthest = std::int64_t{1} << 62;
constexpr std::int64_t kMostItems = 1'000'000;

using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string stored_path(const std::string& path, const fs::path& folder) {
  const fs::path relative = fs::path(path).lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

std::string opened_path(const std::string& path, const fs::path& folder) {
  return path.empty() || fs::path(path).is_absolute() ? path : (folder / path).lexically_normal().string();
}

ordered_json to_json(const std::vector<ViewState::ProcessRef>& processes) {
  ordered_json json = ordered_json::array();
  for (const auto& [run, process] : processes) json.push_back({run, process});
  return json;
}

ordered_json to_json(const std::vector<GroupRef>& groups) {
  ordered_json json = ordered_json::array();
  for (const GroupRef& group : groups)
    json.push_back({{"run", group.run},
                    {"grouping", kGroupingNames[static_cast<std::size_t>(group.grouping)]},
                    {"name", group.name}});
  return json;
}

int run_in(const JsonReader& json, std::size_t runs) {
  return static_cast<int>(json.integer(0, std::max<std::int64_t>(0, static_cast<std::int64_t>(runs) - 1)));
}

std::vector<ViewState::ProcessRef> processes_in(const JsonReader& json, std::size_t runs, int least) {
  std::vector<ViewState::ProcessRef> processes;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader pair = json.item(i);
    if (pair.size() != 2) pair.refuse("a run and a rank of it");
    processes.emplace_back(run_in(pair.item(0), runs),
                           static_cast<int>(pair.item(1).integer(least, kMostItems)));
  }
  return processes;
}

std::vector<GroupRef> groups_in(const JsonReader& json, std::size_t runs) {
  std::vector<GroupRef> groups;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader group = json.item(i);
    groups.push_back({run_in(group.at("run"), runs),
                      static_cast<Grouping>(group.at("grouping").choice(kGroupingNames)),
                      group.at("name").text()});
  }
  return groups;
}

ordered_json to_json(const std::vector<SavedDraft>& drafts, const fs::path& folder) {
  ordered_json json = ordered_json::array();
  for (const SavedDraft& draft : drafts) {
    json.push_back({{"path", stored_path(draft.path, folder)},
                    {"name", draft.name},
                    {"folder", stored_path(draft.folder, folder)}});
    if (draft.text) json.back()["text"] = *draft.text;
  }
  return json;
}

std::vector<SavedDraft> drafts_in(const JsonReader& json, const fs::path& folder) {
  std::vector<SavedDraft> drafts;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader from = json.item(i);
    from.object();
    for (const auto& [key, value] : from.value().items())
      if (key != "path" && key != "name" && key != "folder" && key != "text")
        from.refuse("an object with \"" + key + '"', "path, name, folder, text");
    SavedDraft draft{opened_path(from.at("path").text(), folder),
                     from.at("name").text(),
                     opened_path(from.at("folder").text(), folder),
                     {}};
    if (draft.path.empty() || from.has("text")) draft.text = from.at("text").text();
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

TimeRange range_in(const JsonReader& json) {
  return {json.at("begin_ns").integer(-kFarthest, kFarthest),
          json.at("end_ns").integer(-kFarthest, kFarthest)};
}

}  // namespace

SavedSession saved(const Session& session, const ViewState& state, const std::string& scenario) {
  SavedSession result;
  std::map<int, int> places;  // index in the file, by run id
  for (const Session::RunPointer& run : session.runs()) {
    if (run->path.empty()) continue;
    places[run->id] = static_cast<int>(result.runs.size());
    if (run == session.current()) result.current = static_cast<int>(result.runs.size());
    result.runs.push_back(
        {fs::absolute(run->path).lexically_normal().string(), run->name, session.is_shown(run->id)});
  }
  result.scenario = scenario;
  if (state.visible() != state.whole()) result.visible = state.visible();
  result.bookmarks = state.bookmarks();
  result.grouping = state.grouping();
  result.filter = state.filter();
  result.critical_path = state.shows_critical_path();
  result.flows = state.shows_flows();
  result.counters = state.shows_counters();
  const auto keep = [&](const auto& from, std::vector<ViewState::ProcessRef>& into) {
    for (const auto& [run, process] : from)
      if (places.count(run) > 0) into.emplace_back(places[run], process);
  };
  keep(state.collapsed(), result.collapsed);
  keep(state.expanded(), result.expanded);
  keep(state.pinned(), result.pinned);
  const auto keep_groups = [&](const std::set<GroupRef>& from, std::vector<GroupRef>& into) {
    for (const GroupRef& group : from)
      if (places.count(group.run) > 0) into.push_back({places[group.run], group.grouping, group.name});
  };
  keep_groups(state.collapsed_groups(), result.collapsed_groups);
  keep_groups(state.expanded_groups(), result.expanded_groups);
  return result;
}

void keep_traces(SavedSession& session, const std::string& temporary, const std::string& path) {
  const fs::path file = fs::absolute(path);
  const fs::path folder = file.parent_path() / (file.stem().string() + "-traces");
  for (std::size_t i = 0; i < session.runs.size(); ++i) {
    const fs::path from = session.runs[i].path;
    if (temporary.empty() || from.string().rfind(temporary, 0) != 0) continue;
    const fs::path to = folder / fmt::format("{}-{}", i + 1, from.filename().string());
    std::error_code error;
    fs::create_directories(folder, error);
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error) throw RunError(fmt::format("{}: cannot be written: {}", to.string(), error.message()));
    session.runs[i].path = to.string();
  }
}

void write_session(const SavedSession& session, const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  ordered_json json;
  json["rehearse_session"] = kVersion;
  json["runs"] = ordered_json::array();
  for (const SavedSession::SavedRun& run : session.runs)
    json["runs"].push_back(
        {{"path", stored_path(run.path, folder)}, {"name", run.name}, {"shown", run.shown}});
  json["current"] = session.current;
  json["scenario"] =
      session.scenario.empty() ? "" : stored_path(fs::absolute(session.scenario).string(), folder);
  json["drafts"] = to_json(session.drafts, folder);
  json["current_draft"] = session.current_draft;
  json["visible"] = {{"begin_ns", session.visible.begin}, {"end_ns", session.visible.end}};
  json["bookmarks"] = ordered_json::array();
  for (const Bookmark& bookmark : session.bookmarks)
    json["bookmarks"].push_back({{"begin_ns", bookmark.range.begin},
                                 {"end_ns", bookmark.range.end},
                                 {"text", bookmark.text.toStdString()}});
  json["grouping"] = kGroupingNames[static_cast<std::size_t>(session.grouping)];
  json["filter"] = session.filter.toStdString();
  json["critical_path"] = session.critical_path;
  json["flows"] = session.flows;
  json["counters"] = session.counters;
  json["collapsed"] = to_json(session.collapsed);
  json["expanded"] = to_json(session.expanded);
  json["pinned"] = to_json(session.pinned);
  json["collapsed_groups"] = to_json(session.collapsed_groups);
  json["expanded_groups"] = to_json(session.expanded_groups);
  QSaveFile file(QString::fromStdString(path));
  const std::string text = json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (!file.open(QIODevice::WriteOnly) || file.write(text.data(), static_cast<qint64>(text.size())) < 0 ||
      !file.commit())
    throw RunError(path + ": cannot be written: " + file.errorString().toStdString());
}

SavedSession read_session(const std::string& path) {
  const auto document = parse_json(read_packed_file(path, "session"), path);
  const JsonReader json(document, path);
  if (json.at("rehearse_session").integer(0, kMostItems) != kVersion)
    json.at("rehearse_session").refuse("1, the version that this program writes");
  const fs::path folder = fs::absolute(path).parent_path();
  SavedSession session;
  const JsonReader runs = json.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const JsonReader run = runs.item(i);
    session.runs.push_back(
        {opened_path(run.at("path").text(), folder), run.at("name").text(), run.at("shown").boolean()});
  }
  session.current =
      static_cast<int>(json.at("current").integer(-1, static_cast<std::int64_t>(session.runs.size()) - 1));
  session.scenario = opened_path(json.at("scenario").text(), folder);
  if (json.has("drafts")) {  // older files have none
    session.drafts = drafts_in(json.at("drafts"), folder);
    session.current_draft = static_cast<int>(
        json.at("current_draft").integer(-1, static_cast<std::int64_t>(session.drafts.size()) - 1));
  } else if (!session.scenario.empty()) {
    session.drafts = {{session.scenario, fs::path(session.scenario).stem().string(), "", {}}};
    session.current_draft = 0;
  }
  session.visible = range_in(json.at("visible"));
  const JsonReader bookmarks = json.at("bookmarks");
  for (std::size_t i = 0; i < bookmarks.size(); ++i)
    session.bookmarks.push_back(
        {range_in(bookmarks.item(i)), QString::fromStdString(bookmarks.item(i).at("text").text())});
  session.grouping = static_cast<Grouping>(json.at("grouping").choice(kGroupingNames));
  session.filter = QString::fromStdString(json.at("filter").text());
  session.critical_path = json.at("critical_path").boolean();
  session.flows = json.at("flows").boolean();
  session.counters = json.at("counters").boolean();
  session.collapsed = processes_in(json.at("collapsed"), session.runs.size(), kRunItself);
  session.pinned = processes_in(json.at("pinned"), session.runs.size(), 0);
  // Older files have none of these.
  if (json.has("collapsed_groups"))
    session.collapsed_groups = groups_in(json.at("collapsed_groups"), session.runs.size());
  if (json.has("expanded_groups"))
    session.expanded_groups = groups_in(json.at("expanded_groups"), session.runs.size());
  if (json.has("expanded"))
    session.expanded = processes_in(json.at("expanded"), session.runs.size(), kRunItself);
  return session;
}

void restore(const SavedSession& from, const std::vector<int>& ids, Session& session, ViewState& state) {
  const auto id_of = [&](int place) {
    return place >= 0 && place < static_cast<int>(ids.size()) ? ids[static_cast<std::size_t>(place)] : 0;
  };
  for (std::size_t i = 0; i < from.runs.size() && i < ids.size(); ++i)
    if (ids[i] != 0) session.set_shown(ids[i], from.runs[i].shown);
  if (id_of(from.current) != 0) session.set_current(id_of(from.current));
  state.set_grouping(from.grouping);
  state.set_filter(from.filter);
  state.show_critical_path(from.critical_path);
  state.show_flows(from.flows);
  state.show_counters(from.counters);
  const auto processes_of = [&](const std::vector<ViewState::ProcessRef>& saved) {
    std::set<ViewState::ProcessRef> processes;
    for (const auto& [run, process] : saved)
      if (id_of(run) != 0) processes.emplace(id_of(run), process);
    return processes;
  };
  state.set_all_collapsed(processes_of(from.collapsed), processes_of(from.expanded));
  const auto groups_of = [&](const std::vector<GroupRef>& saved) {
    std::set<GroupRef> groups;
    for (const GroupRef& group : saved)
      if (id_of(group.run) != 0) groups.insert({id_of(group.run), group.grouping, group.name});
    return groups;
  };
  state.set_all_collapsed(groups_of(from.collapsed_groups), groups_of(from.expanded_groups));
  for (const auto& [run, process] : from.pinned)
    if (id_of(run) != 0) state.set_pinned({id_of(run), process}, true);
  state.set_bookmarks(from.bookmarks);
  if (from.visible.length() > 0) state.set_visible(from.visible);
}

}  // namespace rehearse::gui
