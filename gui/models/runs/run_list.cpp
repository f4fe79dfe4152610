#include "gui/models/runs/run_list.hpp"

#include <fmt/format.h>

#include <QFont>
#include <QMimeData>
#include <algorithm>

#include "models/text/text.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr const char* kMime = "application/x-rehearse-run";

QString samples_text(double samples_per_s) {
  if (samples_per_s <= 0) return "-";
  return QString::fromStdString(with_prefix(samples_per_s));  // formatted as in the Why view and in reports
}

std::shared_ptr<const Run> base_of(const Session& session) {
  const auto shown = session.shown();
  return shown.empty() ? nullptr : shown.front();
}

}  // namespace

QString step_text(double seconds) {
  return seconds > 0 ? QString::fromStdString(duration_text(std::llround(seconds * 1e9))) : "-";
}

QString difference_text(double a, double b) {
  if (a <= 0 || b <= 0) return {};
  const double ratio = a / b, percent = 100 * (ratio - 1);
  if (ratio >= 10) return QString::fromStdString(fmt::format("{:.3g} x", ratio));
  // Avoids "-0.0 %".
  return QString::fromStdString(std::abs(percent) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", percent));
}

QString source_text(Run::Source source) {
  switch (source) {
    case Run::Source::predicted:
      return "predicted";
    case Run::Source::measured:
      return "measured";
    case Run::Source::profiler:
      break;
  }
  return "profiler";
}

RunList::RunList(Session& session, QObject* parent) : QAbstractTableModel(parent), session_(session) {
  for (const auto& run : session_.runs()) ids_.push_back(run->id);
  connect(&session_, &Session::runs_changed, this, &RunList::follow_runs);
  // Updates all rows, because the changed run can be the base.
  connect(&session_, &Session::run_changed, this, &RunList::all_changed);
  connect(&session_, &Session::shown_changed, this, &RunList::all_changed);
}

int RunList::id(int row) const {
  return row >= 0 && row < static_cast<int>(ids_.size()) ? ids_[static_cast<std::size_t>(row)] : 0;
}

int RunList::row_of(int id) const {
  const auto at = std::find(ids_.begin(), ids_.end(), id);
  return at == ids_.end() ? -1 : static_cast<int>(at - ids_.begin());
}

int RunList::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(ids_.size());
}

int RunList::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant RunList::headerData(int section, Qt::Orientation orientation, int role) const {
  static const std::array<const char*, kColumns> kNames = {"Run", "Source", "Step", "Samples/s",
                                                           "Difference"};
  static const std::array<const char*, kColumns> kTips = {
      "Name of the run; its box shows whether it is on the timeline",
      "Predicted or measured by Rehearse, or recorded by another profiler", "Time of one training step",
      "Samples trained per second", "Step time relative to that of the base, the first run that is shown"};
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const auto at = static_cast<std::size_t>(section);
  if (role == Qt::DisplayRole) return kNames[at];
  if (role == Qt::ToolTipRole) return kTips[at];
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(Qt::AlignVCenter | (section < step_time ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

QString RunList::tooltip(const Run& run) const {
  QString text = QString::fromStdString(run.name);
  if (!run.path.empty()) text += '\n' + QString::fromStdString(run.path);
  text += '\n' + source_text(run.source);
  if (run.figures.devices > 0)
    text += QString(", %1 %2").arg(run.figures.devices).arg(run.figures.devices == 1 ? "device" : "devices");
  if (run.figures.samples_per_s > 0)
    text += QString(", %1 samples/s").arg(samples_text(run.figures.samples_per_s));
  if (!run.figures.bottleneck.empty()) text += '\n' + QString::fromStdString(run.figures.bottleneck);
  return text;
}

QVariant RunList::data(const QModelIndex& index, int role) const {
  const auto run = session_.run(id(index.row()));
  if (!index.isValid() || !run) return {};
  const auto base = base_of(session_);
  const bool is_base = base && base->id == run->id;
  switch (role) {
    case IdRole:
      return run->id;
    case BaseRole:
      return is_base;
    case PlaceRole: {
      const auto shown = session_.shown();
      const auto at = std::find(shown.begin(), shown.end(), run);
      return at == shown.end() ? -1 : static_cast<int>(at - shown.begin());
    }
    case DetailRole:
      if (index.column() == name) return source_text(run->source);
      if (index.column() == step_time && run->figures.samples_per_s > 0)
        return samples_text(run->figures.samples_per_s) + "/s";
      return {};
    case Qt::ToolTipRole:
      return tooltip(*run);
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(Qt::AlignVCenter |
                                 (index.column() < step_time ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::FontRole: {
      QFont font;
      font.setBold(is_base && index.column() == name);
      return font;
    }
    case Qt::CheckStateRole:
      if (index.column() != name) return {};
      return session_.is_shown(run->id) ? Qt::Checked : Qt::Unchecked;
    case Qt::AccessibleTextRole:
      if (index.column() != name) break;
      return QString("%1, %2%3")
          .arg(QString::fromStdString(run->name), source_text(run->source), is_base ? ", base" : "");
    default:
      break;
  }
  if (role != Qt::DisplayRole && role != Qt::EditRole && role != Qt::AccessibleTextRole) return {};
  switch (index.column()) {
    case name:
      return QString::fromStdString(run->name);
    case source:
      return source_text(run->source);
    case step_time:
      return step_text(run->figures.step_time_s);
    case samples:
      return samples_text(run->figures.samples_per_s);
    case difference:
      if (is_base) return "base";
      return base ? difference_text(run->figures.step_time_s, base->figures.step_time_s) : QString();
    default:
      return {};
  }
}

bool RunList::setData(const QModelIndex& index, const QVariant& value, int role) {
  const auto run = session_.run(id(index.row()));
  if (!run || index.column() != name) return false;
  if (role == Qt::CheckStateRole) {
    session_.set_shown(run->id, value.toInt() == Qt::Checked);
    return true;
  }
  const QString text = value.toString().simplified();
  if (role != Qt::EditRole || text.isEmpty()) return false;
  session_.rename(run->id, text.toStdString());
  return true;
}

Qt::ItemFlags RunList::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::ItemIsDropEnabled;
  Qt::ItemFlags flags =
      Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsDragEnabled | Qt::ItemNeverHasChildren;
  if (index.column() == name) flags |= Qt::ItemIsEditable | Qt::ItemIsUserCheckable;
  return flags;
}

QStringList RunList::mimeTypes() const {
  return {kMime};
}

QMimeData* RunList::mimeData(const QModelIndexList& indexes) const {
  if (indexes.isEmpty()) return nullptr;
  auto* data = new QMimeData;
  data->setData(kMime, QByteArray::number(id(indexes.front().row())));
  return data;
}

bool RunList::dropMimeData(const QMimeData* data, Qt::DropAction action, int row, int,
                           const QModelIndex& parent) {
  if (!data->hasFormat(kMime) || action != Qt::MoveAction) return false;
  const int from = row_of(data->data(kMime).toInt());
  if (from < 0) return false;
  int to = row >= 0 ? row : parent.isValid() ? parent.row() : rowCount();
  if (from < to) --to;  // rows below the removed one move up
  session_.move(id(from), to);
  return true;
}

void RunList::follow_runs() {
  std::vector<int> now;
  for (const auto& run : session_.runs()) now.push_back(run->id);
  // First removes the closed runs one by one, then appends the new ones, then fixes the order.
  for (int row = rowCount() - 1; row >= 0; --row) {
    const auto at = static_cast<std::size_t>(row);
    if (std::find(now.begin(), now.end(), ids_[at]) != now.end()) continue;
    beginRemoveRows({}, row, row);
    ids_.erase(ids_.begin() + row);
    endRemoveRows();
  }
  std::vector<int> came;
  for (const int id : now)
    if (row_of(id) < 0) came.push_back(id);
  if (!came.empty()) {
    beginInsertRows({}, rowCount(), rowCount() + static_cast<int>(came.size()) - 1);
    ids_.insert(ids_.end(), came.begin(), came.end());
    endInsertRows();
  }
  if (ids_ != now) {
    emit layoutAboutToBeChanged();
    const std::vector<int> before = std::exchange(ids_, now);
    for (const QModelIndex& index : persistentIndexList()) {
      const int row = row_of(before[static_cast<std::size_t>(index.row())]);
      changePersistentIndex(index, createIndex(row, index.column()));
    }
    emit layoutChanged();
  }
  all_changed();
}

void RunList::all_changed() {
  if (!ids_.empty()) emit dataChanged(createIndex(0, 0), createIndex(rowCount() - 1, kColumns - 1));
}

}  // namespace rehearse::gui
