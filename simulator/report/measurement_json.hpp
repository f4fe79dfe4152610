// Converts how a run was measured to JSON and back.
#pragma once

#include "simulator/report/json_reader.hpp"
#include "simulator/trace/measurement.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const Measurement& measurement);
nlohmann::ordered_json to_json(const StepTimes& times);
Measurement read_measurement(const JsonReader& json);  // throws InputError

}  // namespace rehearse
