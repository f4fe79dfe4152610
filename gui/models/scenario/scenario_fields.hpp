// Lists the fields of the scenario form: keys of the text, with their allowed values.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace rehearse::gui {

struct ScenarioField {
  // number: an integer; toml: raw TOML, as for lists.
  enum class Kind { choice, flag, number, decimal, text, toml } kind = Kind::number;
  QString group;  // e.g. "Training"
  QString key;    // e.g. "training.micro_batch"; "servers" is a key of the gradient strategy's own TOML table
  QString label;  // e.g. "Micro-batch"
  QString tip;    // one sentence
  QStringList choices;  // for a choice or a flag
  QString unit;         // e.g. "Gb/s"
  QString absent;       // label for leaving out a key that has no default value: "none"
};

// Returns the fields in the order of the form. Choices include the installed presets and strategies.
const std::vector<ScenarioField>& scenario_fields();
// Whether the gradient strategy of this name uses servers.
bool has_servers(const QString& gradients);
// Returns the key of the field under the gradient strategy `gradients`: the number of servers is in that
// strategy's own TOML table.
QString field_key(const ScenarioField& field, const QString& gradients);

// A scenario that comes with Rehearse, as a starting point.
struct ScenarioTemplate {
  QString name, path;
  QString told;  // its leading comment
};
std::vector<ScenarioTemplate> scenario_templates();

}  // namespace rehearse::gui
