// Provides the session's runs as a table: what they are, whether they are shown, and how they compare with
// the base.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/models/runs/session.hpp"

namespace rehearse::gui {

// Returns e.g. "24.6 s"; "-" if the time is not known.
QString step_text(double seconds);
// Returns a / b - 1 as "+12.3 %", or a / b as "21.5 x" from ten times on; empty if either is not known.
QString difference_text(double a, double b);
QString source_text(Run::Source source);  // "predicted"

class RunList : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { name, source, step_time, samples, difference, kColumns };
  // IdRole: Run::id. PlaceRole: index in Session::shown(), which determines the color; -1 if not shown.
  // BaseRole: whether the run is the base. DetailRole: the second line of a narrow list, such as "predicted"
  // below the name and "1,536/s" below the step time.
  enum Role { IdRole = Qt::UserRole, PlaceRole, BaseRole, DetailRole };

  explicit RunList(Session& session, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  // Rows can be dragged to other positions.
  Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
  QStringList mimeTypes() const override;
  QMimeData* mimeData(const QModelIndexList& indexes) const override;
  bool dropMimeData(const QMimeData* data, Qt::DropAction action, int row, int column,
                    const QModelIndex& parent) override;

  int id(int row) const;     // 0 if there is no such row
  int row_of(int id) const;  // -1 if the run is not in the list

private:
  void follow_runs();
  void all_changed();
  QString tooltip(const Run& run) const;

  Session& session_;
  std::vector<int> ids_;  // by row, as the views know them
};

}  // namespace rehearse::gui
