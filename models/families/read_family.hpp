// Reads a config.json by a family's row.
#pragma once

#include <string>
#include <vector>

#include "models/families/composite.hpp"
#include "models/huggingface_config.hpp"
#include "models/model.hpp"

namespace rehearse::families {

// Throws InputError if a value is wrong. Adds notes on what the file leaves to the library, and on what is
// left out of the model.
Transformer read_family(const HuggingFaceConfig& config, const Family& family, Model& model);

bool read_switch(const HuggingFaceConfig& config, const Switch& one);

// Elements of a vision tower and of what joins it to a text model `hidden` wide. The config of the tower is
// inside `outer`, under the composite's key; 0 if it is absent.
double tower_parameters(const HuggingFaceConfig& outer, const Composite& composite, double hidden);

// A family, or a composite of a text model and others, that a config is read as.
struct Choice {
  const Family* family = nullptr;
  const Composite* composite = nullptr;  // nullptr: no other parts
  std::string inside;                    // key of the text model's config; empty: the file itself
  std::string note;                      // why, if the type does not say it
};

// Chooses by model_type or, if it is not known, by the class in `architectures`, by the type of a nested text
// model, or by the keys. `forced`: the type to read it as instead (model.family). Throws InputError if no
// family fits, with the nearest; if the layers of the type are not modelled, with their names; and if
// `forced` is unknown.
Choice choose_family(const HuggingFaceConfig& config, const std::string& forced);

// All types that can be forced, in alphabetical order.
std::vector<std::string> family_names();

}  // namespace rehearse::families
