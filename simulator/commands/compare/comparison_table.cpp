#include "simulator/commands/compare/comparison_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "models/text/text.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/wrap.hpp"

namespace rehearse {
namespace {

const Compared* base_of(const std::vector<Compared>& all) {
  const auto it = std::find_if(all.begin(), all.end(), [](const Compared& c) { return c.result != nullptr; });
  return it == all.end() ? nullptr : &*it;
}

double figure(const std::vector<Figure>& figures, const std::string& key) {
  const auto it = std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.key == key; });
  return it == figures.end() ? 0 : it->value;  // exposed communication that a result does not have
}

// Returns the figures of all results, in the order of the first result that has them: exposed communication
// stays together.
std::vector<Figure> all_figures(const std::vector<std::vector<Figure>>& figures) {
  std::vector<Figure> all = figures.front();
  for (const std::vector<Figure>& its : figures)
    for (std::size_t i = 0; i < its.size(); ++i) {
      const auto known = [&](const std::string& key) {
        return std::find_if(all.begin(), all.end(), [&](const Figure& f) { return f.key == key; });
      };
      if (known(its[i].key) == all.end()) all.insert(known(its[i - 1].key) + 1, its[i]);  // never the first
    }
  return all;
}

std::string letter_and_name(const Compared& c) {
  return fmt::format("{} ({})", c.letter, c.name);
}

std::string setting(const std::optional<std::string>& value) {
  return value ? *value : "(not set)";
}

class Text {
public:
  explicit Text(const std::vector<Compared>& all) : base_(base_of(all)) {
    for (const Compared& c : all)
      if (c.result != nullptr) compared_.push_back(&c);
  }

  void write(std::ostream& out) {
    for (const Compared* c : compared_) {
      const Scenario& s = c->result->scenario;
      out << wrapped(fmt::format("{}: {}, {} on {}", c->letter, c->name, s.model.title, s.cluster->title))
          << '\n';
    }
    out << '\n';
    const bool per_sample = std::any_of(compared_.begin(), compared_.end(), [&](const Compared* c) {
      return !same_samples(*base_->result, *c->result);
    });
    double longest_s = 0;
    std::vector<std::vector<Figure>> figures;
    for (const Compared* c : compared_) {
      figures.push_back(figures_of(*c->result, per_sample ? samples_per_step(*c->result) : 1));
      longest_s = std::max(longest_s, figures.back().front().value);
    }
    time_ = TimeScale(longest_s);
    make_cells(figures, longest_s, per_sample);
    write_cells(out);
    if (per_sample)
      out << wrapped("Times are per sample, since the steps train different numbers of samples.") << '\n';
    for (const Compared* c : compared_)
      if (const std::string spread = spread_clause(c->result->metrics); !spread.empty())
        out << wrapped(fmt::format("The step of {} is a mean, {}.", c->letter, spread)) << '\n';
    for (const Compared* c : compared_) {
      if (c == base_) continue;
      out << wrapped(difference_sentence(*base_->result, *c->result, base_->letter, c->letter)) << '\n';
      std::string changes;
      for (const SettingChange& change : changed_settings(base_->result->scenario, c->result->scenario))
        changes += fmt::format("{}{}: {} -> {}", changes.empty() ? "" : "; ", change.key,
                               setting(change.base), setting(change.other));
      out << wrapped(changes.empty() ? fmt::format("{} sets the same keys as {}.", c->letter, base_->letter)
                                     : fmt::format("{} sets {}.", c->letter, changes))
          << '\n';
    }
  }

private:
  void make_cells(const std::vector<std::vector<Figure>>& figures, double longest_s, bool per_sample) {
    rows_ = {{""}};
    for (const Compared* c : compared_) rows_.front().push_back(c->letter);
    if (per_sample) {
      rows_.push_back({"samples a step"});
      for (const Compared* c : compared_)
        rows_.back().push_back(with_digits(samples_per_step(*c->result), 1));
    }
    for (const Figure& f : all_figures(figures)) {
      const bool part = f.kind == Figure::Kind::seconds && f.key != "step_time_s";
      const bool shown = std::any_of(figures.begin(), figures.end(), [&](const std::vector<Figure>& its) {
        return figure(its, f.key) >= (part ? 0.0005 * longest_s : 1e-300);
      });
      if (!shown) continue;
      std::vector<std::string>& row = rows_.emplace_back(std::vector{f.title});
      for (std::size_t i = 0; i < figures.size(); ++i)
        row.push_back(cell(f.kind, figure(figures[i], f.key), figure(figures.front(), f.key), *compared_[i]));
    }
  }

  // Returns the value, followed by the difference (seconds) or ratio to the base's.
  std::string cell(Figure::Kind kind, double value, double base, const Compared& of) const {
    const bool is_base = &of == base_;
    const std::string ratio = is_base || base <= 0 ? "" : fmt::format("  x {:.2f}", value / base);
    switch (kind) {
      case Figure::Kind::seconds: {
        const std::string change = time_(std::abs(value - base));
        if (is_base) return time_(value);
        if (change == time_(0)) return time_(value) + "  equal";
        return fmt::format("{}  {}{}", time_(value), value < base ? "-" : "+", change);
      }
      case Figure::Kind::rate:
        return with_prefix(value) + ratio;
      case Figure::Kind::share:
        return in_percent(value);
      case Figure::Kind::bytes:
        return in_gibibytes(value) + " GiB" + ratio +
               (of.result->metrics.memory.fits ? "" : "  does not fit");
      case Figure::Kind::bytes_of_step:
        return human_bytes(value) + ratio;
      case Figure::Kind::utilization:
        return of.result->metrics.busiest_link.empty()
                   ? "none"
                   : fmt::format("{} {}", of.result->metrics.busiest_link, in_percent(value));
      case Figure::Kind::money:
        if (value <= 0) return "unknown";
        return in_money(value, of.result->scenario.cost.currency) + (same_currency(of) ? ratio : "");
      case Figure::Kind::energy:
        return value > 0 ? in_watt_hours(value) + ratio : "unknown";
    }
    return "";
  }

  bool same_currency(const Compared& of) const {
    return of.result->scenario.cost.currency == base_->result->scenario.cost.currency;
  }

  // Writes as many columns side by side as fit on a line; further ones follow below, again next to the base.
  void write_cells(std::ostream& out) const {
    std::vector<std::size_t> width(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (std::size_t column = 0; column < row.size(); ++column)
        width[column] = std::max(width[column], row[column].size());
    std::size_t next = 2;
    do {
      std::vector<std::size_t> columns = {0, 1};
      std::size_t used = 2 + width[0] + 3 + width[1];
      for (; next < width.size() && (columns.size() == 2 || used + 3 + width[next] <= kTextWidth); ++next) {
        columns.push_back(next);
        used += 3 + width[next];
      }
      for (const auto& row : rows_) {
        std::string line = " ";
        for (const std::size_t column : columns)
          line += fmt::format("{}{:<{}}", column == 0 ? " " : "   ", row[column], width[column]);
        line.erase(line.find_last_not_of(' ') + 1);
        out << line << '\n';
      }
      out << '\n';
    } while (next < width.size());
  }

  const Compared* base_;
  std::vector<const Compared*> compared_;
  TimeScale time_{1};
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

void write_comparison_text(const std::vector<Compared>& all, std::ostream& out) {
  if (base_of(all) != nullptr) Text(all).write(out);
}

void write_comparison_json(const std::vector<Compared>& all, std::ostream& out) {
  using nlohmann::ordered_json;
  const Compared* base = base_of(all);
  ordered_json json = ordered_json::array();
  for (const Compared& c : all) {
    ordered_json& one = json.emplace_back();
    if (c.result == nullptr) {
      one = {{"scenario", c.name}, {"error", c.error}};
      continue;
    }
    one = to_json(*c.result);
    one["scenario"] = c.name;
    one["comparison"] = nullptr;  // for the base
    if (&c == base) continue;
    const bool per_sample = !same_samples(*base->result, *c.result);
    const auto figures = [&](const Result& r) { return figures_of(r, per_sample ? samples_per_step(r) : 1); };
    const std::vector<std::vector<Figure>> both = {figures(*base->result), figures(*c.result)};
    ordered_json comparison;
    comparison["base"] = base->name;
    comparison["per_sample"] = per_sample;
    for (const Figure& f : all_figures(both)) {
      const double was = figure(both[0], f.key), is = figure(both[1], f.key);
      ordered_json ratio = nullptr;  // the base has none
      if (was != 0) ratio = is / was;
      comparison["differences"][f.key] = {{"difference", is - was}, {"ratio", ratio}};
    }
    comparison["settings"] = ordered_json::array();
    for (const SettingChange& change : changed_settings(base->result->scenario, c.result->scenario)) {
      ordered_json from = nullptr, to = nullptr;  // not set
      if (change.base) from = *change.base;
      if (change.other) to = *change.other;
      comparison["settings"].push_back({{"key", change.key}, {"base", from}, {"this", to}});
    }
    comparison["sentence"] =
        difference_sentence(*base->result, *c.result, letter_and_name(*base), letter_and_name(c));
    one["comparison"] = std::move(comparison);
  }
  out << json_text(json, 2) << '\n';
}

void write_comparison_csv(const std::vector<Compared>& all, std::ostream& out) {
  const Compared* base = base_of(all);
  if (base == nullptr) return;
  std::size_t columns = 0;
  for (const auto& [name, value] : csv_fields(*base->result)) out << (columns++ > 0 ? "," : "") << name;
  out << ",base,per_sample,step_time_difference_s,step_time_ratio,sentence,error\n";
  for (const Compared& c : all) {
    if (c.result == nullptr) {
      out << csv_field(c.name) << std::string(columns + 5, ',') << csv_field(c.error) << '\n';
      continue;
    }
    std::string row = csv_field(c.name);  // the first column; a variant's name says what it changes
    const auto fields = csv_fields(*c.result);
    for (std::size_t i = 1; i < fields.size(); ++i) row += "," + fields[i].second;
    if (&c == base) {
      out << row << ",,,,,,\n";
      continue;
    }
    const bool per_sample = !same_samples(*base->result, *c.result);
    const auto step_s = [&](const Result& r) {
      return r.metrics.step_time_s / (per_sample ? samples_per_step(r) : 1);
    };
    const double was = step_s(*base->result), is = step_s(*c.result);
    out << fmt::format(
        "{},{},{},{},{},{},\n", row, csv_field(base->name), per_sample, is - was, is / was,
        csv_field(difference_sentence(*base->result, *c.result, letter_and_name(*base), letter_and_name(c))));
  }
}

}  // namespace rehearse
