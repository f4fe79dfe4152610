// Describes plans in words.
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "gui/models/tables/plan_figures.hpp"

namespace rehearse::gui {

// Returns the keys in which the plans differ: first the degrees of parallelism, in the usual order of rank
// numbering, then the others by name.
std::vector<std::string> varying_settings(const PlanFile& file);
// Returns "tensor" for "strategy.tensor", or the full key if another of `keys` has the same ending.
std::string short_key(const std::vector<std::string>& keys, const std::string& key);

QString label_of(const PlanFile& file, std::size_t plan);  // "plan 1", "own plan", "too large 1"
// Returns e.g. "tensor 8 x pipeline 8 x data 16, micro_batch 1, recompute none".
QString settings_text(const PlanFile& file, const FoundPlan& plan);
// Returns several lines: the label, the settings and the figures of plan `number`.
QString description_of(const PlanFile& file, std::size_t number);
// Says what was found, and among how many plans; `title` is the scenario's.
QString result_sentence(const PlanFile& file, const QString& title);
// Says what was ruled out and what limits the best plan, one sentence each.
QStringList search_sentences(const PlanFile& file);

}  // namespace rehearse::gui
