// Draws times that add up as horizontal bars of coloured parts, with a legend.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/comparison/comparison.hpp"

namespace rehearse::gui {

struct BarPart {
  QString name;
  Kind kind = Kind::compute;
  Pass pass = Pass::none;
  int shade = 0;  // number among parts of the same kind and pass: 0, 1, ...
  double seconds = 0;
};
struct Bar {
  QString name;  // shown beside the bar if there are several
  std::vector<BarPart> parts;
};

// Returns the breakdown of a step without parts of less than a thousandth of it.
Bar breakdown_bar(const RunFigures& figures);
Bar path_bar(const RunFigures& figures);
// Returns a bar per run; the same parts have the same colours.
std::vector<Bar> breakdown_bars(const Runs& runs, const std::vector<std::string>& names);

class StackedBars : public QWidget {
  Q_OBJECT
public:
  explicit StackedBars(QWidget* parent = nullptr);
  void set(std::vector<Bar> bars);  // all bars share one scale
  const std::vector<Bar>& bars() const { return bars_; }

  // Geometry at a given width, for painting and for tests.
  struct Segment {
    std::size_t bar = 0, part = 0;
    QRectF box;
  };
  struct LegendEntry {
    BarPart part;  // includes the time if there is only one bar
    QRectF box;
    QString text;
  };
  struct Layout {
    std::vector<Segment> segments;
    std::vector<LegendEntry> legend;
    double bar_height = 0, names_width = 0, totals_width = 0, height = 0;
  };
  Layout layout_for(int width) const;

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;  // shows tooltips

private:
  double total_of(const Bar& bar) const;
  std::vector<Bar> bars_;
};

}  // namespace rehearse::gui
