#include "simulator/commands/predicting/known_schedules.hpp"

#include <algorithm>
#include <utility>

#include "simulator/commands/predicting/checkpoints.hpp"
#include "simulator/commands/predicting/repeated_rounds.hpp"
#include "simulator/schedule/op_count.hpp"
#include "simulator/strategies/schedule_key.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// An op takes about half a kilobyte.
constexpr double kMostOps = 500'000;
constexpr std::size_t kMostSchedules = 256;

// Returns whether a schedule has times in it, which follow from rates.
bool has_times(const Schedule& schedule) {
  return schedule.asynchrony ||
         std::any_of(schedule.programs.begin(), schedule.programs.end(), [](const Program& program) {
           return std::any_of(program.ops.begin(), program.ops.end(), is_timer);
         });
}

}  // namespace

Plan KnownSchedules::plan_of(const Scenario& scenario) {
  std::string key = schedule_key(scenario);
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.key == key; });
  if (!key.empty() && found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    Plan plan = found->plan;
    plan.notes = assumptions(scenario);
    plan.notes.insert(plan.notes.end(),
                      found->plan.notes.begin() + static_cast<std::ptrdiff_t>(found->assumptions),
                      found->plan.notes.end());
    return plan;
  }
  Plan plan = write_schedule(scenario);
  ++written_;
  check(*plan.schedule);
  if (!key.empty() && !has_times(*plan.schedule))
    keep({std::move(key), plan, assumptions(scenario).size(), ops_of(*plan.schedule)});
  return plan;
}

void KnownSchedules::keep(Known known) {
  if (known.ops > kMostOps) return;
  ops_ += known.ops;
  known_.push_front(std::move(known));
  while (ops_ > kMostOps || known_.size() > kMostSchedules) {
    ops_ -= known_.back().ops;
    known_.pop_back();
  }
}

Prediction predict_with(KnownSchedules& known, Scenario scenario, Where where) {
  if (std::optional<Prediction> p = predict_from_rounds(scenario, {}, {}, &known)) {
    add_checkpoints(*p, {}, StepsBeside::few_microbatches);
    return *std::move(p);
  }
  Plan plan = known.plan_of(scenario);
  return predict_checked(std::move(scenario), std::move(plan), where);
}

}  // namespace rehearse
