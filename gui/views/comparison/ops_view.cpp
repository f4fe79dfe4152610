#include "gui/views/comparison/ops_view.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/parts/placeholder.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>

#include "gui/models/comparison/op_totals.hpp"
#include "models/text/text.hpp"

namespace rehearse::gui {
namespace {

constexpr int kSettled = 150;  // milliseconds after the last zoom until the totals are counted

struct FoundOps {
  TableData table;
  QString about;
  std::vector<QString> names;  // indexed by row of the table
};

TimeRange range_of(const Run& run, OpsView::Stretch stretch, const ViewState& state) {
  switch (stretch) {
    case OpsView::Stretch::visible:
      if (state.visible().length() > 0)
        return {state.visible().begin + run.aligned, state.visible().end + run.aligned};
      break;
    case OpsView::Stretch::step:
      return run.figures.step;
    case OpsView::Stretch::run:
      break;
  }
  return {run.timeline->begin, run.timeline->end};
}

}  // namespace

OpsView::OpsView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state) {
  setAccessibleName(tr("Kinds of op"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(*outer);
  const Body body = add_body(*outer);
  told_ = body.widget;
  QVBoxLayout* const all = body.column;
  auto* head = new QHBoxLayout;
  stretch_ = new QComboBox(told_);
  stretch_->addItems({tr("Visible time"), tr("Full step"), tr("Full run")});
  stretch_->setCurrentIndex(static_cast<int>(Stretch::step));
  stretch_->setAccessibleName(tr("Period that is counted"));
  stretch_->setToolTip(tr("Choose the period that is counted"));
  filter_ = new QLineEdit(told_);
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(280);
  filter_->setAccessibleName(tr("Filter of the table"));
  filter_->setToolTip(tr("Show only rows that contain this text"));
  for (QWidget* control : {static_cast<QWidget*>(stretch_), static_cast<QWidget*>(filter_)})
    leave_out_of_pictures(*control);
  about_ = new QLabel(told_);
  about_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  head->addWidget(stretch_);
  head->addWidget(filter_, 1);
  head->addWidget(about_);
  head->addStretch(1);
  all->addLayout(head);
  table_ = new TableView(told_);
  table_->setAccessibleName(tr("Kinds of op"));
  all->addWidget(table_, 1);

  constexpr std::array<std::pair<const char*, const char*>, 3> kActions = {
      {{"Count ops of the visible time", "Alt+V"},
       {"Count ops of the step", "Alt+S"},
       {"Count ops of the run", "Alt+R"}}};
  for (std::size_t i = 0; i < kActions.size(); ++i) {
    add_command(*this,
                {menu::tables,
                 tr(kActions[i].first),
                 {QKeySequence(kActions[i].second)},
                 tr("Choose the period that the table of ops counts")},
                [this, i] { set_stretch(static_cast<Stretch>(i)); });
  }

  connect(filter_, &QLineEdit::textChanged, table_, &TableView::set_filter);
  connect(stretch_, &QComboBox::currentIndexChanged, this, [this] { again_.changed(); });
  connect(table_, &TableView::row_activated, this, [this](int row) {
    state_.set_search(table_->table().table().rows[static_cast<std::size_t>(row)][0].text);
  });
  connect(&session_, &Session::current_changed, this, [this] { again_.changed(); });
  connect(&session_, &Session::runs_changed, this, [this] { again_.changed(); });
  connect(&session_, &Session::run_changed, this, [this] { again_.changed(); });
  connect(&state_, &ViewState::visible_changed, this, [this] {
    if (stretch_->currentIndex() == static_cast<int>(Stretch::visible)) again_.changed(kSettled);
  });
  count();
}

void OpsView::set_stretch(Stretch stretch) {
  stretch_->setCurrentIndex(static_cast<int>(stretch));
}

void OpsView::count() {
  work_.cancel();
  const Session::RunPointer run = session_.current();
  const bool there = run && run->timeline;
  nothing_->setVisible(!there);
  told_->setVisible(there);
  if (!there) {
    nothing_->setText(run ? tr("%1 is being read.").arg(QString::fromStdString(run->name))
                          : tr("No run is open. Open a trace, or run a scenario, to see its ops."));
    return;
  }
  const TimeRange range = range_of(*run, static_cast<Stretch>(stretch_->currentIndex()), state_);
  work_.ask(
      [timeline = run->timeline, range](const std::atomic<bool>& cancelled) {
        const OpTotalsOfRange totals = op_totals(*timeline, range, &cancelled);
        FoundOps found{rows_of(totals), {}, {}};
        found.about = QString("%1 kinds of op in %2; averages over those of %3 ranks that do such work")
                          .arg(totals.ops.size())
                          .arg(QString::fromStdString(duration_text(range.length())))
                          .arg(QString::fromStdString(with_thousands(static_cast<long>(totals.ranks))));
        return found;
      },
      [this](const FoundOps& found) {
        table_->set(found.table);
        about_->setText(found.about);
        emit counted();
      });
}

}  // namespace rehearse::gui
