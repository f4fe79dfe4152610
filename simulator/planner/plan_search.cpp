#include "simulator/planner/plan_search.hpp"

#include <algorithm>

namespace rehearse {
namespace {

constexpr std::size_t kMostNearlyFitting = 200;

}  // namespace

PlanSearch::PlanSearch(const Scenario& scenario, const SpaceLimits& limits, double capacity_bytes,
                       std::optional<double> reserve_bytes,
                       const std::function<std::string(const CoreChoice&)>& possible)
    : scenario_(scenario), limits_(limits), most_bytes_(capacity_bytes), bounds_(scenario, reserve_bytes) {
  const int layers = bounds_.layers();
  const auto refuse = [&](const std::string& why) {
    if (std::find(space_.refusals.begin(), space_.refusals.end(), why) == space_.refusals.end())
      space_.refusals.push_back(why);
    ++space_.impossible;
  };
  for (const CoreChoice& split : splits(scenario, limits)) {
    if (const std::string why = possible(split); !why.empty()) {
      refuse(why);
      continue;
    }
    for (const CoreChoice& pipeline : pipelines(scenario, split, layers, limits)) {
      const auto most = [&](const CoreChoice& core) { return bounds_.most_recomputed(core); };
      for (const CoreChoice& core : recomputations(scenario, pipeline, most, limits)) {
        if (bounds_.stage_layers(core).empty() && core.pipeline > 1) continue;
        // A cut by number may equal the cut by time, which is tried anyway.
        if (core.cut == StageCut::by_number) {
          CoreChoice by_time = core;
          by_time.cut = StageCut::by_time;
          if (bounds_.stage_layers(core) == bounds_.stage_layers(by_time)) continue;
        }
        if (const std::string why = bounds_.refusal(core); !why.empty()) {
          refuse(why);
          continue;
        }
        add(core);
      }
    }
  }
}

void PlanSearch::add(const CoreChoice& choice) {
  const CoreBound bound = bounds_.core_bound(choice);
  bool any = false;
  for (const GradientChoice& gradients : gradient_choices(scenario_, choice, limits_)) {
    ++space_.plans;
    const double bytes = bound.bytes[holding_of(gradients)];
    if (bytes > most_bytes_) {
      ++space_.too_large;
      note_too_large(choice, gradients, bound, bytes);
      continue;
    }
    ++space_.bounded;
    any = true;
  }
  if (!any) return;
  waiting_.push({bound.seconds, cores_.size(), -1});
  cores_.push_back({choice, bound});
}

void PlanSearch::note_too_large(const CoreChoice& core, const GradientChoice& gradients,
                                const CoreBound& bound, double bytes) {
  if (nearly_.size() == kMostNearlyFitting && bytes >= nearly_.back().bound_bytes) return;
  Candidate candidate{{core, gradients, bounds_.stage_layers(core)}, 0, bound.seconds, bytes};
  const auto place =
      std::upper_bound(nearly_.begin(), nearly_.end(), candidate,
                       [](const Candidate& a, const Candidate& b) { return a.bound_bytes < b.bound_bytes; });
  nearly_.insert(place, std::move(candidate));
  if (nearly_.size() > kMostNearlyFitting) nearly_.pop_back();
}

void PlanSearch::tell_plans_apart(const Waiting& core) {
  const Core& its = cores_[core.core];
  const PlanBounds::WalkedCore walked = bounds_.walk(its.choice);
  std::vector<GradientChoice>& all = gradients_[core.core];
  for (const GradientChoice& gradients : gradient_choices(scenario_, its.choice, limits_)) {
    if (its.bound.bytes[holding_of(gradients)] > most_bytes_) continue;
    const double bound_s = std::max(core.bound_s, bounds_.plan_bound_s(walked, gradients));
    waiting_.push({bound_s, core.core, static_cast<int>(all.size())});
    all.push_back(gradients);
  }
}

std::optional<Candidate> PlanSearch::fastest_within(double bytes, const CoreChoice* like) {
  constexpr std::size_t kTried = 12;  // number of cores with the lowest bounds whose plans are bounded
  std::vector<const Core*> cores;
  for (const Core& core : cores_) {
    const CoreChoice& its = core.choice;
    if (like &&
        (its.tensor != like->tensor || its.context != like->context || its.pipeline != like->pipeline))
      continue;
    // Memory bounds leave out what a split backward pass retains until its second half.
    if (order_of(its.schedule).splits_backward) continue;
    if (std::any_of(core.bound.bytes.begin(), core.bound.bytes.end(),
                    [&](double needed) { return needed <= bytes; }))
      cores.push_back(&core);
  }
  const auto lower = [](const Core* a, const Core* b) { return a->bound.seconds < b->bound.seconds; };
  std::stable_sort(cores.begin(), cores.end(), lower);
  if (cores.size() > kTried) cores.resize(kTried);
  std::optional<Candidate> best;
  for (const Core* core : cores) {
    const PlanBounds::WalkedCore walked = bounds_.walk(core->choice);
    for (const GradientChoice& gradients : gradient_choices(scenario_, core->choice, limits_)) {
      const double needed = core->bound.bytes[holding_of(gradients)];
      if (needed > bytes) continue;
      const double bound_s = bounds_.plan_bound_s(walked, gradients);
      if (best && bound_s >= best->bound_s) continue;
      best = Candidate{{core->choice, gradients, {}}, 0, bound_s, needed};
    }
  }
  if (best && best->plan.core.pipeline > 1) best->plan.stage_layers = bounds_.stage_layers(best->plan.core);
  return best;
}

const Candidate* PlanSearch::candidate(std::size_t number) {
  while (handed_out_.size() <= number) {
    if (waiting_.empty()) return nullptr;
    const Waiting next = waiting_.top();
    waiting_.pop();
    if (next.gradients < 0) {
      tell_plans_apart(next);
      continue;
    }
    const Core& core = cores_[next.core];
    const GradientChoice& gradients = gradients_[next.core][static_cast<std::size_t>(next.gradients)];
    PlanChoice plan{core.choice, gradients, {}};
    if (core.choice.pipeline > 1) plan.stage_layers = bounds_.stage_layers(core.choice);
    handed_out_.push_back(
        {std::move(plan), next.core, next.bound_s, core.bound.bytes[holding_of(gradients)]});
  }
  return &handed_out_[number];
}

}  // namespace rehearse
