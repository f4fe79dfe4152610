// Random scenarios: a model, a cluster of any fabric, and a strategy that fits the two more often than not.
#pragma once

#include <string>

#include "tests/adversary_support.hpp"

namespace rehearse::adversary {

// Returns the text of a scenario file. Some combinations of model, cluster and strategy are refused when
// read.
std::string random_scenario(Generator& random);

}  // namespace rehearse::adversary
