// Proposes keys and suitable values for a sweep over a scenario, and reads the table of a running sweep.
#pragma once

#include <QMap>
#include <QString>
#include <QStringList>
#include <vector>

#include "gui/models/scenario/scenario_keys.hpp"
#include "gui/models/tables/result_file.hpp"

namespace rehearse::gui {

// Returns the keys most often varied, then all others that are written as key = value.
QStringList sweep_keys(const std::vector<ScenarioKey>& keys);

// Returns values in the syntax of --vary, near the scenario's current ones (CheckedScenario::values):
// "1..16*2", "ring,tree". Empty if nothing is known about the key.
QString proposed_values(const QString& key, const QMap<QString, QString>& now,
                        const std::vector<ScenarioKey>& keys);

// Reads the points written so far, without an incomplete last line. Throws InputError if there are none.
ReadSweep read_growing_sweep(const std::string& path);

}  // namespace rehearse::gui
