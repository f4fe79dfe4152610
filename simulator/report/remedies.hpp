// Writes the changes of a scenario that were simulated (Result::remedies) as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "simulator/report/report.hpp"

namespace rehearse {

// Returns a sentence with the best changes and what each saves, without those that the `bottleneck` sentence
// tells; empty if there are none.
std::string remedies_sentence(const Result& result, const std::string& bottleneck);

nlohmann::ordered_json remedies_json(const TriedRemedies& remedies);

}  // namespace rehearse
