// Reads a cluster's node, and fills in one that a scenario gives in part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/toml_table.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Units of the keys, in bytes/s and seconds.
inline constexpr double kGb = 1e9 / 8, kGB = 1e9, kMicrosecond = 1e-6;
inline constexpr Range kBandwidth{1e-6, 1e6}, kLatency{0, 1e6};

// The path of the preset that `key` names; InputError with the nearest name if there is none.
std::string checked_preset(Section& section, std::string_view key, std::string_view folder);
// `file` as its reader opens it: relative names start at `folder`.
std::string beside(const std::string& folder, const std::string& file);

// A constant {value, basis, source, uncertainty} with another value than `base` no longer has its basis,
// source and uncertainty; those that it lacks are put in.
void mark_changed_value(TomlValue& constant, const TomlValue& base);

// Reads [node] of a cluster file or [cluster.node], and finishes it; a relative device_file starts at
// `folder`.
Node read_node(Section& section, const std::string& folder);

// Fills in what `node` leaves out from `base`, the node of the cluster that a scenario names, whose files lie
// in `folder`. What does not fit the keys of `node` is left out: another device's constants, another
// interconnect's keys, NVLinks and rings of devices that are gone. Returns the keys that `node` changes; the
// device's are not among them.
std::vector<std::string> fill_in_node(TomlValue& node, TomlValue base, const std::string& folder);

}  // namespace rehearse
