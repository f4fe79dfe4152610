// The form of a scenario: single keys of its text, shown as they are written and changed in place.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QScrollArea>
#include <QTimer>
#include <vector>

#include "gui/models/scenario_check.hpp"
#include "gui/models/scenario_draft.hpp"
#include "gui/models/scenario_fields.hpp"

namespace rehearse::gui {

class NumberField;

class ScenarioForm : public QScrollArea {
  Q_OBJECT
public:
  explicit ScenarioForm(QWidget* parent = nullptr);

  void set_draft(ScenarioDraft& draft);  // must be there until another one is set
  // The defaults to show, or the field that is wrong; of a text that is wrong the last known defaults stay.
  void show_check(const CheckedScenario& checked);
  void commit();                             // takes over a number that is being typed
  QWidget* field(const QString& key) const;  // "training.micro_batch", "servers"; null if there is none

protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  struct Row {
    const ScenarioField* field;
    QLabel* label;
    QComboBox* choice;  // one of both
    NumberField* number;
  };
  void build();
  void refresh();
  void refresh_choice(const Row& row, const QString& key);
  void set_key(const Row& row, const QString& value);
  QString gradients() const;

  std::vector<Row> rows_;
  ScenarioDraft* draft_ = nullptr;
  QMetaObject::Connection connection_;
  QTimer later_;
  CheckedScenario checked_;
  QMap<QString, QString> usual_;  // of the last text that was right
};

}  // namespace rehearse::gui
