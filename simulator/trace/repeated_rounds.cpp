#include "simulator/trace/repeated_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

constexpr double kRounding = 1e-10;  // of a time since the beginning

using Sequence = std::vector<std::size_t>;                        // rows of one stream of a class in one step
using Sequences = std::map<std::tuple<int, int, int>, Sequence>;  // by class, stream and step

Sequences sequences_of(const Trace& trace) {
  Sequences sequences;
  for (std::size_t row = 0; row < trace.spans.size(); ++row)
    sequences[{trace.spans.rank_class[row], trace.op_of(row).stream, trace.spans.step[row]}].push_back(row);
  return sequences;
}

// Returns when each step has ended, on all ranks.
std::vector<double> ends_of_steps(const Trace& trace) {
  std::vector<double> ends_s;
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    const auto step = static_cast<std::size_t>(trace.spans.step[row]);
    if (step >= ends_s.size()) ends_s.resize(step + 1, 0);
    ends_s[step] = std::max(ends_s[step], trace.spans.end_s[row]);
  }
  return ends_s;
}

class Comparison {
public:
  Comparison(const Trace& shorter, const Trace& longer) : shorter_(shorter), longer_(longer) {}

  // Returns whether each row of `a` is, in order, one of the first of `b`, later by `before_s`, or one of the
  // last, later by `after_s`.
  bool is_part(const Sequence& a, const Sequence& b, double before_s, double after_s) const {
    const std::size_t rows = a.size(), more = b.size() - rows;
    std::size_t first = 0, last = 0;
    while (first < rows && same(a[first], b[first], before_s)) ++first;
    while (last + first < rows && same(a[rows - 1 - last], b[rows + more - 1 - last], after_s)) ++last;
    return first + last >= rows;
  }

private:
  bool same(std::size_t a, std::size_t b, double later_s) const {
    const Op &one = shorter_.op_of(a), &other = longer_.op_of(b);
    return one.kind == other.kind && one.pass == other.pass && one.purpose == other.purpose &&
           same_time(shorter_.spans.ready_s[a], longer_.spans.ready_s[b], later_s) &&
           same_time(shorter_.spans.begin_s[a], longer_.spans.begin_s[b], later_s) &&
           same_time(shorter_.spans.end_s[a], longer_.spans.end_s[b], later_s);
  }

  static bool same_time(double a_s, double b_s, double later_s) {
    return std::abs(a_s + later_s - b_s) <= kRounding * b_s;
  }

  const Trace &shorter_, &longer_;
};

}  // namespace

std::map<std::string, double> RepeatedRounds::extended(const std::map<std::string, double>& at_shorter,
                                                       std::map<std::string, double> at_longer) const {
  for (const auto& [name, figure] : at_shorter) at_longer.try_emplace(name, 0);
  for (auto& [name, figure] : at_longer) {
    const auto before = at_shorter.find(name);
    figure = extended(before == at_shorter.end() ? 0 : before->second, figure);
  }
  return at_longer;
}

bool same_ranks(const Trace& a, const Trace& b) {
  return std::equal(a.classes.begin(), a.classes.end(), b.classes.begin(), b.classes.end(),
                    [](const RankClass& one, const RankClass& other) {
                      return one.job == other.job && one.role == other.role && one.ranks == other.ranks;
                    });
}

bool repeats_a_round(const Trace& shorter, const Trace& longer) {
  if (!same_ranks(shorter, longer)) return false;
  const std::vector<double> shorter_ends_s = ends_of_steps(shorter), longer_ends_s = ends_of_steps(longer);
  if (shorter_ends_s.size() != longer_ends_s.size()) return false;
  const Sequences shorter_sequences = sequences_of(shorter), longer_sequences = sequences_of(longer);
  if (shorter_sequences.size() != longer_sequences.size()) return false;
  const Comparison comparison(shorter, longer);
  for (const auto& [place, its] : longer_sequences) {
    const auto other = shorter_sequences.find(place);
    if (other == shorter_sequences.end() || other->second.size() > its.size()) return false;
    const auto step = static_cast<std::size_t>(std::get<2>(place));
    const double before_s = step == 0 ? 0 : longer_ends_s[step - 1] - shorter_ends_s[step - 1];
    if (!comparison.is_part(other->second, its, before_s, longer_ends_s[step] - shorter_ends_s[step]))
      return false;
  }
  const double round_s = longer.end_s - shorter.end_s;
  for (std::size_t c = 0; c < longer.classes.size(); ++c)
    if (longer.classes[c].issued_s - shorter.classes[c].issued_s > round_s * (1 + kRounding)) return false;
  return true;
}

StepTraffic whole_traffic(const Trace& trace, const RepeatedRounds& rounds, const Cluster& cluster) {
  const StepTraffic shorter = step_traffic(rounds.shorter, 0, cluster, {});
  StepTraffic whole = step_traffic(trace, 0, cluster, {});
  whole.bytes = rounds.extended(shorter.bytes, whole.bytes);
  std::map<LinkId, double> before;
  for (const LinkLoad& load : shorter.links) before[load.link] = load.bytes;
  for (LinkLoad& load : whole.links) load.bytes = rounds.extended(before[load.link], load.bytes);
  return whole;
}

Metrics whole_step(const Metrics& shorter, const Metrics& longer, const Trace& trace,
                   const RepeatedRounds& rounds, const Cluster& cluster) {
  Metrics whole = longer;
  const auto extend = [&](double& figure, double at_shorter) {
    figure = rounds.extended(at_shorter, figure);
  };
  extend(whole.step_time_s, shorter.step_time_s);
  extend(whole.samples, shorter.samples);
  const double seconds = whole.step_time_s;
  for (double Metrics::*rate : {&Metrics::samples_per_s, &Metrics::tokens_per_s,
                                &Metrics::model_tflops_per_device, &Metrics::mfu, &Metrics::hfu})
    whole.*rate =
        rounds.extended(shorter.*rate * shorter.step_time_s, longer.*rate * longer.step_time_s) / seconds;
  whole.breakdown = break_down(rounds.shorter, trace, rounds.repeats);
  whole.breakdown.scale(1.0 / trace.run.jobs.front().phases.front().schedule->optimizer_steps);
  // Where steps are only assumed to be alike, further micro-batches may need further memory.
  extend(whole.memory.total, shorter.memory.total);
  extend(whole.memory.activations, shorter.memory.activations);
  whole.memory.fits = whole.memory.capacity <= 0 || whole.memory.total <= whole.memory.capacity;
  set_traffic(whole, whole_traffic(trace, rounds, cluster), cluster);
  return whole;
}

}  // namespace rehearse
