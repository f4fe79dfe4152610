#include "gui/views/parts/appearance.hpp"

#include <QApplication>
#include <QStyle>
#include <QStyleHints>
#include <algorithm>
#include <array>

namespace rehearse::gui {

namespace {

struct Shades {
  QRgb light, dark;  // for light and dark backgrounds
};

Shades shades_of(Kind kind, Pass pass) {
  switch (kind) {
    case Kind::compute:
      switch (pass) {
        case Pass::forward:
          return {0x62b6f5, 0x5fb0e9};
        case Pass::backward:
          return {0x1c54d8, 0x184fd7};
        case Pass::optimizer:
          return {0x933a55, 0xf87bb9};
        case Pass::recompute:
          return {0x24706f, 0x4fa3a2};
        case Pass::weights:
          return {0x5f2f86, 0xa666f5};
        case Pass::none:
          return {0x6a88a8, 0x677b99};
      }
      break;
    case Kind::communication:
      return {0xe69f00, 0xe0a020};
    case Kind::waiting:
      return {0xc9c9c9, 0x6a6a6a};
    case Kind::bubble:
      return {0xb9b3c9, 0x635c78};
    case Kind::data:
      return {0x009e73, 0x12a880};
    case Kind::checkpoint:
      return {0xd55e00, 0xe07030};
    case Kind::copy:
      return {0xd8c92a, 0xd8cc3c};
    case Kind::host:
      return {0x9db8a8, 0x6f8f7e};
    case Kind::annotation:
      return {0xd9d2c3, 0x7d7668};
    case Kind::other:
      break;
  }
  return {0xa8a8a8, 0x858585};
}

QColor mixed(const QColor& a, const QColor& b, double share) {
  return QColor::fromRgbF(static_cast<float>(a.redF() + (b.redF() - a.redF()) * share),
                          static_cast<float>(a.greenF() + (b.greenF() - a.greenF()) * share),
                          static_cast<float>(a.blueF() + (b.blueF() - a.blueF()) * share));
}

}  // namespace

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::WindowText).lightness() > palette.color(QPalette::Window).lightness();
}

QColor colour_of(Kind kind, Pass pass, bool dark) {
  const Shades shades = shades_of(kind, pass);
  return QColor::fromRgb(dark ? shades.dark : shades.light);
}

Qt::BrushStyle pattern_of(Kind kind) {
  switch (kind) {
    case Kind::waiting:
      return Qt::BDiagPattern;
    case Kind::bubble:
      return Qt::FDiagPattern;
    case Kind::data:
      return Qt::Dense6Pattern;
    case Kind::checkpoint:
      return Qt::DiagCrossPattern;
    default:
      return Qt::SolidPattern;
  }
}

QColor text_on(const QColor& ground) {
  // Relative luminance as in WCAG 2.1. On either side of 0.18 the chosen text colour has a contrast of at
  // least 4.5.
  const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  const double luminance =
      0.2126 * linear(ground.redF()) + 0.7152 * linear(ground.greenF()) + 0.0722 * linear(ground.blueF());
  return luminance > 0.18 ? QColor(0x10, 0x10, 0x10) : QColor(0xff, 0xff, 0xff);
}

QColor colour_of_run(int place, bool dark) {
  static constexpr std::array<Shades, 6> kRuns = {{{0x0072b2, 0x4aa0dc},
                                                   {0xd55e00, 0xe8824a},
                                                   {0x009e73, 0x2bb890},
                                                   {0xb46a98, 0xd48ab8},
                                                   {0x8a7a00, 0xd8cc3c},
                                                   {0x555555, 0xb0b0b0}}};
  const Shades& shades = kRuns[static_cast<std::size_t>(place) % kRuns.size()];
  return QColor::fromRgb(dark ? shades.dark : shades.light);
}

QColor colour_of_use(double share, bool dark) {
  const double t = std::clamp(share, 0.0, 1.0);
  const QColor none = dark ? QColor(0x50, 0x50, 0x50) : QColor(0xc0, 0xc0, 0xc0);
  const QColor half(0xe6, 0x9f, 0x00), full(0xc0, 0x30, 0x10);
  return t < 0.5 ? mixed(none, half, 2 * t) : mixed(half, full, 2 * t - 1);
}

QColor colour_on_scale(double share, bool dark) {
  static constexpr std::array<QRgb, 5> kViridis = {0x440154, 0x3b528b, 0x21918c, 0x5ec962, 0xfde725};
  const double t = std::clamp(share, 0.0, 1.0);
  const double place = (dark ? 1 - 0.75 * t : 0.8 * t) * (kViridis.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(place), kViridis.size() - 2);
  return mixed(QColor::fromRgb(kViridis[stop]), QColor::fromRgb(kViridis[stop + 1]),
               place - static_cast<double>(stop));
}

QColor critical_colour(bool dark) {
  return dark ? QColor(0xff, 0x6b, 0x5a) : QColor(0xc0, 0x10, 0x20);
}

bool desktop_is_dark() {
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
  const Qt::ColorScheme scheme = QGuiApplication::styleHints()->colorScheme();
  if (scheme != Qt::ColorScheme::Unknown) return scheme == Qt::ColorScheme::Dark;
#endif
  // Reset the application's palette to query that of the platform, or of the style if the platform has none.
  const QPalette ours = QApplication::palette();
  QApplication::setPalette(QPalette());
  const bool dark = is_dark(QApplication::palette());
  QApplication::setPalette(ours);
  return dark;
}

QPalette palette_of(Theme theme) {
  if (theme == Theme::system) theme = desktop_is_dark() ? Theme::dark : Theme::light;
  QPalette palette;
  const bool dark = theme == Theme::dark;
  const auto set = [&](QPalette::ColorRole role, QRgb light_colour, QRgb dark_colour) {
    palette.setColor(role, QColor::fromRgb(dark ? dark_colour : light_colour));
  };
  set(QPalette::Window, 0xf2f2f2, 0x232529);
  set(QPalette::WindowText, 0x1a1a1a, 0xe4e4e4);
  set(QPalette::Base, 0xffffff, 0x1a1b1e);
  set(QPalette::AlternateBase, 0xf6f6f6, 0x202226);
  set(QPalette::Text, 0x1a1a1a, 0xe4e4e4);
  set(QPalette::Button, 0xe9e9e9, 0x303338);
  set(QPalette::ButtonText, 0x1a1a1a, 0xe4e4e4);
  set(QPalette::BrightText, 0xb00000, 0xff8080);
  set(QPalette::ToolTipBase, 0xffffe8, 0x303338);
  set(QPalette::ToolTipText, 0x1a1a1a, 0xe4e4e4);
  set(QPalette::PlaceholderText, 0x777777, 0x8e8e8e);
  set(QPalette::Highlight, 0x2f6fb5, 0x3d7fc8);
  set(QPalette::HighlightedText, 0xffffff, 0xffffff);
  set(QPalette::Link, 0x1a5fa8, 0x7ab8f0);
  set(QPalette::Light, 0xffffff, 0x3c4046);
  set(QPalette::Midlight, 0xf4f4f4, 0x34373c);
  set(QPalette::Mid, 0xbdbdbd, 0x45494f);
  set(QPalette::Dark, 0x9a9a9a, 0x141517);
  set(QPalette::Shadow, 0x606060, 0x000000);
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, QColor::fromRgb(dark ? 0x777a80 : 0x9a9a9a));
  return palette;
}

}  // namespace rehearse::gui
