#include "gui/views/topology/topology_view.hpp"

#include <fmt/format.h>

#include <QAction>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/views/parts/command.hpp"
#include "gui/views/topology/topology_canvas.hpp"
#include "gui/views/topology/use_plot.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t kBusiest = 200;     // links listed
constexpr std::size_t kMostUsers = 2000;  // transfers listed for a link
constexpr std::size_t kMostLinks = 400;   // links of one line that the user can choose from

QTableView* make_table(const QString& name, QAbstractItemModel* model, QWidget* parent) {
  auto* const table = new QTableView(parent);
  table->setAccessibleName(name);
  table->setModel(model);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->setWordWrap(false);
  table->setTabKeyNavigation(false);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 5);
  table->verticalHeader()->setMinimumSectionSize(10);
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setMinimumSectionSize(40);
  return table;
}

QString qt(const std::string& text) {
  return QString::fromStdString(text);
}

}  // namespace

struct TopologyView::Known {
  int run = 0;
  Time aligned = 0;
  std::shared_ptr<const Judged> judged;
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const LinkUsage> usage;
  std::shared_ptr<const RowSpans> spans;
};

TopologyView::TopologyView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state) {
  setAccessibleName("Topology");
  auto* const layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  summary_ = new QLabel(this);
  summary_->setAccessibleName("Summary of the topology");
  summary_->setContentsMargins(10, 5, 10, 5);
  summary_->setMinimumWidth(0);
  summary_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(summary_);
  splitter_ = new QSplitter(Qt::Horizontal, this);
  splitter_->setChildrenCollapsible(false);
  canvas_ = new TopologyCanvas(this);
  splitter_->addWidget(canvas_);
  users_timer_ = new QTimer(this);
  users_timer_->setSingleShot(true);
  users_timer_->setInterval(30);
  connect(users_timer_, &QTimer::timeout, this, &TopologyView::read_users);
  make_panel();
  splitter_->setStretchFactor(0, 1);
  layout->addWidget(splitter_, 1);
  make_actions();

  connect(canvas_, &TopologyCanvas::chosen, this, &TopologyView::show_links);
  connect(&session_, &Session::current_changed, this, &TopologyView::load);
  connect(&session_, &Session::run_changed, this, [this](int id) {
    if (session_.current() && session_.current()->id == id) load();
  });
  connect(&state_, &ViewState::visible_changed, this, &TopologyView::follow);
  connect(&state_, &ViewState::selection_changed, this, &TopologyView::follow_selection);
  connect(&state_, &ViewState::cursor_changed, this, [this] { plot_->set_cursor_time(state_.cursor()); });
  load();
}

void TopologyView::make_panel() {
  panel_ = new QStackedWidget(splitter_);
  panel_->setMinimumWidth(300);
  links_model_ = new BusiestLinksModel(this);
  auto* const sorted = new QSortFilterProxyModel(this);
  sorted->setSourceModel(links_model_);
  sorted->setSortRole(kLinkSortRole);
  links_ = make_table("Busiest links", sorted, panel_);
  links_->setSortingEnabled(true);
  links_->sortByColumn(BusiestLinksModel::use, Qt::DescendingOrder);
  links_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  links_->horizontalHeader()->setSectionResizeMode(BusiestLinksModel::link, QHeaderView::Interactive);
  links_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  const auto choose_link = [this, sorted](const QModelIndex& index) {
    select_link(links_model_->line(sorted->mapToSource(index).row()).busy.link);
  };
  connect(links_, &QTableView::clicked, this, choose_link);
  connect(links_, &QTableView::activated, this, choose_link);
  panel_->addWidget(links_);

  auto* const page = new QWidget(panel_);
  auto* const layout = new QVBoxLayout(page);
  layout->setContentsMargins(8, 5, 8, 0);
  layout->setSpacing(4);
  auto* const head = new QHBoxLayout;
  auto* const back = new QToolButton(page);
  back->setArrowType(Qt::LeftArrow);
  back->setAutoRaise(true);
  back->setToolTip("Show all links (Esc)");
  back->setAccessibleName("Back to all links");
  connect(back, &QToolButton::clicked, this, [this] { select_link({}); });
  head->addWidget(back);
  which_ = new QComboBox(page);
  which_->setAccessibleName("Link");
  which_->setToolTip("Choose one of the links of the selected line");
  which_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  which_->setMinimumContentsLength(10);
  which_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  connect(which_, &QComboBox::activated, this, [this](int place) {
    link_ = which_->itemData(place).toInt();
    canvas_->select_link(link_);
    read_users();
  });
  head->addWidget(which_, 1);
  layout->addLayout(head);
  facts_ = new QLabel(page);
  facts_->setAccessibleName("The link");
  kinds_ = new QLabel(page);
  kinds_->setAccessibleName("Kinds of transfers on the link");
  for (QLabel* const label : {facts_, kinds_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    layout->addWidget(label);
  }
  plot_ = new UsePlot(page);
  plot_->setMaximumHeight(150);
  connect(plot_, &UsePlot::resized, users_timer_, [this] { users_timer_->start(); });
  connect(plot_, &UsePlot::hovered, this, [this](std::optional<Time> time) { state_.set_cursor(time); });
  layout->addWidget(plot_, 1);
  users_model_ = new LinkUsersModel(this);
  users_sorted_ = new QSortFilterProxyModel(this);
  users_sorted_->setSourceModel(users_model_);
  users_sorted_->setSortRole(kLinkSortRole);
  users_ = make_table("Transfers on the link", users_sorted_, page);
  users_->setToolTip("Click a transfer to select it on the timeline, double-click it to zoom to it.");
  users_->setSortingEnabled(true);
  users_->sortByColumn(LinkUsersModel::begin, Qt::AscendingOrder);
  users_->setFrameShape(QFrame::NoFrame);
  users_->horizontalHeader()->setStretchLastSection(true);
  connect(users_, &QTableView::clicked, this,
          [this](const QModelIndex& index) { choose_user(index, false); });
  connect(users_, &QTableView::activated, this,
          [this](const QModelIndex& index) { choose_user(index, false); });
  connect(users_, &QTableView::doubleClicked, this,
          [this](const QModelIndex& index) { choose_user(index, true); });
  layout->addWidget(users_, 3);
  panel_->addWidget(page);
  splitter_->addWidget(panel_);
}

void TopologyView::make_actions() {
  const auto add = [this](const char* text, const QKeySequence& keys, const char* what, auto act) {
    add_command(*this, {menu::topology, text, {keys}, what}, act);
  };
  add("Fit the topology", QKeySequence(Qt::Key_F), "Show the entire cluster", [this] { canvas_->fit(); });
  add("Fold the topology", QKeySequence("Shift+F"), "Close all groups and nodes that were opened",
      [this] { canvas_->fold_all(); });
  add("Next busiest link", QKeySequence("."),
      "Select the link with the next lower use, as Tab and the arrow keys do", [this] { canvas_->step(1); });
  add("Previous busiest link", QKeySequence(","), "Select the link with the next higher use",
      [this] { canvas_->step(-1); });
  add("Open at the selected link", QKeySequence("O"),
      "Open the groups that the selected link is in, or the node at its end, as Enter does",
      [this] { canvas_->open_at_selection(); });
}

void TopologyView::load() {
  const Session::RunPointer run = session_.current();
  if (run && run->judged && known_ && known_->judged == run->judged && known_->run == run->id &&
      known_->aligned == run->aligned)
    return;
  if (run && run->judged && making_.lock() == run->judged && !known_) return;
  work_.cancel();
  making_.reset();
  known_.reset();
  link_.reset();
  busiest_.clear();
  links_model_->set_links({});
  users_model_->set_users({}, 0);
  panel_->setCurrentIndex(0);
  panel_->setVisible(false);
  canvas_->set_topology(nullptr);
  if (!run)
    canvas_->message = "No run yet. Open a trace or run a scenario to see its cluster.";
  else if (run->judged)
    canvas_->message = "The topology is being determined...";
  else if (run->source == Run::Source::profiler)
    canvas_->message = "The topology of this run is unknown: its trace was written by another program.";
  else if (run->not_judged.empty())
    canvas_->message = "The run is being read...";
  else
    canvas_->message = "The topology of this run is unknown: " + qt(run->not_judged) + ".";
  tell();
  canvas_->update();
  if (!run || !run->judged) return;
  making_ = run->judged;
  auto known = std::make_shared<Known>();
  known->run = run->id;
  known->aligned = run->aligned;
  known->judged = run->judged;
  const auto work = [known, timeline = run->timeline](const std::atomic<bool>&) {
    const RecordedRun& recorded = known->judged->run;
    known->topology = std::make_shared<const Topology>(recorded.scenario.cluster);
    known->usage = std::make_shared<const LinkUsage>(recorded.trace, recorded.scenario.cluster);
    known->spans = std::make_shared<const RowSpans>(recorded.trace, *timeline);
    return std::shared_ptr<const Known>(known);
  };
  work_.ask(work, [this](const std::shared_ptr<const Known>& made) {
    making_.reset();
    const Session::RunPointer now = session_.run(made->run);
    if (now && now->aligned != made->aligned) return load();  // the run has been shifted in the meantime
    known_ = made;
    canvas_->set_topology(known_->topology);
    panel_->setVisible(true);
    share_room();
    follow();
    follow_selection();
    emit ready();
  });
}

TimeRange TopologyView::visible() const {
  TimeRange range = state_.visible();
  range.begin += known_->aligned;
  range.end += known_->aligned;
  if (range.length() > 0) return range;
  const Session::RunPointer run = session_.run(known_->run);
  return run ? TimeRange{run->timeline->begin, run->timeline->end} : TimeRange{0, 1};
}

void TopologyView::follow() {
  stale_ = !isVisible();
  if (!known_ || stale_) return;
  const TimeRange range = visible();
  use_ = known_->usage->load(known_->spans->seconds_of(range.begin), known_->spans->seconds_of(range.end));
  busiest_ = known_->usage->busiest(use_, kBusiest);
  std::vector<BusiestLinksModel::Line> lines;
  const Cluster& cluster = known_->topology->cluster();
  for (const LinkUsage::Busy& busy : busiest_)
    lines.push_back({cluster.link_name(busy.link), busy, cluster.bandwidth(busy.link)});
  links_model_->set_links(std::move(lines));
  fit_names();
  canvas_->set_use(known_->usage, use_, busiest_);
  tell();
  if (link_) users_timer_->start();
}

// Gives the column of names the room that the figures leave, but at least what the names need; then the table
// scrolls.
void TopologyView::fit_names() {
  constexpr int kRoom = 14, kWidestName = 260;
  int names = 0, figures = 0;
  const QFontMetrics metrics = links_->fontMetrics();
  for (const LinkUsage::Busy& busy : busiest_)
    names = std::max(names, metrics.horizontalAdvance(qt(known_->topology->cluster().link_name(busy.link))));
  for (int column = 0; column < BusiestLinksModel::columns; ++column)
    if (column != BusiestLinksModel::link) figures += links_->columnWidth(column);
  links_->setColumnWidth(BusiestLinksModel::link, std::max(std::min(names + kRoom, kWidestName),
                                                           links_->viewport()->width() - figures));
}

void TopologyView::tell() {
  summary_text_.clear();
  if (known_) {
    const Cluster& cluster = known_->topology->cluster();
    TimeRange range = visible();
    range.begin -= known_->aligned;
    range.end -= known_->aligned;
    std::string text = cluster_line(cluster) + "; ";
    if (busiest_.empty())
      text += "no link is used over " + time_range_text(range);
    else
      text += fmt::format(
          "busiest: {}{}, {} used over {}", cluster.link_name(busiest_.front().link),
          busiest_.front().like_it > 0 ? fmt::format(" and {} like it", busiest_.front().like_it) : "",
          share_text(busiest_.front().use), time_range_text(range));
    summary_text_ = qt(text);
  }
  summary_->setVisible(!summary_text_.isEmpty());
  summary_->setToolTip(summary_text_);
  summary_->setText(
      summary_->fontMetrics().elidedText(summary_text_, Qt::ElideRight, std::max(100, width() - 24)));
}

void TopologyView::follow_selection() {
  std::vector<LinkId> links;
  const auto& selected = state_.selected();
  if (known_ && selected && selected->run == known_->run) {
    const std::size_t row = known_->spans->row_of(selected->span);
    if (row != kNoTraceRow) links = known_->usage->links_of(row);
  }
  canvas_->set_highlighted(std::move(links));
}

void TopologyView::select_link(std::optional<LinkId> link) {
  canvas_->select_link(link);
  show_links(link ? std::vector<LinkId>{*link} : std::vector<LinkId>{}, link.value_or(-1));
}

void TopologyView::show_links(const std::vector<LinkId>& links, LinkId link) {
  link_ = links.empty() ? std::nullopt : std::optional(link);
  panel_->setCurrentIndex(link_ ? 1 : 0);
  if (!link_ || !known_) return;
  const Cluster& cluster = known_->topology->cluster();
  std::vector<LinkId> choices = links;
  if (choices.size() == 1 && known_->topology->cable_of(link) >= 0) {
    const Cable& cable = known_->topology->cables()[known_->topology->cable_of(link)];
    choices = {cable.there, cable.back};
  } else if (choices.size() == 1 && known_->topology->inside(link) >= 0) {
    // Links inside a node have no cable; take the pair of consecutive ids, or the wire that contains the
    // link.
    choices = {link - link % 2, link - link % 2 + 1};
    const NodeInside inside = inside_of(cluster, known_->topology->inside(link));
    for (const NodeInside::Wire& wire : inside.wires)
      if (wire.there == link || wire.back == link) choices = {wire.there, wire.back};
  }
  std::stable_sort(choices.begin(), choices.end(), [&](LinkId a, LinkId b) {
    return known_->usage->use(use_, a) > known_->usage->use(use_, b);
  });
  if (choices.size() > kMostLinks) choices.resize(kMostLinks);
  const QSignalBlocker quiet(which_);
  which_->clear();
  for (const LinkId one : choices)
    which_->addItem(
        qt(fmt::format("{}  {}", cluster.link_name(one), share_text(known_->usage->use(use_, one)))), one);
  which_->setCurrentIndex(std::max(0, which_->findData(link)));
  read_users();
}

void TopologyView::read_users() {
  if (!known_ || !link_) return;
  const TimeRange range = visible();
  const double begin_s = known_->spans->seconds_of(range.begin), end_s = known_->spans->seconds_of(range.end);
  UsersOfLink all =
      users_of(*known_->usage, known_->judged->run.trace, *known_->spans, *link_, begin_s, end_s, kMostUsers);
  const Cluster& cluster = known_->topology->cluster();
  facts_->setText(qt(fmt::format("{}, {} of it used, {} carried", rate_text(cluster.bandwidth(*link_)),
                                 share_text(known_->usage->use(use_, *link_)), bytes_text(all.bytes))));
  std::string kinds;
  for (const KindOfUse& kind : all.kinds)
    kinds += fmt::format("{}{} {} ({} {})", kinds.empty() ? "" : ", ", kind.kind, share_text(kind.share),
                         kind.users, kind.users == 1 ? "transfer" : "transfers");
  if (all.kinds.empty()) kinds = "It is not used in the visible time.";
  if (all.left_out > 0) kinds += fmt::format("; the {} with the most bytes are listed", all.users.size());
  kinds_->setText(qt(kinds));
  plot_->set_capacity(cluster.bandwidth(*link_));
  plot_->set_use(known_->usage->use_over_time(*link_, begin_s, end_s, plot_->bins()),
                 {range.begin - known_->aligned, range.end - known_->aligned});
  const bool first = users_model_->rowCount() == 0;
  users_model_->set_users(std::move(all.users), known_->aligned);
  if (first && users_model_->rowCount() > 0) {
    users_->resizeColumnsToContents();
    users_->setColumnWidth(LinkUsersModel::op, std::min(190, users_->columnWidth(LinkUsersModel::op)));
  }
}

void TopologyView::choose_user(const QModelIndex& index, bool zoom) {
  const LinkUser& user = users_model_->user(users_sorted_->mapToSource(index).row());
  if (!known_ || user.span == kNoSpan) return;
  const TimeRange range{user.begin - known_->aligned, user.end - known_->aligned};
  state_.select(SpanRef{known_->run, user.span});
  if (!zoom) return;
  const Time around = std::max<Time>(10, range.length());
  state_.set_visible({range.begin - around, range.end + around});
}

void TopologyView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) follow();
}

void TopologyView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  share_room();
  tell();
}

// Gives the panel its share of the width. A resize also resets a splitter that the user has moved.
void TopologyView::share_room() {
  const int panel = std::clamp(width() * 34 / 100, std::min(445, width() * 48 / 100), 720);
  splitter_->setSizes({width() - panel, panel});
  if (known_) fit_names();
}

}  // namespace rehearse::gui
