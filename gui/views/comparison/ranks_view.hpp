// Shows the ranks of the shown runs: what each did in a step as a stacked bar, and which ones delayed others.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/comparison/rank_times.hpp"
#include "gui/models/runs/session.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/table_view.hpp"
#include "gui/views/parts/when_seen.hpp"

class QLabel;

namespace rehearse::gui {

// The ranks of one run.
struct RanksOfRun {
  int run = 0;  // Run::id
  std::string name;
  RankTimes times;
};
// Returns a row per rank and, with several runs, a heading row per run. The second column is left to the
// bars.
TableData rows_of(const std::vector<RanksOfRun>& runs);

class RanksView : public QWidget {
  Q_OBJECT
public:
  RanksView(Session& session, ViewState& state, QWidget* parent = nullptr);
  const TableView& table() const { return *table_; }
  const std::vector<RanksOfRun>& ranks() const { return ranks_; }
  // Returns the rank of a row of the table's data; null for a heading.
  const RankTime* rank_of(int row) const;
  int run_of(int row) const;      // Run::id
  double scale_s(int row) const;  // seconds that the full width of its bar represents

signals:
  void computed();  // the table shows the ranks of the shown runs
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
    int rank = -1;  // -1 for a heading
  };
  std::vector<RowOf> rows_;
  std::vector<double> longest_s_;  // longest step, indexed by run
  QLabel *nothing_ = nullptr, *stragglers_ = nullptr, *legend_ = nullptr;
  QWidget* told_ = nullptr;
  TableView* table_ = nullptr;
};

}  // namespace rehearse::gui
