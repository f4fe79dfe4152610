#include "simulator/scenario/reading/open_scenario.hpp"

#include <filesystem>

#include "simulator/scenario/reading/readers.hpp"

namespace rehearse {

OpenedScenario open_scenario(std::string_view text, const std::string& path) {
  std::optional<JobFile> job;
  try {
    Document document = Document::parse_text(text, path);
    if (!is_job_document(document.tree())) return {std::move(document), std::nullopt};
    job = read_job(text, path);
  } catch (const InputError&) {
    job = read_job(text, path);
    if (!job) throw;
  }
  Document document = job_document(*job);
  return {std::move(document), std::move(job)};
}

void complete_scenario(OpenedScenario& opened, const std::string& path, const Overrides& overrides) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  apply_overrides(opened.document, folder, overrides);
  if (opened.job) complete_job(*opened.job, opened.document, folder);
}

}  // namespace rehearse
