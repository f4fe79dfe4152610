// Writes the line of a point in the file of a sweep, and reads it again when the sweep is continued.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/commands/sweep/sweep.hpp"
#include "simulator/commands/sweep/sweep_points.hpp"
#include "simulator/report/report.hpp"

namespace rehearse {

// ok: simulated; refused: the scenario of this point is invalid; failed: the run failed.
enum class PointStatus { ok, refused, failed };
inline constexpr std::array<std::string_view, 3> kPointStatusNames = {"ok", "refused", "failed"};

// The parts of a line that the summary needs.
struct SweepRow {
  std::int64_t point = 0;
  PointStatus status = PointStatus::ok;
  bool fits = true;  // into the devices' memory
  double step_time_s = 0, samples_per_s = 0;
  std::string error;
  std::vector<std::string> ignored;  // keys that do not apply at the point
  std::string framework;             // whose costs are counted; "none" without one
};

// Writes and parses the lines of a sweep. Each line has one line feed, at its end. The same point always
// gives the same bytes.
class SweepRows {
public:
  SweepRows(const Sweep& sweep, SweepFormat format);
  std::string header() const;  // CSV: the names of the columns; JSON lines: empty
  std::string line(std::int64_t point, const Result& result) const;
  std::string line(std::int64_t point, PointStatus status, const std::string& error) const;
  std::int64_t most_lines() const;  // of a complete file
  // Parses a line without its line feed. Throws std::invalid_argument, with the reason, if the line is not of
  // this sweep.
  SweepRow parse(std::string_view line) const;
  // Returns the beginning of the file that is the same for all points. The contents of a file that a kill
  // left without a complete line agree with it.
  std::string front() const;

private:
  SweepRow parse_csv(std::string_view line) const;
  SweepRow parse_json(std::string_view line) const;
  std::string csv(std::int64_t point, const std::string& figures, PointStatus status,
                  const std::string& error) const;

  const Sweep& sweep_;
  SweepFormat format_;
  std::string hash_;
  std::vector<std::string> keys_;
};

}  // namespace rehearse
