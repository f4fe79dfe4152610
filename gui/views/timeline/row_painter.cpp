#include "gui/views/timeline/row_painter.hpp"

#include <cstring>

#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

constexpr double kPadding = 4;         // pixels on either side of a text
constexpr double kLeastTextWidth = 9;  // pixels; narrower spans have no room for a digit
constexpr double kLeastElided = 64;
constexpr qsizetype kMostTexts = 20'000;
constexpr double kGapFrom = 5;  // pixels; spans at least this wide are separated from the next by a line
constexpr double kPale = 0.5, kDim = 0.72;  // share of the background colour

// Letters that precede a micro-batch's number, indexed by pass.
constexpr std::array<char, kPassNames.size()> kLetters = {0, 'F', 'B', 0, 'R', 'W'};

QRgb mixed(QRgb a, QRgb b, double share) {
  const auto mix = [&](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
  return qRgb(mix(qRed(a), qRed(b)), mix(qGreen(a), qGreen(b)), mix(qBlue(a), qBlue(b)));
}

QRgb faded(QRgb colour, double share) {
  return qPremultiply(
      qRgba(qRed(colour), qGreen(colour), qBlue(colour), static_cast<int>(std::lround(255 * share))));
}

// Returns the opacity for a share of busy time; even a small share stays visible.
double opacity(float busy) {
  return busy >= 1 ? 1 : 0.18 + 0.82 * busy;
}

}  // namespace

bool pattern_marks(Qt::BrushStyle pattern, int x, int y) {
  switch (pattern) {
    case Qt::BDiagPattern:
      return (x + y) % 6 == 0;
    case Qt::FDiagPattern:
      return (x - y + 6000) % 6 == 0;
    case Qt::Dense6Pattern:
      return x % 4 == 0 && y % 4 == (x / 4 % 2) * 2;
    case Qt::DiagCrossPattern:
      return (x + y) % 8 == 0 || (x - y + 8000) % 8 == 0;
    default:
      return false;
  }
}

void paint_swatch(QPainter& painter, QRect rect, Style style, bool dark) {
  const QColor colour = colour_of(kind_of(style), pass_of(style), dark);
  painter.fillRect(rect, colour);
  const Qt::BrushStyle pattern = pattern_of(kind_of(style));
  if (pattern == Qt::SolidPattern) return;
  painter.setPen(QColor::fromRgb(mixed(colour.rgb(), text_on(colour).rgb(), 0.4)));
  for (int y = 0; y < rect.height(); ++y)
    for (int x = 0; x < rect.width(); ++x)
      if (pattern_marks(pattern, x, y)) painter.drawPoint(rect.x() + x, rect.y() + y);
}

void RowPainter::prepare(const QPalette& palette, const QFont& font, double pixel_ratio) {
  const bool dark = is_dark(palette);
  const QRgb ground = palette.color(QPalette::Base).rgb();
  for (Style s = 0; s < kStyles; ++s) {
    const QColor colour = colour_of(kind_of(s), pass_of(s), dark);
    const QColor text = text_on(colour);
    const QRgb mark = mixed(colour.rgb(), text.rgb(), 0.3);
    const auto by_dimness = [&](QRgb own) {
      return std::array{own, mixed(own, ground, kPale), mixed(own, ground, kDim)};
    };
    colours_[s] = {by_dimness(colour.rgb()), by_dimness(mark), text, pattern_of(kind_of(s))};
  }
  hit_ = palette.color(QPalette::Text);
  if (font != font_ || pixel_ratio != ratio_) texts_.clear();
  font_ = font;
  metrics_ = QFontMetricsF(font);
  ratio_ = pixel_ratio;
}

RowPainter::Dimness RowPainter::dimness_of(const Piece& piece, const RowLook& look) const {
  if (look.hits && (piece.span == kNoSpan || !look.hits->contains(piece.span))) return dim;
  return look.only_critical && !piece.critical ? pale : bright;
}

void RowPainter::fill_strip(int width, int height, const RowLook& look) {
  line_.assign(static_cast<std::size_t>(width), 0);
  marked_.clear();
  for (const Piece& piece : pieces_) {
    const Colours& colours = colours_[piece.style];
    const Dimness dimness = dimness_of(piece, look);
    const QRgb full = colours.full[dimness];
    int left = static_cast<int>(std::lround(piece.left)), right = static_cast<int>(std::lround(piece.right));
    right = std::max(right, left + 1);
    if (piece.span != kNoSpan && piece.right - piece.left >= kGapFrom * ratio_) right -= std::lround(ratio_);
    left = std::max(left, 0);
    right = std::min(right, width);
    const QRgb colour = piece.busy >= 1 ? (full | 0xff000000U) : faded(full, opacity(piece.busy));
    if (left < right) std::fill(line_.begin() + left, line_.begin() + right, colour);
    if (colours.pattern != Qt::SolidPattern && piece.busy > 0.5)
      for (int x = left; x < right; ++x) marked_.push_back({x, piece.style, dimness});
  }
  if (strip_.width() != width || strip_.height() != height)
    strip_ = QImage(width, height, QImage::Format_ARGB32_Premultiplied);
  strip_.setDevicePixelRatio(ratio_);
  const int scale = std::max(1, static_cast<int>(std::lround(ratio_)));
  for (int y = 0; y < height; ++y) {
    auto* pixels = reinterpret_cast<QRgb*>(strip_.scanLine(y));
    std::memcpy(pixels, line_.data(), line_.size() * sizeof(QRgb));
    for (const Marked& marked : marked_) {
      const Colours& colours = colours_[marked.style];
      if (pattern_marks(colours.pattern, marked.x / scale, y / scale))
        pixels[marked.x] = colours.mark[marked.dimness] | 0xff000000U;
    }
  }
}

const RowPainter::Text& RowPainter::cached(quint64 key, const QString& text) {
  Text entry;
  entry.text = QStaticText(text);
  entry.text.setTextFormat(Qt::PlainText);
  entry.text.setPerformanceHint(QStaticText::AggressiveCaching);
  entry.text.prepare(QTransform(), font_);
  entry.width = metrics_.horizontalAdvance(text);
  return *texts_.insert(key, entry);
}

// Returns the name if it fits, else the micro-batch's number with or without its pass, else an elided name if
// it would still be readable. With `summary`, names are those of passes, which get the micro-batch's number.
const RowPainter::Text& RowPainter::text_of(const Timeline& timeline, int run, SpanId span, double width,
                                            bool summary) {
  static const Text kNothing;
  if (texts_.size() > kMostTexts) texts_.clear();
  const SpanColumns& spans = timeline.spans;
  const Kind kind = spans.kind[span];
  const std::int32_t microbatch = spans.microbatch[span];
  const bool numbered = microbatch >= 0 && (kind == Kind::compute || kind == Kind::communication);
  if (summary && numbered && width >= kLeastElided) {
    const quint64 key = (quint64{1} << 62) | (static_cast<quint64>(run & 0x3fffff) << 40) |
                        (static_cast<quint64>(spans.pass[span]) << 32) | static_cast<quint64>(microbatch);
    const auto known = texts_.constFind(key);
    const Text& text = known != texts_.constEnd()
                           ? *known
                           : cached(key, QString::fromStdString(timeline.name_of(span)) + QLatin1Char(' ') +
                                             QString::number(microbatch));
    if (text.width <= width) return text;
  }
  const quint64 name_key = (static_cast<quint64>(run) << 40) | (static_cast<quint64>(spans.name[span]) << 8);
  const auto name = texts_.constFind(name_key);
  const Text& full =
      name != texts_.constEnd() ? *name : cached(name_key, QString::fromStdString(timeline.name_of(span)));
  if (full.width <= width && !(summary && numbered)) return full;
  // In little room, a micro-batch's number says more than part of a name.
  if (numbered && (summary || width < kLeastElided)) {
    const char letter = kLetters[static_cast<std::size_t>(spans.pass[span])];
    for (const bool with_letter : {true, false}) {
      if (with_letter && !letter) continue;
      const quint64 key = (quint64{1} << 63) | (static_cast<quint64>(microbatch) << 8) |
                          (with_letter ? static_cast<quint64>(letter) : 0);
      const auto known = texts_.constFind(key);
      const QString short_name =
          (with_letter ? QString(QLatin1Char(letter)) : QString()) + QString::number(microbatch);
      const Text& text = known != texts_.constEnd() ? *known : cached(key, short_name);
      if (text.width <= width) return text;
    }
    return kNothing;
  }
  const auto steps = static_cast<quint64>(width / 8);
  if (steps < (numbered ? 0 : 5)) return kNothing;
  const quint64 key = name_key | std::min<quint64>(steps + 1, 250);
  const auto known = texts_.constFind(key);
  if (known != texts_.constEnd()) return *known;
  return cached(key, metrics_.elidedText(QString::fromStdString(timeline.name_of(span)), Qt::ElideRight,
                                         static_cast<double>(steps) * 8));
}

void RowPainter::paint_texts(QPainter& painter, const Timeline& timeline, int run, QRect rect,
                             const RowLook& look, bool summary) {
  if (rect.height() < metrics_.ascent() + 1) return;
  painter.setFont(font_);
  const double y = rect.y() + (rect.height() - metrics_.height()) / 2;
  QColor pen;
  for (const Piece& piece : pieces_) {
    if (piece.span == kNoSpan) continue;
    const double left = piece.left / ratio_, width = (piece.right - piece.left) / ratio_;
    if (width < kLeastTextWidth) continue;
    const double padding = width > 40 ? kPadding : 1.5;
    const Text& text = text_of(timeline, run, piece.span, width - 2 * padding, summary);
    if (text.width <= 0) continue;
    const Colours& colours = colours_[piece.style];
    QColor colour = colours.text;
    const Dimness dimness = dimness_of(piece, look);
    if (dimness != bright) {
      colour = hit_;
      colour.setAlpha(dimness == pale ? 190 : 130);
    }
    if (colour != pen) {
      painter.setPen(colour);
      pen = colour;
    }
    const double x = width > text.width + 60 ? left + padding : left + (width - text.width) / 2;
    if (colours.pattern != Qt::SolidPattern) {
      const QColor ground = QColor::fromRgb(colours.full[dimness]);
      painter.fillRect(QRectF(rect.x() + x - 2, y, text.width + 4, metrics_.height()), ground);
    }
    painter.drawStaticText(QPointF(rect.x() + x, y), text.text);
  }
}

void RowPainter::paint(QPainter& painter, const Timeline& timeline, int run, const Row& row,
                       const RowMipmap* mipmap, const TimeScale& scale, QRect rect, const RowLook& look) {
  pieces_.clear();
  pieces_of(timeline, row, mipmap, scale, pieces_);
  if (pieces_.empty()) return;
  const int width = static_cast<int>(std::ceil(scale.width));
  const int height = std::max(1, static_cast<int>(std::lround(rect.height() * ratio_)));
  fill_strip(width, height, look);
  painter.drawImage(QPointF(rect.topLeft()), strip_);
  if (look.texts) paint_texts(painter, timeline, run, rect, look, row.track < 0);
  if (look.hits) {
    const int number = static_cast<int>(&row - timeline.rows.data());
    paint_hits(painter, timeline, {&number, 1}, scale, rect, *look.hits);
  }
}

void RowPainter::paint_hits(QPainter& painter, const Timeline& timeline, std::span<const int> rows,
                            const TimeScale& scale, QRect rect, const Hits& found) const {
  const auto& hits = found.spans;
  enum : char { nothing, long_one, short_one };
  std::vector<char> marks(static_cast<std::size_t>(std::max(0.0, std::ceil(scale.width))), nothing);
  const auto width = static_cast<double>(marks.size());
  std::size_t free = marks.size();
  const auto mark = [&](double from, double to, char as) {
    for (auto x = static_cast<std::size_t>(std::clamp(from, 0.0, width)); x < std::min(to, width); ++x) {
      free -= marks[x] == nothing ? 1 : 0;
      marks[x] = std::max(marks[x], as);
    }
  };
  for (const int r : rows) {
    if (free == 0) break;
    const Row& row = timeline.rows[static_cast<std::size_t>(r)];
    auto at = std::lower_bound(hits.begin(), hits.end(), row.first);
    if (at == hits.end() || *at >= row.last) continue;
    at = std::lower_bound(at, hits.end(), timeline.first_after(row, scale.range.begin));
    const auto end = std::lower_bound(at, hits.end(), row.last);
    double painted_to = -1;
    while (at != end) {
      const double left = scale.x(timeline.spans.begin[*at]), right = scale.x(timeline.spans.end[*at]);
      if (left > scale.width) break;
      const double from = std::max(left, painted_to), to = std::max({right, left + 2, from + 1});
      if (right - left >= 3)
        mark(std::floor(from), to - 1, long_one);
      else
        mark(std::floor(from), to, short_one);
      painted_to = to;
      ++at;
      // Draw several hits within one pixel as one tick.
      if (at != end && scale.x(timeline.spans.end[*at]) < painted_to)
        at = std::lower_bound(at, end, timeline.first_after(row, scale.time(painted_to)));
    }
  }
  for (std::size_t x = 0; x < marks.size();) {
    std::size_t end = x + 1;
    while (end < marks.size() && marks[end] == marks[x]) ++end;
    const double left = rect.x() + static_cast<double>(x) / ratio_,
                 length = static_cast<double>(end - x) / ratio_;
    if (marks[x] == long_one) painter.fillRect(QRectF(left, rect.bottom() - 1, length, 2), hit_);
    if (marks[x] == short_one) painter.fillRect(QRectF(left, rect.bottom() - 3, length, 4), hit_);
    x = end;
  }
}

}  // namespace rehearse::gui
