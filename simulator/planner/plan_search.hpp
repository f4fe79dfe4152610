// The order in which plans are simulated: those first that could be the fastest.
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

// A plan with the least time that its step can take.
struct Candidate {
  PlanChoice plan;
  std::size_t core = 0;  // plans of one core differ in their gradients alone
  double bound_s = 0;
  double bound_bytes = 0;
};

struct SearchedSpace {
  std::int64_t plans = 0;             // in the space
  std::int64_t impossible = 0;        // the model cannot be split so
  std::int64_t too_large = 0;         // they need more memory than a device has, at least
  std::int64_t bounded = 0;           // of which the step was bounded from below
  std::vector<std::string> refusals;  // why splits are impossible, each once
};

// Bounds every plan of a space, and hands out those that fit into memory, by their bounds. The order depends
// on the scenario and the limits alone.
class PlanSearch {
public:
  // `scenario`: what all plans have in common. It must outlive the search, as must `limits`.
  // `capacity_bytes`: of a device, of which `reserve_bytes` are kept free (none: as estimated). `possible`:
  // empty, or why a scenario with this split is refused.
  PlanSearch(const Scenario& scenario, const SpaceLimits& limits, double capacity_bytes,
             std::optional<double> reserve_bytes,
             const std::function<std::string(const CoreChoice&)>& possible);

  const SearchedSpace& space() const { return space_; }
  // The candidates in ascending order of their bounds; null if there are no more.
  const Candidate* candidate(std::size_t number);
  // Plans that do not fit by their bound of memory, those that need the least first.
  const std::vector<Candidate>& nearly_fitting() const { return nearly_; }
  // The plan with the lowest bound of its passes among those that need at most `bytes` by their bound, which
  // is tight where backward passes are whole: others are left out. Of the same tensor, context and pipeline
  // degrees as `like`, if that is given.
  std::optional<Candidate> fastest_within(double bytes, const CoreChoice* like = nullptr);

private:
  struct Core {
    CoreChoice choice;
    CoreBound bound;
  };
  struct Waiting {  // a core whose plans have not been told apart, or a plan
    double bound_s = 0;
    std::size_t core = 0;
    int gradients = -1;  // which of its choices; -1: the core
    bool operator>(const Waiting& other) const {
      if (bound_s != other.bound_s) return bound_s > other.bound_s;
      if (core != other.core) return core > other.core;
      return gradients > other.gradients;
    }
  };
  void add(const CoreChoice& choice);
  void tell_plans_apart(const Waiting& waiting);
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
