#include "simulator/engine/carrier.hpp"

#include <algorithm>

namespace rehearse {

Carrier::Carrier(Platform& platform, bool all_shared)
    : platform_(platform),
      all_shared_(all_shared),
      flows_on_(platform.links(), 0),
      alone_on_(platform.links(), nullptr),
      waiting_(platform.flows()) {}

bool Carrier::is_alone(int flow) const {
  const std::vector<int>& route = platform_.route(flow);
  return std::all_of(route.begin(), route.end(), [&](int link) { return flows_on_[link] == 0; });
}

void Carrier::occupy(int flow, Waiting* alone) {
  for (int link : platform_.route(flow)) {
    ++flows_on_[link];
    alone_on_[link] = alone;
  }
}

void Carrier::leave(int flow) {
  for (int link : platform_.route(flow)) {
    --flows_on_[link];
    alone_on_[link] = nullptr;
  }
}

void Carrier::carry(int flow, double bytes) {
  if (all_shared_ || !is_alone(flow)) {
    start(flow, bytes)->wait();
    return ended(flow);
  }
  if (!waiting_[flow]) waiting_[flow] = std::make_unique<Waiting>();
  Waiting& own = *waiting_[flow];
  own.joined = false;
  occupy(flow, &own);
  const double s_per_byte = platform_.s_per_byte_alone(flow);
  const double end_s = sg::s4u::Engine::get_clock() + bytes * s_per_byte;
  double left_s = bytes * s_per_byte;
  // A ring that came too late for the previous wait ends this one at once.
  while (!own.joined && left_s > sg::kShortestWait_s)
    left_s = own.bell.wait_for(left_s) ? 0 : end_s - sg::s4u::Engine::get_clock();
  if (own.joined && left_s > sg::kShortestWait_s) {
    for (int link : platform_.route(flow)) alone_on_[link] = nullptr;
    platform_.start(flow, left_s / s_per_byte)->wait();
  }
  leave(flow);
}

sg::s4u::CommPtr Carrier::start(int flow, double bytes) {
  if (all_shared_) return platform_.start(flow, bytes);
  std::vector<Waiting*> joined;
  for (int link : platform_.route(flow)) {
    Waiting* const other = alone_on_[link];
    if (other == nullptr || other->joined) continue;
    other->joined = true;
    joined.push_back(other);
  }
  occupy(flow, nullptr);  // before other actors run
  for (Waiting* other : joined) other->bell.ring();
  return platform_.start(flow, bytes);
}

void Carrier::ended(int flow) {
  if (!all_shared_) leave(flow);
}

}  // namespace rehearse
