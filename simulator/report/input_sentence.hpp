// Says what the input of a training run can deliver, and how to get more of it.
#pragma once

#include <string>

#include "simulator/report/report.hpp"
#include "simulator/report/way_out.hpp"

namespace rehearse {

// Returns the samples/s that the devices would train if they never waited for data.
double trained_without_stalls(const Result& result);

// "Input: 4 workers a GPU can load 7,751 images/s, the storage (SATA SSD) deliver 4,622; ..."; empty if the
// scenario does not say what its input is.
std::string input_sentence(const Result& result);

// Says which part of the input is too slow, and what would suffice.
WayOut more_input(const Result& result);

}  // namespace rehearse
