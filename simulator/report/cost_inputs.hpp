// Lists the inputs on which money, energy and carbon are based.
#pragma once

#include <vector>

#include "simulator/report/report.hpp"

namespace rehearse {

// Returns prices, powers and the site's figures for the parts that the scenario's cluster has, if they are
// known.
std::vector<Input> cost_inputs(const Scenario& scenario);

}  // namespace rehearse
