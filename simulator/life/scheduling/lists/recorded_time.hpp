// Parses the times of recorded job traces.
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// Returns seconds: of a number as it is; of "2017-10-07 01:11:39", with "T" or a blank between date and time,
// a fraction of a second and an offset ("+08:00", "Z") if there are, since 1970 in UTC. Without an offset the
// time is taken as UTC: differences are right but for changes to and from daylight saving time. Nothing for
// anything else.
std::optional<double> recorded_time_s(std::string_view text);

}  // namespace rehearse
