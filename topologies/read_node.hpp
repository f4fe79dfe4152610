// Reads a cluster's node, and completes one that a scenario gives in part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/si_prefixes.hpp"
#include "models/text/toml_table.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Units of the keys, in bytes/s.
inline constexpr double kGb = 1e9 / 8, kGB = 1e9;
inline constexpr Range kBandwidth{1e-6, 1e6}, kLatency{0, 1e6};

// Returns the path of the preset that `key` names. Throws InputError with the nearest name if there is none.
std::string checked_preset(Section& section, std::string_view key, std::string_view folder);
// Resolves a relative `file` against `folder`.
std::string beside(const std::string& folder, const std::string& file);

// If a constant {value, basis, source, uncertainty} has a different value than `base`, the base's basis,
// source and uncertainty no longer apply to it: adds new ones for those that it lacks.
void mark_changed_value(TomlValue& constant, const TomlValue& base);

// Reads and finishes [node] of a cluster file or [cluster.node]; resolves a relative device_file against
// `folder`.
Node read_node(Section& section, const std::string& folder);

// Completes `node` from `base`, the node of the cluster that a scenario names, whose files are in `folder`.
// Leaves out what does not fit the keys of `node`: constants of another device, keys of another interconnect,
// NVLinks and rings of removed devices. Returns the keys that `node` changes, except the device's.
std::vector<std::string> fill_in_node(TomlValue& node, TomlValue base, const std::string& folder);

}  // namespace rehearse
