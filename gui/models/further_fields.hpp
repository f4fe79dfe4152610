// Fields of the form for keys that are no common ones, and how fields are found by words.
#pragma once

#include <vector>

#include "gui/models/scenario_fields.hpp"
#include "gui/models/scenario_keys.hpp"

namespace rehearse::gui {

// Of any key that stands in a text, or may: "cluster.slow[0].factor". `known`: what the reader knows of it;
// null: nothing, and its value is written as it stands.
ScenarioField further_field(const QString& path, const ScenarioKey* known);
// The key that the reader knows by this path of a text; null if it knows none.
const ScenarioKey* known_key(const QString& path, const std::vector<ScenarioKey>& keys);
// Where a key's value stands in a text that has none yet: "cluster.slow[0].factor" of "cluster.slow.factor".
QString first_path(const QString& path, const std::vector<ScenarioKey>& keys);

// Whether each word stands in a field's label, key or tip, whatever their case; "nic gbps" finds "nic_gbps".
bool is_meant(const ScenarioField& field, const QString& words);

}  // namespace rehearse::gui
