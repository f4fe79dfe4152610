// Implements `rehearse convert`: writes a job file of a framework as a scenario.
#include <ostream>

#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "simulator/commands/convert/convert.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"

namespace rehearse {

void run_convert(const ConvertArguments& arguments, std::istream& in, std::ostream& out) {
  const bool piped = arguments.job == "-";
  const std::string path = piped ? "<stdin>" : arguments.job;
  const FilesRead files_read;
  const std::string text = piped ? read_text(in, path, "job file") : read_text_file(path, "job file");
  OpenedScenario opened = open_scenario(text, path);
  if (!opened.job)
    throw InputError({path}, "is a scenario already; allowed: a file that starts a job in a framework");
  complete_scenario(opened, path, arguments.overrides);
  const std::string scenario = job_scenario_text(*opened.job, opened.document);
  if (arguments.out.empty()) {
    out << scenario;
    return;
  }
  std::vector<std::string> files = files_read.paths();
  if (piped) files.emplace_back("/dev/stdin");
  refuse_to_overwrite("--out", arguments.out, files);
  write_whole_file(arguments.out, scenario);
}

}  // namespace rehearse
