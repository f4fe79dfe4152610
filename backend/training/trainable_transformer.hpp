// Decides which transformers can be trained.
#pragma once

#include <string>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns whether any part of the model has dropout.
bool has_dropout(const Transformer& t);
// Returns the reason why a transformer cannot be trained; empty if it can.
std::string why_no_transformer(const Scenario& scenario);

}  // namespace rehearse
