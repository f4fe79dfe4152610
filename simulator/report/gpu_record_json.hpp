// What a rank's GPU was and did, as JSON.
#pragma once

#include "simulator/report/json_reader.hpp"
#include "simulator/trace/gpu_record.hpp"

namespace rehearse {

nlohmann::ordered_json to_json(const GpuRecord& record);
GpuRecord read_gpu_record(const JsonReader& json);  // InputError

}  // namespace rehearse
