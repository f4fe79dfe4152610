#include "simulator/trace/tensor_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

namespace rehearse {
namespace {

using Ranges = std::vector<std::pair<int, int>>;
// Tensors with the same key share a row: kind, name without its numbers, and, of those of a micro-batch, the
// layers.
using Key = std::tuple<TensorKind, std::string, int, int>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the name with "#" in place of each number.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (const char c : name)
    if (!is_digit(c))
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  return text;
}

Key key_of(const Tensor& tensor) {
  const bool of_microbatch = tensor.microbatch >= 0;
  return {tensor.kind, without_numbers(tensor.name), of_microbatch ? tensor.first_layer : -1,
          of_microbatch ? tensor.last_layer : -1};
}

// Returns the words with which both names begin.
std::string common_words(const std::string& a, const std::string& b) {
  std::istringstream one(a), other(b);
  std::string text, word, its_word;
  while (one >> word && other >> its_word && word == its_word) text += (text.empty() ? "" : " ") + word;
  while (text.ends_with(',') || text.ends_with(':')) text.pop_back();
  return text;
}

void add_range(Ranges& ranges, int first, int last) {
  if (first >= 0 && last >= first) ranges.emplace_back(first, last);
}

void merge(Ranges& ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges merged;
  for (const auto& [first, last] : ranges) {
    if (!merged.empty() && first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, last);
    else
      merged.emplace_back(first, last);
  }
  ranges = std::move(merged);
}

std::string op_name(const Program& program, int op) {
  return op < 0 ? "" : program.ops[static_cast<std::size_t>(op)].name;
}

TensorRow row_of(const Program& program, const LiveTensor& live, bool server) {
  const Tensor& tensor = program.tensors[static_cast<std::size_t>(live.tensor)];
  TensorRow row;
  row.name = tensor.name.empty() ? kind_text(tensor.kind) : tensor.name;
  row.kind = tensor.kind;
  row.server = server;
  row.bytes = live.bytes;
  add_range(row.layers, tensor.first_layer, tensor.last_layer);
  add_range(row.microbatches, tensor.microbatch, tensor.microbatch);
  row.born_s = live.born_s;
  row.freed_s = live.freed_s;
  row.born_in = op_name(program, live.born_in);
  row.freed_in = op_name(program, live.freed_in);
  return row;
}

void add(TensorRow& row, const TensorRow& one) {
  if (const std::string common = common_words(row.name, one.name); !common.empty()) row.name = common;
  ++row.count;
  row.bytes += one.bytes;
  row.layers.insert(row.layers.end(), one.layers.begin(), one.layers.end());
  row.microbatches.insert(row.microbatches.end(), one.microbatches.begin(), one.microbatches.end());
  // Live before the step is before any op of it, and live after the step behind any.
  if (!row.born_in.empty() && (one.born_in.empty() || one.born_s < row.born_s)) {
    row.born_s = one.born_s;
    row.born_in = one.born_in;
  }
  if (!row.freed_in.empty() && (one.freed_in.empty() || one.freed_s > row.freed_s)) {
    row.freed_s = one.freed_s;
    row.freed_in = one.freed_in;
  }
}

}  // namespace

std::vector<TensorRow> tensor_rows(const Trace& trace, const MemoryMoment& moment) {
  std::vector<TensorRow> rows;
  if (moment.program == nullptr) return rows;
  const bool server = trace.classes[static_cast<std::size_t>(moment.rank_class)].role != kWorkers;
  std::map<Key, std::size_t> row_of_key;
  for (const LiveTensor& live : moment.tensors) {
    const Tensor& tensor = moment.program->tensors[static_cast<std::size_t>(live.tensor)];
    const TensorRow one = row_of(*moment.program, live, server);
    const auto [it, fresh] = row_of_key.try_emplace(key_of(tensor), rows.size());
    if (fresh)
      rows.push_back(one);
    else
      add(rows[it->second], one);
  }
  for (TensorRow& row : rows) {
    merge(row.layers);
    merge(row.microbatches);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TensorRow& a, const TensorRow& b) { return a.bytes > b.bytes; });
  return rows;
}

std::vector<TensorRow> tensor_rows(const Trace& trace, const std::vector<MemoryMoment>& moments) {
  std::vector<TensorRow> rows;
  for (const MemoryMoment& moment : moments) {
    const std::vector<TensorRow> its = tensor_rows(trace, moment);
    rows.insert(rows.end(), its.begin(), its.end());
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TensorRow& a, const TensorRow& b) { return a.bytes > b.bytes; });
  return rows;
}

LargestRows largest_rows(const Trace& trace, const std::vector<MemoryMoment>& moments) {
  LargestRows largest;
  for (const MemoryMoment& moment : moments) largest.bytes += moment.bytes;
  largest.rows = tensor_rows(trace, moments);
  for (std::size_t i = kLargestRows; i < largest.rows.size(); ++i) {
    largest.others_bytes += largest.rows[i].bytes;
    largest.others += largest.rows[i].count;
  }
  if (largest.rows.size() > kLargestRows) largest.rows.resize(kLargestRows);
  return largest;
}

std::string title_of(const TensorRow& row) {
  std::string title = row.name;
  if (row.server) title += " (server)";
  if (row.count > 1) title += fmt::format(" x {}", row.count);
  return title;
}

std::string kind_text(TensorKind kind) {
  std::string text(kTensorKindNames[static_cast<std::size_t>(kind)]);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string ranges_text(const std::vector<std::pair<int, int>>& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    if (!text.empty()) text += ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

}  // namespace rehearse
