// Edits a scenario's text with line numbers, TOML highlighting, the error underlined, and completion.
#pragma once

#include <QPlainTextEdit>
#include <QPointer>

#include "gui/models/scenario/scenario_draft.hpp"
#include "gui/models/scenario/scenario_keys.hpp"
#include "gui/models/work/background.hpp"

class QCompleter;
class QStringListModel;

namespace rehearse::gui {

class ScenarioEditor : public QPlainTextEdit {
  Q_OBJECT
public:
  explicit ScenarioEditor(QWidget* parent = nullptr);
  ~ScenarioEditor() override;

  // Shows the draft where the cursor was left in it. The draft must outlive its display in the editor.
  void set_draft(ScenarioDraft& draft);
  // Underlines the text at this place and marks the line's number; line 0 clears the mark.
  void mark_error(int line, int column, const QString& message);
  int error_line() const { return error_line_; }
  void go_to(int line, int column);
  void go_to_place(int place);  // in characters, as from ScenarioDraft::position()

  // Offers completions at the cursor; inserts the only one at once if something has been typed.
  void complete();
  QCompleter& completer() { return *completer_; }
  bool knows_keys() const { return keys_ != nullptr; }

  int gutter_width() const;
  void paint_gutter(QPaintEvent* event);

protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;  // shows the error as the tooltip of its line

private:
  void lay_out_gutter();
  void mark_lines();
  void colour_again();
  void make_completer();
  bool offer();  // false if there is nothing to complete at the cursor
  void take(const QString& choice);

  QWidget* gutter_;
  QPointer<QObject> highlighter_;
  ScenarioDraft* draft_ = nullptr;
  int error_line_ = 0, error_column_ = 0;
  QString error_;
  QCompleter* completer_ = nullptr;
  QStringListModel* choices_ = nullptr;
  Completion completion_;
  std::shared_ptr<const std::vector<ScenarioKey>> keys_;  // null until read
  Latest reading_keys_{this};
};

}  // namespace rehearse::gui
