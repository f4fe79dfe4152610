// Which transformers can be trained.
#pragma once

#include <string>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Whether something of it is dropped.
bool has_dropout(const Transformer& shape);
// Why a transformer cannot be trained; empty if it can.
std::string why_no_transformer(const Scenario& scenario);

}  // namespace rehearse
