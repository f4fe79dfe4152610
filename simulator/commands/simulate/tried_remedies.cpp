#include "simulator/commands/simulate/tried_remedies.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/commands/simulate/remedy_trials.hpp"
#include "simulator/planner/passes_bound.hpp"
#include "simulator/remedies/remedy.hpp"

namespace rehearse {
namespace {

// The effort: counts of ops, rather than a clock, decide what is simulated, so that a scenario always has the
// same answer.
constexpr double kMostOps = 60'000, kMostOpsOfTrial = 120'000;
constexpr double kFewestTrials = 2, kMostTrials = 16;
constexpr std::size_t kMostTold = 3;
constexpr int kMostWaves = 4;
constexpr std::size_t kMostCombined = 6;  // remedies of which pairs are considered
constexpr double kLeastGain = 0.02;       // of the time per sample; a smaller one is not worth telling
constexpr double kMostWastedGain = 0.01;  // a comparison with few micro-batches errs less

struct Candidate {
  Remedy remedy;
  double gain = 0;  // of the time per sample: 0.1 is 10 %
  Trial trial;
};

// Returns whether no key is in both lists.
bool disjoint(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::none_of(a.begin(), a.end(), [&](const std::string& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const std::string& other) { return key_of(one) == key_of(other); });
  });
}

// Returns whether a change asks for other hardware or another batch; remedies keep both.
bool changes_the_question(const std::vector<std::string>& sets) {
  return std::any_of(sets.begin(), sets.end(), [](const std::string& set) {
    return set.starts_with("cluster.") || key_of(set) == "training.global_batch";
  });
}

Remedy both(const Remedy& a, const Remedy& b) {
  Remedy remedy{a.why + ", and " + b.why, a.sets};
  remedy.sets.insert(remedy.sets.end(), b.sets.begin(), b.sets.end());
  remedy.kinds = a.kinds;
  remedy.kinds.insert(b.kinds.begin(), b.kinds.end());
  remedy.at_most_s = a.at_most_s + b.at_most_s;
  return remedy;
}

void sort_by_gain(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.gain > b.gain; });
}

// Estimates changes of a prediction's scenario without simulating them.
class Estimates {
public:
  explicit Estimates(const Prediction& p)
      : p_(p),
        reserves_(fits_with_reserve(p)),
        passes_s_(passes_bound(p.scenario, false).seconds),
        rest_s_(std::max(0.0, p.metrics.step_time_s - passes_s_)) {}

  // Sets each candidate's gain to an upper estimate: the difference between the bounds of the passes, plus
  // the part of the step outside the passes that the remedy could save. Drops candidates that are not valid
  // or cannot gain enough, and sorts the others by gain.
  void estimate(std::vector<Candidate>& candidates) const {
    for (Candidate& c : candidates) c.gain = gain(c.remedy);
    std::erase_if(candidates, [](const Candidate& c) { return !(c.gain >= kLeastGain); });
    sort_by_gain(candidates);
  }

private:
  double gain(const Remedy& remedy) const {
    try {
      const double capacity = p_.metrics.memory.capacity;
      const PassesBound bound = passes_bound(changed(p_, remedy.sets), reserves_);
      if (capacity > 0 && bound.bytes > capacity) return -1;
      return (passes_s_ - bound.seconds + std::min(rest_s_, remedy.at_most_s)) / p_.metrics.step_time_s;
    } catch (const std::exception&) {
      return -1;  // the change does not suit the scenario
    }
  }

  const Prediction& p_;
  const bool reserves_;
  const double passes_s_, rest_s_;
};

std::vector<Candidate> combinations(const std::vector<Candidate>& candidates) {
  std::vector<Candidate> combined;
  const std::size_t most = std::min(kMostCombined, candidates.size());
  for (std::size_t i = 0; i < most; ++i)
    for (std::size_t j = i + 1; j < most; ++j)
      if (candidates[i].remedy.kinds != candidates[j].remedy.kinds &&
          disjoint(candidates[i].remedy.sets, candidates[j].remedy.sets))
        combined.push_back({both(candidates[i].remedy, candidates[j].remedy)});
  return combined;
}

// Returns the first advice of the report, then remedies and pairs of them in turn, the most promising first.
std::vector<Candidate> candidates_for(const Prediction& p) {
  const std::vector<Advice> advice = advice_of(p.result());
  std::vector<Candidate> singles, ordered;
  for (const Advice& one : advice)
    singles.push_back({{.why = one.why, .sets = one.sets, .at_most_s = p.metrics.step_time_s}});
  for (Remedy& remedy : remedies(p.scenario, p.metrics)) {
    // Degrees that stay as the scenario has them.
    std::erase_if(remedy.sets, [&](const std::string& set) {
      const std::pair<std::string, std::string> setting = {std::string(key_of(set)),
                                                           set.substr(set.find('=') + 1)};
      return std::find(p.scenario.settings.begin(), p.scenario.settings.end(), setting) !=
             p.scenario.settings.end();
    });
    const auto advised = std::find_if(singles.begin(), singles.end(),
                                      [&](const Candidate& c) { return c.remedy.sets == remedy.sets; });
    if (advised == singles.end())
      singles.push_back({std::move(remedy)});
    else
      advised->remedy.kinds = std::move(remedy.kinds);
  }
  if (!advice.empty()) ordered.push_back(singles.front());
  const Estimates estimates(p);
  estimates.estimate(singles);
  std::vector<Candidate> keeping = singles;
  std::erase_if(keeping, [](const Candidate& c) { return changes_the_question(c.remedy.sets); });
  std::vector<Candidate> pairs = combinations(keeping);
  estimates.estimate(pairs);
  for (std::size_t i = 0; i < std::max(singles.size(), pairs.size()); ++i)
    for (std::vector<Candidate>* from : {&singles, &pairs}) {
      if (i >= from->size()) continue;
      Candidate& c = (*from)[i];
      if (ordered.empty() || ordered.front().remedy.sets != c.remedy.sets) ordered.push_back(std::move(c));
    }
  return ordered;
}

TriedRemedy tried(const Candidate& c) {
  return {c.remedy.why,          c.remedy.sets, c.trial.step_time_s,
          c.trial.samples_per_s, c.gain,        c.trial.memory_bytes};
}

// Simulates those candidates that were not simulated exactly before, and sorts all.
void simulate(std::vector<Candidate>& candidates, const Trials& trials, Effort effort, const Prediction& p) {
  std::vector<Candidate*> open;
  std::vector<std::vector<std::string>> sets;
  for (Candidate& c : candidates) {
    if (c.trial.exact) continue;
    open.push_back(&c);
    sets.push_back(c.remedy.sets);
  }
  const std::vector<Trial> results = trials.run(sets, effort);
  for (std::size_t i = 0; i < results.size(); ++i) open[i]->trial = results[i];
  for (Candidate& c : candidates)
    c.gain = c.trial.possible ? 1 - p.metrics.samples_per_s / c.trial.samples_per_s : -1;
  sort_by_gain(candidates);
}

// Simulates candidates in the given order until enough of them were possible. Impossible ones cost little.
std::vector<Candidate> compare(const std::vector<Candidate>& ordered, const Trials& trials,
                               const Prediction& p) {
  const auto most =
      static_cast<std::size_t>(std::clamp(kMostOps / ops_of_trial(p), kFewestTrials, kMostTrials));
  std::vector<Candidate> compared;
  std::size_t next = 0, possible = 0;
  for (int wave = 0; wave < kMostWaves && possible < most && next < ordered.size(); ++wave) {
    const std::size_t end = std::min(ordered.size(), next + most - possible);
    std::vector<Candidate> some(ordered.begin() + static_cast<std::ptrdiff_t>(next),
                                ordered.begin() + static_cast<std::ptrdiff_t>(end));
    simulate(some, trials, Effort::few, p);
    for (Candidate& c : some) {
      if (!c.trial.possible) continue;
      ++possible;
      compared.push_back(std::move(c));
    }
    next = end;
  }
  sort_by_gain(compared);
  return compared;
}

bool is_part_of(const Remedy& part, const Remedy& whole) {
  return std::all_of(part.sets.begin(), part.sets.end(), [&](const std::string& set) {
    return std::find(whole.sets.begin(), whole.sets.end(), set) != whole.sets.end();
  });
}

// Drops what gains less than `least`, what is of the same kinds as a better one or leads to the same
// scenario, and pairs that gain hardly more than one of their parts.
void drop_needless(std::vector<Candidate>& candidates, double least) {
  const std::vector<Candidate> all = std::move(candidates);
  candidates.clear();
  constexpr double kRounding = 1e-12;  // what two ways of computing the same time may differ by
  const auto alike = [](const Candidate& a, const Candidate& b) {
    const double difference = std::abs(a.trial.samples_per_s - b.trial.samples_per_s);
    return difference <= kRounding * b.trial.samples_per_s && a.trial.memory_bytes == b.trial.memory_bytes;
  };
  for (const Candidate& c : all) {
    const bool hardly_more = std::any_of(all.begin(), all.end(), [&](const Candidate& part) {
      return !alike(part, c) && part.remedy.sets.size() < c.remedy.sets.size() &&
             is_part_of(part.remedy, c.remedy) && c.gain < part.gain + kLeastGain;
    });
    const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& better) {
      return alike(better, c) || (!c.remedy.kinds.empty() && better.remedy.kinds == c.remedy.kinds);
    });
    if (c.gain >= least && !hardly_more && !known) candidates.push_back(c);
  }
}

}  // namespace

void try_remedies(Prediction& p, int jobs, const std::function<void(std::size_t, std::size_t)>& watch) {
  if (p.scenario.text.empty() || !p.metrics.memory.fits || ops_of_trial(p) > kMostOpsOfTrial) return;
  const Trials trials(p, kMostOpsOfTrial, jobs, watch);
  p.remedies.emplace();
  std::vector<Candidate> best = compare(candidates_for(p), trials, p);
  drop_needless(best, kLeastGain - kMostWastedGain);
  if (best.size() > kMostTold) best.resize(kMostTold);
  simulate(best, trials, Effort::precise, p);
  drop_needless(best, kLeastGain);
  for (const Candidate& c : best) p.remedies->push_back(tried(c));
}

}  // namespace rehearse
