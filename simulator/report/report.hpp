// Writers: one result, several formats.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/trace/metrics.hpp"

namespace rehearse {

// Everything a writer may need.
struct Result {
  const Scenario& scenario;
  const Plan& plan;
  const Trace& trace;
  Metrics metrics;
};

// Which inputs the answer rests on, and how good they are.
struct RestsOn {
  std::vector<std::string> measured, published, guessed;  // "compute: A100 profile"
};
RestsOn rests_on(const Scenario& scenario, const Plan& plan);

// The longest part of the step in one sentence, with a way out where there is one.
std::string bottleneck_sentence(const Result& result);

void write_text(const Result& result, std::ostream& out);
void write_json(const Result& result, std::ostream& out);
void write_csv(const Result& result, std::ostream& out);
// Chrome Trace Event JSON; gzipped if `path` ends in ".gz". RunError if it cannot be written.
void write_chrome_trace(const Result& result, const std::string& path);

}  // namespace rehearse
