// The result as a JSON document, for the file and for the trace that carries it.
#pragma once

#include <nlohmann/json.hpp>

#include "simulator/report/report.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const Result& result);

}  // namespace rehearse
