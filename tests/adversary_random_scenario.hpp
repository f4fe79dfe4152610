// Random scenarios: a model, a cluster of any fabric, and a strategy that fits the two more often than not.
#pragma once

#include <string>

#include "tests/adversary_support.hpp"

namespace rehearse::adversary {

// The text of a scenario file. It may still be refused: not everything fits everything.
std::string random_scenario(Generator& random);

}  // namespace rehearse::adversary
