// Reads the points of a sweep from the table that `rehearse sweep --out FILE.csv` writes, and makes curves of
// them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/tables/csv_file.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

struct SweepPoint {
  int line = 0;
  std::string number;               // column "point"
  std::vector<std::string> varied;  // values of SweepTable::varied
  std::string status, error;        // status: "ok", "refused", "failed"
  double step_time_s = 0, samples_per_s = 0, tokens_per_s = 0, devices = 0, mfu = 0;
  double memory_bytes = 0;
  bool fits = true;
  bool ok() const { return status == "ok"; }
};

struct SweepTable {
  std::string name;                   // of the file
  std::vector<std::string> varied;    // e.g. "cluster.nodes"
  std::vector<SweepPoint> points;     // sorted by number; the file lists them as they finished
  std::vector<std::string> problems;  // lines that could not be read
  // Returns the numeric choices for the horizontal axis: "devices" if the points differ in it, and the varied
  // keys with numeric values.
  std::vector<std::string> numeric_axes() const;
  // Returns numeric_axes() and then the keys whose values are words, which are placed side by side.
  std::vector<std::string> axes() const;
  const std::vector<std::string>& words_of(const std::string& axis) const;  // empty: the axis is numeric
  // Returns the value on the axis; for a word, its position in words_of(), from 1.
  std::optional<double> value(const SweepPoint& point, const std::string& axis) const;
  // The distinct values of each non-numeric key, in the order of the points. Set by read_words().
  std::map<std::string, std::vector<std::string>> words;
  void read_words();
};

SweepTable sweep_of(const CsvFile& file);  // throws InputError if the file is not a sweep

// The choices for the vertical axis. The last two are relative to the curve's first point.
enum class SweepFigure { step_time, samples, tokens, mfu, samples_per_device, speed_up, efficiency };
inline constexpr std::array<std::string_view, 7> kSweepFigureNames = {
    "step time (s)",        "samples/s", "tokens/s",      "MFU (%)",
    "samples/s per device", "speed-up",  "efficiency (%)"};

struct CurvePoint {
  double x = 0, y = 0;
  std::size_t row = 0;  // index into SweepTable::points
};
struct Curve {
  std::string name;  // values of the other varied keys: "all_reduce ring, nic_gbps 10"; empty: none vary
  std::vector<CurvePoint> points;  // ascending
};
// Returns one curve for each combination of the varied keys that are not on the axis, in the order of the
// points. Leaves out points without a result.
std::vector<Curve> curves_of(const SweepTable& table, const std::string& axis, SweepFigure figure);
// Returns the curve that results if every device achieved as much as in the curve's first point. Empty if all
// points have the same number of devices.
std::vector<CurvePoint> ideal_curve(const SweepTable& table, const Curve& curve, SweepFigure figure);

// Thins out many points to at most about `most` without changing the visible shape of the curve: keeps the
// lowest and the highest point of each section.
std::vector<CurvePoint> course_of(const std::vector<CurvePoint>& points, std::size_t most);

TableData rows_of(const SweepTable& table);
// Returns e.g. "64 devices, all_reduce ring: 12.3 ms, 5,432 samples/s, MFU 41.0 %".
std::string description_of(const SweepTable& table, const SweepPoint& point);

}  // namespace rehearse::gui
