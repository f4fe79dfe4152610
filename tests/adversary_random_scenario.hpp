// Generates random scenarios: a model, a cluster of any fabric, and a strategy that usually fits both.
#pragma once

#include <string>

#include "tests/adversary_support.hpp"

namespace rehearse::adversary {

// Returns the text of a scenario file. The reader refuses some combinations of model, cluster and strategy.
std::string random_scenario(Generator& random);

}  // namespace rehearse::adversary
