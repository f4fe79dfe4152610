// Shows the plans of a search in a table, a scatter plot with the Pareto front, and parallel coordinates,
// which share their filter and selection.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "gui/models/runs/session.hpp"
#include "gui/models/tables/result_file.hpp"
#include "gui/views/parts/table_view.hpp"

class QBoxLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QSplitter;

namespace rehearse::gui {

class PlanCoordinates;
class PlanScatter;

// A plan's scenario, to run or to change.
struct PlanScenario {
  QString path, name;
};

class PlanView : public QWidget {
  Q_OBJECT
public:
  PlanView(Session& session, ViewState& state, QWidget* parent = nullptr);
  // `title` names what was planned; if empty, the file's own description is shown.
  void show_plans(const QString& path, ReadPlans read, const QString& title = {});
  // Shows the progress of a running search; an empty text hides it.
  void show_progress(const QString& text);
  const QString& path() const { return path_; }  // empty if no file is open
  // Writes the plan file and the plans' scenarios. Throws RunError if they cannot be written.
  void save_plans(const QString& folder);

  const PlanFile& plans() const { return *file_; }
  // Indexed by plan: whether it passes the filter.
  const std::vector<bool>& shown_plans() const { return shown_; }
  TableView& table() { return *rows_; }
  PlanScatter& scatter() { return *scatter_; }
  PlanCoordinates& coordinates() { return *coordinates_; }
  QLineEdit& filter_field() { return *filter_; }

signals:
  void open_requested(const QString& path);
  void cancel_requested();
  void run_requested(const std::vector<rehearse::gui::PlanScenario>& scenarios);
  void change_requested(const rehearse::gui::PlanScenario& scenario);
  void message(const QString& text);

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  void make_head(QBoxLayout& into);
  void make_plots(QBoxLayout& into);
  void make_commands();
  QAction* make_switch(const QString& text, const QString& short_text, const QString& key,
                       const QString& tip);
  void tell_search();
  void apply_filter();
  void clear_filter();
  void follow_selection();
  void pick(std::size_t plan, bool beside_others);
  std::vector<PlanScenario> chosen();  // reports which of the selected plans have no scenario
  void open_chosen();
  void change_chosen();
  void choose_folder();

  std::shared_ptr<const PlanFile> file_ = std::make_shared<const PlanFile>();
  TableData data_;
  QString path_, title_;
  std::vector<bool> shown_;
  QWidget *told_ = nullptr, *searching_ = nullptr;
  QLabel *nothing_ = nullptr, *progress_ = nullptr, *summary_ = nullptr, *count_ = nullptr;
  QLineEdit* filter_ = nullptr;
  QPlainTextEdit* details_ = nullptr;
  QAction *fits_ = nullptr, *simulated_ = nullptr, *pareto_ = nullptr, *clear_ = nullptr, *open_ = nullptr,
          *change_ = nullptr, *save_ = nullptr, *tell_more_ = nullptr;
  QSplitter *split_ = nullptr, *plots_ = nullptr;
  PlanScatter* scatter_ = nullptr;
  PlanCoordinates* coordinates_ = nullptr;
  TableView* rows_ = nullptr;
};

}  // namespace rehearse::gui
