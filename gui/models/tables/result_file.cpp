#include "gui/models/tables/result_file.hpp"

#include "models/text/error.hpp"

namespace rehearse::gui {

namespace {

constexpr double kParsed = 0.7;  // share of the work

}  // namespace

ResultFile read_results(const std::string& path, Progress& progress) {
  if (is_plan_file(path)) {
    ReadPlans read{read_plans(path), {}, {}};
    progress.share = kParsed;
    if (progress.cancelled) throw Cancelled{};
    read.rows = rows_of(read.plans);
    read.axes = axes_of(read.plans);
    return read;
  }
  const CsvFile file = read_csv(path, &progress, kParsed);
  switch (kind_of(file)) {
    case CsvKind::validation:
      return accuracy_of(file);
    case CsvKind::sweep: {
      ReadSweep read{sweep_of(file), {}};
      progress.share = (1 + kParsed) / 2;
      if (progress.cancelled) throw Cancelled{};
      read.rows = rows_of(read.sweep);
      return read;
    }
    case CsvKind::unknown:
      break;
  }
  throw InputError(
      {path, 1, 0},
      "contains neither a sweep nor a validation; allowed: the output of `rehearse sweep --out FILE.csv`, "
      "with the columns point, step_time_s, samples_per_s, devices and status; of "
      "`rehearse validate [RUN|FOLDER|TABLE]... --format csv`, with the columns run or id, "
      "measured_step_s and predicted_step_s; or of `rehearse plan --format json`");
}

}  // namespace rehearse::gui
