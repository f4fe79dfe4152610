// The points of a sweep, as `rehearse sweep --out FILE.csv` writes them, and the curves through them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/csv_file.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

struct SweepPoint {
  int line = 0;
  std::string number;               // "point"
  std::vector<std::string> varied;  // of SweepTable::varied
  std::string status, error;        // "ok", "refused", "failed"
  double step_time_s = 0, samples_per_s = 0, tokens_per_s = 0, devices = 0, mfu = 0;
  double memory_bytes = 0;
  bool fits = true;
  bool ok() const { return status == "ok"; }
};

struct SweepTable {
  std::string name;                   // of the file
  std::vector<std::string> varied;    // "cluster.nodes"
  std::vector<SweepPoint> points;     // by number: the file has them as they ended
  std::vector<std::string> problems;  // lines that could not be read
  // What may stand on the horizontal axis: "devices" if they differ, and the varied keys whose values are
  // numbers.
  std::vector<std::string> numeric_axes() const;
  // Those, and behind them the keys whose values are words: these stand beside each other.
  std::vector<std::string> axes() const;
  const std::vector<std::string>& words_of(const std::string& axis) const;  // empty: it is of numbers
  // Of words their place among words_of(), from 1.
  std::optional<double> value(const SweepPoint& point, const std::string& axis) const;
  // By key, of those that are no numbers: each once, by the points' numbers. read_words() finds them.
  std::map<std::string, std::vector<std::string>> words;
  void read_words();
};

SweepTable sweep_of(const CsvFile& file);  // InputError: not of a sweep

// What may stand on the vertical axis. The last two are against the curve's first point.
enum class SweepFigure { step_time, samples, tokens, mfu, samples_per_device, speed_up, efficiency };
inline constexpr std::array<std::string_view, 7> kSweepFigureNames = {
    "step time (s)",        "samples/s", "tokens/s",      "MFU (%)",
    "samples/s per device", "speed-up",  "efficiency (%)"};

struct CurvePoint {
  double x = 0, y = 0;
  std::size_t row = 0;  // of SweepTable::points
};
struct Curve {
  std::string name;  // "all_reduce ring, nic_gbps 10": what the other varied keys are; empty: none vary
  std::vector<CurvePoint> points;  // ascending
};
// One for each combination of the varied keys that are not on the axis, in the points' order. Points that
// have no result are left out.
std::vector<Curve> curves_of(const SweepTable& table, const std::string& axis, SweepFigure figure);
// Where the points of a curve would lie if every device did as much as in the first of them. Empty if the
// number of devices is the same everywhere.
std::vector<CurvePoint> ideal_curve(const SweepTable& table, const Curve& curve, SweepFigure figure);

// Of many points at most about `most`, by which the curve has the same course: of each stretch the lowest and
// the highest.
std::vector<CurvePoint> course_of(const std::vector<CurvePoint>& points, std::size_t most);

TableData rows_of(const SweepTable& table);
// "devices 64, all_reduce ring: 12.3 ms, 5,432 samples/s, MFU 41.0 %"
std::string description_of(const SweepTable& table, const SweepPoint& point);

}  // namespace rehearse::gui
