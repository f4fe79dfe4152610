// Edits a scenario in a form: single keys of its text, shown as they are written and changed in place.
#pragma once

#include <QScrollArea>
#include <QSet>
#include <QTimer>
#include <memory>
#include <vector>

#include "gui/models/scenario/scenario_check.hpp"
#include "gui/models/scenario/scenario_draft.hpp"
#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/scenario_keys.hpp"
#include "gui/models/work/background.hpp"

class QLabel;

namespace rehearse::gui {

class FormRow;
class SettingFinder;

// Common keys always have fields; other keys have one if the text sets them or the user picks them in a
// search.
class ScenarioForm : public QWidget {
  Q_OBJECT
public:
  explicit ScenarioForm(QWidget* parent = nullptr);
  ~ScenarioForm() override;

  void set_draft(ScenarioDraft& draft);  // `draft` must outlive its display in the form
  // Shows the resolved defaults, or marks the field with the error; a wrong text keeps the last known
  // defaults.
  void show_check(const CheckedScenario& checked);
  void commit();  // applies what the user is typing
  // Returns the input widget of a key ("training.micro_batch", "servers", "cluster.slow[0].factor"); null if
  // it has none.
  QWidget* field(const QString& key) const;

  void find();  // moves the focus to the search field for settings
  SettingFinder& finder() { return *finder_; }
  bool knows_keys() const { return keys_ != nullptr; }

protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  FormRow* row(const QString& key) const;
  FormRow& add_row(const ScenarioField& field);
  void lay_out();      // arranges the rows in groups
  void follow_text();  // adds rows for what the text sets, and removes others
  void refresh();
  void refresh_row(FormRow& row, const QString& gradients, const QString& wrong);
  ScenarioField searched_field(const FormRow& row) const;  // the row's field with the key it has in this text
  bool is_found(const FormRow& row) const;                 // matches the search words
  FormRow* named_row() const;  // the row whose key the search words are; null if there is none
  void filter();
  void choose(const QString& path);
  void go_to(QWidget* editor);
  void set_key(const ScenarioField& field, const QString& value);
  QString known(const QString& key) const;  // the value in the text, or else its resolved default
  QString why_unused(const ScenarioField& field, const QString& gradients) const;

  SettingFinder* finder_;
  QScrollArea* scroll_;
  QWidget* body_;
  std::vector<std::unique_ptr<FormRow>> rows_;  // the common ones first
  std::vector<QLabel*> titles_;                 // of the groups
  QSet<QString> chosen_;                        // uncommon keys that keep their fields even without a value
  ScenarioDraft* draft_ = nullptr;
  QMetaObject::Connection connection_;
  QTimer later_;
  CheckedScenario checked_;
  QMap<QString, QString> usual_;                          // resolved defaults of the last valid text
  std::shared_ptr<const std::vector<ScenarioKey>> keys_;  // null until read
  std::vector<ScenarioField> findable_;                   // fields for all of keys_ that have values
  Latest reading_keys_{this};
};

}  // namespace rehearse::gui
