// A window's session as a file (.rehearse, JSON): which runs are open, and where one was looking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/models/session.hpp"

namespace rehearse::gui {

// A scenario that was open. `text`: what stands in no file of its own; nothing: as its file at `path` has it.
struct SavedDraft {
  std::string path, name;
  std::string folder;  // where file names in it begin, if it has no file
  std::optional<std::string> text;
};

// What a session file tells. Runs are numbered as they stand in it; times are those of the window's axis.
struct SavedSession {
  struct SavedRun {
    std::string path, name;
    bool shown = true;
  };
  std::vector<SavedRun> runs;
  int current = -1;  // of runs; -1: none
  std::string
      scenario;  // path of the scenario that is being edited; empty. All that older files tell of them
  std::vector<SavedDraft> drafts;
  int current_draft = -1;  // of drafts; -1: none
  TimeRange visible;       // empty: all
  std::vector<Bookmark> bookmarks;
  Grouping grouping = Grouping::none;
  QString filter;
  bool critical_path = false, flows = true, counters = true;
  // The runs by their place.
  std::vector<ViewState::ProcessRef> collapsed, expanded, pinned;
  std::vector<GroupRef> collapsed_groups, expanded_groups;
};

// `scenario`: the path of the one that is being edited; empty.
SavedSession saved(const Session& session, const ViewState& state, const std::string& scenario);
// Copies the traces that lie in `temporary`, a folder that will be gone, to the folder NAME-traces beside the
// session's file NAME.rehearse, and names them there. RunError if one cannot be copied.
void keep_traces(SavedSession& session, const std::string& temporary, const std::string& path);
// RunError if it cannot be written. Paths below the file's folder are written relative to it.
void write_session(const SavedSession& session, const std::string& path);
// InputError names the file and what is wrong with it.
SavedSession read_session(const std::string& path);
// Everything but the scenarios and the runs, whose ids are given in the order of the file; 0: not opened.
void restore(const SavedSession& from, const std::vector<int>& ids, Session& session, ViewState& state);

}  // namespace rehearse::gui
