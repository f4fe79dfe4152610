// Implements `rehearse sweep`: decides which points are computed and by whom, and reports on them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <ostream>

#include "models/text/document.hpp"
#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "models/text/text.hpp"
#include "simulator/commands/predicting/known_schedules.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/sweep/sweep.hpp"
#include "simulator/commands/sweep/sweep_output.hpp"
#include "simulator/commands/tasks/ranks.hpp"
#include "simulator/commands/tasks/worker_pool.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/scenario/reading/readers.hpp"
#include "simulator/strategies/schedule_key.hpp"
#include "simulator/terminal/progress_line.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostInARow = 8;  // points that one worker takes, one after the other

std::string read_input(const std::string& path, std::istream& in) {
  if (path != "-") return read_text_file(path, "scenario or sweep file");
  return read_text(in, "<stdin>", "scenario or sweep file");
}

Sweep read_sweep(const SweepArguments& arguments, std::istream& in) {
  Sweep sweep;
  const std::string text = read_input(arguments.input, in);
  const std::string path = arguments.input == "-" ? "<stdin>" : arguments.input;
  if (is_sweep_file(text)) {
    sweep = parse_sweep_file(text, path);
    const fs::path folder = arguments.input == "-" ? fs::path() : fs::path(path).parent_path();
    sweep.scenario_path = (folder / sweep.scenario_path).string();
    sweep.scenario_text = read_text_file(sweep.scenario_path, "scenario file");
  } else {
    sweep.scenario_path = path;
    sweep.scenario_text = text;
  }
  sweep.strict = arguments.strict;
  sweep.overrides.insert(sweep.overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  for (const std::string& assignment : arguments.vary) sweep.axes.push_back(parse_vary(assignment));
  Document scenario = open_scenario(sweep.scenario_text, sweep.scenario_path).document;
  apply_overrides(scenario, fs::path(sweep.scenario_path).parent_path().string(), sweep.overrides);
  if (sweep.axes.empty())
    throw InputError({path},
                     "nothing varies; allowed: --vary key=a,b,c, or a sweep file with [vary] or [[zip]]");
  check(sweep);
  return sweep;
}

// Refuses unknown keys of the scenario or of an override, which are an error of the input rather than of each
// point. The error names the place where the key was varied.
void refuse_unknown_keys(const Sweep& sweep) {
  try {
    read_scenario_text(sweep.scenario_text, sweep.scenario_path, sweep.overrides_of(1));
  } catch (const UnknownKeyError& error) {
    const std::string& place = error.place().file;
    for (const SweepAxis& axis : sweep.axes)
      for (std::size_t k = 0; k < axis.keys.size(); ++k)
        if (place.starts_with("--vary " + axis.keys[k] + "="))
          throw InputError(axis.places[k], std::string(error.what()).substr(place.size() + 2));
    if (place == sweep.scenario_path || place.starts_with("--set ")) throw;
  } catch (const std::exception&) {
    // Possibly an error of this point alone, which its line will report.
  }
}

// Refuses to write over any file that was read so far, or that a value of a point may refer to.
void refuse_to_write_over(const Sweep& sweep, const SweepArguments& arguments,
                          std::vector<std::string> files) {
  if (arguments.out.empty()) return;
  if (arguments.input == "-") files.emplace_back("/dev/stdin");
  const fs::path folder = fs::path(sweep.scenario_path).parent_path();
  for (const SweepAxis& axis : sweep.axes)
    for (const std::vector<SweepValue>& values : axis.values)
      for (const SweepValue& value : values) files.push_back((folder / value.shown).string());
  refuse_to_overwrite("--out", arguments.out, files);
}

Scenario scenario_of(const Sweep& sweep, std::int64_t point) {
  return read_scenario_text(sweep.scenario_text, sweep.scenario_path, sweep.overrides_of(point));
}

// Returns the line of a point; `line` returns it if there is no error.
std::string line_or_error(const SweepRows& rows, std::int64_t point,
                          const std::function<std::string()>& line) {
  try {
    return line();
  } catch (const InputError& error) {
    return rows.line(point, PointStatus::refused, error.what());
  } catch (const std::exception& error) {
    return rows.line(point, PointStatus::failed, error.what());
  }
}

// Reads a point and prepares its schedules; what is returned computes its line.
std::function<std::string()> prepare(const Sweep& sweep, const SweepRows& rows, KnownSchedules& known,
                                     std::int64_t point) {
  std::optional<Scenario> scenario;
  std::string error = line_or_error(rows, point, [&] {
    scenario = scenario_of(sweep, point);
    return std::string();
  });
  if (!scenario) return [error] { return error; };
  try {
    prepare_schedules(known, *scenario);
  } catch (const std::exception&) {
    // The prediction meets the same error.
  }
  return [&sweep, &rows, &known, point, scenario = *std::move(scenario)] {
    return line_or_error(rows, point, [&] {
      const Prediction prediction = predict_with(known, scenario, Where::here);
      if (sweep.strict) refuse_overflow(prediction);
      return rows.line(point, prediction.result());
    });
  };
}

// Returns for each axis whether its second value leaves the first point's schedule as it is. Points are
// ordered by this guess, so that those with the same schedule follow one another.
std::vector<bool> axes_that_keep_schedules(const Sweep& sweep) {
  std::vector<bool> keep(sweep.axes.size(), false);
  const auto key_at = [&](std::int64_t point) {
    try {
      return schedule_key(scenario_of(sweep, point));
    } catch (const std::exception&) {
      return std::string();
    }
  };
  const std::string first = key_at(1);
  std::int64_t distance = 1;
  for (std::size_t a = sweep.axes.size(); a-- > 0;) {
    const auto count = static_cast<std::int64_t>(sweep.axes[a].values.size());
    keep[a] = !first.empty() && count > 1 && key_at(1 + distance) == first;
    distance *= count;
  }
  return keep;
}

std::string in_words(const Sweep& sweep, std::int64_t point) {
  const std::vector<std::string> keys = sweep.keys();
  const std::vector<SweepValue> values = sweep.values(point);
  std::string words;
  for (std::size_t i = 0; i < keys.size(); ++i)
    words += fmt::format("{}{}={}", words.empty() ? "" : ", ", keys[i], values[i].shown);
  return fmt::format("point {} ({})", point, words);
}

// What is known so far; it does not depend on the order in which points end.
struct Tally {
  std::int64_t done = 0, failures = 0, too_large = 0;
  std::map<std::string, std::int64_t> ignored;     // points by key
  std::map<std::string, std::int64_t> frameworks;  // points by the framework whose costs they count
  std::optional<SweepRow> best, first_failure;

  void add(const SweepRow& row) {
    ++done;
    for (const std::string& key : row.ignored) ++ignored[key];
    if (!row.framework.empty()) ++frameworks[row.framework];
    if (row.status != PointStatus::ok) {
      ++failures;
      if (!first_failure || row.point < first_failure->point) first_failure = row;
    } else if (!row.fits) {
      ++too_large;
    } else if (!best || row.samples_per_s > best->samples_per_s ||
               (row.samples_per_s == best->samples_per_s && row.point < best->point)) {
      best = row;
    }
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns "8 s", "3 min 20 s" or "2 h 5 min".
std::string time_left(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::min(std::ceil(seconds), 1e9));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

class Progress {
public:
  explicit Progress(std::int64_t total) : total_(total) {}

  void show(const Tally& tally) {
    if (!line_.is_shown() || seconds_since(last_) < 0.1) return;
    last_ = Clock::now();
    if (!first_done_) first_done_ = tally.done;
    const double rate =
        static_cast<double>(tally.done - *first_done_) / std::max(seconds_since(start_), 1e-3);
    std::string line = fmt::format("{}/{} points", tally.done, total_);
    if (rate > 0)
      line += fmt::format("   {:.3g} points/s   {} left", rate,
                          time_left(static_cast<double>(total_ - tally.done) / rate));
    if (tally.best)
      line += fmt::format("   best so far {:.4g} samples/s (point {})", tally.best->samples_per_s,
                          tally.best->point);
    line_.show(line);
  }
  void clear() { line_.clear(); }

private:
  ProgressLine line_;
  std::int64_t total_;
  std::optional<std::int64_t> first_done_;
  Clock::time_point start_ = Clock::now(), last_{};
};

void print_summary(const Sweep& sweep, const Tally& tally, std::int64_t computed, double seconds,
                   std::ostream& err) {
  err << fmt::format("{} of {} points: {} computed now in {}, {} failed", tally.done, sweep.points(),
                     computed, human_time_s(seconds), tally.failures);
  if (tally.too_large > 0) err << fmt::format(", {} need more memory than a device has", tally.too_large);
  err << '\n';
  if (tally.best)
    err << fmt::format("  best: {}: {:.4g} samples/s, step {}\n", in_words(sweep, tally.best->point),
                       tally.best->samples_per_s, human_time_s(tally.best->step_time_s));
  for (const auto& [key, points] : tally.ignored)
    err << fmt::format("  {} does not apply at {} of these points, where it was ignored\n", key, points);
  if (!tally.frameworks.empty()) {
    std::vector<std::string> counted;
    for (const auto& [framework, points] : tally.frameworks)
      counted.push_back(fmt::format("{} at {} of {} points", framework, points, tally.done - tally.failures));
    err << fmt::format("  framework whose costs are counted (training.framework): {}\n",
                       fmt::join(counted, ", "));
  }
  if (tally.first_failure)
    err << fmt::format("  first failure: {}: {}\n", in_words(sweep, tally.first_failure->point),
                       tally.first_failure->error);
}

SweepFormat format_of(const SweepArguments& arguments) {
  if (arguments.format) return *arguments.format;
  const std::string ending = fs::path(arguments.out).extension().string();
  return ending == ".jsonl" || ending == ".ndjson" ? SweepFormat::jsonl : SweepFormat::csv;
}

}  // namespace

int run_sweep(const SweepArguments& arguments, std::istream& in, std::ostream& err) {
  const Clock::time_point start = Clock::now();
  const FilesRead files_read;
  const Sweep sweep = read_sweep(arguments, in);
  const SweepRows rows(sweep, format_of(arguments));
  refuse_unknown_keys(sweep);
  refuse_to_write_over(sweep, arguments, files_read.paths());
  const Ranks ranks = arguments.merge ? Ranks{} : ranks_of_this_run();
  const bool several = ranks.size > 1;
  if ((several || arguments.merge) && arguments.out.empty())
    throw InputError({}, several
                             ? "several ranks need a file each; allowed: --out FILE, for FILE.0, FILE.1, ..."
                             : "there is nothing to merge into; allowed: --merge with --out FILE");
  const std::string path = several ? fmt::format("{}.{}", arguments.out, ranks.rank) : arguments.out;

  SweepOutput output(rows, path, arguments.force_new);
  Tally tally;
  std::vector<bool> done(static_cast<std::size_t>(sweep.points()) + 1, false);
  const auto known = [&](const SweepRow& row) {
    if (done[static_cast<std::size_t>(row.point)] || (several && (row.point - 1) % ranks.size != ranks.rank))
      return;
    tally.add(row);
  };
  const auto take = [&](const std::vector<SweepRow>& found) {
    for (const SweepRow& row : found) {
      known(row);
      done[static_cast<std::size_t>(row.point)] = true;
    }
  };
  take(output.found());
  if (several && !arguments.force_new) {  // an earlier run may have had other ranks, or none
    take(read_sweep_lines(rows, arguments.out).rows);
    for (const std::string& other : rank_files(arguments.out))
      if (other != path) take(read_sweep_lines(rows, other).rows);
  }
  if (!several && arguments.force_new && !arguments.merge) {
    remove_rank_files(arguments.out);
  } else if (!several && !arguments.out.empty()) {
    std::vector<bool> merged = done;
    take(merge_rank_files(rows, arguments.out, output, merged));
  }

  std::int64_t mine = 0, computed = 0;
  for (std::int64_t p = 1 + ranks.rank; p <= sweep.points(); p += ranks.size) ++mine;
  Progress progress(mine);
  if (!arguments.merge) {
    KnownSchedules schedules;  // those of a worker, each of which has its own copy
    const std::vector<bool> fast = axes_that_keep_schedules(sweep);
    WorkerPool pool;
    pool.jobs = arguments.jobs > 0 ? arguments.jobs : processors();
    pool.in_a_row = static_cast<int>(std::clamp<std::int64_t>(mine / (4 * pool.jobs), 1, kMostInARow));
    pool.next = [&, place = std::int64_t{0}]() mutable -> std::int64_t {
      while (place < sweep.points()) {
        const std::int64_t point = sweep.point_at(place++, fast);
        if ((point - 1) % ranks.size == ranks.rank && !done[static_cast<std::size_t>(point)]) return point;
      }
      return -1;
    };
    pool.prepare = [&](std::int64_t point) { return prepare(sweep, rows, schedules, point); };
    pool.ended = [&](const TaskEnd& end) {
      const std::string line =
          end.failure.empty() ? end.output : rows.line(end.task, PointStatus::failed, end.failure);
      output.append(line);
      tally.add(rows.parse(std::string_view(line).substr(0, line.size() - 1)));
      ++computed;
    };
    pool.tick = [&] { progress.show(tally); };
    run(pool);
  }
  progress.clear();
  if (several) err << fmt::format("rank {} of {}: ", ranks.rank, ranks.size);
  print_summary(sweep, tally, computed, seconds_since(start), err);
  return tally.failures > 0 ? 1 : 0;
}

}  // namespace rehearse
