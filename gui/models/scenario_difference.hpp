// In what two scenarios' texts differ, in the words of the form: what a run is named by.
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "gui/models/scenario_draft.hpp"

namespace rehearse::gui {

// "micro-batch 32", "overlap off", "zigzag default" of a key that `text` leaves out; those of the form first,
// in its order. What is written in another way but means the same is no difference.
QStringList differences(const QString& before, const QString& text);

// Of assignments: "schedule interleaved, virtual stages 2", "no slow parts" of "cluster.slow=[]".
QString settings_name(const QStringList& settings);
QStringList settings_of(const std::vector<std::string>& sets);

// The name of a run of the draft as it stands: "ring", "ring, micro-batch 32", "ring, nodes 8 and 3 more" of
// which only the nodes have changed since the last run, "ring, 4 changes".
QString named_by_difference(const ScenarioDraft& draft);

}  // namespace rehearse::gui
