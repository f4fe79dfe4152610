// The editor of a scenario's text: line numbers, TOML in colours, the error where it stands, and what may be
// written at the cursor.
#pragma once

#include <QPlainTextEdit>
#include <QPointer>

#include "gui/models/background.hpp"
#include "gui/models/scenario_draft.hpp"
#include "gui/models/scenario_keys.hpp"

class QCompleter;
class QStringListModel;

namespace rehearse::gui {

class ScenarioEditor : public QPlainTextEdit {
  Q_OBJECT
public:
  explicit ScenarioEditor(QWidget* parent = nullptr);
  ~ScenarioEditor() override;

  // Shows the draft, where it was left; it must be there until another one is set.
  void set_draft(ScenarioDraft& draft);
  // Underlines what stands there and marks the line's number; line 0: nothing is marked.
  void mark_error(int line, int column, const QString& message);
  int error_line() const { return error_line_; }
  void go_to(int line, int column);
  void go_to_place(int place);  // as ScenarioDraft::position() gives it

  // Offers what may stand at the cursor; writes it at once if there is but one.
  void complete();
  QCompleter& completer() { return *completer_; }
  bool knows_keys() const { return keys_ != nullptr; }

  int gutter_width() const;
  void paint_gutter(QPaintEvent* event);

protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;  // the error as the tooltip of its line

private:
  void lay_out_gutter();
  void mark_lines();
  void colour_again();
  void make_completer();
  bool offer();  // false: nothing is known of this place
  void take(const QString& choice);

  QWidget* gutter_;
  QPointer<QObject> highlighter_;
  ScenarioDraft* draft_ = nullptr;
  int error_line_ = 0, error_column_ = 0;
  QString error_;
  QCompleter* completer_ = nullptr;
  QStringListModel* choices_ = nullptr;
  Completion completion_;
  std::shared_ptr<const std::vector<ScenarioKey>> keys_;  // null: being read
  Latest reading_keys_{this};
};

}  // namespace rehearse::gui
