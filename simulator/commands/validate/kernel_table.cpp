#include "simulator/commands/validate/kernel_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/commands/predicting/kernel_uncertainty.hpp"
#include "simulator/commands/validate/csv_records.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 6> kRequired = {"id",     "source",    "kernel",
                                                       "device", "precision", "measured_time_us"};
constexpr std::array<std::string_view, 5> kOptional = {"note", "group", "pass", "attention", "causal"};

std::set<std::string_view> size_names() {
  std::set<std::string_view> names;
  for (const KernelKind& kind : kernel_kinds()) names.insert(kind.sizes.begin(), kind.sizes.end());
  return names;
}

void check_columns(const std::vector<std::string>& columns, const std::string& path) {
  std::vector<std::string_view> known(kRequired.begin(), kRequired.end());
  known.insert(known.end(), kOptional.begin(), kOptional.end());
  const std::set<std::string_view> sizes = size_names();
  known.insert(known.end(), sizes.begin(), sizes.end());
  for (const std::string& name : columns)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError({path, 1, 1}, fmt::format("column {} is unknown; allowed: {}", in_quotes(name),
                                                 fmt::join(known, ", ")));
  for (const std::string_view name : kRequired)
    if (std::find(columns.begin(), columns.end(), name) == columns.end())
      throw InputError({path, 1, 1},
                       fmt::format("column {} is missing; required: {}", name, fmt::join(kRequired, ", ")));
}

// The cells of a row by the names of their columns; a missing column has empty cells.
class Cells {
public:
  Cells(const std::vector<std::string>& columns, const CsvRecord& record, const std::string& path)
      : place_{path, record.line, 1} {
    for (std::size_t i = 0; i < columns.size(); ++i) cells_.emplace(columns[i], record.fields[i]);
  }

  const Place& place() const { return place_; }
  const std::string& text(std::string_view column) const {
    static const std::string none;
    const auto found = cells_.find(column);
    return found == cells_.end() ? none : found->second;
  }
  double number(std::string_view column) const { return positive_number(text(column), column, place_); }
  template <std::size_t N>
  std::size_t choice(std::string_view column, const std::array<std::string_view, N>& allowed) const {
    const auto found = std::find(allowed.begin(), allowed.end(), text(column));
    if (found == allowed.end())
      throw InputError(place_, fmt::format("{} is {}; allowed: {}", column, in_quotes(text(column)),
                                           fmt::join(allowed, ", ")));
    return static_cast<std::size_t>(found - allowed.begin());
  }

private:
  Place place_;
  std::map<std::string, std::string, std::less<>> cells_;
};

KernelQuestion question_of(const Cells& cells) {
  KernelQuestion question;
  for (const KernelKind& kind : kernel_kinds())
    if (kind.name == cells.text("kernel")) question.kind = &kind;
  if (question.kind == nullptr) {
    std::vector<std::string_view> names;
    for (const KernelKind& kind : kernel_kinds()) names.push_back(kind.name);
    throw InputError(cells.place(), fmt::format("kernel is {}; allowed: {}", in_quotes(cells.text("kernel")),
                                                fmt::join(names, ", ")));
  }
  const std::vector<std::string_view>& sizes = question.kind->sizes;
  for (const std::string_view name : size_names())
    if (!cells.text(name).empty() && std::find(sizes.begin(), sizes.end(), name) == sizes.end())
      throw InputError(cells.place(), fmt::format("{} is given for a {}; allowed: {}", name,
                                                  question.kind->name, fmt::join(sizes, ", ")));
  std::size_t given = sizes.size();
  while (given > question.kind->required && cells.text(sizes[given - 1]).empty()) --given;
  for (std::size_t i = 0; i < given; ++i)  // paddings may be 0
    question.sizes.push_back(cells.text(sizes[i]) == "0" ? 0 : cells.number(sizes[i]));
  question.precision = static_cast<Precision>(cells.choice("precision", kPrecisionNames));
  if (!cells.text("pass").empty())
    question.pass = static_cast<KernelPass>(cells.choice("pass", kKernelPassNames));
  if (!cells.text("attention").empty())
    question.attention = static_cast<AttentionKernels>(cells.choice("attention", kAttentionKernelsNames));
  static constexpr std::array<std::string_view, 2> kBooleans = {"false", "true"};
  if (!cells.text("causal").empty()) question.causal = cells.choice("causal", kBooleans) == 1;
  return question;
}

std::string place_of(const KernelTable& kernels, std::size_t row) {
  return kernels.table.path + ":" + kernels.table.rows[row].id;
}

// The devices that a table names, by row; each is read once.
class DevicesByRow {
public:
  explicit DevicesByRow(const KernelTable& kernels) : names_(kernels.devices) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto [known, added] = devices_.try_emplace(names_[i]);
      if (added) known->second = device_named(names_[i], place_of(kernels, i));
    }
  }
  const Device& operator[](std::size_t row) const { return devices_.at(names_[row]); }

private:
  const std::vector<std::string>& names_;
  std::map<std::string, Device> devices_;
};

}  // namespace

bool is_kernel_table(const std::string& text) {
  const std::string line = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto has = [&](std::string_view name) {
    for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      const bool begins = at == 0 || line[at - 1] == ',' || line[at - 1] == '"';
      if (begins && (end == line.size() || line[end] == ',' || line[end] == '"' || line[end] == '\r'))
        return true;
    }
    return false;
  };
  return has("kernel") && has("measured_time_us");
}

KernelTable parse_kernel_table(const std::string& text, const std::string& path) {
  const std::vector<CsvRecord> records = parse_csv(text, path);
  const std::vector<std::string>& columns = records.front().fields;
  check_columns(columns, path);
  KernelTable kernels;
  kernels.table.path = path;
  kernels.table.name = title_of_file(path);
  for (std::size_t r = 1; r < records.size(); ++r) {
    const Cells cells(columns, records[r], path);
    PublishedRow row;
    row.id = cells.text("id");
    row.source = cells.text("source");
    row.note = cells.text("note");
    row.group = cells.text("group");
    row.measured_step_s = cells.number("measured_time_us") * 1e-6;
    kernels.table.rows.push_back(std::move(row));
    kernels.questions.push_back(question_of(cells));
    kernels.devices.push_back(cells.text("device"));
    kernels_of(kernels.questions.back(), fmt::format("{}:{}", path, records[r].line));
  }
  if (kernels.table.rows.empty()) throw InputError({path}, "the table has no rows");
  return kernels;
}

std::vector<double> predicted_times_s(const KernelTable& kernels) {
  const DevicesByRow devices(kernels);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kernels.questions.size(); ++i)
    seconds.push_back(answer(kernels.questions[i], devices[i], place_of(kernels, i)).time_s);
  return seconds;
}

std::vector<Uncertainty> kernel_uncertainties(const KernelTable& kernels) {
  const DevicesByRow devices(kernels);
  std::vector<Uncertainty> found;
  for (std::size_t i = 0; i < kernels.questions.size(); ++i)
    found.push_back(kernel_uncertainty(kernels.questions[i], devices[i], place_of(kernels, i)));
  return found;
}

}  // namespace rehearse
