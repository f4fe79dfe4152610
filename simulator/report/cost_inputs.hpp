// The inputs that money, energy and carbon rest on.
#pragma once

#include <vector>

#include "simulator/report/report.hpp"

namespace rehearse {

// Prices, powers and the site's figures, as far as the scenario's cluster has such parts and they are known.
std::vector<Input> cost_inputs(const Scenario& scenario);

}  // namespace rehearse
