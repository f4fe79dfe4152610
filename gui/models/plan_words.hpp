// Plans in words.
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "gui/models/plan_figures.hpp"

namespace rehearse::gui {

// The keys in which the plans differ: degrees of parallelism first, in the order in which ranks are usually
// numbered, then the others by name.
std::vector<std::string> varying_settings(const PlanFile& file);
// "tensor" of "strategy.tensor"; the whole key if another of `keys` ends so.
std::string short_key(const std::vector<std::string>& keys, const std::string& key);

QString label_of(const PlanFile& file, std::size_t plan);  // "plan 1", "own plan", "too large 1"
// "tensor 8 x pipeline 8 x data 16, micro_batch 1, recompute none"
QString settings_text(const PlanFile& file, const FoundPlan& plan);
// Of several lines: its label, settings and figures.
QString description_of(const PlanFile& file, std::size_t plan);
// What was found, and among how many; `title`: of the scenario.
QString result_sentence(const PlanFile& file, const QString& title);
// What was ruled out and what holds the best plan back, a sentence each.
QStringList search_sentences(const PlanFile& file);

}  // namespace rehearse::gui
