// Describes how two scenario texts differ, in the terms of the form. Names of runs are made from this.
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "gui/models/scenario/scenario_draft.hpp"

namespace rehearse::gui {

// Returns e.g. "micro-batch 32", "overlap off", or "zigzag default" for a key that `text` leaves out. Keys of
// the form come first, in its order. Different spellings of an equal value are no difference.
QStringList differences(const QString& before, const QString& text);

// Describes settings of the form "key=value": "schedule interleaved, virtual stages 2"; "no slow parts" for
// "cluster.slow=[]".
QString settings_name(const QStringList& settings);
QStringList settings_of(const std::vector<std::string>& sets);

// Names a run of the draft's current text: "ring", "ring, micro-batch 32", "ring, 4 changes"; "ring, nodes 8
// and 3 more" if only the nodes have changed since the last run.
QString named_by_difference(const ScenarioDraft& draft);

}  // namespace rehearse::gui
