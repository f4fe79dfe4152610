// Compares two results: what differs, by how much, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/report/report.hpp"

namespace rehearse {

// A key that two scenario files set differently; nullopt if a file does not set it.
struct SettingChange {
  std::string key;
  std::optional<std::string> base, other;
};
std::vector<SettingChange> changed_settings(const Scenario& base, const Scenario& other);

// One figure of a result. Amounts per step (seconds, bytes) can be given per sample instead.
struct Figure {
  enum class Kind {
    seconds,
    rate,
    share,
    bytes,
    bytes_of_step,
    utilization,
    money,
    energy
  } kind = Kind::seconds;
  std::string key;    // "exposed_communication_s"
  std::string title;  // "compute"
  double value = 0;
};
// Returns step time, samples/s, MFU, the parts of the breakdown (exposed communication by purpose), memory,
// network bytes, the utilization of the busiest link, and money and energy (Wh) if they are known. Seconds,
// bytes, money and energy of the step are divided by `samples`.
std::vector<Figure> figures_of(const Result& result, double samples = 1);

// Returns whether the steps of two results train the same number of samples; if not, times are compared per
// sample.
bool same_samples(const Result& base, const Result& other);
double samples_per_step(const Result& result);

// Returns "B is 1.66 x slower: +117.2 ms exposed gradient sync (node0.nic0.out carries 17 x the bytes); -9.2
// ms compute (...).", for example. `base_name` and `name` are the names of the two results.
std::string difference_sentence(const Result& base, const Result& other, const std::string& base_name,
                                const std::string& name);

}  // namespace rehearse
