// Ranks of the shown runs: what each did in a step as a stacked bar, and who kept the others waiting.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/background.hpp"
#include "gui/models/rank_times.hpp"
#include "gui/models/session.hpp"
#include "gui/views/table_view.hpp"
#include "gui/views/when_seen.hpp"

class QLabel;

namespace rehearse::gui {

// One run's.
struct RanksOfRun {
  int run = 0;  // Run::id
  std::string name;
  RankTimes times;
};
// A row a rank; with a heading a run where there are several. The second column is left to bars.
TableData rows_of(const std::vector<RanksOfRun>& runs);

class RanksView : public QWidget {
  Q_OBJECT
public:
  RanksView(Session& session, ViewState& state, QWidget* parent = nullptr);
  const TableView& table() const { return *table_; }
  const std::vector<RanksOfRun>& ranks() const { return ranks_; }
  // The rank of a row of the table's data; null: it is a heading.
  const RankTime* rank_of(int row) const;
  int run_of(int row) const;      // Run::id
  double scale_s(int row) const;  // what the whole width of its bar stands for

signals:
  void computed();  // the table is of the runs that are shown
  void rank_chosen(int run, int process);

protected:
  void changeEvent(QEvent* event) override;

private:
  void compute();
  void tell();
  QString legend() const;

  Session& session_;
  WhenSeen again_{this, [this] { compute(); }};
  Latest work_{this};
  std::vector<RanksOfRun> ranks_;
  struct RowOf {
    std::size_t run = 0;
    int rank = -1;  // -1: heading
  };
  std::vector<RowOf> rows_;
  std::vector<double> longest_s_;  // by run
  QLabel *nothing_ = nullptr, *stragglers_ = nullptr, *legend_ = nullptr;
  QWidget* told_ = nullptr;
  TableView* table_ = nullptr;
};

}  // namespace rehearse::gui
