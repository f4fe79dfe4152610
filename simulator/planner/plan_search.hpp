// Determines the order in which plans are simulated: those that could be the fastest come first.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/planner/plan_bounds.hpp"
#include "simulator/planner/plan_space.hpp"

namespace rehearse {

// A plan with lower bounds of its step time and memory.
struct Candidate {
  PlanChoice plan;
  std::size_t core = 0;  // plans of one core differ only in their gradients
  double bound_s = 0;
  double bound_bytes = 0;
};

struct SearchedSpace {
  std::int64_t plans = 0;       // number in the space
  std::int64_t impossible = 0;  // the model cannot be split in this way
  std::int64_t too_large = 0;   // even their lower bound exceeds the memory of a device
  std::int64_t bounded = 0;     // fit into memory by their bound, so that their step time is bounded, too
  std::vector<std::string> refusals;  // why splits are impossible, without duplicates
};

// Bounds every plan of a space, and returns those that fit into memory in the order of their bounds. The
// order depends only on the scenario and the limits.
class PlanSearch {
public:
  // `scenario` is what all plans have in common. It must outlive the search, as must `limits`.
  // `capacity_bytes`: memory of a device, of which `reserve_bytes` are kept free (nullopt: as estimated).
  // `possible` returns why a scenario with this split is refused; empty if it is not.
  PlanSearch(const Scenario& scenario, const SpaceLimits& limits, double capacity_bytes,
             std::optional<double> reserve_bytes,
             const std::function<std::string(const CoreChoice&)>& possible);

  const SearchedSpace& space() const { return space_; }
  // Returns candidate `number` in ascending order of bounds; null if there are no more.
  const Candidate* candidate(std::size_t number);
  // Plans that do not fit by their memory bound, those that need the least memory first.
  const std::vector<Candidate>& nearly_fitting() const { return nearly_; }
  // Returns the plan with the lowest bound of its step time among those that need at most `bytes` by their
  // memory bound. That bound is only tight if backward passes are not split, so schedules that split them are
  // left out. If `like` is given, only plans with its tensor, context and pipeline degrees are considered.
  std::optional<Candidate> fastest_within(double bytes, const CoreChoice* like = nullptr);

private:
  struct Core {
    CoreChoice choice;
    CoreBound bound;
  };
  struct Waiting {  // a core whose plans have not been bounded separately, or a plan
    double bound_s = 0;
    std::size_t core = 0;
    int gradients = -1;  // index into its gradient choices; -1: the core
    bool operator>(const Waiting& other) const {
      if (bound_s != other.bound_s) return bound_s > other.bound_s;
      if (core != other.core) return core > other.core;
      return gradients > other.gradients;
    }
  };
  void add(const CoreChoice& choice);
  void tell_plans_apart(const Waiting& core);
  void note_too_large(const CoreChoice& core, const GradientChoice& gradients, const CoreBound& bound,
                      double bytes);

  const Scenario& scenario_;
  const SpaceLimits& limits_;
  const double most_bytes_;
  PlanBounds bounds_;
  SearchedSpace space_;
  std::deque<Core> cores_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::deque<Candidate> handed_out_;
  std::unordered_map<std::size_t, std::vector<GradientChoice>> gradients_;
  std::vector<Candidate> nearly_;
};

}  // namespace rehearse
