#include "backend/calibrate/fit_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace rehearse {
namespace {

constexpr double kMostBandwidth = 1e17;   // bytes/s: represents a slope of 0
constexpr double kLeastDeviation = 1e-4;  // below it, a better fit means nothing
constexpr std::size_t kFewest = 6;        // number of sizes in a range

struct Line {
  double latency_s = 0, slope = 1 / kMostBandwidth;
  double at(double bytes) const { return latency_s + slope * bytes; }
};

// The time `t` of a message of `bytes`.
struct Point {
  double bytes = 0, t = 0;
};
using Points = std::vector<Point>;

double deviation(const Line& line, const Point& p) {
  return std::abs(line.at(p.bytes) / p.t - 1);
}

double sum_of_deviations(const Line& line, const Points& points) {
  double sum = 0;
  for (const Point& p : points) sum += deviation(line, p);
  return sum;
}

// Returns the line with the least absolute deviations. It passes through two of the points, or through one if
// a bound is active (Bloomfield and Steiger, "Least Absolute Deviations", 1983).
Line least_absolute(const Points& points) {
  Line best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](double latency_s, double slope) {
    const Line line{latency_s, slope};
    if (latency_s < 0 || slope < 1 / kMostBandwidth) return;
    const double sum = sum_of_deviations(line, points);
    if (sum >= least) return;
    least = sum;
    best = line;
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    consider(0, p.t / p.bytes);
    consider(p.t - p.bytes / kMostBandwidth, 1 / kMostBandwidth);
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const Point& q = points[j];
      if (q.bytes == p.bytes) continue;
      const double slope = (q.t - p.t) / (q.bytes - p.bytes);
      consider(p.t - slope * p.bytes, slope);
    }
  }
  return best;
}

// Minimizes the sum of (line / t - 1)^2; if a bound is violated, minimizes along the bound.
Line least_squares(const Points& points) {
  double s11 = 0, s12 = 0, s22 = 0, r1 = 0, r2 = 0;
  for (const Point& p : points) {
    const double x1 = 1 / p.t, x2 = p.bytes / p.t;
    s11 += x1 * x1;
    s12 += x1 * x2;
    s22 += x2 * x2;
    r1 += x1;
    r2 += x2;
  }
  const double determinant = s11 * s22 - s12 * s12;
  if (determinant > 0) {
    const Line line{(s22 * r1 - s12 * r2) / determinant, (s11 * r2 - s12 * r1) / determinant};
    if (line.latency_s >= 0 && line.slope >= 1 / kMostBandwidth) return line;
  }
  const Line through_zero{0, std::max(1 / kMostBandwidth, r2 / s22)}, flat{r1 / s11, 1 / kMostBandwidth};
  const auto squares = [&](const Line& line) {
    double sum = 0;
    for (const Point& p : points) sum += std::pow(deviation(line, p), 2);
    return sum;
  };
  return squares(through_zero) <= squares(flat) ? through_zero : flat;
}

double median_deviation(const Line& line, const Points& points) {
  std::vector<double> all;
  for (const Point& p : points) all.push_back(deviation(line, p));
  return quantile(all, 0.5);
}

Line robust_line(const Points& points) {
  const Line first = least_absolute(points);
  const double most = std::max(3 * 1.4826 * median_deviation(first, points), kLeastDeviation);
  Points kept;
  for (const Point& p : points)
    if (deviation(first, p) <= most) kept.push_back(p);
  const bool apart = kept.size() > 2 && kept.back().bytes > kept.front().bytes;
  return apart ? least_squares(kept) : first;
}

Points points_of(const std::vector<SizedSample>& samples, double Sample::*time) {
  Points points;
  for (const SizedSample& s : samples) points.push_back({s.bytes, s.time.*time});
  return points;
}

Points slice(const Points& points, std::size_t begin, std::size_t end) {
  return {points.begin() + static_cast<std::ptrdiff_t>(begin),
          points.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Returns where ranges begin. Dynamic programming finds the cheapest split for each number of ranges, and the
// criterion chooses one of these splits.
std::vector<std::size_t> best_cuts(const Points& points, int most_ranges) {
  const std::size_t n = points.size();
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> alone(n, std::vector<double>(n + 1, infinity));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + kFewest; j <= n; ++j) {
      const Points part = slice(points, i, j);
      alone[i][j] = sum_of_deviations(least_absolute(part), part);
    }
  std::vector<double> cost = alone[0];  // of the first j points in the current number of ranges
  std::vector<std::vector<std::size_t>> cuts(n + 1, {0}), best;
  double least = infinity;
  for (int ranges = 1; ranges <= most_ranges; ++ranges) {
    if (ranges > 1) {
      std::vector<double> next(n + 1, infinity);
      std::vector<std::vector<std::size_t>> next_cuts(n + 1);
      for (std::size_t j = 0; j <= n; ++j)
        for (std::size_t i = 0; i < j; ++i)
          if (cost[i] + alone[i][j] < next[j]) {
            next[j] = cost[i] + alone[i][j];
            next_cuts[j] = cuts[i];
            next_cuts[j].push_back(i);
          }
      cost = std::move(next);
      cuts = std::move(next_cuts);
    }
    const double count = static_cast<double>(n);
    const double criterion = 2 * count * std::log(std::max(cost[n] / count, kLeastDeviation)) +
                             2 * (3 * ranges - 1) * std::log(count);
    if (!(criterion < least)) continue;
    least = criterion;
    best = {cuts[n]};
  }
  return best.front();
}

Spread spread_of(double value, double one, double other) {
  return {value, std::min({value, one, other}), std::max({value, one, other})};
}

}  // namespace

std::vector<SizeRange> fit_ranges(std::vector<SizedSample> samples, int most_ranges) {
  if (samples.size() < kFewest) throw std::invalid_argument("a fit needs at least six sizes");
  std::sort(samples.begin(), samples.end(),
            [](const SizedSample& a, const SizedSample& b) { return a.bytes < b.bytes; });
  const Points points = points_of(samples, &Sample::median_s), low = points_of(samples, &Sample::low_s),
               high = points_of(samples, &Sample::high_s);
  std::vector<std::size_t> cuts = best_cuts(points, most_ranges);
  std::vector<SizeRange> ranges;
  for (std::size_t r = 0; r < cuts.size(); ++r) {
    const std::size_t begin = cuts[r], end = r + 1 < cuts.size() ? cuts[r + 1] : points.size();
    const Points part = slice(points, begin, end);
    const Line line = robust_line(part), quick = robust_line(slice(low, begin, end)),
               slow = robust_line(slice(high, begin, end));
    SizeRange& range = ranges.emplace_back();
    range.from_bytes = r == 0 ? 0 : points[begin].bytes;
    range.latency_s = spread_of(line.latency_s, quick.latency_s, slow.latency_s);
    range.bandwidth = spread_of(1 / line.slope, 1 / quick.slope, 1 / slow.slope);
    range.error = median_deviation(line, part);
  }
  return ranges;
}

double time_s(const std::vector<SizeRange>& ranges, double bytes) {
  const SizeRange* at = &ranges.front();
  for (const SizeRange& range : ranges)
    if (bytes >= range.from_bytes) at = &range;
  return at->latency_s.value + bytes / at->bandwidth.value;
}

}  // namespace rehearse
