// Shows what the window starts with: examples, recent files, and buttons to open files or start a scenario.
#pragma once

#include <QThreadPool>
#include <QWidget>
#include <vector>

#include "gui/models/session/examples.hpp"
#include "gui/models/session/recent_files.hpp"

class QAction;
class QGridLayout;
class QHBoxLayout;
class QLabel;
class QScrollArea;
class QTreeWidget;

namespace rehearse::gui {

class ExampleCard;

class StartPage : public QWidget {
  Q_OBJECT
public:
  explicit StartPage(std::vector<Example> examples, QWidget* parent = nullptr);
  ~StartPage() override;
  void set_commands(const QList<QAction*>& actions);  // shown as buttons
  void show_recent();  // reads the list of recent files from the settings again

  const std::vector<ExampleCard*>& cards() const { return cards_; }
  QTreeWidget& recent() { return *recent_; }
  bool settled() const;  // all pictures have been painted, or the page is hidden

signals:
  void example_chosen(const rehearse::gui::Example& example);
  void file_chosen(const QString& path);

protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  void draw_pictures();  // on another thread
  void lay_out();
  void move_from(std::size_t card, int columns, int rows);

  std::vector<ExampleCard*> cards_;
  QScrollArea* scroll_;
  QWidget* content_;
  QGridLayout* grid_;
  QHBoxLayout* commands_;
  QLabel* recent_title_;
  QTreeWidget* recent_;
  QThreadPool pool_;
  int columns_ = 0;
  bool drawn_ = false;  // or being drawn
};

}  // namespace rehearse::gui
