// Saves a window's session in a file (.rehearse, JSON): the open runs, the scenario drafts and the state of
// the view.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/models/runs/session.hpp"

namespace rehearse::gui {

// An open scenario. `text`: its unsaved text; nullopt: as in the file at `path`.
struct SavedDraft {
  std::string path, name;
  std::string folder;  // base of relative file names if the scenario has no file
  std::optional<std::string> text;
};

// The contents of a session file. Runs are identified by their index in it; times are on the axis shared by
// the runs.
struct SavedSession {
  struct SavedRun {
    std::string path, name;
    bool shown = true;
  };
  std::vector<SavedRun> runs;
  int current = -1;  // index into `runs`; -1: none
  // path of the edited scenario; empty: none. Older files have no `drafts`, only this
  std::string scenario;
  std::vector<SavedDraft> drafts;
  int current_draft = -1;  // index into `drafts`; -1: none
  TimeRange visible;       // empty: everything
  std::vector<Bookmark> bookmarks;
  Grouping grouping = Grouping::none;
  QString filter;
  bool critical_path = false, flows = true, counters = true;
  // These refer to runs by index.
  std::vector<ViewState::ProcessRef> collapsed, expanded, pinned;
  std::vector<GroupRef> collapsed_groups, expanded_groups;
};

// Collects the session to save. `scenario`: path of the edited scenario; empty: none.
SavedSession saved(const Session& session, const ViewState& state, const std::string& scenario);
// Copies traces that are in the folder `temporary`, which will be deleted, to the folder NAME-traces beside
// the session file NAME.rehearse, and updates their paths. Throws RunError if a trace cannot be copied.
void keep_traces(SavedSession& session, const std::string& temporary, const std::string& path);
// Writes paths below the file's folder relative to it. Throws RunError if the file cannot be written.
void write_session(const SavedSession& session, const std::string& path);
// Throws InputError with the file and the error.
SavedSession read_session(const std::string& path);
// Restores everything except the drafts and the runs themselves. `ids` are the run ids in the order of the
// file; 0: not opened.
void restore(const SavedSession& from, const std::vector<int>& ids, Session& session, ViewState& state);

}  // namespace rehearse::gui
