#include "simulator/report/peak_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "models/text/printable.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/rank_names.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/trace/tensor_rows.hpp"

namespace rehearse {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostOfList = 14;  // characters of a list of layers or micro-batches

// Sizes that are shown together: in the largest binary unit of which the largest has at least one.
class SizeScale {
public:
  explicit SizeScale(double largest) {
    for (; largest >= kKi && unit_ + 1 < kUnits.size(); largest /= kKi, ++unit_) bytes_ *= kKi;
  }
  std::string operator()(double bytes) const { return with_digits(bytes / bytes_, 3); }
  const char* unit() const { return kUnits[unit_]; }

private:
  static constexpr double kKi = 1024;
  static constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit_ = 0;
  double bytes_ = 1;
};

std::string list_text(const std::vector<std::pair<int, int>>& ranges) {
  std::string text = ranges_text(ranges);
  if (text.size() > kMostOfList && ranges.size() > 2)
    text = fmt::format("{} ... {}", ranges_text({ranges.front()}), ranges_text({ranges.back()}));
  return text.empty() ? "-" : text;
}

// A line of cells, and a remark on the line below it.
struct Line {
  std::array<std::string, 7> cells;
  std::string remark;
};

void write_lines(const std::vector<Line>& lines, std::ostream& out) {
  constexpr std::size_t kFirstNumber = 4, kLastNumber = 5;  // columns that are aligned to the right
  std::array<std::size_t, std::tuple_size_v<decltype(Line::cells)>> width{};
  for (const Line& line : lines)
    for (std::size_t c = 0; c < width.size(); ++c) width[c] = std::max(width[c], line.cells[c].size());
  for (const Line& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < width.size(); ++c) {
      const bool number = c >= kFirstNumber && c <= kLastNumber;
      text += number ? fmt::format("  {:>{}}", line.cells[c], width[c])
                     : fmt::format("  {:<{}}", line.cells[c], width[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
    if (!line.remark.empty()) out << "    " << line.remark << '\n';
  }
}

// Returns "from 0.51 s, "forward 0", to 6.01 s, "backward 0"".
std::string lifetime(const TensorRow& row, const TimeScale& time) {
  const auto moment = [&](double seconds, const std::string& op, const char* without) {
    return op.empty() ? without : fmt::format("{}, \"{}\"", time(seconds), printable(op));
  };
  return fmt::format("from {}, to {}", moment(row.born_s, row.born_in, "the step before"),
                     moment(row.freed_s, row.freed_in, "the next step"));
}

ordered_json number_or_null(int number) {
  return number < 0 ? ordered_json(nullptr) : ordered_json(number);
}

ordered_json to_json(const TensorRow& row) {
  ordered_json json;
  json["name"] = row.name;
  json["kind"] = kTensorKindNames[static_cast<std::size_t>(row.kind)];
  json["role"] = row.server ? "server" : "worker";
  const auto range = [&](const char* first, const char* last, const std::vector<std::pair<int, int>>& of) {
    json[first] = number_or_null(of.empty() ? -1 : of.front().first);
    json[last] = number_or_null(of.empty() ? -1 : of.back().second);
  };
  range("first_layer", "last_layer", row.layers);
  range("first_microbatch", "last_microbatch", row.microbatches);
  json["bytes"] = row.bytes;
  json["count"] = row.count;
  const auto moment = [&](const char* when, const char* where, double seconds, const std::string& op) {
    json[when] = op.empty() ? ordered_json(nullptr) : ordered_json(seconds);
    json[where] = op.empty() ? ordered_json(nullptr) : ordered_json(op);
  };
  moment("born_s", "born_in", row.born_s, row.born_in);
  moment("freed_s", "freed_in", row.freed_s, row.freed_in);
  return json;
}

std::string op_of(const MemoryMoment& moment) {
  return moment.op < 0 ? "" : moment.program->ops[static_cast<std::size_t>(moment.op)].name;
}

std::string heading(const Result& result, const MemoryMoment& worker, const std::string& size) {
  std::string text =
      fmt::format("Peak of the fullest {}: {} on {}, ", device_noun(result.scenario.cluster->node().device),
                  size, class_name(result.trace, worker.rank_class));
  text += worker.time_s > 0 ? TimeScale(worker.time_s)(worker.time_s) + " into the step"
                            : "from the beginning of the step";
  if (const std::string op = op_of(worker); !op.empty()) text += fmt::format(", in \"{}\"", printable(op));
  return text + ".";
}

}  // namespace

void write_peak_tensors(const Result& result, std::ostream& out) {
  const std::vector<MemoryMoment> moments = fullest_device(result.trace, 0);
  if (moments.empty()) {
    out << '\n'
        << wrapped("Tensors at the peak: unknown, as the model does not say what memory it needs.") << '\n';
    return;
  }
  const LargestRows largest = largest_rows(result.trace, moments);
  const SizeScale size(largest.bytes);
  double latest_s = 0;
  for (const TensorRow& row : largest.rows) latest_s = std::max({latest_s, row.born_s, row.freed_s});
  const TimeScale time(latest_s);
  const auto share = [&](double bytes) { return in_percent(bytes / largest.bytes); };
  out << '\n' << wrapped(heading(result, moments.front(), size(largest.bytes) + " " + size.unit())) << "\n\n";
  std::vector<Line> lines = {
      {{"tensor", "kind", "layers", "micro-batches", size.unit(), "share", "live"}, ""}};
  for (const TensorRow& row : largest.rows) {
    const bool always = row.born_in.empty() && row.freed_in.empty();
    lines.push_back(
        {{printable(title_of(row)), kind_text(row.kind), list_text(row.layers), list_text(row.microbatches),
          size(row.bytes), share(row.bytes), always ? "always" : time(row.freed_s - row.born_s)},
         always ? "" : lifetime(row, time)});
  }
  if (largest.others > 0)
    lines.push_back({{counted(largest.others, "other"), "", "", "", size(largest.others_bytes),
                      share(largest.others_bytes), ""},
                     ""});
  write_lines(lines, out);
}

ordered_json peak_tensors_json(const Result& result) {
  const std::vector<MemoryMoment> moments = fullest_device(result.trace, 0);
  if (moments.empty()) return nullptr;
  const LargestRows largest = largest_rows(result.trace, moments);
  const MemoryMoment& worker = moments.front();
  ordered_json json;
  json["time_s"] = worker.time_s;
  const std::string op = op_of(worker);
  json["op"] = op.empty() ? ordered_json(nullptr) : ordered_json(op);
  json["rank"] = result.trace.classes[static_cast<std::size_t>(worker.rank_class)].ranks.front();
  json["tensors"] = ordered_json::array();
  for (const TensorRow& row : largest.rows) json["tensors"].push_back(to_json(row));
  json["others_bytes"] = largest.others_bytes;
  return json;
}

}  // namespace rehearse
