// What a sweep may vary with values that suit a scenario, and its table while that grows.
#pragma once

#include <QMap>
#include <QString>
#include <QStringList>
#include <vector>

#include "gui/models/result_file.hpp"
#include "gui/models/scenario_keys.hpp"

namespace rehearse::gui {

// What is varied most often, then every other key that is written as key = value.
QStringList sweep_keys(const std::vector<ScenarioKey>& keys);

// As --vary takes them, about what the scenario has (CheckedScenario::values): "1..16*2", "ring,tree". Empty:
// nothing is known of the key.
QString proposed_values(const QString& key, const QMap<QString, QString>& now,
                        const std::vector<ScenarioKey>& keys);

// The points that stand in the file so far, the line that is being written left out. InputError if there are
// none.
ReadSweep read_growing_sweep(const std::string& path);

}  // namespace rehearse::gui
