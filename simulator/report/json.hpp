// Writes the result as a JSON document, for the file and for the trace that contains it.
#pragma once

#include <nlohmann/json.hpp>

#include "simulator/report/report.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const Result& result);
// For each constant that has an effect: constant, basis, deviation, better_s and worse_s.
nlohmann::ordered_json to_json(const Uncertainty& uncertainty);

// Returns the JSON on one line, or with each level indented by `indent` blanks. It is valid for any strings:
// bytes that are not UTF-8 become U+FFFD, and control characters that JSON allows (U+007F to U+009F) are
// escaped.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace rehearse
