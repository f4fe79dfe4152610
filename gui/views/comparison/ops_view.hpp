// Lists every kind of op of the current run with its count, time and rate.
#pragma once

#include <QWidget>

#include "gui/models/runs/session.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/table_view.hpp"
#include "gui/views/parts/when_seen.hpp"

class QComboBox;
class QLabel;
class QLineEdit;

namespace rehearse::gui {

class OpsView : public QWidget {
  Q_OBJECT
public:
  enum class Stretch { visible, step, run };
  OpsView(Session& session, ViewState& state, QWidget* parent = nullptr);
  void set_stretch(Stretch stretch);
  const TableView& table() const { return *table_; }

signals:
  void counted();  // the table shows what was asked for

private:
  void count();

  Session& session_;
  ViewState& state_;
  WhenSeen again_{this, [this] { count(); }};
  Latest work_{this};
  QLabel *nothing_ = nullptr, *about_ = nullptr;
  QWidget* told_ = nullptr;
  QComboBox* stretch_ = nullptr;
  QLineEdit* filter_ = nullptr;
  TableView* table_ = nullptr;
};

}  // namespace rehearse::gui
