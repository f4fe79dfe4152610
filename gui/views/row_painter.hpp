// Paints what a row shows: spans with their texts where there is room, and pixels of many.
#pragma once

#include <QFontMetricsF>
#include <QHash>
#include <QImage>
#include <QPainter>
#include <QPalette>
#include <QStaticText>

#include "gui/models/mipmap.hpp"
#include "gui/models/span_search.hpp"

namespace rehearse::gui {

struct RowLook {
  bool texts = true;
  bool only_critical = false;  // all else is pale
  const Hits* hits = nullptr;  // all else is dimmed, if any
};

class RowPainter {
public:
  void prepare(const QPalette& palette, const QFont& font, double pixel_ratio);
  // `scale`: the timeline's time on the rectangle's width, its left 0, in the device's pixels.
  void paint(QPainter& painter, const Timeline& timeline, int run, const Row& row, const RowMipmap* mipmap,
             const TimeScale& scale, QRect rect, const RowLook& look);
  // A tick at each hit, so that those too small to be seen are found too; of several rows in one place.
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
  // Beside the critical path things are pale, so that they can still be read; beside hits they are dim.
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
  std::vector<Marked> marked_;  // pixels with a pattern
  QImage strip_;
  QHash<quint64, Text> texts_;
};

// Whether a pattern marks the pixel; the same as in legends.
bool pattern_marks(Qt::BrushStyle pattern, int x, int y);
// A swatch of a style for legends.
void paint_swatch(QPainter& painter, QRect rect, Style style, bool dark);

}  // namespace rehearse::gui
