// Looks up how long devices wait within the computations of a trace, as a profile measured it.
#pragma once

#include <map>
#include <vector>

#include "simulator/costs/compute.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {

class WorkWaits {
public:
  struct Waits {
    double process_s = 0, data_s = 0;  // for the process that issues kernels, and for data
  };

  explicit WorkWaits(const Trace& trace) : trace_(trace) {}

  // Returns the waits of a computation.
  Waits of(std::size_t row) {
    const int work = trace_.op_of(row).work;
    if (work < 0) return {};
    const Schedule& schedule = schedule_of(trace_, row);
    const auto [its, fresh] = by_schedule_.try_emplace(&schedule);
    if (fresh)
      for (const Work& one : schedule.works) its->second.push_back({process_wait_s(one), data_wait_s(one)});
    return its->second[static_cast<std::size_t>(work)];
  }

private:
  const Trace& trace_;
  std::map<const Schedule*, std::vector<Waits>> by_schedule_;
};

}  // namespace rehearse
