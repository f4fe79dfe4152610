// Reads scenarios from TOML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "simulator/scenario/reading/overrides.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Reads and checks a scenario. A key that does not apply beside others (sequence_parallel with tensor = 1) is
// ignored and listed in Scenario::ignored and in the notes, unless "--set" sets it. Throws InputError.
Scenario read_scenario_file(const std::string& path, const Overrides& overrides = {});
Scenario read_scenario_text(std::string_view text, const std::string& file_name,
                            const Overrides& overrides = {});

// Reads a document that was parsed from `path` and changed since. Throws InputError.
Scenario read_scenario_document(Document document, const std::string& path);

}  // namespace rehearse
