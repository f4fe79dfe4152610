// Straight lines with soft edges on the pixels of an image, for pictures of so many that stroking them one by
// one takes too long.
#pragma once

#include <QImage>
#include <QPointF>
#include <QRectF>
#include <QRgb>
#include <span>

namespace rehearse::gui {

// An opaque image of 32 bits a pixel. It must not be copied while this is in use; a painter may paint on it
// in between.
class LineRaster {
public:
  // Places are logical, as a painter's on the image.
  explicit LineRaster(QImage& image);
  void set_clip(QRectF clip);
  struct Line {
    QPointF a, b;
    double width = 1;
    QRgb colour = 0;
  };
  // One above the other. Their ends are cut straight along the nearer axis.
  void paint(std::span<const Line> lines);

private:
  void paint(const Line& line);

  QRgb* pixels_;
  std::ptrdiff_t stride_;  // pixels
  double ratio_;
  int width_, height_;
  int left_ = 0, top_ = 0, right_, bottom_;  // [left, right) x [top, bottom)
};

}  // namespace rehearse::gui
