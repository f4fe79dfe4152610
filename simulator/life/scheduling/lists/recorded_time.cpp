#include "simulator/life/scheduling/lists/recorded_time.hpp"

#include <charconv>
#include <chrono>

#include "models/text/number_in.hpp"

namespace rehearse {
namespace {

// Takes exactly `digits` digits from the beginning.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = 10 * value + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// The offset of a time zone at the end of a time.
std::optional<double> offset_s(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  const double sign = text.front() == '-' ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_digits(text, 2);
  take(text, ':');
  const auto minutes = take_digits(text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 14 || *minutes > 59) return std::nullopt;
  return sign * (3600.0 * *hours + 60.0 * *minutes);
}

}  // namespace

std::optional<double> recorded_time_s(std::string_view text) {
  if (const auto number = finite_number_in(text)) return number;
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day || (!take(text, ' ') && !take(text, 'T'))) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  double fraction = 0;
  if (take(text, '.'))
    for (double place = 0.1; !text.empty() && text.front() >= '0' && text.front() <= '9'; place /= 10) {
      fraction += place * (text.front() - '0');
      text.remove_prefix(1);
    }
  const auto offset = offset_s(text);
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!offset || !date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return 86400.0 * static_cast<double>(days) + 3600.0 * *hour + 60.0 * *minute + *second + fraction - *offset;
}

}  // namespace rehearse
