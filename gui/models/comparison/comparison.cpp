#include "gui/models/comparison/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "simulator/report/comparison.hpp"
#include "simulator/report/format.hpp"
#include "simulator/trace/op_seconds.hpp"

namespace rehearse::gui {
namespace {

constexpr double kSameShare = 0.0005;  // of the base's step; smaller differences count as equal
constexpr double kMatters = 0.05;      // of the total difference; the sentence leaves out smaller parts
constexpr double kShown = 0.0005;      // of the longest step; tables leave out smaller parts
constexpr double kEqualOp = 0.01;      // of the base's time
constexpr const char* kPooled = "exposed communication";

// Position in the order of the legend.
int place_of(Kind kind) {
  constexpr std::array<Kind, 10> kOrder = {
      Kind::compute,    Kind::bubble,  Kind::communication, Kind::copy,       Kind::data,
      Kind::checkpoint, Kind::waiting, Kind::host,          Kind::annotation, Kind::other};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), kind) - kOrder.begin());
}

// Communication parts are the same if their names match, other parts if their kinds match. Waiting for
// servers and for slower ranks thus counts as one part.
bool same_part(const ComparedPart& known, const std::string& name, Kind kind) {
  return known.kind == kind && (kind != Kind::communication || known.name == name);
}

// Shortens a long title by leaving out its middle, because runs differ at the ends of their names. Tooltips
// show the full name.
QString short_name(const std::string& name) {
  const QString whole = QString::fromStdString(name);
  return whole.size() <= 22 ? whole : whole.left(9) + QStringLiteral("…") + whole.right(12);
}

struct Columns {
  std::vector<Column> columns;
  void of_runs(const std::vector<std::string>& names, const QString& unit, const QString& what) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const QString name = QString::fromStdString(names[i]);
      columns.push_back({unit.isEmpty() ? short_name(names[i]) : short_name(names[i]) + " (" + unit + ")",
                         what + " of " + name});
      if (i == 0) continue;
      const QString base = QString::fromStdString(names.front());
      const QString of = QString(" of %1 minus that of %2").arg(name, base);
      columns.push_back({unit.isEmpty() ? QStringLiteral("delta") : "delta (" + unit + ")", what + of});
      columns.push_back({"delta (%)", what + of + ", divided by that of " + base});
    }
  }
};

// One figure of all runs, in a common unit.
struct FigureRow {
  QString name;
  std::vector<double> values;  // 0: not known
  enum class Better { none, more, less } better = Better::none;
  bool whole = false;
};

std::vector<Cell> cells_of(const FigureRow& row, const QString& name) {
  std::vector<Cell> cells = {text_cell(name)};
  const double base = row.values.front();
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const double value = row.values[i];
    cells.push_back(row.whole ? count_cell(value) : number_cell(value));
    if (i == 0) continue;
    const double difference = value - base;
    Cell delta{signed_number_text(difference, row.whole ? 1 : 3), difference};
    Cell share;
    if (base > 0) share = {signed_percent_text(difference / base).chopped(2), difference / base};
    if (row.better != FigureRow::Better::none && std::abs(difference) > kEqualOp * base)
      delta.tone = share.tone =
          (difference > 0) == (row.better == FigureRow::Better::more) ? Tone::better : Tone::worse;
    cells.push_back(delta);
    cells.push_back(share);
  }
  return cells;
}

}  // namespace

double samples_per_step(const Run& run) {
  return run.figures.samples_per_s * run.figures.step_time_s;
}

bool per_sample(const Runs& runs) {
  const auto differs = [&](const auto& run) {
    return std::abs(samples_per_step(*run) / samples_per_step(*runs.front()) - 1) > 1e-6;
  };
  return std::all_of(runs.begin(), runs.end(), [](const auto& run) { return samples_per_step(*run) > 0; }) &&
         std::any_of(runs.begin(), runs.end(), differs);
}

std::vector<std::string> names_of(const Runs& runs) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const auto& run : runs) {
    const int times = ++seen[run->name];
    names.push_back(times == 1 ? run->name : fmt::format("{} ({})", run->name, times));
  }
  return names;
}

std::vector<ComparedPart> compared_breakdowns(const Runs& runs) {
  const bool pooled = std::any_of(runs.begin(), runs.end(), [](const auto& run) {
    const auto& parts = run->figures.breakdown;
    return std::any_of(parts.begin(), parts.end(), [](const BreakdownPart& p) { return p.name == kPooled; });
  });
  const bool of_samples = per_sample(runs);
  std::vector<ComparedPart> parts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double scale = of_samples ? 1 / samples_per_step(*runs[i]) : 1;
    for (const BreakdownPart& part : runs[i]->figures.breakdown) {
      const std::string name = pooled && part.kind == Kind::communication ? kPooled : part.name;
      auto at = std::find_if(parts.begin(), parts.end(),
                             [&](const ComparedPart& known) { return same_part(known, name, part.kind); });
      if (at == parts.end()) at = parts.insert(at, {name, part.kind, std::vector<double>(runs.size(), 0.0)});
      at->seconds[i] += scale * part.seconds;
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const ComparedPart& a, const ComparedPart& b) {
    return place_of(a.kind) < place_of(b.kind);
  });
  return parts;
}

std::string difference_sentence(const Run& base, const Run& other, const std::string& base_name,
                                const std::string& name) {
  if (base.judged && other.judged)
    return rehearse::difference_sentence(base.judged->result(), other.judged->result(), base_name, name);
  // The non-owning pointers do not outlive this call.
  const auto borrowed = [](const Run& run) { return std::shared_ptr<const Run>(&run, [](const Run*) {}); };
  const Runs both = {borrowed(base), borrowed(other)};
  const bool of_samples = per_sample(both);
  const double base_s = base.figures.step_time_s / (of_samples ? samples_per_step(base) : 1),
               other_s = other.figures.step_time_s / (of_samples ? samples_per_step(other) : 1);
  if (!(base_s > 0) || !(other_s > 0)) return "";
  const double difference = other_s - base_s;
  const rehearse::TimeScale time(std::max(base_s, other_s));
  std::string text = name + " ";
  if (std::abs(difference) < kSameShare * base_s) {
    text += "takes as long as " + base_name;
  } else {
    const double factor = std::max(other_s / base_s, base_s / other_s);
    text += "is " + (factor < 1.1 ? in_percent(factor - 1) : with_digits(factor, factor < 10 ? 3 : 2) + " x");
    text += difference > 0 ? " slower" : " faster";
  }
  if (of_samples)
    text += fmt::format(" per sample (a step trains {} instead of {})",
                        with_digits(samples_per_step(other), 1), with_digits(samples_per_step(base), 1));
  std::vector<ComparedPart> parts = compared_breakdowns(both);
  const auto change = [](const ComparedPart& part) { return part.seconds[1] - part.seconds[0]; };
  std::erase_if(parts, [&](const ComparedPart& part) {
    return std::abs(change(part)) < std::max(kMatters * std::abs(difference), kSameShare * base_s);
  });
  // First the parts that made the difference, then those that worked against it; the largest first in each
  // group.
  std::stable_sort(parts.begin(), parts.end(), [&](const ComparedPart& a, const ComparedPart& b) {
    const bool for_a = (change(a) > 0) == (difference > 0), for_b = (change(b) > 0) == (difference > 0);
    return for_a != for_b ? for_a : std::abs(change(a)) > std::abs(change(b));
  });
  std::string listed;
  for (const ComparedPart& part : parts)
    listed += fmt::format("{}{}{} {}", listed.empty() ? ": " : ", ", change(part) > 0 ? "+" : "-",
                          time(std::abs(change(part))), part.name);
  return text + listed + ".";
}

namespace {

// Compares money only in a common currency, and the cost of a training run only for equal amounts of data.
template <typename Add>
void add_cost(const Runs& runs, const Add& add) {
  using Better = FigureRow::Better;
  const auto same = [&](auto member) {
    return std::all_of(runs.begin(), runs.end(), [&](const auto& run) {
      return run->figures.cost.*member == runs.front()->figures.cost.*member;
    });
  };
  const CostFigures& base = runs.front()->figures.cost;
  const QString currency = QString::fromStdString(base.currency);
  const bool one_currency = same(&CostFigures::currency);
  const auto row = [&](const QString& name, double factor, double CostFigures::*member) {
    add(name, Better::less, factor, [=](const RunFigures& f) { return f.cost.*member; });
  };
  if (one_currency && !per_sample(runs)) row("cost per step (" + currency + ")", 1, &CostFigures::step_money);
  if (!same(&CostFigures::samples) || base.samples <= 0) return;
  const std::string amount =
      base.tokens > 0 ? with_prefix(base.tokens) + " tokens" : with_prefix(base.samples) + " samples";
  const QString to = " to " + QString::fromStdString(amount);
  row("days" + to, 1 / 86'400.0, &CostFigures::seconds);
  row("device-hours" + to, 1, &CostFigures::device_hours);
  if (one_currency) row("cost" + to + " (" + currency + ")", 1, &CostFigures::money);
  row("energy" + to + " (MWh)", 1e-3, &CostFigures::energy_kwh);
}

}  // namespace

TableData compared_figures(const Runs& runs, const std::vector<std::string>& names) {
  TableData data;
  if (runs.empty()) return data;
  Columns columns{{{"figure", {}, false}}};
  columns.of_runs(names, "", "Value");
  data.columns = std::move(columns.columns);

  using Better = FigureRow::Better;
  const auto add = [&](const QString& name, Better better, double factor, const auto& value_of) {
    FigureRow row{
        name, {}, better, name == QStringLiteral("devices") || name == QStringLiteral("samples per step")};
    for (const auto& run : runs) row.values.push_back(factor * value_of(run->figures));
    if (std::any_of(row.values.begin(), row.values.end(), [](double value) { return value > 0; }))
      data.rows.push_back(cells_of(row, name));
  };
  const bool of_samples = per_sample(runs);
  const auto step_s = [&](const Run& run) {
    return run.figures.step_time_s / (of_samples ? samples_per_step(run) : 1);
  };
  double longest_s = 0;
  for (const auto& run : runs) longest_s = std::max(longest_s, step_s(*run));
  const Unit time = unit_of_seconds(longest_s);
  std::size_t next = 0;
  if (of_samples)
    add("samples per step", Better::none, 1,
        [](const RunFigures& f) { return std::round(f.samples_per_s * f.step_time_s); });
  add((of_samples ? "step time per sample (" : "step time (") + time.name + ")", Better::less, time.factor,
      [&](const RunFigures&) { return step_s(*runs[next++]); });
  add("samples/s", Better::more, 1, [](const RunFigures& f) { return f.samples_per_s; });
  add("tokens/s", Better::more, 1, [](const RunFigures& f) { return f.tokens_per_s; });
  add("TFLOP/s per device", Better::more, 1, [](const RunFigures& f) { return f.tflops_per_device; });
  add("MFU (%)", Better::more, 100, [](const RunFigures& f) { return f.mfu; });
  for (const ComparedPart& part : compared_breakdowns(runs)) {
    if (*std::max_element(part.seconds.begin(), part.seconds.end()) < kShown * longest_s) continue;
    std::size_t i = 0;
    add(QString::fromStdString(part.name) + " (" + time.name + ")",
        part.kind == Kind::compute ? Better::none : Better::less, time.factor,
        [&](const RunFigures&) { return part.seconds[i++]; });
  }
  add("memory (GiB)", Better::less, 1 / 1073741824.0, [](const RunFigures& f) { return f.memory.total; });
  add_cost(runs, add);
  add("devices", Better::none, 1, [](const RunFigures& f) { return static_cast<double>(f.devices); });
  return data;
}

Change change_of(const ComparedOp::Amount& base, const ComparedOp::Amount& other) {
  if (base.count <= 0 && other.count <= 0) return Change::equal;
  if (base.count <= 0) return Change::added;
  if (other.count <= 0) return Change::removed;
  const double difference = other.seconds - base.seconds;
  if (std::abs(difference) <= kEqualOp * base.seconds) return Change::equal;
  return difference > 0 ? Change::increased : Change::decreased;
}

std::vector<ComparedOp> compared_ops(const Runs& runs, const std::atomic<bool>* cancelled) {
  std::vector<ComparedOp> ops;
  std::map<std::pair<std::string, std::string>, std::size_t> number_of;
  const auto amount = [&](const std::string& name, const std::string& kind,
                          std::size_t run) -> ComparedOp::Amount& {
    const auto [it, is_new] = number_of.try_emplace({name, kind}, ops.size());
    if (is_new) ops.push_back({name, kind, std::vector<ComparedOp::Amount>(runs.size())});
    return ops[it->second].amounts[run];
  };
  const bool judged =
      std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run->judged != nullptr; });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (judged) {
      for (const OpSeconds& op : seconds_by_op(runs[i]->judged->step, 0))
        amount(op.name, op.kind, i) = {op.count, op.seconds};
      continue;
    }
    if (!runs[i]->timeline) continue;
    const RunFigures& figures = runs[i]->figures;
    const OpTotalsOfRange totals = op_totals(*runs[i]->timeline, figures.step, cancelled);
    const double share = 1.0 / std::max(1, figures.steps);
    for (const OpTotals& op : totals.ops) {
      ComparedOp::Amount& its =
          amount(op.name, std::string(kKindNames[static_cast<std::size_t>(op.kind)]), i);
      its.count += op.mean(op.count) * share;
      its.seconds += op.mean(op.seconds) * share;
    }
  }
  // Drops ops that take no time in any run.
  std::erase_if(ops, [](const ComparedOp& op) {
    return std::all_of(op.amounts.begin(), op.amounts.end(), [](const auto& a) { return a.seconds <= 0; });
  });
  const auto largest = [](const ComparedOp& op) {
    double most = 0;
    for (const auto& a : op.amounts) most = std::max(most, std::abs(a.seconds - op.amounts.front().seconds));
    return most;
  };
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const ComparedOp& a, const ComparedOp& b) { return largest(a) > largest(b); });
  return ops;
}

TableData rows_of(const std::vector<ComparedOp>& ops, const std::vector<std::string>& names) {
  TableData data;
  double longest_s = 0, longest_mean_s = 0;
  const auto mean = [](const ComparedOp::Amount& a) { return a.count > 0 ? a.seconds / a.count : 0; };
  for (const ComparedOp& op : ops)
    for (const auto& a : op.amounts) {
      longest_s = std::max(longest_s, a.seconds);
      longest_mean_s = std::max(longest_mean_s, mean(a));
    }
  const Unit total = unit_of_seconds(longest_s), each = unit_of_seconds(longest_mean_s);
  data.columns = {{"op", {}, false}};
  const auto named = [&](std::size_t i) { return QString::fromStdString(names[i]); };
  for (std::size_t i = 0; i < names.size(); ++i) {
    data.columns.push_back({short_name(names[i]) + " (" + total.name + ")",
                            "Time per step of " + named(i) +
                                ", averaged over the ranks whose role does such work (workers or servers)"});
    if (i == 0) continue;
    const QString against = named(i) + " against " + named(0);
    data.columns.push_back({"delta (" + total.name + ")", "Difference: " + against});
    data.columns.push_back({"delta (%)", "Difference: " + against + ", divided by " + named(0)});
    data.columns.push_back({"change", against + "; equal: they differ by less than 1 %", false});
  }
  data.columns.push_back({"kind", {}, false});
  for (std::size_t i = 0; i < names.size(); ++i) {
    data.columns.push_back(
        {"count, " + short_name(names[i]), "Number per step of " + named(i) + ", averaged over those ranks"});
    data.columns.push_back(
        {"mean (" + each.name + "), " + short_name(names[i]), "Mean time of one op in " + named(i)});
  }
  // Number of kinds per name: "gradient sync" can be an all-reduce in one run and an exchange in another
  std::map<std::string, int> kinds;
  for (const ComparedOp& op : ops) ++kinds[op.name];
  for (const ComparedOp& op : ops) {
    std::vector<Cell>& row = data.rows.emplace_back();
    row.push_back(text_cell(
        QString::fromStdString(kinds[op.name] > 1 ? fmt::format("{} ({})", op.name, op.kind) : op.name)));
    const ComparedOp::Amount& base = op.amounts.front();
    for (std::size_t i = 0; i < op.amounts.size(); ++i) {
      const ComparedOp::Amount& its = op.amounts[i];
      row.push_back(its.count > 0 ? number_cell(its.seconds * total.factor) : Cell{});
      if (i == 0) continue;
      const double difference = its.seconds - base.seconds;
      const Change change = change_of(base, its);
      const Tone tone = change == Change::equal ? Tone::none : difference > 0 ? Tone::worse : Tone::better;
      row.push_back({signed_number_text(difference * total.factor, 3), difference, tone, {}, {}});
      Cell share;
      if (base.seconds > 0)
        share = {signed_percent_text(difference / base.seconds).chopped(2),
                 difference / base.seconds,
                 tone,
                 {},
                 {}};
      row.push_back(share);
      row.push_back(
          text_cell(QString::fromStdString(std::string(kChangeNames[static_cast<std::size_t>(change)]))));
      row.back().tone = tone;
    }
    row.push_back(text_cell(QString::fromStdString(op.kind)));
    for (const ComparedOp::Amount& its : op.amounts) {
      row.push_back(its.count > 0 ? count_cell(its.count) : Cell{});
      row.push_back(its.count > 0 ? number_cell(mean(its) * each.factor) : Cell{});
    }
  }
  return data;
}

}  // namespace rehearse::gui
