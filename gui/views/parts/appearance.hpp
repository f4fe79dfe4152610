// Defines colours and patterns that colour-blind users can tell apart, on light and dark backgrounds.
#pragma once

#include <QBrush>
#include <QColor>
#include <QPalette>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

// Returns whether the palette is dark, that is, its text is lighter than its background.
bool is_dark(const QPalette& palette);

// The colours of Okabe and Ito, "Color Universal Design" (2008), lightened or darkened so that text on them
// is readable. The passes of compute ops are chosen so that everyone, colour-blind or not, can tell them from
// each other and from adjacent kinds.
QColor colour_of(Kind kind, Pass pass, bool dark);
// Returns a pattern for kinds of similar brightness that often adjoin: waiting, bubble, data and checkpoint.
Qt::BrushStyle pattern_of(Kind kind);
// Returns near-black or near-white, whichever is more readable on `ground`.
QColor text_on(const QColor& ground);
// Returns the colour of a run in charts. The six colours repeat; the first ones are the easiest to tell
// apart.
QColor colour_of_run(int place, bool dark);
// `share` ranges from 0 (unused) to 1 (fully used).
QColor colour_of_use(double share, bool dark);
// Returns the colour for an amount from 0 (best) to 1 (worst); the best contrasts most with the background.
// Uses the viridis colours (van der Walt and Smith, matplotlib 1.5, 2015) except those as bright as the
// background.
QColor colour_on_scale(double share, bool dark);
QColor critical_colour(bool dark);

enum class Theme { system, light, dark };
// Returns whether the desktop is dark: by its colour scheme if known (Qt 6.5 and later), otherwise by the
// palette of the platform theme or, without one, of the style.
bool desktop_is_dark();
// Returns the palette for the Fusion style; Theme::system follows the desktop.
QPalette palette_of(Theme theme);

}  // namespace rehearse::gui
