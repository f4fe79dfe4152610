// The result as a JSON document, for the file and for the trace that carries it.
#pragma once

#include <nlohmann/json.hpp>

#include "simulator/report/report.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const Result& result);
// Of each constant with an effect: constant, basis, deviation, better_s and worse_s.
nlohmann::ordered_json to_json(const Uncertainty& uncertainty);

// On one line, or with each level indented by `indent` blanks. Valid whatever strings hold: bytes that are
// not UTF-8 become U+FFFD, and control characters that JSON allows (U+007F to U+009F) are escaped.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace rehearse
