// How things look: colours and patterns that colour-blind eyes tell apart, on light and on dark ground.
#pragma once

#include <QBrush>
#include <QColor>
#include <QPalette>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// Whether the palette is a dark one: its text is lighter than its ground.
bool is_dark(const QPalette& palette);

// Okabe and Ito, "Color Universal Design" (2008), lightened or darkened to carry text; passes of computing
// are chosen so that each is told from each, and from what stands beside them, by every kind of eyes.
QColor colour_of(Kind kind, Pass pass, bool dark);
// With a pattern where kinds of like brightness stand beside each other: waiting, bubble, data, checkpoint.
Qt::BrushStyle pattern_of(Kind kind);
// Black or white, whichever is read better on it.
QColor text_on(const QColor& ground);
// Runs beside each other in charts: as many as wanted, the first ones easiest to tell apart.
QColor colour_of_run(int place, bool dark);
// From 0 (unused) to 1 (full).
QColor colour_of_use(double share, bool dark);
// Of an amount from 0 (the best) to 1 (the worst), the best standing out from the ground. The colours of
// viridis (van der Walt and Smith, matplotlib 1.5, 2015), without those that are as bright as the ground.
QColor colour_on_scale(double share, bool dark);
QColor critical_colour(bool dark);

enum class Theme { system, light, dark };
// As it says itself (Qt 6.5 and later), or as light as the palette that its platform theme gives; where it
// says neither, it is light.
bool desktop_is_dark();
// Palettes in Fusion style; system: light or dark as the desktop is.
QPalette palette_of(Theme theme);

}  // namespace rehearse::gui
