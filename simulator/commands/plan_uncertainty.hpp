// How uncertain plans are, together: constants that weigh alike on two plans do not blur which is faster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/commands/plan_question.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// By how much a constant moves a plan's step: ln(time), with the constant one standard deviation worse.
struct PlanEffect {
  std::string constant;
  double effect = 0;
};

// The effects of all uncertain constants on the plan's bound, which moves as its step does: no simulation.
std::vector<PlanEffect> plan_effects(const PlanQuestion& question, const PlanChoice& plan);
std::string to_line(const std::vector<PlanEffect>& effects);
std::vector<PlanEffect> plan_effects(const std::string& line);

// Nine of ten measurements of a plan whose step takes `step_s` lie in this interval.
std::pair<double, double> interval_s(double step_s, const std::vector<PlanEffect>& effects);

// Whether the faster of two plans could as well be the slower one, and what would tell.
struct PlanDecision {
  double difference = 0;             // ln(time) of the second plan over that of the first
  double uncertainty = 0;            // 1.645 standard deviations of it, constants alone
  std::string constant;              // that blurs it most
  std::vector<std::string> measure;  // commands whose results to compare with measurements
  bool open() const { return difference < uncertainty; }
};
PlanDecision decide(const PlanQuestion& question, const PlanChoice& first, double first_s,
                    const std::vector<PlanEffect>& first_effects, double second_s,
                    const std::vector<PlanEffect>& second_effects);

}  // namespace rehearse
