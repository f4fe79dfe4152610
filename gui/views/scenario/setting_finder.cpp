#include "gui/views/scenario/setting_finder.hpp"

#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

namespace rehearse::gui {

constexpr int kMostRows = 7;  // rows of the list that are visible at once

SettingFinder::SettingFinder(QWidget* parent)
    : QWidget(parent), line_(new QLineEdit(this)), list_(new QListWidget(this)) {
  line_->setAccessibleName("Find a setting");
  line_->setPlaceholderText("Find a setting");
  line_->setToolTip("Search for words of a field, or of any key that a scenario can have");
  line_->setClearButtonEnabled(true);
  line_->installEventFilter(this);
  list_->setAccessibleName("Further settings");
  list_->setToolTip("Keys without a field. Press Enter to add a field for a key");
  list_->setUniformItemSizes(true);
  list_->setTextElideMode(Qt::ElideMiddle);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 6, 10, 4);
  layout->setSpacing(4);
  layout->addWidget(line_);
  layout->addWidget(list_);
  connect(line_, &QLineEdit::textChanged, this, [this] { emit typed(words()); });
  connect(list_, &QListWidget::itemActivated, this, &SettingFinder::choose);
  connect(list_, &QListWidget::itemClicked, this, &SettingFinder::choose);
}

void SettingFinder::list(const QStringList& paths, bool select_first) {
  list_->clear();
  list_->addItems(paths);
  list_->setCurrentRow(select_first ? 0 : -1);
  list_->setVisible(!paths.isEmpty());
  fit_list();
}

void SettingFinder::fit_list() {
  const int row = std::max(list_->sizeHintForRow(0), list_->fontMetrics().height());
  list_->setFixedHeight(row * std::clamp(list_->count(), 1, kMostRows) + 2 * list_->frameWidth());
}

void SettingFinder::choose(QListWidgetItem* item) {
  if (!item) return;
  const QString path = item->text();  // copied, since the list deletes the item
  emit chosen(path);
}

bool SettingFinder::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_ || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  const bool listed = list_->count() > 0;
  if (key == Qt::Key_Escape && !line_->text().isEmpty()) {
    clear();
  } else if (key == Qt::Key_Return || key == Qt::Key_Enter) {
    QListWidgetItem* selected = list_->currentItem();
    selected ? choose(selected) : emit accepted();
  } else if (listed && (key == Qt::Key_Down || key == Qt::Key_Up)) {
    const int row = list_->currentRow() + (key == Qt::Key_Down ? 1 : -1);
    list_->setCurrentRow(std::clamp(row, 0, list_->count() - 1));
  } else {
    return QWidget::eventFilter(watched, event);
  }
  return true;
}

}  // namespace rehearse::gui
