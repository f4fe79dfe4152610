// Fields of the form for keys that are no common ones, and how fields are found by words.
#pragma once

#include <vector>

#include "gui/models/scenario_fields.hpp"
#include "gui/models/scenario_keys.hpp"

namespace rehearse::gui {

// Of any key that stands in a text, or may: "cluster.slow[0].factor". `known`: what the reader knows of it;
// null: nothing, and its value is written as it stands.
ScenarioField further_field(const QString& path, const ScenarioKey* known);
// The key of the scenario reader that a path of the text belongs to; null if the reader has no such key.
const ScenarioKey* known_key(const QString& path, const std::vector<ScenarioKey>& keys);
// The path under which a new value of the key is written: "cluster.slow[0].factor" of "cluster.slow.factor".
QString first_path(const QString& path, const std::vector<ScenarioKey>& keys);

// Whether each word stands in a field's label, key or tip, whatever their case; "nic gbps" finds "nic_gbps".
bool is_meant(const ScenarioField& field, const QString& words);

}  // namespace rehearse::gui
