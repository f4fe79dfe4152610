#include "gui/views/comparison/ranks_view.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QToolTip>
#include <algorithm>

#include "gui/models/comparison/comparison.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/placeholder.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr int kBars = 1;         // index of the column
constexpr int kBarWidth = 360;   // pixels, if there is room
constexpr double kShown = 1e-4;  // share of the step; a part below it in every rank has no column
constexpr double kAlike = 8;     // runs share one scale if their steps differ by at most this factor
constexpr int kSettledMs = 150;  // milliseconds after the last change until everything is recomputed

QString qt(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QBrush pattern_over(const QColor& colour, Kind kind) {
  QColor lines = text_on(colour);
  lines.setAlpha(70);
  return {lines, pattern_of(kind)};
}

// Paints the bar of a rank, whose times come from the view instead of the table.
class Bars : public QStyledItemDelegate {
public:
  Bars(const RanksView& view, TableView& table) : QStyledItemDelegate(&table), view_(view), table_(table) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const int row = table_.row_of(index);
    const RankTime* rank = view_.rank_of(row);
    if (rank == nullptr || view_.scale_s(row) <= 0) return;
    const bool dark = is_dark(option.palette);
    for_parts(*rank, view_.scale_s(row), option.rect, [&](RankPart part, const QRectF& box) {
      const RankPartLook& look = look_of(part);
      const QColor colour = colour_of(look.kind, look.pass, dark);
      const QRectF inside = box.width() > 3 ? box.adjusted(0, 0, -1, 0) : box;
      painter->fillRect(inside, colour);
      if (pattern_of(look.kind) != Qt::SolidPattern)
        painter->fillRect(inside, pattern_over(colour, look.kind));
      const QString share = QString::fromStdString(in_percent(rank->of(part) / rank->step_s()));
      if (option.fontMetrics.horizontalAdvance(share) + 6 > inside.width()) return;
      if (pattern_of(look.kind) != Qt::SolidPattern) {
        QRectF plate(0, 0, option.fontMetrics.horizontalAdvance(share) + 4, inside.height());
        plate.moveCenter(inside.center());
        painter->fillRect(plate, colour);
      }
      painter->setPen(text_on(colour));
      painter->drawText(inside, Qt::AlignCenter, share);
    });
  }

  bool helpEvent(QHelpEvent* event, QAbstractItemView* over, const QStyleOptionViewItem& option,
                 const QModelIndex& index) override {
    const RankTime* rank = event->type() == QEvent::ToolTip ? view_.rank_of(table_.row_of(index)) : nullptr;
    if (rank == nullptr) return QStyledItemDelegate::helpEvent(event, over, option, index);
    QString told;
    for_parts(*rank, view_.scale_s(table_.row_of(index)), option.rect, [&](RankPart part, const QRectF& box) {
      if (!box.contains(event->pos())) return;
      const rehearse::TimeScale time(rank->step_s());
      told = QString("%1: %2, %3 of %4. %5.")
                 .arg(qt(look_of(part).name), qt(time(rank->of(part))),
                      qt(in_percent(rank->of(part) / rank->step_s())), qt(time(rank->step_s())),
                      qt(look_of(part).what));
    });
    QToolTip::showText(event->globalPos(), told, over);
    return true;
  }

private:
  template <class Tell>
  void for_parts(const RankTime& rank, double longest_s, const QRect& rect, const Tell& tell) const {
    const QRectF room = QRectF(rect).adjusted(3, 2, -3, -2);
    double at_s = 0;
    for (std::size_t part = 0; part < kRankParts; ++part) {
      const double begin = room.left() + room.width() * at_s / longest_s;
      at_s += rank.seconds[part];
      const double end = room.left() + room.width() * at_s / longest_s;
      if (end - begin > 0.2)
        tell(static_cast<RankPart>(part), QRectF(begin, room.top(), end - begin, room.height()));
    }
  }

  const RanksView& view_;
  const TableView& table_;
};

// Returns the parts that any rank has, in the order in which the bars stack them.
std::vector<RankPart> parts_of(const std::vector<RanksOfRun>& runs) {
  std::vector<RankPart> parts;
  for (std::size_t p = 0; p < kRankParts; ++p) {
    const auto part = static_cast<RankPart>(p);
    const bool told = std::any_of(runs.begin(), runs.end(), [&](const RanksOfRun& run) {
      return std::any_of(run.times.ranks.begin(), run.times.ranks.end(),
                         [&](const RankTime& rank) { return rank.of(part) > kShown * rank.step_s(); });
    });
    if (told) parts.push_back(part);
  }
  return parts;
}

}  // namespace

TableData rows_of(const std::vector<RanksOfRun>& runs) {
  double longest_s = 0, latest_s = 0;
  bool folded = false;
  for (const RanksOfRun& run : runs)
    for (const RankTime& rank : run.times.ranks) {
      longest_s = std::max(longest_s, rank.step_s());
      latest_s = std::max(latest_s, rank.late_s);
      folded = folded || rank.members > 1;
    }
  const Unit time = unit_of_seconds(longest_s);
  const std::vector<RankPart> parts = parts_of(runs);
  TableData data;
  data.columns = {{"rank", "Ranks with identical behaviour share a row", false},
                  {"step", "Parts of the step; each instant counts once", false}};
  if (folded) data.columns.push_back({"ranks", "Number of ranks that the row represents"});
  data.columns.push_back(
      {"overlap (%)",
       "Share of the communication that overlaps with computation: the time of both at once, divided by all "
       "communication from when all sides were ready"});
  if (latest_s > 0)
    data.columns.push_back({"late (" + time.name + ")",
                            "Time that others waited because this rank was the last to join a shared op"});
  for (const RankPart part : parts)
    data.columns.push_back({qt(look_of(part).name) + " (" + time.name + ")", qt(look_of(part).what)});
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const int block = static_cast<int>(r);
    if (runs.size() > 1) {
      std::vector<Cell> heading(data.columns.size());
      heading.front() = text_cell(qt(runs[r].name));
      data.rows.push_back(std::move(heading));
      data.places.push_back({block, true});
    }
    for (const RankTime& rank : runs[r].times.ranks) {
      Cell bar;
      bar.number = rank.computing_s() / std::max(1e-12, rank.step_s());
      bar.tip = " ";
      std::vector<Cell> row = {text_cell(qt(rank.name)), bar};
      if (folded) row.push_back({QStringLiteral("×%1").arg(rank.members), static_cast<double>(rank.members)});
      row.push_back(rank.communication_s > 0 ? number_cell(100 * rank.overlap(), 3) : Cell{});
      if (latest_s > 0) {
        Cell late = number_cell(rank.late_s * time.factor);
        if (rank.late_s > 0.01 * rank.step_s()) late.tone = Tone::notable;
        if (!rank.late_at.empty()) late.tip = QObject::tr("Mostly at %1").arg(qt(rank.late_at));
        row.push_back(late);
      }
      for (const RankPart part : parts) row.push_back(number_cell(rank.of(part) * time.factor));
      data.rows.push_back(std::move(row));
      data.places.push_back({block, false});
    }
  }
  return data;
}

RanksView::RanksView(Session& session, ViewState&, QWidget* parent) : QWidget(parent), session_(session) {
  setAccessibleName(tr("Ranks"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(*outer);
  const Body body = add_body(*outer);
  told_ = body.widget;
  QVBoxLayout* const all = body.column;
  stragglers_ = new QLabel(told_);
  stragglers_->setTextFormat(Qt::RichText);
  stragglers_->setWordWrap(true);
  stragglers_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  stragglers_->setAccessibleName(tr("Stragglers"));
  all->addWidget(stragglers_);
  legend_ = new QLabel(told_);
  legend_->setTextFormat(Qt::RichText);
  legend_->setWordWrap(true);
  legend_->setAccessibleName(tr("Legend of the colours"));
  all->addWidget(legend_);
  table_ = new TableView(told_);
  table_->setAccessibleName(tr("Ranks and the parts of their steps"));
  table_->setItemDelegateForColumn(kBars, new Bars(*this, *table_));
  all->addWidget(table_, 1);

  add_command(*this,
              {menu::go,
               tr("Latest rank"),
               {QKeySequence("Alt+K")},
               tr("Select the rank for which the others wait longest")},
              [this] {
                int latest = -1;
                for (int row = 0; row < static_cast<int>(rows_.size()); ++row)
                  if (const RankTime* rank = rank_of(row);
                      rank != nullptr && (latest < 0 || rank->late_s > rank_of(latest)->late_s))
                    latest = row;
                if (latest >= 0) table_->select_row(latest);
              });
  const auto choose = [this](int row) {
    if (const RankTime* rank = rank_of(row)) emit rank_chosen(run_of(row), rank->process);
  };
  connect(table_, &TableView::current_row_changed, this, choose);
  connect(table_, &TableView::row_activated, this, choose);
  connect(table_, &QAbstractItemView::clicked, this,
          [this, choose](const QModelIndex& index) { choose(table_->row_of(index)); });
  const auto changed = [this] { again_.changed(kSettledMs); };
  connect(&session_, &Session::runs_changed, this, changed);
  connect(&session_, &Session::run_changed, this, changed);
  connect(&session_, &Session::shown_changed, this, changed);
  compute();
}

const RankTime* RanksView::rank_of(int row) const {
  if (row < 0 || row >= static_cast<int>(rows_.size())) return nullptr;
  const RowOf& of = rows_[static_cast<std::size_t>(row)];
  return of.rank < 0 ? nullptr : &ranks_[of.run].times.ranks[static_cast<std::size_t>(of.rank)];
}

double RanksView::scale_s(int row) const {
  return longest_s_[rows_[static_cast<std::size_t>(row)].run];
}

int RanksView::run_of(int row) const {
  return ranks_[rows_[static_cast<std::size_t>(row)].run].run;
}

void RanksView::compute() {
  work_.cancel();
  std::vector<Session::RunPointer> runs;
  for (const Session::RunPointer& run : session_.shown())
    if (run->timeline) runs.push_back(run);
  nothing_->setVisible(runs.empty());
  told_->setVisible(!runs.empty());
  if (runs.empty()) {
    nothing_->setText(session_.shown().empty()
                          ? tr("No run is shown. Open a trace, or run a scenario, to see what its ranks do.")
                          : tr("%1 is being read.").arg(qt(session_.shown().front()->name)));
    return;
  }
  if (ranks_.empty()) stragglers_->setText(tr("Comparing the ranks ..."));
  const std::vector<std::string> names = names_of(runs);
  work_.ask(
      [runs, names](const std::atomic<bool>& cancelled) {
        std::vector<RanksOfRun> found;
        for (std::size_t i = 0; i < runs.size() && !cancelled; ++i)
          found.push_back({runs[i]->id, names[i], rank_times(*runs[i], cancelled)});
        return std::pair(rows_of(found), found);
      },
      [this](const std::pair<TableData, std::vector<RanksOfRun>>& made) {
        ranks_ = made.second;
        rows_.clear();
        longest_s_.assign(ranks_.size(), 0);
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
          if (ranks_.size() > 1) rows_.push_back({r, -1});
          for (std::size_t k = 0; k < ranks_[r].times.ranks.size(); ++k) {
            rows_.push_back({r, static_cast<int>(k)});
            longest_s_[r] = std::max(longest_s_[r], ranks_[r].times.ranks[k].step_s());
          }
        }
        // Use one scale for all runs unless the shortest bars would be too short to see.
        if (!longest_s_.empty()) {
          const auto [least, most] = std::minmax_element(longest_s_.begin(), longest_s_.end());
          if (*most <= kAlike * *least) longest_s_.assign(longest_s_.size(), *most);
        }
        const int columns = table_->table().columnCount();
        table_->set(made.first);
        if (columns == 0 || table_->columnWidth(kBars) < kBarWidth / 2)
          table_->setColumnWidth(kBars, kBarWidth);
        tell();
        emit computed();
      });
}

void RanksView::tell() {
  QString text;
  for (const RanksOfRun& run : ranks_) {
    if (run.times.stragglers.empty()) continue;
    const QString sentence = qt(run.times.stragglers).toHtmlEscaped();
    const qsizetype colon = sentence.indexOf(": ");
    text += "<div>" + (ranks_.size() > 1 ? qt(run.name).toHtmlEscaped() + ". " : QString()) + "<b>" +
            sentence.left(colon + 1) + "</b>" + sentence.mid(colon + 1) + "</div>";
  }
  stragglers_->setText(text);
  stragglers_->setVisible(!text.isEmpty());
  legend_->setText(legend());
}

QString RanksView::legend() const {
  QString text;
  for (const RankPart part : parts_of(ranks_)) {
    const RankPartLook& look = look_of(part);
    text += QString("<span style='color:%1'>■</span>&nbsp;%2 &nbsp; ")
                .arg(colour_of(look.kind, look.pass, is_dark(palette())).name(),
                     qt(look.name).replace(' ', "&nbsp;"));
  }
  return text;
}

void RanksView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && legend_ != nullptr) legend_->setText(legend());
}

}  // namespace rehearse::gui
