#include "simulator/engine/platform.hpp"

#include <fmt/format.h>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): POSIX functions
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse {

namespace {

// Sets the "C" locale for this thread while it exists. SimGrid compares names without regard to case, which
// fails for an "I" in Turkish.
class ClassicLocale {
public:
  ClassicLocale() : classic_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(classic_)) {}
  ClassicLocale(const ClassicLocale&) = delete;
  ClassicLocale& operator=(const ClassicLocale&) = delete;
  ~ClassicLocale() {
    uselocale(before_);
    if (classic_ != nullptr) freelocale(classic_);
  }

private:
  locale_t classic_, before_;
};

// SimGrid counts whole bytes; with units this small, the rounding error is below 1e-5 bytes.
constexpr double kUnitsPerByte = 65536;

struct Load {
  int flow = 0, weight = 0;
  bool operator==(const Load&) const = default;
};

// Returns whether a link is never the one that limits a flow, because each flow that crosses it asks for more
// of another link `by`. Of links with equal loads, the first one stays. Loads are sorted by flow.
bool is_implied(const std::vector<Load>& loads, double bandwidth, const std::vector<Load>& by,
                double by_bandwidth, bool by_is_first) {
  if (bandwidth == by_bandwidth && loads == by) return by_is_first;
  constexpr double kClearly = 1 + 1e-9;  // else rounding could tell which of the two limits a flow
  auto other = by.begin();
  for (const Load& load : loads) {
    while (other != by.end() && other->flow < load.flow) ++other;
    if (other == by.end() || other->flow != load.flow ||
        load.weight * by_bandwidth * kClearly > other->weight * bandwidth)
      return false;
  }
  return true;
}

// Returns which link classes can limit simulated flows. SimGrid spends most of its time on the links of flows
// that start and end, and along a route it is usually one link, the network card, that sets the pace.
std::vector<bool> limiting_links(const Layout& layout, const std::vector<bool>& simulated_flows) {
  std::vector<std::vector<Load>> loads(layout.links.size());
  for (std::size_t f = 0; f < layout.flows.size(); ++f)
    if (simulated_flows[f])
      for (const FlowClass::Crossing& c : layout.flows[f].crossings)
        loads[c.link_class].push_back({static_cast<int>(f), c.weight});
  std::vector<bool> limiting(layout.links.size(), false);
  for (std::size_t l = 0; l < loads.size(); ++l) {
    if (loads[l].empty()) continue;
    limiting[l] = true;
    // Every link that implies this one is on the route of each of its flows.
    const std::vector<FlowClass::Crossing>* route = nullptr;
    for (const Load& load : loads[l])
      if (const auto& crossings = layout.flows[load.flow].crossings;
          route == nullptr || crossings.size() < route->size())
        route = &crossings;
    constexpr std::size_t kMostLinks = 64;  // of unfolded collectives over many nodes, only the first ones
    for (std::size_t i = 0; i < std::min(route->size(), kMostLinks) && limiting[l]; ++i) {
      const auto by = static_cast<std::size_t>((*route)[i].link_class);
      limiting[l] = by == l || !is_implied(loads[l], layout.links[l].bandwidth, loads[by],
                                           layout.links[by].bandwidth, by < l);
    }
  }
  return limiting;
}

}  // namespace

// SimGrid retains pointers to its arguments, and decides by them how actors run before it accepts settings.
sg::s4u::Engine make_engine(bool on_threads) {
  static char name[] = "rehearse", quiet[] = "--log=root.thres:warning";
  static char threads[] = "--cfg=contexts/factory:thread";
  static char* values[] = {name, quiet, on_threads ? threads : nullptr, nullptr};
  static int count = on_threads ? 3 : 2;
  sg::actors_are_threads() = on_threads;
  const ClassicLocale while_options_are_read;
  return sg::s4u::Engine(&count, values);
}

Platform::Platform(const Layout& layout, const std::vector<bool>& simulated_flows, bool links_change,
                   bool on_threads)
    : engine_(make_engine(on_threads)) {
  {
    const ClassicLocale while_options_are_read;
    sg::configure();
  }
  sg::s4u::NetZone* zone = sg::root_zone(engine_);

  // n hosts have n (n - 1) ordered pairs, each with its own route: few hosts serve many flows.
  const long flows = std::count(simulated_flows.begin(), simulated_flows.end(), true);
  int hosts = 2;
  while (static_cast<long>(hosts) * (hosts - 1) < flows) ++hosts;
  for (int h = 0; h < hosts; ++h) hosts_.push_back(sg::add_host(zone, fmt::format("h{}", h)));

  // If all flows cross a link a multiple of g times, the link is equivalent to one with a g-th of its
  // bandwidth and a g-th of the crossings.
  const std::vector<bool> limiting =
      links_change ? std::vector<bool>(layout.links.size(), true) : limiting_links(layout, simulated_flows);
  std::vector<int> divisor(layout.links.size(), 0);
  for (std::size_t f = 0; f < layout.flows.size(); ++f)
    if (simulated_flows[f])
      for (const FlowClass::Crossing& c : layout.flows[f].crossings)
        if (limiting[c.link_class]) divisor[c.link_class] = std::gcd(divisor[c.link_class], c.weight);
  links_.assign(layout.links.size(), nullptr);
  link_bandwidth_.assign(layout.links.size(), 0);
  for (std::size_t l = 0; l < layout.links.size(); ++l) {
    if (divisor[l] == 0) continue;
    link_bandwidth_[l] = layout.links[l].bandwidth * kUnitsPerByte / divisor[l];
    links_[l] = sg::add_link(zone, fmt::format("l{}", l), link_bandwidth_[l]);
    links_[l]->set_latency(0);
  }

  pair_.assign(layout.flows.size(), -1);
  routes_.resize(layout.flows.size());
  int next = 0;
  for (std::size_t f = 0; f < layout.flows.size(); ++f) {
    if (!simulated_flows[f]) continue;
    pair_[f] = next++;
    std::vector<const sg::s4u::Link*> route;
    if (const double most = layout.flows[f].most_bytes_per_s; most > 0) {
      sg::s4u::Link* const limit = sg::add_limit(zone, fmt::format("m{}", f), most * kUnitsPerByte);
      limit->set_latency(0);
      route.push_back(limit);
      routes_[f].s_per_byte = 1 / most;
    }
    for (const FlowClass::Crossing& c : layout.flows[f].crossings)
      if (limiting[c.link_class]) {
        const int times = c.weight / divisor[c.link_class];
        route.insert(route.end(), times, links_[c.link_class]);
        routes_[f].links.push_back(c.link_class);
        routes_[f].s_per_byte =
            std::max(routes_[f].s_per_byte, kUnitsPerByte * times / link_bandwidth_[c.link_class]);
      }
    if (route.empty()) continue;  // both ends are at the same place: there is nothing to carry
    const int from = pair_[f] / (hosts - 1), other = pair_[f] % (hosts - 1);
    sg::add_route(zone, hosts_[from], hosts_[other < from ? other : other + 1], route);
  }
  zone->seal();
}

sg::s4u::CommPtr Platform::start(int flow, double bytes) {
  const int others = static_cast<int>(hosts_.size()) - 1;
  const int from = pair_[flow] / others, other = pair_[flow] % others;
  const double units = std::max(1.0, std::round(bytes * kUnitsPerByte));
  return sg::s4u::Comm::sendto_async(hosts_[from], hosts_[other < from ? other : other + 1],
                                     static_cast<std::uint64_t>(units));
}

void Platform::scale_link(int link_class, double factor) {
  if (links_[link_class] != nullptr) links_[link_class]->set_bandwidth(link_bandwidth_[link_class] * factor);
}

void Platform::kill_link(int link_class) {
  if (links_[link_class] != nullptr) links_[link_class]->turn_off();
}

}  // namespace rehearse
