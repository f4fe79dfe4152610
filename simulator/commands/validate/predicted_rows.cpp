#include "simulator/commands/validate/predicted_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/predicting/uncertainty.hpp"
#include "simulator/commands/tasks/task_pool.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

using nlohmann::json;

PredictedRow predict_row(const MeasurementTable& table, std::size_t row,
                         const std::vector<std::string>& overrides, bool with_uncertainty, Where where) {
  const PublishedRow& m = table.rows[row];
  const std::string place = fmt::format("{}:{}", table.path, m.id);
  if (with_uncertainty) where = Where::child;  // more predictions follow
  const Prediction prediction = predict(read_scenario_text(m.scenario, place, overrides), where);
  PredictedRow predicted{prediction.metrics.samples,
                         prediction.metrics.step_time_s,
                         prediction.scenario.cluster->devices(),
                         {},
                         {}};
  if (with_uncertainty) predicted.uncertainty = uncertainty(prediction, 1);  // rows already run in parallel
  if (m.memory.any()) predicted.memory = predicted_memory(prediction, m.memory.stage);
  return predicted;
}

// Encodes a row for its way back from the child process. JSON retains every digit of a number.
std::string packed(const PredictedRow& row) {
  nlohmann::ordered_json packed = {
      {"samples", row.samples}, {"step_s", row.step_s}, {"devices", row.devices}};
  if (const std::optional<PredictedMemory>& m = row.memory)
    packed["memory"] = {m->peak_bytes,         m->static_bytes,        m->reserved_bytes,
                        m->reserved_low_bytes, m->reserved_high_bytes, m->out_of_memory};
  if (row.uncertainty) {
    packed["interval_s"] = {row.uncertainty->low_s, row.uncertainty->high_s};
    packed["effects"] = to_json(*row.uncertainty);
  }
  return json_text(packed);
}

PredictedRow unpacked(const std::string& text) {
  const json packed = json_in_line(text);
  PredictedRow row{packed["samples"], packed["step_s"], packed["devices"], {}, {}};
  if (packed.contains("memory")) {
    const json& m = packed["memory"];
    row.memory = PredictedMemory{m[0], m[1], m[2], m[3], m[4], m[5]};
  }
  if (!packed.contains("interval_s")) return row;
  Uncertainty& found = row.uncertainty.emplace();
  found.low_s = packed["interval_s"][0];
  found.high_s = packed["interval_s"][1];
  for (const json& effect : packed["effects"]) {
    const auto basis = std::find(kBasisNames.begin(), kBasisNames.end(), effect["basis"].get<std::string>()) -
                       kBasisNames.begin();
    found.effects.push_back({effect["constant"], static_cast<Basis>(basis), effect["deviation"],
                             effect["better_s"], effect["worse_s"]});
  }
  return row;
}

// Returns for each row the first one that is predicted alike, since measurements are often repeated.
std::vector<std::size_t> first_rows_alike(const MeasurementTable& table) {
  using Asked = std::tuple<std::string_view, bool, MeasuredMemory::Of>;
  std::map<Asked, std::size_t> first;
  std::vector<std::size_t> alike;
  for (const PublishedRow& row : table.rows)
    alike.push_back(
        first.emplace(Asked(row.scenario, row.memory.any(), row.memory.stage), alike.size()).first->second);
  return alike;
}

}  // namespace

std::vector<PredictedRow> predict_rows(const MeasurementTable& table,
                                       const std::vector<std::string>& overrides, bool with_uncertainty) {
  const std::vector<std::size_t> alike = first_rows_alike(table);
  std::vector<PredictedRow> predicted(table.rows.size());
  std::vector<bool> known(table.rows.size(), false);
  TaskPool pool;
  pool.jobs = processors();
  pool.next = [&, row = std::size_t{0}]() mutable {
    while (row < alike.size() && alike[row] != row) ++row;
    return row < alike.size() ? static_cast<std::int64_t>(row++) : -1;
  };
  pool.work = [&](std::int64_t row) {
    return packed(
        predict_row(table, static_cast<std::size_t>(row), overrides, with_uncertainty, Where::here));
  };
  pool.ended = [&](const TaskEnd& end) {
    const auto row = static_cast<std::size_t>(end.task);
    known[row] = end.failure.empty() && is_json(end.output);
    if (known[row]) predicted[row] = unpacked(end.output);
  };
  pool.tick = [] {};
  run(pool);
  // The first row that failed fails here again, with its own error.
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (alike[row] != row)
      predicted[row] = predicted[alike[row]];
    else if (!known[row])
      predicted[row] = predict_row(table, row, overrides, with_uncertainty, Where::child);
  }
  return predicted;
}

}  // namespace rehearse
