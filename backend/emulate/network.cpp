#include "backend/emulate/network.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "backend/emulate/shaping.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr int kFirstTable = 1000;  // routing tables for single sources

std::string device(int cable) {
  return fmt::format("c{}", cable);
}

}  // namespace

EmulatedNetwork::EmulatedNetwork(EmulationGraph graph) : graph_(std::move(graph)), owner_(getpid()) {
  for (std::size_t i = 0; i < graph_.vertices.size(); ++i) spaces_.push_back(make_namespace());
  if (spaces_.empty()) return;
  if (graph_.built_latency_s > 0) {
    const InNamespace in(spaces_.front());
    netem_ = try_batch("tc", {"qdisc add dev lo root netem delay 1ms", "qdisc del dev lo root"});
  }
  make_cables();
  for (std::size_t i = 0; i < spaces_.size(); ++i) configure(static_cast<int>(i));
  tell_left_out();
}

void EmulatedNetwork::make_cables() {
  // Both ends have the same hardware address and ARP is off: what enters at one end is meant for the other.
  std::vector<std::string> lines;
  for (int i = 0; i < static_cast<int>(graph_.cables.size()); ++i) {
    const auto end = [&](int vertex) {
      return fmt::format("name {} address 02:00:00:00:00:01 netns /proc/{}/fd/{}", device(i), owner_,
                         spaces_[vertex].get());
    };
    lines.push_back(
        fmt::format("link add {} type veth peer {}", end(graph_.cables[i].a), end(graph_.cables[i].b)));
  }
  const InNamespace in(spaces_.front());
  run_batch("ip", lines);
}

void EmulatedNetwork::configure(int vertex) {
  const InNamespace in(spaces_[vertex]);
  for (const auto& [name, value] : network_settings())
    if (!set_sysctl(name, value))
      throw RunError(fmt::format("the emulated cluster cannot be built: /proc/sys/net/{} does not accept {}",
                                 name, value));
  std::vector<std::string> lines = {"link set lo up"};
  for (const Endpoint e : graph_.vertices[vertex].endpoints)
    for (const int rail : graph_.rails)
      lines.push_back(fmt::format("addr add {}/32 dev lo", address(e, rail)));
  for (int i = 0; i < static_cast<int>(graph_.cables.size()); ++i) {
    const auto& cable = graph_.cables[i];
    if (cable.a != vertex && cable.b != vertex) continue;
    const double bandwidth = (cable.a == vertex ? cable.forth : cable.back).bandwidth;
    const bool host = !graph_.vertices[vertex].endpoints.empty();
    lines.push_back(
        fmt::format("link set {} arp off up{}", device(i),
                    host && bandwidth > 0 ? fmt::format(" gso_max_size {}", segment_bytes(bandwidth)) : ""));
  }
  for (std::string& line : routes(vertex, true)) lines.push_back(std::move(line));
  run_batch("ip", lines);
  shape(vertex);
}

void EmulatedNetwork::shape(int vertex) {
  std::vector<std::string> lines;
  for (int i = 0; i < static_cast<int>(graph_.cables.size()); ++i) {
    const auto& cable = graph_.cables[i];
    if (cable.a != vertex && cable.b != vertex) continue;
    const auto& out = cable.a == vertex ? cable.forth : cable.back;
    const std::string queue = netem_ && out.latency_s > 0
                                  ? fmt::format("netem limit 1000000 delay {:.0f}us", out.latency_s * 1e6)
                                  : fmt::format("bfifo limit {}b", kQueueBytes);
    if (out.bandwidth <= 0) {
      if (netem_ && out.latency_s > 0)
        lines.push_back(fmt::format("qdisc add dev {} root {}", device(i), queue));
      continue;
    }
    const long bucket = bucket_bytes(out.bandwidth, !graph_.vertices[vertex].endpoints.empty());
    // Both classes borrow all but a hundredth of the rate; short packets go first.
    lines.push_back(fmt::format("qdisc add dev {} root handle 1: htb default 2", device(i)));
    lines.push_back(fmt::format(
        "class add dev {} parent 1: classid 1:1 htb rate {:.0f}bps burst {}b cburst {}b quantum 60000",
        device(i), out.bandwidth, bucket, bucket));
    for (const int number : {2, 3}) {
      lines.push_back(
          fmt::format("class add dev {} parent 1:1 classid 1:{} htb rate {:.0f}bps ceil {:.0f}bps burst "
                      "2000b cburst {}b prio {} quantum 60000",
                      device(i), number, out.bandwidth / 100, out.bandwidth, bucket, 3 - number));
      lines.push_back(fmt::format("qdisc add dev {} parent 1:{} {}", device(i), number, queue));
    }
    lines.push_back(
        fmt::format("filter add dev {} parent 1: protocol ip prio 1 u32 match u16 0x0000 {:#06x} at 2 "
                    "flowid 1:3",
                    device(i), 0x10000 - kShortPacketBytes));
  }
  run_batch("tc", lines);
}

// Returns, for each destination, the route of most sources, and separate tables for sources with other
// routes.
std::vector<std::string> EmulatedNetwork::routes(int vertex, bool with_rules) const {
  // A window limits what the other host may send, so it depends on the route in the opposite direction.
  std::map<std::pair<std::string, std::string>, int> windows;
  for (const auto& f : graph_.forwards)
    if (f.first && f.bandwidth > 0)
      windows[{f.destination, f.source}] = window_segments(f.bandwidth, netem_ ? 2 * f.latency_s : 0);

  struct Leave {
    int cable = 0, window = 0;
    std::string own;  // address of the host if packets start there
    bool operator<(const Leave& o) const {
      return std::tie(cable, window, own) < std::tie(o.cable, o.window, o.own);
    }
    bool operator==(const Leave& o) const = default;
  };
  std::map<std::string, std::vector<std::pair<std::string, Leave>>> by_destination;
  for (const auto& f : graph_.forwards) {
    if (f.vertex != vertex) continue;
    const auto window = windows.find({f.source, f.destination});
    by_destination[f.destination].push_back(
        {f.source,
         {f.cable, f.first && window != windows.end() ? window->second : 0, f.first ? f.source : ""}});
  }
  std::vector<std::string> lines;
  std::map<std::string, int> tables;  // by source
  const auto add = [&](const std::string& to, const Leave& leave, const std::string& table) {
    lines.push_back(fmt::format("route replace {}/32 dev {}{}{}{}", to, device(leave.cable),
                                leave.own.empty() ? "" : " src " + leave.own,
                                leave.window == 0
                                    ? ""
                                    : fmt::format(" window {} initcwnd {} initrwnd {}",
                                                  leave.window * kSegmentBytes, leave.window, leave.window),
                                table));
  };
  for (const auto& [to, sources] : by_destination) {
    std::map<Leave, int> counts;
    for (const auto& [from, leave] : sources) ++counts[leave];
    const Leave usual = std::max_element(counts.begin(), counts.end(), [](const auto& x, const auto& y) {
                          return x.second < y.second;
                        })->first;
    add(to, usual, "");
    for (const auto& [from, leave] : sources) {
      if (leave == usual) continue;
      const auto [it, added] = tables.emplace(from, kFirstTable + static_cast<int>(tables.size()));
      if (added && with_rules)
        lines.push_back(fmt::format("rule add from {}/32 lookup {}", from, it->second));
      add(to, leave, fmt::format(" table {}", it->second));
    }
  }
  return lines;
}

void EmulatedNetwork::tell_left_out() {
  if (!graph_.left_out.empty()) {
    const auto& first = graph_.left_out.front();
    left_out_.push_back(fmt::format(
        "{} links above {:g} Gbit/s ({} with {:g}): the vertices that they join are one host",
        graph_.left_out.size(), kMostEmulatedBandwidth * 8e-9, first.name, first.bandwidth * 8e-9));
  }
  const double latency_s = graph_.left_out_latency_s + (netem_ ? 0 : graph_.built_latency_s);
  if (latency_s > 0)
    left_out_.push_back(
        fmt::format("latencies of up to {:g} us a route{}", latency_s * 1e6,
                    netem_ || graph_.built_latency_s <= 0 ? "" : " (this kernel has no netem)"));
}

void EmulatedNetwork::enter(Endpoint endpoint) {
  const int vertex = graph_.vertex_of(endpoint);
  if (getpid() != owner_) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner_) _exit(1);  // the parent died before prctl()
  }
  if (setns(spaces_[vertex].get(), CLONE_NEWNET) != 0)
    throw RunError(fmt::format("cannot enter the network of {}: {}", graph_.vertices[vertex].name,
                               std::strerror(errno)));
  spaces_.clear();
}

int EmulatedNetwork::cable_named(const std::string& name) const {
  for (std::size_t i = 0; i < graph_.cables.size(); ++i) {
    const auto& c = graph_.cables[i];
    if (name == c.name || name == c.forth.name || name == c.back.name) return static_cast<int>(i);
  }
  std::string names;
  for (const auto& c : graph_.cables) names += (names.empty() ? "" : ", ") + c.name;
  throw InputError({}, fmt::format("the emulated cluster has no link \"{}\"; allowed: {}", name, names));
}

void EmulatedNetwork::set_link_down(const std::string& name) {
  const int cable = cable_named(name);
  const InNamespace in(spaces_[graph_.cables[cable].a]);
  run_batch("ip", {fmt::format("link set {} down", device(cable))});
}

void EmulatedNetwork::set_link_up(const std::string& name) {
  const int cable = cable_named(name);
  const int vertex = graph_.cables[cable].a;
  const InNamespace in(spaces_[vertex]);
  // The kernel has dropped the routes through the cable, so this adds them again.
  std::vector<std::string> lines = routes(vertex, false);
  lines.insert(lines.begin(), fmt::format("link set {} up", device(cable)));
  run_batch("ip", lines);
}

std::string emulation_missing() {
  // Runs in a child process, because without root the first namespace changes the process.
  int told[2] = {-1, -1};
  if (pipe(told) != 0) return std::strerror(errno);
  const pid_t child = fork();
  if (child < 0) return std::strerror(errno);
  if (child == 0) {
    std::string reason;
    try {
      const Descriptor space = make_namespace();
      const InNamespace in(space);
      run_batch("ip", {"link add name a type veth peer name b"});
      run_batch("tc", {"qdisc add dev a root handle 1: htb default 1"});
    } catch (const std::exception& error) {
      reason = error.what();
    }
    const ssize_t written = write(told[1], reason.data(), reason.size());
    _exit(written == static_cast<ssize_t>(reason.size()) ? 0 : 1);
  }
  close(told[1]);
  const Descriptor from(told[0]);
  std::string reason;
  char part[512];
  for (ssize_t got = 0; (got = read(from.get(), part, sizeof part)) > 0;)
    reason.append(part, static_cast<std::size_t>(got));
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return reason;
}

}  // namespace rehearse
