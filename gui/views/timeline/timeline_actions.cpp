// Implements the actions of TimelineView.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QMenu>
#include <QStyle>
#include <QToolButton>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/models/tracks/span_details.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/timeline/timeline_axis.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "gui/views/timeline/timeline_view.hpp"

namespace rehearse::gui {

void TimelineView::make_actions() {
  using namespace menu;
  using K = QKeySequence;
  const auto add = [this](const char* in, const QString& text, const QList<K>& keys, const QString& what,
                          const std::function<void()>& act) {
    return add_command(*this, {in, text, keys, what}, act);
  };
  add(menu::zoom, tr("Zoom &in"), {K(Qt::Key_W)}, tr("Show half the time, around the cursor"),
      [this] { zoom(0.5); });
  add(menu::zoom, tr("Zoom &out"), {K(Qt::Key_S)}, tr("Show twice the time, around the cursor"),
      [this] { zoom(2); });
  add(menu::zoom, tr("&Fit"), {K(Qt::Key_0), K(Qt::Key_Home)}, tr("Show the entire time"),
      [this] { state_.fit(); });
  add(menu::zoom, tr("Zoom to &selection"), {K(Qt::Key_F)},
      tr("Show the selected span or area; press again to show the entire time"),
      [this] { zoom_to_selection(); });
  add(menu::zoom, tr("Pan &left"), {K(Qt::Key_A), K(Qt::Key_Left)}, tr("Move towards earlier times"),
      [this] { pan(-0.2); });
  add(menu::zoom, tr("Pan &right"), {K(Qt::Key_D), K(Qt::Key_Right)}, tr("Move towards later times"),
      [this] { pan(0.2); });
  add(menu::zoom, tr("Scroll &up"), {K(Qt::Key_Up)}, tr("Select in the row above, or scroll up"),
      [this] { move_vertically(-1); });
  add(menu::zoom, tr("Scroll &down"), {K(Qt::Key_Down)}, tr("Select in the row below, or scroll down"),
      [this] { move_vertically(1); });
  add(menu::zoom, tr("Page up"), {K(Qt::Key_PageUp)}, tr("Scroll up by a page"),
      [this] { scene_.set_scroll(scene_.scroll() - scene_.canvas().height()); });
  add(menu::zoom, tr("Page down"), {K(Qt::Key_PageDown)}, tr("Scroll down by a page"),
      [this] { scene_.set_scroll(scene_.scroll() + scene_.canvas().height()); });
  add(menu::zoom, tr("&Higher rows"), {K(QStringLiteral("Ctrl++")), K(QStringLiteral("Ctrl+="))},
      tr("Make rows higher"), [this] { scene_.set_row_height(scene_.row_height() + 4); });
  add(menu::zoom, tr("Lo&wer rows"), {K(QStringLiteral("Ctrl+-"))}, tr("Make rows lower"),
      [this] { scene_.set_row_height(scene_.row_height() - 4); });
  add(menu::zoom, tr("Fit rows to the &height"), {K(Qt::Key_H)},
      tr("Collapse all stages, ranks and runs, and lower the rows until all are visible"),
      [this] { scene_.fit_rows(); });
  path_action_ =
      add(tracks, tr("Critical &path"), {K(Qt::Key_X)}, tr("Mark the spans that the step had to wait for"),
          [this] { state_.show_critical_path(!state_.shows_critical_path()); });
  flows_action_ = add(tracks, tr("Arro&ws"), {K(Qt::Key_L)},
                      tr("Show the arrows from and to the selected span: messages and dependencies"),
                      [this] { state_.show_flows(!state_.shows_flows()); });
  counters_action_ = add(tracks, tr("Cou&nters"), {K(Qt::Key_K)}, tr("Show memory and links"),
                         [this] { state_.show_counters(!state_.shows_counters()); });
  for (QAction* action : {path_action_, flows_action_, counters_action_}) action->setCheckable(true);
  add(tracks, tr("&Pin rank"), {K(Qt::Key_P)}, tr("Pin the rank to the top, or unpin it"),
      [this] { pin_current(); });
  add(tracks, tr("&Collapse rank"), {K(Qt::Key_C)}, tr("Show one row of the rank"),
      [this] { collapse(true, false); });
  add(tracks, tr("&Expand rank"), {K(Qt::Key_E)}, tr("Show all rows of the rank"),
      [this] { collapse(false, false); });
  add(tracks, tr("Collapse all"), {K(QStringLiteral("Shift+C"))}, tr("Show one row of each rank"),
      [this] { collapse(true, true); });
  add(tracks, tr("Expand all"), {K(QStringLiteral("Shift+E"))}, tr("Show all rows of all ranks"),
      [this] { collapse(false, true); });

  group_actions_ = {
      add(groups, tr("Collapse or expand &group"), {K(Qt::Key_G)},
          tr("Show one row of the group that is selected or under the mouse, or all its ranks"),
          [this] { toggle_group(); }),
      add(groups, tr("Collapse all groups"), {K(QStringLiteral("Shift+G"))},
          tr("Show one row of each node, stage or role"), [this] { collapse_groups(true); }),
      add(groups, tr("Expand all groups"), {K(QStringLiteral("Ctrl+Shift+G"))},
          tr("Show the ranks of all nodes, stages or roles"), [this] { collapse_groups(false); })};

  back_action_ = add(go, tr("&Back"), {K(QStringLiteral("Alt+Left"))}, tr("Go back to the previous view"),
                     [this] { state_.back(); });
  forward_action_ = add(go, tr("&Forward"), {K(QStringLiteral("Alt+Right"))},
                        tr("Go forward to the view before going back"), [this] { state_.forward(); });
  add(go, tr("&Next span"), {K(Qt::Key_Period)}, tr("Go to the next span in the row"),
      [this] { step_on_row(1); });
  add(go, tr("&Previous span"), {K(Qt::Key_Comma)}, tr("Go to the previous span in the row"),
      [this] { step_on_row(-1); });
  add(go, tr("Ne&xt critical span"), {K(Qt::Key_J)},
      tr("Go to the next span that the step had to wait for, in any row"), [this] { step_on_path(1); });
  add(go, tr("Pre&vious critical span"), {K(QStringLiteral("Shift+J"))},
      tr("Go to the previous span that the step had to wait for, in any row"), [this] { step_on_path(-1); });
  add(go, tr("To the &sender"), {K(Qt::Key_BracketLeft)},
      tr("Follow the arrow back, or go to the span that this span waited for"),
      [this] { follow_flow(true); });
  add(go, tr("To the &receiver"), {K(Qt::Key_BracketRight)},
      tr("Follow the arrow, or go to the span that waits for this span"), [this] { follow_flow(false); });
  add(menu::bookmarks, tr("Book&mark"), {K(Qt::Key_M)},
      tr("Mark the time at the cursor, or the beginning of the selection"), [this] { bookmark(false); });
  add(menu::bookmarks, tr("Bookmark &range"), {K(QStringLiteral("Shift+M"))},
      tr("Mark the selected or visible time"), [this] { bookmark(true); });
  add(menu::bookmarks, tr("Na&me bookmark"), {K(Qt::Key_F2)},
      tr("Edit the text of the bookmark that was clicked or created last"),
      [this] { axis_->edit(axis_->chosen()); });
  add(menu::bookmarks, tr("&Delete bookmark"), {K(Qt::Key_Delete)},
      tr("Remove the bookmark that was clicked or created last"), [this] { remove_bookmark(); });

  add(select, tr("Span to &area"), {K(Qt::Key_R)}, tr("Select the time of the selected span in its row"),
      [this] { span_to_area(); });
  add(select, tr("&All that is visible"), {K(QStringLiteral("Ctrl+A"))},
      tr("Select the visible time in all rows"), [this] { select_all(); });
  add(select, tr("Include or exclude &track"), {K(Qt::Key_T)},
      tr("Include the track under the mouse in the selected area, or exclude it"),
      [this] { toggle_track(); });
  add(select, tr("All of this &name"), {K(Qt::Key_N)}, tr("Search for the selected span's name"), [this] {
    if (state_.selected()) select_all_named(*state_.selected());
  });
  add(select, tr("&Clear"), {K(Qt::Key_Escape)}, tr("Clear the selection"),
      [this] { state_.clear_selection(); });

  add(edit, tr("&Find..."), {K(Qt::Key_Slash), K(QStringLiteral("Ctrl+F"))},
      tr("Find spans by name, kind, micro-batch or step"), [this] {
        search_->setFocus(Qt::ShortcutFocusReason);
        search_->selectAll();
      });
  next_hit_action_ = add(edit, tr("Next &hit"), {K(Qt::Key_F3), K(Qt::Key_Return), K(Qt::Key_Enter)},
                         tr("Go to the next span that was found"), [this] { scene_.go_to_hit(1); });
  previous_hit_action_ =
      add(edit, tr("Pre&vious hit"), {K(QStringLiteral("Shift+F3")), K(QStringLiteral("Shift+Return"))},
          tr("Go to the previous span that was found"), [this] { scene_.go_to_hit(-1); });
  next_hit_action_->setIcon(style()->standardIcon(QStyle::SP_ArrowDown));
  previous_hit_action_->setIcon(style()->standardIcon(QStyle::SP_ArrowUp));
  next_->setDefaultAction(next_hit_action_);
  previous_->setDefaultAction(previous_hit_action_);
  for (QToolButton* button : {previous_, next_}) {
    button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    button->setAccessibleName(button->defaultAction()->text().remove(QLatin1Char('&')));
  }
  add(edit, tr("&Copy"), {K(QKeySequence::Copy)}, tr("Copy the details of the selected span or area"),
      [this] { copy_selection(); });
}

// ----- time

void TimelineView::zoom(double factor) {
  const TimeRange visible = state_.visible();
  const Time centre = state_.cursor() && visible.contains(*state_.cursor())
                          ? *state_.cursor()
                          : visible.begin + visible.length() / 2;
  state_.set_visible(zoomed(visible, factor, centre, state_.whole()));
}

void TimelineView::pan(double share) {
  const TimeRange visible = state_.visible();
  state_.set_visible(
      panned(visible, static_cast<Time>(share * static_cast<double>(visible.length())), state_.whole()));
}

void TimelineView::zoom_to_selection() {
  TimeRange wanted;
  if (state_.area()) wanted = state_.area()->range;
  if (state_.selected()) {
    wanted = scene_.range_of(*state_.selected());
    const Time margin = std::max<Time>(5, wanted.length() / 10);
    wanted = {wanted.begin - margin, wanted.end + margin};
    scene_.reveal(*state_.selected());
  }
  if (wanted.length() <= 0 || wanted == state_.visible())
    state_.fit();
  else
    state_.set_visible(wanted);
}

// ----- spans

void TimelineView::select_and_reveal(SpanRef span) {
  if (!scene_.knows(span)) return;
  state_.select(span);
  scene_.reveal(span);
}

void TimelineView::select_rank(int run, int process) {
  const auto of = session_.run(run);
  if (!of || !of->timeline) return;
  Area area{{of->figures.step.begin - of->aligned, of->figures.step.end - of->aligned}, {}};
  for (std::size_t row = 0; row < of->timeline->rows.size(); ++row)
    if (of->timeline->rows[row].process == process && of->timeline->rows[row].track >= 0)
      area.rows.emplace_back(run, static_cast<int>(row));
  scene_.reveal_rank(run, process);
  if (!area.rows.empty()) state_.select(std::move(area));
}

void TimelineView::step_on_row(int by) {
  const auto selected = state_.selected();
  if (!selected || !scene_.knows(*selected)) {
    // Select the first visible span.
    for (std::size_t i = first_line_at(scene_.lines(), scene_.scroll()); i < scene_.lines().size(); ++i) {
      const Line& line = scene_.lines()[i];
      const auto run = session_.run(line.run);
      if (line.type != Line::Type::row || !run) continue;
      const Row& row = run->timeline->rows[static_cast<std::size_t>(line.row)];
      const SpanId span = run->timeline->first_after(row, state_.visible().begin + run->aligned);
      if (span < row.last) return select_and_reveal({line.run, span});
    }
    return;
  }
  const Timeline& timeline = *session_.run(selected->run)->timeline;
  const Row& row = timeline.rows[static_cast<std::size_t>(timeline.row_of(selected->span))];
  if (by > 0 && selected->span + 1 < row.last) select_and_reveal({selected->run, selected->span + 1});
  if (by < 0 && selected->span > row.first) select_and_reveal({selected->run, selected->span - 1});
}

// Starts at the selected span if it is on the path, else at its time or the middle of the visible time range.
void TimelineView::step_on_path(int by) {
  int id = 0;
  const auto selected = state_.selected();
  if (selected && scene_.path_of(selected->run)) id = selected->run;
  if (const auto run = session_.current(); id == 0 && run && session_.is_shown(run->id)) id = run->id;
  for (const auto& run : session_.shown())
    if (!scene_.path_of(id) && scene_.path_of(run->id)) id = run->id;
  const PathRow* path = scene_.path_of(id);
  if (!path) return;
  state_.show_critical_path(true);
  const auto& spans = path->spans;
  std::ptrdiff_t to = -1;
  const auto own =
      selected && selected->run == id ? std::find(spans.begin(), spans.end(), selected->span) : spans.end();
  if (own != spans.end()) {
    to = own - spans.begin() + by;
  } else {
    const TimeRange visible = state_.visible();
    const Time from = (selected && scene_.knows(*selected) ? scene_.range_of(*selected).begin
                                                           : visible.begin + visible.length() / 2) +
                      session_.run(id)->aligned;
    const auto& begins = path->timeline.spans.begin;
    to = std::lower_bound(begins.begin(), begins.end(), from) - begins.begin() - (by > 0 ? 0 : 1);
  }
  if (to >= 0 && to < std::ssize(spans)) select_and_reveal({id, spans[static_cast<std::size_t>(to)]});
}

void TimelineView::move_vertically(int by) {
  const auto selected = state_.selected();
  if (!selected || !scene_.knows(*selected))
    return scene_.set_scroll(scene_.scroll() + 3 * by * scene_.row_height());
  const auto run = session_.run(selected->run);
  const TimeRange range = scene_.range_of(*selected);
  const Time middle = range.begin + range.length() / 2;
  const auto& lines = scene_.lines();
  int at = line_of_row(lines, *run->timeline, selected->run, run->timeline->row_of(selected->span));
  for (at += by; at >= 0 && at < static_cast<int>(lines.size()); at += by) {
    const Line& line = lines[static_cast<std::size_t>(at)];
    const auto other = session_.run(line.run);
    if (line.type != Line::Type::row || !other) continue;
    // Select the span that is running at the same time, else the next one, else the last.
    const Row& row = other->timeline->rows[static_cast<std::size_t>(line.row)];
    if (row.first == row.last) continue;
    const SpanId span = std::min(other->timeline->first_after(row, middle + other->aligned), row.last - 1);
    return select_and_reveal({line.run, span});
  }
}

void TimelineView::follow_flow(bool back) {
  const auto selected = state_.selected();
  if (!selected || !scene_.knows(*selected)) return;
  const Timeline& timeline = *session_.run(selected->run)->timeline;
  const SpanId other = back ? back_from(timeline, selected->span) : forward_from(timeline, selected->span);
  if (other != kNoSpan) select_and_reveal({selected->run, other});
}

void TimelineView::span_to_area() {
  const auto selected = state_.selected();
  if (!selected || !scene_.knows(*selected)) return;
  const TimeRange range = scene_.range_of(*selected);
  if (range.length() <= 0) return;
  state_.select(
      Area{range, {{selected->run, session_.run(selected->run)->timeline->row_of(selected->span)}}});
}

void TimelineView::select_all() {
  auto rows = rows_of_lines(scene_.lines(), 0, static_cast<int>(scene_.lines().size()) - 1, session_.shown());
  if (!rows.empty() && state_.visible().length() > 0) state_.select(Area{state_.visible(), std::move(rows)});
}

// Adds the track to the selected area or removes it: the current one if the names have the focus, else the
// one under the mouse. A header means all tracks below it.
void TimelineView::toggle_track() {
  if (labels_->hasFocus())
    labels_->toggle_in_area(labels_->current());
  else if (canvas_->underMouse() || labels_->underMouse())
    labels_->toggle_in_area(scene_.at(canvas_->mapFromGlobal(QCursor::pos())).line);
}

void TimelineView::select_all_named(SpanRef span) {
  if (scene_.knows(span))
    state_.set_search(QString::fromStdString(session_.run(span.run)->timeline->name_of(span.span)));
}

// ----- bookmarks

void TimelineView::bookmark(bool range) {
  if (scene_.lines().empty()) return;
  Bookmark mark;
  if (state_.area())
    mark.range = state_.area()->range;
  else if (state_.selected())
    mark.range = scene_.range_of(*state_.selected());
  else
    mark.range = state_.visible();
  if (!range) {
    const bool selected = state_.area() || state_.selected();
    const Time moment = state_.cursor() ? *state_.cursor()
                        : selected      ? mark.range.begin
                                        : mark.range.begin + mark.range.length() / 2;
    mark.range = {moment, moment};
  }
  std::vector<Bookmark> marks = state_.bookmarks();
  mark.text = QString::number(marks.size() + 1);
  if (range) mark.text += QLatin1String(": ") + QString::fromStdString(duration_text(mark.range.length()));
  marks.push_back(mark);
  state_.set_bookmarks(marks);
  axis_->choose(static_cast<int>(marks.size()) - 1);
}

void TimelineView::remove_bookmark() {
  std::vector<Bookmark> marks = state_.bookmarks();
  const int chosen = axis_->chosen();
  if (chosen < 0 || chosen >= static_cast<int>(marks.size())) return;
  marks.erase(marks.begin() + chosen);
  axis_->choose(static_cast<int>(marks.size()) - 1);
  state_.set_bookmarks(std::move(marks));
}

// ----- ranks

// Returns the rank of the selected span, else the one under the mouse.
std::optional<ViewState::ProcessRef> TimelineView::current_process() const {
  if (const auto& selected = state_.selected(); selected && scene_.knows(*selected))
    return ViewState::ProcessRef{selected->run,
                                 session_.run(selected->run)->timeline->process_of(selected->span)};
  if (canvas_->underMouse()) return scene_.at(canvas_->mapFromGlobal(QCursor::pos())).process;
  return std::nullopt;
}

void TimelineView::pin_current() {
  const auto process = current_process();
  if (!process) return;
  const auto& pinned = state_.pinned();
  state_.set_pinned(*process, std::find(pinned.begin(), pinned.end(), *process) == pinned.end());
}

void TimelineView::collapse(bool collapsed, bool all) {
  if (!all) {
    // A line that represents several ranks must be expanded before one of these ranks can be.
    if (const auto group = current_group(); group && group->ref.grouping == Grouping::kind)
      if (const int at = current_line(); at >= 0 && scene_.lines()[static_cast<std::size_t>(at)].group)
        return state_.set_collapsed(group->ref, collapsed);
    if (const auto process = current_process()) state_.set_collapsed(*process, collapsed);
    return;
  }
  std::set<ViewState::ProcessRef> processes;
  std::set<GroupRef> groups;
  for (const auto& run : session_.shown()) {
    if (!run->timeline) continue;
    if (!collapsed) processes.emplace(run->id, kRunItself);
    for (int p = 0; p < static_cast<int>(run->timeline->processes.size()); ++p) {
      processes.emplace(run->id, p);
      if (const std::string& kind = group_of(*run, p, Grouping::kind); !kind.empty())
        groups.insert({run->id, Grouping::kind, kind});
    }
  }
  if (collapsed) return state_.set_all_collapsed(processes);
  std::set<GroupRef> others = state_.collapsed_groups();
  for (const GroupRef& group : groups) others.erase(group);
  groups.insert(state_.expanded_groups().begin(), state_.expanded_groups().end());
  state_.set_all_collapsed(others, groups);
  state_.set_all_collapsed(std::set<ViewState::ProcessRef>{}, processes);
}

bool TimelineView::is_collapsed(ViewState::ProcessRef process) const {
  for (const Line& line : scene_.lines())
    if (line.type == Line::Type::process && ViewState::ProcessRef(line.run, line.process) == process)
      return line.collapsed;
  return true;
}

void TimelineView::collapse_others(ViewState::ProcessRef process) {
  std::set<ViewState::ProcessRef> processes;
  const auto run = session_.run(process.first);
  for (int p = 0; run && p < static_cast<int>(run->timeline->processes.size()); ++p)
    if (p != process.second) processes.emplace(process.first, p);
  state_.set_all_collapsed(processes, {process});
}

// ----- groups

// Returns the line of the selected span, else the one under the mouse; -1 if there is neither.
int TimelineView::current_line() const {
  if (const auto& selected = state_.selected(); selected && scene_.knows(*selected)) {
    const Timeline& timeline = *session_.run(selected->run)->timeline;
    return line_of_row(scene_.lines(), timeline, selected->run, timeline.row_of(selected->span));
  }
  if (canvas_->underMouse() || labels_->underMouse())
    return scene_.at(canvas_->mapFromGlobal(QCursor::pos())).line;
  return -1;
}

// Returns the group that the current line is part of; null if there is none.
std::shared_ptr<const RankGroup> TimelineView::current_group() const {
  const auto& lines = scene_.lines();
  for (int at = current_line(); at >= 0; --at) {
    const Line& line = lines[static_cast<std::size_t>(at)];
    if (line.group) return line.group;
    if (line.type == Line::Type::run || line.type == Line::Type::pinned) break;
  }
  return nullptr;
}

void TimelineView::toggle_group() {
  const auto group = current_group();
  if (!group) return;
  for (const Line& line : scene_.lines())
    if (line.group == group) return state_.set_collapsed(group->ref, !line.collapsed);
}

void TimelineView::collapse_groups(bool collapsed) {
  // Keep groups of other groupings as they are.
  std::set<GroupRef> closed = state_.collapsed_groups(), open = state_.expanded_groups();
  for (auto* groups : {&closed, &open})
    std::erase_if(*groups, [&](const GroupRef& group) { return group.grouping == state_.grouping(); });
  for (const Line& line : scene_.lines())
    if (line.group) (collapsed ? closed : open).insert(line.group->ref);
  state_.set_all_collapsed(closed, open);
}

// ----- context menu

void TimelineView::copy_selection() {
  QString text;
  const auto& selected = state_.selected();
  if (selected && scene_.knows(*selected)) {
    const SpanDetails details = details_of(*session_.run(selected->run), selected->span);
    text = QString::fromStdString(details.title) + QLatin1Char('\n');
    for (const SpanDetails::Field& field : details.fields)
      text += QString::fromStdString(field.label + "\t" + field.value + "\n");
  } else if (state_.area()) {
    AreaTotalsModel table;
    table.set_totals(totals_of(parts_of(*state_.area(), session_), false).by_kind);
    for (int r = 0; r < table.rowCount(); ++r)
      for (int c = 0; c < table.columnCount(); ++c)
        text += table.index(r, c).data().toString() + QLatin1Char(c + 1 < table.columnCount() ? '\t' : '\n');
  }
  if (!text.isEmpty()) QApplication::clipboard()->setText(text);
}

void TimelineView::show_menu(const TimelineScene::Place& place, QPoint global) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (place.span.span != kNoSpan) {
    const SpanRef span = place.span;
    menu->addAction(tr("Zoom to It"), this, [this] { zoom_to_selection(); });
    menu->addAction(tr("Find All of This Name"), this, [this, span] { select_all_named(span); });
    menu->addAction(tr("Select Its Time"), this, [this] { span_to_area(); });
    menu->addAction(tr("Copy"), this, [this] { copy_selection(); });
    menu->addSeparator();
  }
  if (place.process) {
    const ViewState::ProcessRef process = *place.process;
    const auto& pinned = state_.pinned();
    const bool is_pinned = std::find(pinned.begin(), pinned.end(), process) != pinned.end();
    const bool collapsed = place.collapsed || is_collapsed(process);
    menu->addAction(is_pinned ? tr("Unpin Rank") : tr("Pin Rank"), this,
                    [this, process, is_pinned] { state_.set_pinned(process, !is_pinned); });
    menu->addAction(collapsed ? tr("Expand Rank") : tr("Collapse Rank"), this,
                    [this, process, collapsed] { state_.set_collapsed(process, !collapsed); });
    menu->addAction(tr("Collapse Other Ranks"), this, [this, process] { collapse_others(process); });
    menu->addAction(tr("Show Only This Rank"), this, [this, process] {
      if (const auto run = session_.run(process.first))
        state_.set_filter(
            QString::fromStdString(run->timeline->processes[static_cast<std::size_t>(process.second)].name));
    });
  }
  if (place.group) {
    const GroupRef group = place.group->ref;
    const bool collapsed = place.collapsed;
    menu->addAction(collapsed ? tr("Expand Group") : tr("Collapse Group"), this,
                    [this, group, collapsed] { state_.set_collapsed(group, !collapsed); });
    menu->addAction(tr("Collapse All Groups"), this, [this] { collapse_groups(true); });
    menu->addAction(tr("Expand All Groups"), this, [this] { collapse_groups(false); });
  }
  if (!state_.filter().isEmpty())
    menu->addAction(tr("Show All Ranks"), this, [this] { state_.set_filter({}); });
  if (menu->isEmpty()) {
    delete menu;
    return;
  }
  menu->popup(global);
}

}  // namespace rehearse::gui
