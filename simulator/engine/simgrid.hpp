// Wraps SimGrid 3.32 to 4.x in one interface; all differences between its versions are handled here.
#pragma once

#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include <simgrid/version.h>  // after s4u.hpp: that of 3.32 does not compile on its own

#include "simulator/engine/sanitized_stacks.hpp"

namespace rehearse::sg {

namespace s4u = simgrid::s4u;

// Sets the network model. It must be called before any zone is created, since that locks the configuration.
// SimGrid's defaults model TCP; CM02 without a window (gamma 0) and without cross-traffic gives each flow its
// max-min share.
inline void configure() {
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  // The defaults, written so that they are parsed correctly even if the locale has a decimal comma.
  s4u::Engine::set_config("network/bandwidth-factor:1");
  s4u::Engine::set_config("network/latency-factor:1");
  // By default, events within a nanosecond of each other are one, and shorter waits take as long: folded and
  // whole runs would differ by more than a billionth. SimGrid 3.32 does not know the new name of this key.
  s4u::Engine::set_config("surf/precision:1e-11");
  s4u::Engine::set_config("contexts/stack-size:64");  // KiB
  s4u::Engine::set_config("contexts/guard-size:0");
}

inline s4u::NetZone* root_zone([[maybe_unused]] s4u::Engine& engine) {
#if SIMGRID_VERSION >= 40000
  return engine.get_netzone_root();
#else
  return s4u::create_full_zone("root");
#endif
}

inline s4u::Host* add_host(s4u::NetZone* zone, const std::string& name) {
#if SIMGRID_VERSION >= 40000
  return zone->add_host(name, 1e9);
#else
  return zone->create_host(name, 1e9);
#endif
}

inline s4u::Link* add_link(s4u::NetZone* zone, const std::string& name, double bandwidth) {
#if SIMGRID_VERSION >= 40000
  return zone->add_link(name, bandwidth);
#else
  return zone->create_link(name, bandwidth);
#endif
}

// Adds a link that lets each flow have its entire bandwidth.
inline s4u::Link* add_limit(s4u::NetZone* zone, const std::string& name, double bandwidth) {
  s4u::Link* const link = add_link(zone, name, bandwidth);
  link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
  return link;
}

// Adds a route in one direction.
inline void add_route(s4u::NetZone* zone, s4u::Host* from, s4u::Host* to,
                      const std::vector<const s4u::Link*>& links) {
#if SIMGRID_VERSION >= 33500
  std::vector<s4u::LinkInRoute> route(links.begin(), links.end());
  zone->add_route(from, to, route, false);
#else
  std::vector<s4u::LinkInRoute> route(links.begin(), links.end());
  zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
#endif
}

inline s4u::ActorPtr start_actor([[maybe_unused]] s4u::Engine& engine, const std::string& name,
                                 s4u::Host* host, const std::function<void()>& does) {
  const std::function<void()>& code = telling_its_stack(does);
#if SIMGRID_VERSION >= 40100
  return host->add_actor(name, code);
#elif SIMGRID_VERSION >= 40000
  return engine.add_actor(name, host, code);
#else
  return s4u::Actor::create(name, host, code);
#endif
}

// Half of SimGrid's precision. Where rounding alone makes a time later than the clock, nothing may be waited
// for.
inline constexpr double kShortestWait_s = 0.5e-11;

// Sleeps until a time, if it has not come yet.
inline void sleep_until(double time_s) {
  const double wait_s = time_s - s4u::Engine::get_clock();
  if (wait_s > kShortestWait_s) s4u::this_actor::sleep_for(wait_s);
}

// Waits until one of the communications has ended, removes it and returns its index. Throws
// NetworkFailureException if it failed.
inline std::size_t wait_any(std::vector<s4u::CommPtr>& comms) {
#if SIMGRID_VERSION >= 33500
  s4u::ActivitySet set;
  for (const s4u::CommPtr& comm : comms) set.push(comm);
  const s4u::ActivityPtr ended = set.wait_any();
  std::size_t index = 0;
  while (comms[index].get() != ended.get()) ++index;
#else
  const std::size_t index = static_cast<std::size_t>(s4u::Comm::wait_any(comms));
#endif
  comms.erase(comms.begin() + static_cast<std::ptrdiff_t>(index));
  return index;
}

}  // namespace rehearse::sg
