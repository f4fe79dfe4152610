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

inline constexpr std::array<std::string_view, 4> kListNames = {"models", "clusters", "devices", "strategies"};
void run_list(const std::string& what, std::ostream& out);
void run_show(const std::string& name, std::ostream& out);

// Tables of published measurements, beside each the prediction of every row; no names: all tables.
void run_validate(const std::vector<std::string>& tables, Format format, std::ostream& out);

}  // namespace rehearse
