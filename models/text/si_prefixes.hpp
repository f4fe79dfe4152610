// Names the decimal prefixes of the units in which files and answers state numbers.
#pragma once

namespace rehearse {

inline constexpr double kMicro = 1e-6, kMilli = 1e-3, kGiga = 1e9, kTera = 1e12;

}  // namespace rehearse
