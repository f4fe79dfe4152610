// The runs of the session as a table: what they are, whether they are shown, and how they compare with the
// base.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/models/session.hpp"

namespace rehearse::gui {

// "24.6 s" of seconds; "-" if they are not known.
QString step_text(double seconds);
// "+12.3 %" of a / b - 1, "21.5 x" from ten times on; empty if either is not known.
QString difference_text(double a, double b);
QString source_text(Run::Source source);  // "predicted"

class RunList : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { name, source, step_time, samples, difference, kColumns };
  // Run::id; its place in Session::shown(), by which it is coloured, -1 if it is not shown; whether it is the
  // base; what a narrow list tells beneath: "predicted" beneath the name, "1,536/s" beneath the step time.
  enum Role { IdRole = Qt::UserRole, PlaceRole, BaseRole, DetailRole };

  explicit RunList(Session& session, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  // Rows are dragged to other places.
  Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
  QStringList mimeTypes() const override;
  QMimeData* mimeData(const QModelIndexList& indexes) const override;
  bool dropMimeData(const QMimeData* data, Qt::DropAction action, int row, int column,
                    const QModelIndex& parent) override;

  int id(int row) const;     // 0 if there is no such row
  int row_of(int id) const;  // -1 if it is gone

private:
  void follow_runs();
  void all_changed();
  QString tooltip(const Run& run) const;

  Session& session_;
  std::vector<int> ids_;  // of the rows, as the views know them
};

}  // namespace rehearse::gui
