// Computes how uncertain plans are relative to each other: a constant that affects two plans equally does not
// blur which one is faster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/commands/plan/plan_question.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// The effect of a constant on a plan's step: the change of ln(time) if the constant is one standard deviation
// worse.
struct PlanEffect {
  std::string constant;
  double effect = 0;
};

// Returns the effects of all uncertain constants on the plan's bound, which changes as its step does. Nothing
// is simulated.
std::vector<PlanEffect> plan_effects(const PlanQuestion& question, const PlanChoice& plan);
std::string to_line(const std::vector<PlanEffect>& effects);
std::vector<PlanEffect> plan_effects(const std::string& line);

// Returns the interval that contains nine of ten measurements of a plan whose step takes `step_s`.
std::pair<double, double> interval_s(double step_s, const std::vector<PlanEffect>& effects);

// Whether the faster of two plans could just as well be the slower one, and which measurement would decide.
struct PlanDecision {
  double difference = 0;             // ln(time of the second plan / time of the first)
  double uncertainty = 0;            // 1.645 standard deviations of `difference`, from the constants alone
  std::string constant;              // the one that contributes most
  std::vector<std::string> measure;  // commands whose results to compare with measurements
  bool open() const { return difference < uncertainty; }
};
PlanDecision decide(const PlanQuestion& question, const PlanChoice& first, double first_s,
                    const std::vector<PlanEffect>& first_effects, double second_s,
                    const std::vector<PlanEffect>& second_effects);

}  // namespace rehearse
