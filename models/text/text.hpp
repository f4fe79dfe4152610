// Formats numbers for people, identically in every locale.
#pragma once

#include <string>

namespace rehearse {

// All three round to 3 significant digits (ties as in decimal printing, to nearest), drop trailing zeros of a
// fraction, and choose the unit after rounding, so that 999.9e6 bytes are "1 GB" and not "1000 MB". Zero is
// "0 B", "0 s", "0". Values that are not finite are "NaN", "infinity", "-infinity".
std::string human_bytes(double bytes);  // SI: B, kB, MB, GB, TB, PB, EB: "1.5 GB", "80 GB"
// s, ms, us, ns; from 1000 s on integer seconds: "24.6 s", "3.21 ms", "4.5 us"
std::string human_time_s(double seconds);
std::string human_count(double count);  // k, M, B (10^9), T: "175 B", "62", "128 k"

// Formats an integer in groups of three digits: "1,024".
std::string with_thousands(long number);

}  // namespace rehearse
