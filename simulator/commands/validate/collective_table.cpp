#include "simulator/commands/validate/collective_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <tuple>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/commands/predicting/collective_uncertainty.hpp"
#include "simulator/commands/validate/csv_records.hpp"
#include "simulator/report/format.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 13> kColumns = {
    "id",      "source", "note",      "group",    "collective", "cluster.preset",  "cluster.nodes",
    "devices", "bytes",  "algorithm", "software", "issue_us",   "measured_time_us"};
constexpr std::array<std::string_view, 4> kNeeded = {"id", "source", "bytes", "measured_time_us"};
constexpr std::array<std::string_view, 8> kSettable = {
    "cluster.preset", "cluster.file", "cluster.nodes", "cluster.devices_per_node",
    "devices",        "collective",   "algorithm",     "software"};

template <class Names>
std::string checked_name(const std::string& found, const Names& names, std::string_view what,
                         const Place& place) {
  if (std::find(names.begin(), names.end(), found) == names.end())
    throw InputError(place,
                     fmt::format("{} is {}; allowed: {}", what, in_quotes(found), fmt::join(names, ", ")));
  return found;
}

double number_from(const std::string& text, double least, double most, std::string_view what,
                   const Place& place) {
  const auto value = number_in<double>(text);
  if (!value || !(*value >= least && *value <= most))
    throw InputError(
        place, fmt::format("{} is {}; allowed: a number from {} to {}", what, in_quotes(text), least, most));
  return *value;
}

int whole_from(const std::string& text, std::string_view what, const Place& place) {
  const double value = number_from(text, 1, 1'000'000, what, place);
  if (value != std::floor(value))
    throw InputError(place, fmt::format("{} is {}; allowed: a whole number", what, in_quotes(text)));
  return static_cast<int>(value);
}

constexpr double kLeastTimeUs = 1e-3, kMostTimeUs = 1e12;

// Sets the field for one of kSettable.
void set(MeasuredCollective& row, std::string_view key, const std::string& value, const Place& place) {
  if (key == "cluster.preset") row.cluster = checked_name(value, cluster_names(), key, place);
  if (key == "cluster.file") row.cluster = value;
  if (key == "cluster.devices_per_node") row.devices_per_node = whole_from(value, key, place);
  if (key == "cluster.nodes") row.nodes = whole_from(value, key, place);
  if (key == "devices") row.devices = whole_from(value, key, place);
  if (key == "collective") row.kind = checked_name(value, kExchangeNames, key, place);
  if (key == "algorithm") row.algorithm = checked_name(value, kAlgorithmNames, key, place);
  if (key == "software") row.software = checked_name(value, kSoftwareNames, key, place);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Returns the words of nccl-tests' header without its "#"; empty if the line is not a header.
std::vector<std::string> header_of(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  if (words.size() < 5 || words[0] != "#" || words[1] != "size" || words[2] != "count") return {};
  words.erase(words.begin());
  return std::find(words.begin(), words.end(), "time") == words.end() ? std::vector<std::string>() : words;
}

MeasurementTable parse_csv_table(const std::string& text, const std::string& path) {
  const std::vector<CsvRecord> records = parse_csv(text, path);
  const std::vector<std::string>& columns = records.front().fields;
  for (const std::string& name : columns)
    if (std::find(kColumns.begin(), kColumns.end(), name) == kColumns.end())
      throw InputError({path, 1, 1},
                       fmt::format("column {} is unknown; allowed in a table of collectives: {}",
                                   in_quotes(name), fmt::join(kColumns, ", ")));
  for (const std::string_view name : kNeeded)
    if (std::find(columns.begin(), columns.end(), name) == columns.end())
      throw InputError({path, 1, 1},
                       fmt::format("column \"{}\" is missing; required: {}", name, fmt::join(kNeeded, ", ")));
  MeasurementTable table;
  for (std::size_t r = 1; r < records.size(); ++r) {
    const Place place{path, records[r].line, 1};
    const std::vector<std::string>& fields = records[r].fields;
    PublishedRow& row = table.rows.emplace_back();
    row.collective.emplace();
    row.collective->kind = kExchangeNames[0];
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string &name = columns[i], &cell = fields[i];
      if (name == "id") row.id = cell;
      if (name == "source") row.source = cell;
      if (name == "note") row.note = cell;
      if (name == "group") row.group = cell;
      if (name == "bytes")
        row.collective->bytes = number_from(cell, kLeastCollectiveBytes, kMostCollectiveBytes, name, place);
      if (name == "measured_time_us")
        row.measured_step_s = 1e-6 * number_from(cell, kLeastTimeUs, kMostTimeUs, name, place);
      if (name == "issue_us" && !cell.empty())
        row.collective->issue_s = 1e-6 * number_from(cell, 0, kMostTimeUs, name, place);
      if (!cell.empty()) set(*row.collective, name, cell, place);
    }
  }
  return table;
}

// Returns the collective whose program in nccl-tests ("all_reduce_perf") the line names; empty if it names
// none.
std::string_view named_collective(const std::string& line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kPrograms = {
      {{"all_reduce_perf", "all-reduce"},
       {"reduce_scatter_perf", "reduce-scatter"},
       {"all_gather_perf", "all-gather"},
       {"alltoall_perf", "all-to-all"},
       {"broadcast_perf", "broadcast"},
       {"sendrecv_perf", "send-receive"},
       {"reduce_perf", "reduce"}}};
  for (const auto& [program, kind] : kPrograms)
    if (line.find(program) != std::string::npos) return kind;
  return {};
}

// Narrows the bounds of busbw / algbw by one row. Both are printed with two decimals, so each is off by at
// most 0.005.
void narrow_bus_ratio(MeasuredCollective& all, double algbw, double busbw) {
  constexpr double kRounding = 0.005;
  if (algbw < 1) return;
  const double least = (busbw - kRounding) / (algbw + kRounding),
               most = (busbw + kRounding) / (algbw - kRounding);
  all.least_bus_ratio = std::max(all.least_bus_ratio, least);
  all.most_bus_ratio = all.most_bus_ratio > 0 ? std::min(all.most_bus_ratio, most) : most;
}

MeasurementTable parse_printed_table(const std::string& text, const std::string& path) {
  MeasurementTable table;
  std::istringstream in(text);
  std::size_t time_column = 0, reduction_column = 0, algbw_column = 0, busbw_column = 0;
  std::string kind;
  int number = 0;
  MeasuredCollective all;
  for (std::string line; std::getline(in, line);) {
    const Place place{path, ++number, 1};
    if (const std::vector<std::string> header = header_of(line); !header.empty()) {
      const auto place_of = [&](const char* word) {
        return static_cast<std::size_t>(std::find(header.begin(), header.end(), word) - header.begin());
      };
      time_column = place_of("time");
      reduction_column = place_of("redop");
      algbw_column = place_of("algbw");
      busbw_column = place_of("busbw");
      continue;
    }
    const std::vector<std::string> words = words_of(line);
    if (const std::string_view named = named_collective(line); !named.empty()) kind = named;
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") ++all.listed_ranks;
    if (words.empty() || words[0][0] == '#' || time_column == 0) continue;
    if (words[0].find_first_not_of("0123456789") != std::string::npos) continue;  // a line of a log
    if (in.eof() && words.size() <= busbw_column) break;                          // the log is cut short
    if (words.size() <= time_column)
      throw InputError(place,
                       fmt::format("the row has {}; allowed: {} or more, as in the header",
                                   counted(static_cast<double>(words.size()), "column"), time_column + 1));
    if (words[0] == "0") continue;
    PublishedRow& row = table.rows.emplace_back();
    row.id = words[0];
    row.source = path;
    row.collective.emplace();
    row.collective->bytes = number_from(words[0], kLeastCollectiveBytes, kMostCollectiveBytes, "size", place);
    row.measured_step_s = 1e-6 * number_from(words[time_column], kLeastTimeUs, kMostTimeUs, "time", place);
    if (std::max(algbw_column, busbw_column) < words.size())
      narrow_bus_ratio(all, number_in<double>(words[algbw_column]).value_or(0),
                       number_in<double>(words[busbw_column]).value_or(0));
    if (kind.empty() && reduction_column < words.size() && words[reduction_column] != "none")
      row.collective->kind = kExchangeNames[0];
  }
  for (PublishedRow& row : table.rows) {
    if (!kind.empty()) row.collective->kind = kind;
    row.collective->listed_ranks = all.listed_ranks;
    row.collective->least_bus_ratio = all.least_bus_ratio;
    row.collective->most_bus_ratio = all.most_bus_ratio;
  }
  return table;
}

// Returns the smallest and the largest number of ranks whose ratio of bandwidths is within the bounds; {0, 0}
// if there is none, or if the ratio of this kind does not depend on their number.
std::pair<int, int> ranks_by_ratio(Exchange kind, const MeasuredCollective& row) {
  constexpr int kMostRanks = 65536;
  if (row.most_bus_ratio <= 0 || bus_factor(kind, 2) == bus_factor(kind, 4)) return {0, 0};
  int least = 0, most = 0;
  for (int n = 2; n <= kMostRanks; ++n) {  // the factor grows with n
    const double factor = bus_factor(kind, n);
    if (factor > row.most_bus_ratio) break;
    if (factor < row.least_bus_ratio) continue;
    if (least == 0) least = n;
    most = n;
  }
  return {least, most};
}

// Sets the number of devices of a printed table where nobody gives it, and returns a note that says from what
// it follows. Logs of single processes list some of the ranks only, so the ratio of the bandwidths counts
// before the list.
std::string find_devices(MeasuredCollective& row, Exchange kind) {
  const int listed = row.listed_ranks;
  if (row.devices > 0 || (listed == 0 && row.most_bus_ratio == 0)) return "";
  const auto [least, most] = ranks_by_ratio(kind, row);
  const auto told = [&](int devices, const std::string& from) {
    row.devices = devices;
    const std::string but =
        listed > 0 && listed != devices
            ? fmt::format(" (the log lists {})", counted(static_cast<double>(listed), "rank"))
            : "";
    return fmt::format("{} devices, {}{}", devices, from, but);
  };
  if (listed >= 2 && (least == 0 || (least <= listed && listed <= most)))
    return told(listed, "as many as the log lists");
  if (least > 0 && least == most)
    return told(least, "from the ratio of bus bandwidth to algorithm bandwidth in the log");
  return fmt::format("All devices of the cluster are taken, because the log does not tell their number{}",
                     least > 0 ? fmt::format(" exactly ({} to {})", least, most) : "");
}

// Parses "key=value" texts of --set. Throws InputError for keys other than kSettable.
std::vector<std::pair<std::string, std::string>> settings_of(const std::vector<std::string>& overrides) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& text : overrides) {
    const std::size_t sign = text.find('=');
    std::string key = text.substr(0, sign), value = sign == std::string::npos ? "" : text.substr(sign + 1);
    if (value.size() > 1 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    if (sign == std::string::npos || std::find(kSettable.begin(), kSettable.end(), key) == kSettable.end())
      throw InputError({"--set"}, fmt::format("{} is not a key of tables of collectives; allowed: {}",
                                              in_quotes(key), fmt::join(kSettable, ", ")));
    settings.emplace_back(std::move(key), std::move(value));
  }
  return settings;
}

// Returns the interval of a time that cannot be shorter than `least_s`.
Uncertainty at_least(Uncertainty uncertainty, double least_s) {
  for (double* s : {&uncertainty.low_s, &uncertainty.high_s}) *s = std::max(*s, least_s);
  for (Uncertainty::Effect& effect : uncertainty.effects)
    for (double* s : {&effect.better_s, &effect.worse_s}) *s = std::max(*s, least_s);
  return uncertainty;
}

}  // namespace

bool is_collective_table(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  if (line.find("measured_time_us") != std::string::npos) return true;
  do
    if (!header_of(line).empty()) return true;
  while (std::getline(in, line));
  return false;
}

MeasurementTable parse_collective_table(const std::string& text, const std::string& path) {
  const bool csv = text.substr(0, text.find('\n')).find("measured_time_us") != std::string::npos;
  MeasurementTable table = csv ? parse_csv_table(text, path) : parse_printed_table(text, path);
  if (table.rows.empty()) throw InputError({path}, "the table has no rows");
  table.path = path;
  table.name = title_of_file(path);
  table.collectives = true;
  return table;
}

std::vector<PredictedCollective> predict_collectives(const MeasurementTable& table,
                                                     const std::vector<std::string>& overrides,
                                                     bool with_uncertainty) {
  const auto settings = settings_of(overrides);
  using Where = std::tuple<std::string, std::string, int, int, int, std::string, std::string>;
  std::map<Where, std::vector<std::size_t>> together;
  std::vector<PredictedCollective> predicted(table.rows.size());
  const auto index = [](const auto& names, const std::string& wanted) {
    return std::find(names.begin(), names.end(), wanted) - names.begin();
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    MeasuredCollective c = *table.rows[i].collective;
    for (const auto& [key, value] : settings) set(c, key, value, {"--set"});
    const Place place{fmt::format("{}:{}", table.path, table.rows[i].id)};
    if (c.cluster.empty())
      throw InputError(place,
                       "the row names no cluster; allowed: a name in the column cluster.preset, or --set "
                       "cluster.preset=NAME or cluster.file=FILE, and cluster.nodes=N");
    if (c.kind.empty())
      throw InputError(place, fmt::format("the table does not name its collective; allowed: --set "
                                          "collective=NAME, of {}",
                                          fmt::join(kExchangeNames, ", ")));
    if (c.nodes == 0 || c.devices_per_node == 0)
      predicted[i].note = find_devices(c, static_cast<Exchange>(index(kExchangeNames, c.kind)));
    together[{c.kind, c.cluster, c.nodes, c.devices, c.devices_per_node, c.algorithm, c.software}].push_back(
        i);
  }
  for (const auto& [where, rows] : together) {
    const auto& [name, cluster_name, nodes, devices, devices_per_node, algorithm, software_name] = where;
    const auto cluster = collective_cluster({cluster_name, nodes, devices, devices_per_node, {}});
    const int ranks = devices > 0 ? devices : cluster->devices();
    if (ranks < 2 || ranks > cluster->devices())
      throw InputError(
          {fmt::format("{}:{}", table.path, table.rows[rows.front()].id)},
          fmt::format("{} devices on {}; allowed: 2 to {}", ranks, cluster->title, cluster->devices()));
    std::vector<double> bytes;
    for (const std::size_t i : rows) bytes.push_back(table.rows[i].collective->bytes);
    const auto kind = static_cast<Exchange>(index(kExchangeNames, name));
    const auto software = static_cast<Protocol::Software>(index(kSoftwareNames, software_name));
    const std::vector<CollectiveTime> times = collective_times(
        kind, cluster, ranks, bytes, static_cast<Algorithm>(index(kAlgorithmNames, algorithm)), software);
    std::vector<Uncertainty> found;
    if (with_uncertainty) found = collective_uncertainties(kind, cluster, ranks, times, software);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const double issue_s = table.rows[rows[k]].collective->issue_s;
      predicted[rows[k]].time_s = std::max(times[k].time_s, issue_s);
      predicted[rows[k]].devices = ranks;
      if (with_uncertainty) predicted[rows[k]].uncertainty = at_least(std::move(found[k]), issue_s);
    }
  }
  return predicted;
}

MeasurementTable read_measurements(const std::string& path) {
  const std::string text = read_text_file(path, "table");
  return is_collective_table(text) ? parse_collective_table(text, path) : parse_measurements(text, path);
}

}  // namespace rehearse
