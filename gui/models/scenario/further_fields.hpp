// Creates form fields for keys outside the common fields, and searches fields by words.
#pragma once

#include <vector>

#include "gui/models/scenario/scenario_fields.hpp"
#include "gui/models/scenario/scenario_keys.hpp"

namespace rehearse::gui {

// Creates a field for any key that is or can be in a scenario text, such as "cluster.slow[0].factor". `known`
// is the reader's description of the key; if null, the value is edited as raw TOML.
ScenarioField further_field(const QString& path, const ScenarioKey* known);
// Finds the scenario reader's key for a path in the text; null if the reader has no such key.
const ScenarioKey* known_key(const QString& path, const std::vector<ScenarioKey>& keys);
// Returns the path for adding a value of the key: "cluster.slow[0].factor" for "cluster.slow.factor".
QString first_path(const QString& path, const std::vector<ScenarioKey>& keys);

// Whether each word occurs in the field's label, key or tip, ignoring case; "nic gbps" finds "nic_gbps".
bool is_meant(const ScenarioField& field, const QString& words);
// Whether the words are the key or the end of it: "micro_batch" and "micro batch" name
// "training.micro_batch".
bool is_named(const QString& key, const QString& words);

}  // namespace rehearse::gui
