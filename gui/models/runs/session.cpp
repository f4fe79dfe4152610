#include "gui/models/runs/session.hpp"

#include <algorithm>

namespace rehearse::gui {

Session::RunPointer Session::run(int id) const {
  for (const RunPointer& run : runs_)
    if (run->id == id) return run;
  return nullptr;
}

std::vector<Session::RunPointer> Session::shown() const {
  std::vector<RunPointer> shown;
  std::copy_if(runs_.begin(), runs_.end(), std::back_inserter(shown),
               [&](const RunPointer& run) { return is_shown(run->id); });
  return shown;
}

int Session::add(Run run) {
  run.id = next_id_++;
  const int id = run.id;
  runs_.push_back(std::make_shared<const Run>(std::move(run)));
  current_ = id;
  emit runs_changed();
  emit shown_changed();
  emit current_changed();
  return id;
}

void Session::replace(Run run) {
  const int id = run.id;
  for (RunPointer& known : runs_) {
    if (known->id != id) continue;
    known = std::make_shared<const Run>(std::move(run));
    emit run_changed(id);
    return;
  }
}

void Session::remove(int id) {
  const auto at =
      std::find_if(runs_.begin(), runs_.end(), [&](const RunPointer& run) { return run->id == id; });
  if (at == runs_.end()) return;
  const auto next = runs_.erase(at);
  std::erase(hidden_, id);
  const bool was_current = current_ == id;
  if (was_current) current_ = runs_.empty() ? 0 : next != runs_.end() ? (*next)->id : runs_.back()->id;
  emit runs_changed();
  emit shown_changed();
  if (was_current) emit current_changed();
}

void Session::rename(int id, const std::string& name) {
  const RunPointer known = run(id);
  if (!known || known->name == name) return;
  Run renamed = *known;
  renamed.name = name;
  replace(std::move(renamed));
  emit runs_changed();
}

bool Session::is_shown(int id) const {
  return std::find(hidden_.begin(), hidden_.end(), id) == hidden_.end();
}

void Session::set_shown(int id, bool shown) {
  if (is_shown(id) == shown) return;
  if (shown)
    std::erase(hidden_, id);
  else
    hidden_.push_back(id);
  emit shown_changed();
}

void Session::set_current(int id) {
  if (current_ == id || !run(id)) return;
  current_ = id;
  emit current_changed();
}

void Session::set_base(int id) {
  move(id, 0);
}

void Session::move(int id, int place) {
  const auto at =
      std::find_if(runs_.begin(), runs_.end(), [&](const RunPointer& run) { return run->id == id; });
  if (at == runs_.end()) return;
  const auto to = runs_.begin() + std::clamp(place, 0, static_cast<int>(runs_.size()) - 1);
  if (to == at) return;
  if (to < at)
    std::rotate(to, at, at + 1);
  else
    std::rotate(at, at + 1, to + 1);
  emit runs_changed();
  emit shown_changed();
}

}  // namespace rehearse::gui
