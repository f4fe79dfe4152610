// Predicts the memory of a table's rows, and writes how it compares with what was measured.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/validate/measured_memory.hpp"
#include "simulator/commands/validate/statistics.hpp"

namespace rehearse {

// The same, predicted.
struct PredictedMemory {
  double peak_bytes = 0, static_bytes = 0;
  double reserved_bytes = 0, reserved_low_bytes = 0, reserved_high_bytes = 0;
  bool out_of_memory = false;
};

PredictedMemory predicted_memory(const Prediction& prediction, MeasuredMemory::Of stage);

struct MemoryRow {
  std::string id;
  MeasuredMemory measured;
  PredictedMemory predicted;
};

// The figures of some rows.
struct MemorySummary {
  ErrorSummary peak, static_, reserved;
  std::size_t reserved_inside = 0;  // measurements inside their intervals
  // Rows that say whether they ran out of memory, and what was said wrongly of them.
  std::size_t judged = 0, wrongly_fit = 0, wrongly_overflow = 0;
  std::size_t right() const { return judged - wrongly_fit - wrongly_overflow; }
};
MemorySummary summarize(const std::vector<MemoryRow>& rows);

void write_text(const std::vector<MemoryRow>& rows, std::ostream& out);
nlohmann::ordered_json to_json(const MemoryRow& row);
nlohmann::ordered_json to_json(const MemorySummary& summary);
// Return the names of the CSV columns, with a comma before each, and a row's cells.
std::string memory_csv_columns();
std::string memory_csv(const MemoryRow* row);  // nullptr: empty cells

}  // namespace rehearse
