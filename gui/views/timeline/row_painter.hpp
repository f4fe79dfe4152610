// Paints a row of the timeline: spans with texts where there is room, and aggregated pixels where many are
// small.
#pragma once

#include <QFontMetricsF>
#include <QHash>
#include <QImage>
#include <QPainter>
#include <QPalette>
#include <QStaticText>

#include "gui/models/timeline/mipmap.hpp"
#include "gui/models/tracks/span_search.hpp"

namespace rehearse::gui {

struct RowLook {
  bool texts = true;
  bool only_critical = false;  // draw everything off the critical path pale
  const Hits* hits = nullptr;  // if set, dim everything else
};

class RowPainter {
public:
  void prepare(const QPalette& palette, const QFont& font, double pixel_ratio);
  // `scale` maps the timeline's time to the rectangle's width in device pixels, starting at 0.
  void paint(QPainter& painter, const Timeline& timeline, int run, const Row& row, const RowMipmap* mipmap,
             const TimeScale& scale, QRect rect, const RowLook& look);
  // Draws a tick at each hit of the rows, all in one rectangle, so that even tiny spans are noticed.
  void paint_hits(QPainter& painter, const Timeline& timeline, std::span<const int> rows,
                  const TimeScale& scale, QRect rect, const Hits& found) const;

private:
  struct Colours {
    std::array<QRgb, 3> full, mark;  // by Dimness
    QColor text;
    Qt::BrushStyle pattern;
  };
  struct Text {
    QStaticText text;
    double width = 0;
  };
  void fill_strip(int width, int height, const RowLook& look);
  void paint_texts(QPainter& painter, const Timeline& timeline, int run, QRect rect, const RowLook& look,
                   bool summary);
  const Text& text_of(const Timeline& timeline, int run, SpanId span, double width, bool summary);
  const Text& cached(quint64 key, const QString& text);
  // Spans off the critical path are pale, so that they stay readable; spans that a search does not hit are
  // dim.
  enum Dimness : std::uint8_t { bright, pale, dim };
  Dimness dimness_of(const Piece& piece, const RowLook& look) const;

  std::array<Colours, kStyles> colours_{};
  QColor hit_;
  QFont font_;
  QFontMetricsF metrics_{QFont()};
  double ratio_ = 1;
  std::vector<Piece> pieces_;
  std::vector<QRgb> line_;
  struct Marked {
    int x = 0;
    Style style = 0;
    Dimness dimness = bright;
  };
  std::vector<Marked> marked_;  // pixels drawn with a pattern
  QImage strip_;
  QHash<quint64, Text> texts_;
};

// Returns whether the pattern marks the pixel; legends use the same rule.
bool pattern_marks(Qt::BrushStyle pattern, int x, int y);
// Paints a swatch of a style for legends.
void paint_swatch(QPainter& painter, QRect rect, Style style, bool dark);

}  // namespace rehearse::gui
