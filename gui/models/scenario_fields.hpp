// What the form of a scenario offers: keys of the text with the values they may have.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace rehearse::gui {

struct ScenarioField {
  // number: a whole one; toml: written as it stands, as lists are.
  enum class Kind { choice, flag, number, decimal, text, toml } kind = Kind::number;
  QString group;        // "Training"
  QString key;          // "training.micro_batch"; "servers": of the gradient strategy's own table
  QString label;        // "Micro-batch"
  QString tip;          // one sentence
  QStringList choices;  // of a choice or a flag
  QString unit;         // "Gb/s"
  QString absent;       // what it is called to leave the key out, where no value follows from that: "none"
};

// In the order of the form. Names are those of the presets and strategies that are there.
const std::vector<ScenarioField>& scenario_fields();
// Whether this value of strategy.gradients has servers.
bool has_servers(const QString& gradients);
// The field's key where `gradients` is chosen: servers stand in that strategy's own table.
QString field_key(const ScenarioField& field, const QString& gradients);

// A scenario that is shipped, to begin from.
struct ScenarioTemplate {
  QString name, path;
  QString told;  // its first comment
};
std::vector<ScenarioTemplate> scenario_templates();

}  // namespace rehearse::gui
