// The form of a scenario: single keys of its text, shown as they are written and changed in place.
#pragma once

#include <QScrollArea>
#include <QSet>
#include <QTimer>
#include <memory>
#include <vector>

#include "gui/models/background.hpp"
#include "gui/models/scenario_check.hpp"
#include "gui/models/scenario_draft.hpp"
#include "gui/models/scenario_fields.hpp"
#include "gui/models/scenario_keys.hpp"

class QLabel;

namespace rehearse::gui {

class FormRow;
class SettingFinder;

// The common keys have fields of their own, and so do all that the text sets and those that are found by
// words.
class ScenarioForm : public QWidget {
  Q_OBJECT
public:
  explicit ScenarioForm(QWidget* parent = nullptr);
  ~ScenarioForm() override;

  void set_draft(ScenarioDraft& draft);  // must be there until another one is set
  // The defaults to show, or the field that is wrong; of a text that is wrong the last known defaults stay.
  void show_check(const CheckedScenario& checked);
  void commit();  // takes over what is being typed
  // "training.micro_batch", "servers", "cluster.slow[0].factor"; null if there is none.
  QWidget* field(const QString& key) const;

  void find();  // moves the focus to where settings are found by words
  SettingFinder& finder() { return *finder_; }
  bool knows_keys() const { return keys_ != nullptr; }

protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

private:
  FormRow* row(const QString& key) const;
  FormRow& add_row(const ScenarioField& field);
  void lay_out();      // the rows, in groups
  void follow_text();  // rows for what the text sets
  void refresh();
  void refresh_row(FormRow& row, const QString& gradients, const QString& wrong);
  bool is_found(const FormRow& row) const;  // by the words
  void filter();
  void choose(const QString& path);
  void go_to(QWidget* editor);
  void set_key(const ScenarioField& field, const QString& value);
  QString known(const QString& key) const;  // as the text says, or as it comes to
  QString why_unused(const ScenarioField& field, const QString& gradients) const;

  SettingFinder* finder_;
  QScrollArea* scroll_;
  QWidget* body_;
  std::vector<std::unique_ptr<FormRow>> rows_;  // the common ones first
  std::vector<QLabel*> titles_;                 // of groups
  QSet<QString> chosen_;                        // further keys that keep their fields without a value
  ScenarioDraft* draft_ = nullptr;
  QMetaObject::Connection connection_;
  QTimer later_;
  CheckedScenario checked_;
  QMap<QString, QString> usual_;                          // of the last text that was right
  std::shared_ptr<const std::vector<ScenarioKey>> keys_;  // null: being read
  std::vector<ScenarioField> findable_;                   // of keys_ that have values
  Latest reading_keys_{this};
};

}  // namespace rehearse::gui
