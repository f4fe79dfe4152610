// Edits one key in the form of a scenario: its label, its input widget, and a button that removes the key
// from the text.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <optional>

#include "gui/models/scenario/scenario_fields.hpp"

namespace rehearse::gui {

class NumberField;

class FormRow : public QObject {
  Q_OBJECT
public:
  FormRow(const ScenarioField& field, QWidget& body);
  ~FormRow() override;  // deletes its widgets later, when none of them is executing

  // What the row shows of its key.
  struct State {
    std::optional<QString> value;  // as written in the text; nullopt if absent
    QString usual;                 // resolved default; empty if unknown
    QString instead;               // another source of the value: "file lab.toml"
    QString why_unused;            // reason why the key currently has no effect; empty if it has
    QString error;                 // what is wrong with the value
  };
  void show(const State& state);
  void commit();  // applies what the user is typing
  void set_visible(bool visible);

  const ScenarioField& field() const { return field_; }
  QWidget* editor() const;
  QLabel* label() const { return label_; }
  QToolButton* reset() const { return reset_; }

signals:
  void edited(const QString& value);  // empty removes the key

private:
  void show_choice(const State& state, const QString& absent);
  void show_line(const State& state, const QString& absent);
  void commit_line();

  ScenarioField field_;
  QLabel* label_;
  QToolButton* reset_;
  QComboBox* choice_ = nullptr;  // exactly one of these three is set
  NumberField* number_ = nullptr;
  QLineEdit* line_ = nullptr;
  QString shown_;  // text last shown in `line_`
  bool is_set_ = false;
};

}  // namespace rehearse::gui
