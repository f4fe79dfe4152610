#include "gui/views/line_raster.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace rehearse::gui {

namespace {

constexpr int kBits = 16;  // behind the point of places across a line
constexpr std::int64_t kOne = 1 << kBits;
constexpr std::ptrdiff_t kBandPixels = 100'000;

// `share` of 256.
QRgb blended(QRgb under, QRgb over, unsigned share) {
  const unsigned rest = 256 - share;
  const unsigned red_blue = ((under & 0xff00ff) * rest + (over & 0xff00ff) * share) >> 8 & 0xff00ff;
  const unsigned green = ((under & 0x00ff00) * rest + (over & 0x00ff00) * share) >> 8 & 0x00ff00;
  return 0xff000000U | red_blue | green;
}

std::int64_t fixed(double value) {
  return static_cast<std::int64_t>(value * static_cast<double>(kOne));
}

// Pixels across a line, of which [low, high) is covered; `part`, of 256: how much of the step along it is.
struct Step {
  QRgb* pixels;         // of this step, the first across
  std::ptrdiff_t next;  // from one across to the next
  QRgb colour;
  int least, most;  // [least, most): within the clip

  void cover(std::int64_t low, std::int64_t high, unsigned part) const {
    const auto first = static_cast<int>(low >> kBits), last = static_cast<int>((high - 1) >> kBits);
    if (first == last) return blend(first, static_cast<unsigned>(high - low), part);
    blend(first, static_cast<unsigned>(kOne - (low & (kOne - 1))), part);
    for (int at = first + 1; at < last; ++at) blend(at, kOne, part);
    blend(last, static_cast<unsigned>(((high - 1) & (kOne - 1)) + 1), part);
  }
  void blend(int at, unsigned covered, unsigned part) const {
    if (at < least || at >= most) return;
    QRgb& pixel = pixels[at * next];
    pixel = blended(pixel, colour, covered * part >> kBits);
  }
};

}  // namespace

LineRaster::LineRaster(QImage& image)
    : pixels_(reinterpret_cast<QRgb*>(image.bits())),
      stride_(image.bytesPerLine() / static_cast<std::ptrdiff_t>(sizeof(QRgb))),
      ratio_(image.devicePixelRatio()),
      width_(image.width()),
      height_(image.height()),
      right_(width_),
      bottom_(height_) {}

void LineRaster::set_clip(QRectF clip) {
  left_ = std::clamp(static_cast<int>(std::lround(clip.left() * ratio_)), 0, width_);
  right_ = std::clamp(static_cast<int>(std::lround(clip.right() * ratio_)), 0, width_);
  top_ = std::clamp(static_cast<int>(std::lround(clip.top() * ratio_)), 0, height_);
  bottom_ = std::clamp(static_cast<int>(std::lround(clip.bottom() * ratio_)), 0, height_);
}

void LineRaster::paint(std::span<const Line> lines) {
  // Band by band: as much of the image as the processor's cache holds.
  const int top = top_, bottom = bottom_;
  const int rows = std::max<int>(16, static_cast<int>(kBandPixels / std::max<std::ptrdiff_t>(1, stride_)));
  for (top_ = top; top_ < bottom; top_ += rows) {
    bottom_ = std::min(bottom, top_ + rows);
    for (const Line& line : lines) {
      const double reach = line.width + 1;
      const double above = (std::min(line.a.y(), line.b.y()) - reach) * ratio_,
                   below = (std::max(line.a.y(), line.b.y()) + reach) * ratio_;
      if (below >= top_ && above <= bottom_) paint(line);
    }
  }
  top_ = top;
  bottom_ = bottom;
}

void LineRaster::paint(const Line& line) {
  const QPointF a = line.a * ratio_, b = line.b * ratio_;
  const double width = line.width * ratio_;
  // Step by step along the axis on which it is longer; of each, the pixels across that it covers.
  const bool steep = std::abs(b.y() - a.y()) >= std::abs(b.x() - a.x());
  double along_a = steep ? a.y() : a.x(), across_a = steep ? a.x() : a.y();
  double along_b = steep ? b.y() : b.x(), across_b = steep ? b.x() : b.y();
  if (along_a > along_b) {
    std::swap(along_a, along_b);
    std::swap(across_a, across_b);
  }
  if (along_b - along_a < 1e-6) return;
  const double slope = (across_b - across_a) / (along_b - along_a);
  const double half = width / 2 * std::sqrt(1 + slope * slope);
  const int least = steep ? left_ : top_, most = steep ? right_ : bottom_;
  // What cannot be seen is left out, before and behind.
  double from = std::max<double>(along_a, steep ? top_ : left_),
         to = std::min<double>(along_b, steep ? bottom_ : right_);
  if (std::abs(slope) > 1e-9) {
    const double one = along_a + (least - half - 1 - across_a) / slope;
    const double other = along_a + (most + half + 1 - across_a) / slope;
    from = std::max(from, std::min(one, other));
    to = std::min(to, std::max(one, other));
  } else if (across_a + half < least || across_a - half > most) {
    return;
  }
  if (from >= to) return;
  const auto first = static_cast<int>(std::floor(from)), end = static_cast<int>(std::ceil(to));
  const std::ptrdiff_t along_step = steep ? stride_ : 1;
  Step step{pixels_ + first * along_step, steep ? 1 : stride_, line.colour, least, most};
  const std::int64_t wide = fixed(half), down = fixed(slope);
  std::int64_t middle = fixed(across_a + (first + 0.5 - along_a) * slope);
  for (int i = first; i < end; ++i, middle += down, step.pixels += along_step) {
    unsigned part = 256;
    if (i == first || i + 1 == end)  // its ends may lie within a pixel
      part = static_cast<unsigned>(
          256 * std::clamp(std::min<double>(i + 1, to) - std::max<double>(i, from), 0.0, 1.0));
    step.cover(middle - wide, middle + wide, part);
  }
}

}  // namespace rehearse::gui
