#include "gui/models/tracks/group_summaries.hpp"

#include <algorithm>

namespace rehearse::gui {

namespace {

constexpr int kTogether_ms = 15;

}  // namespace

GroupSummaries::GroupSummaries(QObject* parent) : QObject(parent) {
  told_.setSingleShot(true);
  told_.setInterval(kTogether_ms);
  connect(&told_, &QTimer::timeout, this, &GroupSummaries::made);
}

void GroupSummaries::follow(const std::vector<Line>& lines, const Session& session) {
  std::set<GroupRef> wanted;
  for (const Line& line : lines) {
    if (line.type != Line::Type::group || !line.collapsed) continue;
    const auto run = session.run(line.run);
    if (!run || !run->timeline) continue;
    const RankGroup& group = *line.group;
    wanted.insert(group.ref);
    Known& known = known_[group.ref];
    if (known.of.lock() == run->timeline && known.processes == group.processes) continue;
    known.of = run->timeline;
    known.processes = group.processes;
    known.summary.reset();
    known.number = next_++;
    if (!known.work) known.work = std::make_unique<Latest>(this);
    known.work->ask(
        [timeline = run->timeline, processes = group.processes](const std::atomic<bool>& cancelled) {
          return group_summary(*timeline, processes, cancelled);
        },
        [this, ref = group.ref](const std::shared_ptr<const GroupSummary>& summary) {
          known_[ref].summary = summary;
          if (!told_.isActive()) told_.start();
        });
  }
  std::erase_if(known_, [&](const auto& known) { return !wanted.contains(known.first); });
}

const GroupSummaries::Made* GroupSummaries::find(const GroupRef& group) const {
  const auto at = known_.find(group);
  return at == known_.end() ? nullptr : &at->second;
}

bool GroupSummaries::ready() const {
  return !told_.isActive() && std::none_of(known_.begin(), known_.end(),
                                           [](const auto& known) { return known.second.work->busy(); });
}

}  // namespace rehearse::gui
