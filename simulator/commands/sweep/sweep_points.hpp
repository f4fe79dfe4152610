// Defines the points of a sweep: the Cartesian product of its axes, as overrides of one scenario.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/toml_value.hpp"
#include "simulator/scenario/reading/overrides.hpp"

namespace rehearse {

// A value as written after "--set key=": TOML, or a bare word.
struct SweepValue {
  std::string toml;
  std::string shown;  // a string without its quotes
};

// Keys that vary together (usually just one), with their values by step.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<Place> places;                    // where the keys are given
  std::vector<std::vector<SweepValue>> values;  // [step][key]
};

struct Sweep {
  std::string scenario_path;
  std::string scenario_text;
  std::vector<std::string> overrides;  // "key=value", for every point
  std::vector<SweepAxis> axes;         // the last one varies fastest
  bool strict = false;                 // points that do not fit into memory count as failed

  std::int64_t points() const;                               // number of points, which are numbered from 1
  std::vector<std::string> keys() const;                     // all varied keys, axis by axis
  std::vector<SweepValue> values(std::int64_t point) const;  // in the order of keys()
  Overrides overrides_of(std::int64_t point) const;
  // Returns point number `place`, from 0, of an order in which the axes that are set in `fast` vary faster
  // than all others.
  std::int64_t point_at(std::int64_t place, const std::vector<bool>& fast) const;
  // Returns 16 hexadecimal digits that identify the scenario's text, the overrides, all varied values, and
  // `strict`.
  std::string hash() const;
};

inline constexpr std::int64_t kMostSweepPoints = 10'000'000;
inline constexpr std::size_t kMostSweepValues = 100'000;  // per axis

// Parses "key=a,b,c": numbers, strings and other TOML values, and ranges of whole numbers: 1..8 (steps of 1),
// 0..64+16 (steps of 16), 1..64*2 (each twice the previous one). Commas within brackets and quotes do not
// separate values.
SweepAxis parse_vary(std::string_view assignment);

// Parts of parse_vary() for the reader of sweep files: parse the text after the "=", convert one value, check
// whether a key can be varied and, while axes are added, check that there are not too many points or values.
std::vector<SweepValue> parse_sweep_values(std::string_view text, const Place& place);
SweepValue sweep_value(const TomlValue& value);
void check_sweep_key(const std::string& key, const Place& place);
void check_sweep_size(const Sweep& sweep);

// Throws InputError for keys that occur twice, values of a key that occur twice, and more than
// kMostSweepPoints points.
void check(const Sweep& sweep);

// Parses a sweep file, which is TOML:
//   scenario = "job.toml"         # relative to the sweep file
//   [set]                         # overrides of every point
//   training.micro_batch = 1
//   [vary]                        # each key by itself: a list, or ranges as in --vary
//   strategy.pipeline = [2, 4, 8]
//   cluster.nodes = "1..64*2"
//   [[zip]]                       # keys that vary together: lists of the same length
//   strategy.data = [1, 2]
//   training.global_batch = [32, 64]
// Does not read the scenario. Throws InputError, which names line and column.
Sweep parse_sweep_file(std::string_view text, const std::string& path);
bool is_sweep_file(std::string_view text);  // has a key of sweep files; false if it is not TOML

}  // namespace rehearse
