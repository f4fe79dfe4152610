// One key in the form of a scenario: its label, what sets it, and a button that takes it out of the text.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <optional>

#include "gui/models/scenario_fields.hpp"

namespace rehearse::gui {

class NumberField;

class FormRow : public QObject {
  Q_OBJECT
public:
  FormRow(const ScenarioField& field, QWidget& body);
  ~FormRow() override;  // its widgets go, too, as soon as nobody is in them

  // What is to be shown of the key.
  struct State {
    std::optional<QString> value;  // in the text
    QString usual;                 // what it comes to if it is left out; empty: not known
    QString instead;               // that gives it in another way: "file lab.toml"
    QString why_unused;            // it makes no difference as the rest stands; empty: it does
    QString error;                 // what is wrong with it
  };
  void show(const State& state);
  void commit();  // takes over what is being typed
  void set_visible(bool visible);

  const ScenarioField& field() const { return field_; }
  QWidget* editor() const;
  QLabel* label() const { return label_; }
  QToolButton* reset() const { return reset_; }

signals:
  void edited(const QString& value);  // empty: to be left out

private:
  void show_choice(const State& state, const QString& absent);
  void show_line(const State& state, const QString& absent);
  void commit_line();

  ScenarioField field_;
  QLabel* label_;
  QToolButton* reset_;
  QComboBox* choice_ = nullptr;  // one of these
  NumberField* number_ = nullptr;
  QLineEdit* line_ = nullptr;
  QString shown_;  // by the line
  bool is_set_ = false;
};

}  // namespace rehearse::gui
