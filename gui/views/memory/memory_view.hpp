// Shows memory: stacked bars per stage of the shown runs, and of one stage the memory over time and the
// largest tensors.
#pragma once

#include <QWidget>
#include <map>
#include <memory>
#include <vector>

#include "gui/models/memory/live_memory.hpp"
#include "gui/models/memory/memory_stages.hpp"
#include "gui/models/runs/session.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/when_seen.hpp"

class QLabel;

namespace rehearse::gui {

class MemoryBars;
class MemoryPlot;
class TableView;

class MemoryView : public QWidget {
  Q_OBJECT
public:
  MemoryView(Session& session, ViewState& state, QWidget* parent = nullptr);

  MemoryBars* bars() const { return bars_; }
  const TableView& tensors() const { return *tensors_; }
  const QLabel& moment() const { return *moment_; }  // says when the tensors are live
  const std::vector<RunMemory>& memory() const { return memory_; }
  void choose(int run, int stage);  // indices into memory() and its stages

signals:
  void ready();  // the memory of all shown runs and of the chosen stage has been read

protected:
  void changeEvent(QEvent* event) override;

private:
  struct Known {
    std::shared_ptr<const Judged> judged;
    RunMemory memory;
    bool reading = false;
  };
  void gather();
  void read_series();
  void list_tensors();
  void step(int by);
  void choose_fullest();
  QString key() const;  // HTML legend of the colours

  Session& session_;
  ViewState& state_;
  std::map<int, Known> known_;  // by Run::id
  std::vector<RunMemory> memory_;
  int run_ = -1, stage_ = -1;  // indices; -1 for none
  bool by_hand_ = false;       // the user chose the stage
  Latest series_{this};
  LiveMemory live_;
  Time aligned_ = 0;  // of the chosen run
  WhenSeen moved_{this, [this] { list_tensors(); }};
  QLabel *key_ = nullptr, *moment_ = nullptr;
  TableView* tensors_ = nullptr;
  MemoryBars* bars_ = nullptr;
  MemoryPlot* plot_ = nullptr;
};

}  // namespace rehearse::gui
