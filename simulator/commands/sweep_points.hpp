// What a sweep runs through: the cartesian product of its axes, as overrides of one scenario.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/toml_value.hpp"

namespace rehearse {

// A value as it stands behind "--set key=": TOML, or a bare word.
struct SweepValue {
  std::string toml;
  std::string shown;  // a string without its quotes
};

// Keys that vary together (most often one), with their values by step.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<Place> places;                    // of the keys
  std::vector<std::vector<SweepValue>> values;  // [step][key]
};

struct Sweep {
  std::string scenario_path;
  std::string scenario_text;
  std::vector<std::string> overrides;  // of every point: "key=value"
  std::vector<SweepAxis> axes;         // the last one varies fastest
  bool strict = false;                 // points that do not fit into memory fail

  std::int64_t points() const;                               // numbered from 1
  std::vector<std::string> keys() const;                     // all varied ones, axis by axis
  std::vector<SweepValue> values(std::int64_t point) const;  // of keys()
  std::vector<std::string> overrides_of(std::int64_t point) const;
  // 16 hexadecimal digits that name the scenario's text, the overrides, all varied values, and `strict`.
  std::string hash() const;
};

inline constexpr std::int64_t kMostSweepPoints = 10'000'000;
inline constexpr std::size_t kMostSweepValues = 100'000;  // of an axis

// "key=a,b,c": numbers, strings and other TOML values, and ranges of whole numbers: 1..8 (steps of 1),
// 0..64+16 (steps of 16), 1..64*2 (each twice the last). Commas within brackets and quotes do not separate.
SweepAxis parse_vary(std::string_view assignment);

// Parts of this, for the reader of sweep files: what stands behind the "=", one value, what may be varied at
// all, and, while axes are added, whether they are not too many already.
std::vector<SweepValue> parse_sweep_values(std::string_view text, const Place& place);
SweepValue sweep_value(const TomlValue& value);
void check_sweep_key(const std::string& key, const Place& place);
void check_sweep_size(const Sweep& sweep);

// Refuses keys that stand twice, values of a key that stand twice, and more than kMostSweepPoints points.
void check(const Sweep& sweep);

// A sweep file is TOML:
//   scenario = "job.toml"         # relative to the sweep file
//   [set]                         # overrides of every point
//   training.micro_batch = 1
//   [vary]                        # each key by itself: a list, or ranges as in --vary
//   strategy.pipeline = [2, 4, 8]
//   cluster.nodes = "1..64*2"
//   [[zip]]                       # keys that vary together: lists of one length
//   strategy.data = [1, 2]
//   training.global_batch = [32, 64]
// The scenario is not read here. InputError names line and column.
Sweep parse_sweep_file(std::string_view text, const std::string& path);
bool is_sweep_file(std::string_view text);  // has one of its keys; false for what is no TOML

}  // namespace rehearse
