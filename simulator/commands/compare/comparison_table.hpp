// Writes results side by side, in every format.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/report/comparison.hpp"

namespace rehearse {

// A scenario of a comparison: its result, or the reason why it has none.
struct Compared {
  std::string letter;              // "A", "B", ...
  std::string name;                // "gpt3-175b with strategy.pipeline=8"
  const Result* result = nullptr;  // null: `error` says why
  std::string error;
};

// Write the comparison. The first scenario that has a result is the base of all others.
void write_comparison_text(const std::vector<Compared>& all, std::ostream& out);
void write_comparison_json(const std::vector<Compared>& all, std::ostream& out);
void write_comparison_csv(const std::vector<Compared>& all, std::ostream& out);

}  // namespace rehearse
