#include "gui/models/tables/csv_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gui/models/work/progress.hpp"
#include "models/text/error.hpp"
#include "models/text/read_text.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostProblems = 20;

// Reads one record after another. A field with an unclosed quote extends to the end of the text.
class Records {
public:
  explicit Records(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  // Returns false at the end. `open`: whether the record ends in an unclosed quote.
  bool next(CsvRow& row, bool& open) {
    row = {line_, {}};
    open = false;
    if (at_ >= text_.size()) return false;
    row.fields.emplace_back();
    bool quoted = false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (quoted) {
        if (c != '"') {
          row.fields.back() += c;
        } else if (at_ < text_.size() && text_[at_] == '"') {
          row.fields.back() += text_[at_++];
        } else {
          quoted = false;
        }
      } else if (c == '"' && row.fields.back().empty()) {
        quoted = true;
      } else if (c == ',') {
        row.fields.emplace_back();
      } else if (c == '\n') {
        return true;
      } else if (c != '\r' || at_ >= text_.size() || text_[at_] != '\n') {
        row.fields.back() += c;
      }
    }
    open = quoted;
    return true;
  }
  double share() const { return static_cast<double>(at_) / static_cast<double>(text_.size()); }

private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

int CsvFile::column(std::string_view wanted) const {
  const auto it = std::find(header.begin(), header.end(), wanted);
  return it == header.end() ? -1 : static_cast<int>(it - header.begin());
}

CsvFile parse_csv(std::string_view text, const std::string& name, Progress* progress, double until) {
  CsvFile file;
  file.name = name;
  Records records(text);
  CsvRow row;
  bool open = false;
  if (!records.next(row, open) || open || (row.fields.size() == 1 && row.fields.front().empty()))
    throw InputError({name, 1, 0}, "has no header: its first line must contain the column names");
  file.header = std::move(row.fields);
  std::size_t left_out = 0;
  const auto problem = [&](std::string text_of_it) {
    if (file.problems.size() < kMostProblems)
      file.problems.push_back(std::move(text_of_it));
    else
      ++left_out;
  };
  while (records.next(row, open)) {
    if (progress) {
      if (progress->cancelled) throw Cancelled{};
      progress->share = until * records.share();
    }
    if (row.fields.size() == 1 && row.fields.front().empty()) continue;  // skips empty lines
    if (open)
      problem(fmt::format("line {}: a quote is not closed", row.line));
    else if (row.fields.size() != file.header.size())
      problem(fmt::format("line {} has {}; allowed: {}, as in the header", row.line,
                          counted(static_cast<double>(row.fields.size()), "field"), file.header.size()));
    else
      file.rows.push_back(std::move(row));
  }
  if (left_out > 0) file.problems.push_back(fmt::format("{} more lines are broken", left_out));
  return file;
}

CsvFile read_csv(const std::string& path, Progress* progress, double until) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // enough for a sweep with millions of points
  return parse_csv(read_text_file(path, "table", kMostBytes), path, progress, until);
}

CsvKind kind_of(const CsvFile& file) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return file.column(name) >= 0; });
  };
  if (has({"point", "step_time_s", "samples_per_s", "devices", "status"})) return CsvKind::sweep;
  for (const char* of : {"run", "id"})  // recorded runs have "run", published tables "id"
    if (has({of, "measured_step_s", "predicted_step_s"})) return CsvKind::validation;
  return CsvKind::unknown;
}

}  // namespace rehearse::gui
