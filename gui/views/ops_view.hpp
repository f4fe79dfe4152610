// Every kind of op of the current run: how often, how long, and at what rate.
#pragma once

#include <QWidget>
#include <atomic>
#include <memory>

#include "gui/models/session.hpp"
#include "gui/views/table_view.hpp"

class QComboBox;
class QLabel;
class QLineEdit;
class QTimer;

namespace rehearse::gui {

class OpsView : public QWidget {
  Q_OBJECT
public:
  enum class Stretch { visible, step, run };
  OpsView(Session& session, ViewState& state, QWidget* parent = nullptr);
  ~OpsView() override;
  void set_stretch(Stretch stretch);
  const TableView& table() const { return *table_; }

signals:
  void counted();  // the table is of what is asked for

protected:
  void showEvent(QShowEvent* event) override;

private:
  void changed(int delay_ms);
  void count();

  Session& session_;
  ViewState& state_;
  QTimer* soon_ = nullptr;
  bool outdated_ = true;
  std::shared_ptr<std::atomic<bool>> cancelled_;  // of what is under way
  QLabel *nothing_ = nullptr, *about_ = nullptr;
  QWidget* told_ = nullptr;
  QComboBox* stretch_ = nullptr;
  QLineEdit* filter_ = nullptr;
  TableView* table_ = nullptr;
};

}  // namespace rehearse::gui
