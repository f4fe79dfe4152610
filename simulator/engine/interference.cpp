// Simulates computation beside collectives: while a collective is under way on a device, kernels take as long
// as they would on the part of the device that the collective leaves free.
#include <algorithm>

#include "simulator/costs/compute.hpp"
#include "simulator/engine/simulation.hpp"

namespace rehearse {

bool Simulation::runs_beside(const Stream& stream, int op) const {
  const std::vector<bool>& beside = does(stream).beside;
  return !beside.empty() && beside[static_cast<std::size_t>(op)];
}

void Simulation::set_load(const Stream& stream, const TransferClass& transfer, double alone_s) {
  const Collective& op = stream.cursor.current().collective;
  DeviceLoad load = load_of(op, amount_here(stream, op.bytes), transfer.shape, alone_s);
  load.units *= options_.interference.scale;
  load.memory_bytes_per_s *= options_.interference.scale;
  classes_[stream.rank_class].loads[stream.number] = load;
  change_load(stream.rank_class);
}

void Simulation::end_load(const Stream& stream) {
  classes_[stream.rank_class].loads.erase(stream.number);
  change_load(stream.rank_class);
}

void Simulation::change_load(int rank_class) {
  for (int s : classes_[rank_class].streams)
    if (streams_[s].computing) streams_[s].bell.ring();
}

// Returns how long a work item takes beside the collectives that are under way now.
double Simulation::seconds_beside(const Stream& stream, int work) {
  ClassState& state = classes_[stream.rank_class];
  const ClassProgram& program = does(stream);
  const auto number = static_cast<std::size_t>(work);
  DeviceLoad sum;
  for (const auto& [owner, load] : state.loads) {
    sum.units += load.units;
    sum.memory_bytes_per_s += load.memory_bytes_per_s;
  }
  if (sum == DeviceLoad{}) return program.seconds[number];
  const auto [entry, fresh] = state.seconds_beside.try_emplace({stream.phase, sum});
  if (fresh) entry->second.assign(program.seconds.size(), -1);
  double& seconds = entry->second[number];
  if (seconds < 0) {
    const Layout::Class& own = layout_.classes[stream.rank_class];
    const Work& what = run_.jobs[own.job].phases[stream.phase].schedule->works[number];
    seconds = std::max(program.seconds[number],
                       work_time_s(what, device_beside(device_at(cluster_, own.endpoint), sum),
                                   cluster_.device_factor(own.endpoint)));
  }
  return seconds;
}

// Computes a work item that takes `seconds` alone. Returns when it ends, which is also SimGrid's time.
double Simulation::compute_beside(Stream& stream, int work, double seconds) {
  const double alone_end_s = compute_end(stream, seconds);
  catch_up(stream);
  const double all_s = does(stream).seconds[static_cast<std::size_t>(work)];
  double left_s = seconds;  // remaining seconds if it computed alone
  while (left_s > 0) {
    const double slower = all_s > 0 ? seconds_beside(stream, work) / all_s : 1;
    stream.local_time_s = now();
    const double wait_s = compute_end(stream, left_s * slower) - now();
    stream.computing = true;
    const bool whole = wait_s <= 0 || stream.bell.wait_for(wait_s);
    stream.computing = false;
    if (whole) break;
    left_s -= computed_s(stream, stream.local_time_s, now()) / slower;
  }
  stream.local_time_s = now();
  stream.slowed_s = std::max(0.0, stream.local_time_s - alone_end_s);
  return stream.local_time_s;
}

}  // namespace rehearse
