// Reads the presets and the storage of [data] and [checkpoint].
#pragma once

#include <string_view>

#include "models/text/document.hpp"
#include "simulator/input/data.hpp"
#include "topologies/read_node.hpp"

namespace rehearse {

// Adds the keys of the preset that `key`, or else `fallback`, names.
void apply_preset(Document& document, Section section, std::string_view key, std::string_view folder,
                  std::string_view fallback);

// Parses the table of a storage. `operation_bytes`: of one operation; 0: its operations a second say nothing.
void read_storage(Section& section, Storage& storage, StorageAccess& access, double operation_bytes);

}  // namespace rehearse
