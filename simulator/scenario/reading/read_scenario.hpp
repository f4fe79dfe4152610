// Reads scenarios from TOML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Reads and checks a scenario; `overrides` are "--set" assignments. Throws InputError.
Scenario read_scenario_file(const std::string& path, const std::vector<std::string>& overrides = {});
Scenario read_scenario_text(std::string_view text, const std::string& file_name,
                            const std::vector<std::string>& overrides = {});

// Reads a document that was parsed from `path` and changed since. Throws InputError.
Scenario read_scenario_document(Document document, const std::string& path);

}  // namespace rehearse
