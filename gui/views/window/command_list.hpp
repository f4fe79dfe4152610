// Lists every action with its shortcut; opened with `?`, it is also a palette to find and run actions.
#pragma once

#include <QAbstractTableModel>
#include <QAction>
#include <QDialog>
#include <vector>

class QLineEdit;
class QTableView;

namespace rehearse::gui {

class CommandModel : public QAbstractTableModel {
  Q_OBJECT
public:
  explicit CommandModel(std::vector<QAction*> actions, QObject* parent = nullptr);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;  // text, shortcut, menu, description
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  QAction* action(int row) const { return actions_[static_cast<std::size_t>(row)]; }

private:
  std::vector<QAction*> actions_;
};

class CommandList : public QDialog {
  Q_OBJECT
public:
  explicit CommandList(std::vector<QAction*> actions, QWidget* parent = nullptr);

private:
  void run_chosen();

  CommandModel* model_;
  QLineEdit* search_;
  QTableView* table_;
};

}  // namespace rehearse::gui
