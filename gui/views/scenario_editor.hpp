// The editor of a scenario's text: line numbers, TOML in colours, and the error where it stands.
#pragma once

#include <QPlainTextEdit>
#include <QPointer>

#include "gui/models/scenario_draft.hpp"

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

  int gutter_width() const;
  void paint_gutter(QPaintEvent* event);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;  // the error as the tooltip of its line

private:
  void lay_out_gutter();
  void mark_lines();
  void colour_again();

  QWidget* gutter_;
  QPointer<QObject> highlighter_;
  ScenarioDraft* draft_ = nullptr;
  int error_line_ = 0, error_column_ = 0;
  QString error_;
};

}  // namespace rehearse::gui
