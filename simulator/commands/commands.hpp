// The commands of `rehearse`, without the parsing of their arguments.
#pragma once

#include <array>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "json", "csv"};
enum class Format { text, json, csv };

struct SimulateArguments {
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  Format format = Format::text;
  std::string trace;  // where to write the timeline; empty: nowhere
};
void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out);

struct CompareArguments {
  std::vector<std::string> scenarios;  // paths; "-": standard input
  std::vector<std::string> variants;   // "key=value key=value": the first scenario with these changes
  std::vector<std::string> overrides;  // of all of them
  Format format = Format::text;
};
// Scenarios side by side, the first one being the base. One that cannot be read or fails is told on `err` and
// left out. Returns the exit status: 2 if one could not be read, else 1 if one failed, else 0.
int run_compare(const CompareArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

inline constexpr std::array<std::string_view, 4> kListNames = {"models", "clusters", "devices", "strategies"};
void run_list(const std::string& what, std::ostream& out);
void run_show(const std::string& name, std::ostream& out);

// Tables of published measurements, beside each the prediction of every row; no names: all tables.
void run_validate(const std::vector<std::string>& tables, Format format, std::ostream& out);

}  // namespace rehearse
