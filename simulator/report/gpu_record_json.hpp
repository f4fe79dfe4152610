// Converts the record of a rank's GPU to JSON and back.
#pragma once

#include "simulator/report/json_reader.hpp"
#include "simulator/trace/gpu_record.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const GpuRecord& record);
GpuRecord read_gpu_record(const JsonReader& json);  // throws InputError

}  // namespace rehearse
