// Opens what a scenario may be written in: a scenario file, or a file that starts a job in a framework.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/document.hpp"
#include "simulator/jobs/job_file.hpp"
#include "simulator/scenario/reading/overrides.hpp"

namespace rehearse {

struct OpenedScenario {
  Document document;
  std::optional<JobFile> job;  // what the document was made from, if it was no scenario file
};

// Parses a scenario, or recognises and reads a job file (simulator/jobs/job_file.hpp), without overrides.
OpenedScenario open_scenario(std::string_view text, const std::string& path);
// Applies overrides, and completes a job by what follows from its cluster. Throws InputError.
void complete_scenario(OpenedScenario& opened, const std::string& path, const Overrides& overrides);

}  // namespace rehearse
