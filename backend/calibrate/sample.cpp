#include "backend/calibrate/sample.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace rehearse {

double quantile(std::vector<double> numbers, double share) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  const double at = share * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, numbers.size() - 1);
  return numbers[below] + (at - static_cast<double>(below)) * (numbers[above] - numbers[below]);
}

Sample sample_of(std::vector<double> times_s, double precision) {
  std::sort(times_s.begin(), times_s.end());
  Sample s;
  s.repeats = static_cast<int>(times_s.size());
  s.median_s = quantile(times_s, 0.5);
  s.low_s = quantile(times_s, 0.25);
  s.high_s = quantile(times_s, 0.75);
  const double n = s.repeats, half = 0.98 * std::sqrt(n);
  const double first = std::floor(n / 2 - half), last = std::ceil(n / 2 + half);
  if (first >= 0 && last < n) {
    const double width = times_s[static_cast<std::size_t>(last)] - times_s[static_cast<std::size_t>(first)];
    s.steady = width / 2 <= precision * s.median_s;
  }
  return s;
}

Sample sample(const std::function<double()>& once, const Repeats& repeats) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  once();
  std::vector<double> times_s;
  while (true) {
    times_s.push_back(once());
    const int count = static_cast<int>(times_s.size());
    const bool late = std::chrono::duration<double>(Clock::now() - begin).count() > repeats.most_s;
    if (count < 3 || (count < repeats.fewest && !late)) continue;
    const Sample s = sample_of(times_s, repeats.precision);
    if (s.steady || late || count >= repeats.most) return s;
  }
}

}  // namespace rehearse
