// Finds a setting by words: typing filters the form and lists matching keys that the form does not show.
#pragma once

#include <QLineEdit>
#include <QListWidget>
#include <QWidget>

namespace rehearse::gui {

class SettingFinder : public QWidget {
  Q_OBJECT
public:
  explicit SettingFinder(QWidget* parent = nullptr);

  QString words() const { return line_->text().trimmed(); }
  void clear() { line_->clear(); }
  // Lists the matching keys that the form does not show. `select_first` lets Enter choose the first of them.
  void list(const QStringList& paths, bool select_first);
  QLineEdit& line() { return *line_; }
  QListWidget& further() { return *list_; }

signals:
  void typed(const QString& words);
  void chosen(const QString& path);  // a key of the list
  void accepted();                   // Enter while no key of the list is selected

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  void choose(QListWidgetItem* item);
  void fit_list();
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace rehearse::gui
