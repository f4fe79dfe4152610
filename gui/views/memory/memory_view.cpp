#include "gui/views/memory/memory_view.hpp"

#include <QAction>
#include <QEvent>
#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/views/memory/memory_bars.hpp"
#include "gui/views/memory/memory_plot.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/table_view.hpp"

namespace rehearse::gui {

namespace {

constexpr int kSettled = 30;         // milliseconds after the cursor's last move until its tensors are listed
constexpr int kNarrowestName = 190;  // pixels

// What is read of a stage in the background.
struct StageOverTime {
  MemorySeries series;
  LiveMemory live;
};

}  // namespace

MemoryView::MemoryView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state) {
  setAccessibleName("Memory");
  auto* const layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  key_ = new QLabel(this);
  key_->setAccessibleName("Legend of the colours");
  key_->setTextFormat(Qt::RichText);
  key_->setContentsMargins(10, 5, 10, 5);
  key_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  layout->addWidget(key_);
  auto* const splitter = new QSplitter(Qt::Horizontal, this);
  splitter->setChildrenCollapsible(false);
  bars_ = new MemoryBars(this);
  plot_ = new MemoryPlot(this);
  splitter->addWidget(bars_);
  splitter->addWidget(plot_);
  auto* const list = new QWidget(this);
  auto* const column = new QVBoxLayout(list);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  moment_ = new QLabel(list);
  moment_->setAccessibleName("Moment of the tensors");
  moment_->setTextFormat(Qt::PlainText);
  moment_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  moment_->setContentsMargins(10, 4, 10, 5);
  moment_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  tensors_ = new TableView(list);
  tensors_->setAccessibleName("Largest tensors");
  column->addWidget(moment_);
  column->addWidget(tensors_, 1);
  splitter->addWidget(list);
  splitter->setStretchFactor(0, 1);
  splitter->setStretchFactor(1, 1);
  splitter->setStretchFactor(2, 1);
  splitter->setSizes({1000, 1000, 1300});
  layout->addWidget(splitter, 1);

  const auto add = [this](const char* text, const QKeySequence& keys, const char* what, auto act) {
    add_command(*this, {menu::tables, text, {keys}, what}, act);
  };
  add("Memory of the next stage", QKeySequence("."), "Show the memory of the next stage over time",
      [this] { step(1); });
  add("Memory of the previous stage", QKeySequence(","), "Show the memory of the previous stage over time",
      [this] { step(-1); });
  add("Memory of the fullest stage", QKeySequence("Home"), "Show the memory of the fullest stage over time",
      [this] { choose_fullest(); });

  connect(bars_, &MemoryBars::stage_chosen, this, &MemoryView::choose);
  connect(plot_, &MemoryPlot::hovered, this, [this](std::optional<Time> time) { state_.set_cursor(time); });
  connect(plot_, &MemoryPlot::zoomed_by, this, [this](double factor, Time centre) {
    state_.set_visible(zoomed(state_.visible(), factor, centre, state_.whole()));
  });
  connect(&state_, &ViewState::visible_changed, this, [this] { plot_->set_visible(state_.visible()); });
  connect(&state_, &ViewState::cursor_changed, this, [this] {
    plot_->set_cursor_time(state_.cursor());
    if (live_.known()) moved_.changed(kSettled);
  });
  connect(&session_, &Session::shown_changed, this, &MemoryView::gather);
  connect(&session_, &Session::runs_changed, this, &MemoryView::gather);
  connect(&session_, &Session::run_changed, this, &MemoryView::gather);
  connect(&session_, &Session::current_changed, this, [this] {
    by_hand_ = false;
    gather();
  });
  plot_->set_visible(state_.visible());
  key_->setText(key());
  gather();
}

QString MemoryView::key() const {
  QString text;
  for (std::size_t part = 0; part < kMemoryParts.size(); ++part)
    text +=
        QString("<span style=\"color:%1\">&#9632;</span>&nbsp;%2 &nbsp; ")
            .arg(colour_of_part(static_cast<int>(part), is_dark(palette())).name(),
                 QString::fromUtf8(kMemoryParts[part].data(), static_cast<int>(kMemoryParts[part].size())));
  return text + "&nbsp;- -&nbsp;capacity of a device &nbsp; &#9650;&nbsp;the fullest";
}

// Collects the memory of the shown runs and starts reading what is not known yet.
void MemoryView::gather() {
  const std::vector<Session::RunPointer> shown = session_.shown();
  std::erase_if(known_, [&](const auto& entry) { return session_.run(entry.first) == nullptr; });
  memory_.clear();
  bool reading = false;
  const int current = session_.current() ? session_.current()->id : 0;
  int place = -1;
  for (const Session::RunPointer& run : shown) {
    const auto [it, fresh] = known_.try_emplace(run->id);
    Known& known = it->second;
    if (fresh || known.judged != run->judged) {
      known.judged = run->judged;
      known.reading = run->judged != nullptr;
      if (known.reading) {
        in_background(
            this, [run] { return std::pair(run->judged, memory_of(*run)); },
            [this, id = run->id](const std::pair<std::shared_ptr<const Judged>, RunMemory>& made) {
              const auto entry = known_.find(id);
              if (entry == known_.end() || entry->second.judged != made.first) return;
              entry->second.memory = made.second;
              entry->second.reading = false;
              gather();
            });
      }
    }
    if (!run->judged) known.memory = memory_of(*run);
    known.memory.run = run->id;
    known.memory.name = run->name;
    if (known.reading) known.memory.sentence = "being read...";
    reading = reading || known.reading;
    if (run->id == current) place = static_cast<int>(memory_.size());
    memory_.push_back(known.memory);
  }
  bars_->message = shown.empty() ? "No run yet. Open a trace or run a scenario to see its memory."
                   : reading     ? "The memory is being read..."
                                 : "The memory use of this run is unknown: its trace does not record it.";
  bars_->set_memory(memory_);
  const bool keeps = by_hand_ && run_ >= 0 && run_ < static_cast<int>(memory_.size()) &&
                     stage_ < static_cast<int>(memory_[run_].stages.size());
  if (!keeps) {
    by_hand_ = false;
    if (place < 0 && !memory_.empty()) place = 0;
    run_ = place;
    stage_ = place >= 0 ? memory_[place].fullest : -1;
  }
  bars_->choose(run_, stage_);
  if (!reading) read_series();
}

void MemoryView::choose(int run, int stage) {
  run_ = run;
  stage_ = stage;
  by_hand_ = true;
  bars_->choose(run, stage);
  read_series();
}

void MemoryView::step(int by) {
  if (run_ < 0 || stage_ < 0) return;
  const int stages = static_cast<int>(memory_[run_].stages.size());
  choose(run_, std::clamp(stage_ + by, 0, stages - 1));
}

void MemoryView::choose_fullest() {
  if (run_ >= 0 && memory_[run_].fullest >= 0) choose(run_, memory_[run_].fullest);
}

void MemoryView::read_series() {
  series_.cancel();
  const bool any = run_ >= 0 && stage_ >= 0;
  const Session::RunPointer run = any ? session_.run(memory_[run_].run) : nullptr;
  plot_->message = !any ? "" : "The change of this memory over time is unknown.";
  if (!run || memory_[run_].stages[stage_].rank_class < 0) {
    plot_->set_series({}, 0, 0, {});
    live_ = {};
    list_tensors();
    emit ready();
    return;
  }
  const StageMemory& stage = memory_[run_].stages[stage_];
  QString title = QString::fromStdString(stage.rank);
  if (memory_.size() > 1) title = QString::fromStdString(memory_[run_].name) + ", " + title;
  const double capacity = stage.server ? 0 : memory_[run_].capacity;
  series_.ask(
      [run, stage](const std::atomic<bool>&) {
        return StageOverTime{memory_over_time(*run, stage.rank_class), LiveMemory(*run, stage)};
      },
      [this, title, capacity, aligned = run->aligned](StageOverTime read) {
        plot_->set_series(std::move(read.series), aligned, capacity, title);
        live_ = std::move(read.live);
        aligned_ = aligned;
        list_tensors();
        emit ready();
      });
}

// Lists the tensors at the cursor, or, without one, at the peak.
void MemoryView::list_tensors() {
  if (!live_.known()) {
    moment_->clear();
    tensors_->set({});
    return;
  }
  const MomentTensors moment = state_.cursor() ? live_.at(*state_.cursor() + aligned_) : live_.peak();
  moment_->setText(QString::fromStdString(moment_text(moment)));
  moment_->setToolTip(moment_->text());
  tensors_->set(tensor_table(moment));
  tensors_->shrink_first_column(kNarrowestName);
}

void MemoryView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) key_->setText(key());
  QWidget::changeEvent(event);
}

}  // namespace rehearse::gui
