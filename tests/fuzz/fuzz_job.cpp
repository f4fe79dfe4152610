// Reads arbitrary bytes as a file that starts a job, and what was understood as a scenario's document.
#include <cstdint>
#include <string_view>

#include "simulator/jobs/job_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    auto job = read_job({reinterpret_cast<const char*>(data), size}, "job");
    if (!job) return 0;
    Document document = job_document(*job);
    job_scenario_text(*job, document);
    for (const char* setting : {"cluster.preset=dgx-h100", "cluster.nodes=2", "model.preset=gpt2"})
      document.set(setting);
    complete_job(*job, document, "");
    // What is written must be TOML.
    Document::parse_text(job_scenario_text(*job, document), "scenario");
  } catch (const InputError&) {
  }
  return 0;
}
