#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/emulate/network.hpp"
#include "backend/emulate/shaping.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

constexpr double kMbit = 1e6 / 8;

// Returns nodes of one device whose NICs carry `mbit`, without PCIe or latency in front of them.
ClusterParts bare_nodes(int nodes, double mbit) {
  ClusterParts parts = gpu_nodes(nodes, 1, 1);
  parts.node.pcie_bandwidth = 0;
  parts.node.nic_bandwidth = mbit * kMbit;
  parts.fabric.latency_s = 0;
  return parts;
}

ClusterParts bare_tree(int nodes, int nodes_per_leaf, double mbit, double ratio) {
  ClusterParts parts = bare_nodes(nodes, mbit);
  parts.fabric.kind = Fabric::Kind::leaf_spine;
  parts.fabric.nodes_per_leaf = nodes_per_leaf;
  parts.fabric.oversubscription = ratio;
  parts.fabric.link_bandwidth = nodes_per_leaf * mbit * kMbit / ratio;
  return parts;
}

EmulationGraph graph_of(const ClusterParts& parts, const std::vector<Endpoint>& endpoints,
                        const std::vector<Conversation>& conversations = {}) {
  return emulation_graph(*make_cluster(parts), endpoints, conversations, kMostEmulatedBandwidth);
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { REQUIRE(pipe(ends) == 0); }
  ~Pipe() {
    for (const int end : ends) close(end);
  }
  template <class T>
  void put(const T& value) const {
    if (write(ends[1], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) _exit(1);
  }
  template <class T>
  T take() const {
    T value{};
    pollfd wait{ends[0], POLLIN, 0};  // times out if the writing child has failed
    if (poll(&wait, 1, 30'000) != 1) return T{};
    if (read(ends[0], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) return T{};
    return value;
  }
};

// A child process that runs `work` and exits. The destructor waits for it, after killing it if `kill_at_end`.
class Child {
public:
  template <class Work>
  explicit Child(const Work& work, bool kill_at_end = false) : kill_(kill_at_end), pid_(fork()) {
    if (pid_ == 0) {
      alarm(60);  // kills the child if it hangs
      try {
        work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
  }
  Child(const Child&) = delete;
  ~Child() { wait(); }
  int wait() {
    if (pid_ > 0) {
      if (kill_) kill(pid_, SIGKILL);
      while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      pid_ = -1;
    }
    return status_;
  }
  pid_t pid() const { return pid_; }

private:
  bool kill_ = false;
  pid_t pid_ = -1;
  int status_ = -1;
};

struct Flow {
  Endpoint from = 0, to = 0;
};

// Returns the seconds from the start of all flows to the last byte of the last one.
double transfer_s(EmulatedNetwork& network, const std::vector<Flow>& flows, std::size_t bytes) {
  const Pipe ready, go, ended;
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Flow flow = flows[i];
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(7000 + i));
    inet_pton(AF_INET, network.address(flow.to).c_str(), &at.sin_addr);
    const Pipe listening;
    children.push_back(std::make_unique<Child>([&] {
      network.enter(flow.to);
      std::vector<char> buffer(1 << 17);
      const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(fd, 1) != 0) _exit(2);
      listening.put(true);
      const int from = accept(fd, nullptr, nullptr);
      for (std::size_t got = 0; got < bytes;) {
        const ssize_t part = read(from, buffer.data(), std::min(buffer.size(), bytes - got));
        if (part <= 0) _exit(3);
        got += static_cast<std::size_t>(part);
      }
      ended.put(now_s());
    }));
    REQUIRE(listening.take<bool>());
    children.push_back(std::make_unique<Child>([&] {
      network.enter(flow.from);
      const std::vector<char> buffer(1 << 17);
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) _exit(4);
      ready.put(true);
      go.take<bool>();
      for (std::size_t sent = 0; sent < bytes;) {
        const ssize_t part = write(fd, buffer.data(), std::min(buffer.size(), bytes - sent));
        if (part <= 0) _exit(5);
        sent += static_cast<std::size_t>(part);
      }
      char none = 0;
      if (read(fd, &none, 1) != 0) _exit(6);  // waits until the receiver has everything and closes
    }));
    REQUIRE(ready.take<bool>());
  }
  const double start = now_s();
  for (std::size_t i = 0; i < flows.size(); ++i) go.put(true);
  double end = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) end = std::max(end, ended.take<double>());
  for (auto& child : children) CHECK(child->wait() == 0);
  return end - start;
}

// Veth pairs from the test's namespace into each network namespace of a process. The kernel removes the near
// end when the namespace at the far end dies.
class Probes {
public:
  explicit Probes(pid_t owner) {
    const std::string folder = "/proc/" + std::to_string(owner) + "/fd/";
    const std::string own = std::filesystem::read_symlink("/proc/self/ns/net").string();
    const std::string home =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(space_.get())).string();
    std::set<std::string> seen = {own, home};
    const InNamespace in(space_);
    std::vector<std::string> lines;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::error_code error;
      const std::string to = std::filesystem::read_symlink(entry.path(), error).string();
      if (to.substr(0, 5) != "net:[" || !seen.insert(to).second) continue;
      const std::string name = "probe" + std::to_string(lines.size());
      lines.push_back("link add name " + name + " type veth peer name " + name + " netns " +
                      entry.path().string());
    }
    count_ = lines.size();
    run_batch("ip", lines);
  }
  std::size_t count() const { return count_; }
  std::size_t alive() const {
    const InNamespace in(space_);
    std::ifstream devices("/proc/thread-self/net/dev");
    std::size_t found = 0;
    for (std::string line; std::getline(devices, line);) found += line.find("probe") != std::string::npos;
    return found;
  }
  bool gone_within(double seconds) const {
    const double start = now_s();
    while (alive() > 0 && now_s() - start < seconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return alive() == 0;
  }

private:
  Descriptor space_ = make_namespace();
  std::size_t count_ = 0;
};

std::string own_devices() {
  std::ifstream file("/proc/thread-self/net/dev");
  std::string names;
  for (std::string line; std::getline(file, line);) names += line.substr(0, line.find(':')) + "\n";
  return names;
}

bool can_emulate() {
  const std::string missing = emulation_missing();
  if (missing.empty()) return true;
  WARN("skipped: " << missing);
  return false;
}

}  // namespace

TEST_CASE("a cluster becomes hosts, switches and cables") {
  ClusterParts slow = bare_nodes(2, 100);
  slow.slow_links = {{"node1.nic0.in", 0.5}};
  ClusterParts ring = bare_nodes(3, 0);
  ring.fabric.kind = Fabric::Kind::ring;
  ring.fabric.link_bandwidth = 100 * kMbit;
  ClusterParts inside = gpu_nodes(2, 2, 1);  // NVSwitch and PCIe too fast to be emulated
  inside.node.nic_bandwidth = 100 * kMbit;
  ClusterParts pcie = gpu_nodes(1, 2, 1);
  pcie.node.interconnect = Node::Interconnect::pcie;
  pcie.node.pcie_bandwidth = 400 * kMbit;
  ClusterParts server = bare_nodes(1, 100);
  server.server_nodes = 1;
  struct Case {
    const char* what;
    ClusterParts parts;
    std::vector<Endpoint> endpoints;
    std::vector<Conversation> conversations;
    std::string text;
  };
  const std::vector<Case> cases = {
      {"a star with a slow direction",
       slow,
       {0, 1},
       {},
       "host node0.gpu0\nhost node1.gpu0\nswitch switch0\n"
       "cable node0.nic0: node0.gpu0 to switch0, 100 Mbit/s forth, 100 Mbit/s back\n"
       "cable node1.nic0: switch0 to node1.gpu0, 50 Mbit/s forth, 100 Mbit/s back\n"
       "at node0.gpu0: 10.0.0.1 to 10.0.0.2 by node0.nic0\n"
       "at node1.gpu0: 10.0.0.2 to 10.0.0.1 by node1.nic0\n"
       "at switch0: 10.0.0.2 to 10.0.0.1 by node0.nic0\n"
       "at switch0: 10.0.0.1 to 10.0.0.2 by node1.nic0\n"},
      {"a ring of nodes: hosts forward; 0 and 2 are neighbours",
       ring,
       {0, 1, 2},
       {{0, 1}, {2, 0}},
       "host node0.gpu0\nhost node1.gpu0\nhost node2.gpu0\n"
       "cable node0-node1: node0.gpu0 to node1.gpu0, 100 Mbit/s forth, 100 Mbit/s back\n"
       "cable node0-node2: node0.gpu0 to node2.gpu0, 100 Mbit/s forth, 100 Mbit/s back\n"
       "at node0.gpu0: 10.0.0.1 to 10.0.0.2 by node0-node1\n"
       "at node0.gpu0: 10.0.0.1 to 10.0.0.3 by node0-node2\n"
       "at node1.gpu0: 10.0.0.2 to 10.0.0.1 by node0-node1\n"
       "at node2.gpu0: 10.0.0.3 to 10.0.0.1 by node0-node2\n"},
      {"devices behind one NIC share a host",
       inside,
       {0, 1, 2},
       {},
       "host node0.gpu0+node0.gpu1\nhost node1.gpu0\nswitch switch0\n"},
      {"devices with a link between them do not",
       pcie,
       {0, 1},
       {},
       "host node0.gpu0\nhost node0.gpu1\nswitch switch0\n"
       "cable node0.gpu0.pcie: node0.gpu0 to switch0, 400 Mbit/s forth, 400 Mbit/s back\n"
       "cable node0.gpu1.pcie: switch0 to node0.gpu1, 400 Mbit/s forth, 400 Mbit/s back\n"},
      {"no link joins a device and its own node's processor: one host; a server node has its own",
       server,
       {0, 1, 2},
       {},
       "host node0.gpu0+node0.cpu\nhost server0.cpu\nswitch switch0\n"},
      {"switches are named after their cables",
       bare_tree(2, 1, 100, 2),
       {0, 1},
       {{0, 1}},
       "host node0.gpu0\nhost node1.gpu0\nswitch leaf0\nswitch spine0\nswitch leaf1\n"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    const std::string found = describe(graph_of(c.parts, c.endpoints, c.conversations));
    CHECK(found.substr(0, c.text.size()) == c.text);
  }
  // The third graph leaves out NVLinks and PCIe.
  const EmulationGraph fast = graph_of(inside, {0, 1, 2});
  REQUIRE_FALSE(fast.left_out.empty());
  for (const auto& link : fast.left_out) CHECK(link.bandwidth > kMostEmulatedBandwidth);
  CHECK(fast.left_out_latency_s > 0);
  CHECK_THROWS_AS(graph_of(slow, {0, 7}), InputError);
  CHECK_THROWS_AS(graph_of(slow, {0}, {{0, 1}}), InputError);
}

TEST_CASE("every fabric's packets take the cluster's routes") {
  ClusterParts clos = bare_tree(8, 2, 100, 1);
  clos.fabric.spines = 2;
  clos.fabric.link_bandwidth = 100 * kMbit;
  ClusterParts hashed = clos;
  hashed.fabric.routing = Fabric::Routing::ecmp_hash;
  ClusterParts fat_tree = bare_nodes(16, 100);
  fat_tree.fabric.kind = Fabric::Kind::fat_tree;
  fat_tree.fabric.radix = 4;
  ClusterParts torus = bare_nodes(12, 100);
  torus.fabric.kind = Fabric::Kind::torus;
  torus.fabric.dims = {3, 4};
  ClusterParts dragonfly = bare_nodes(12, 100);
  dragonfly.fabric.kind = Fabric::Kind::dragonfly;
  dragonfly.fabric.routers_per_group = 2;
  dragonfly.fabric.nodes_per_router = 2;
  ClusterParts links = bare_nodes(4, 0);
  links.fabric.kind = Fabric::Kind::links;
  links.graph = {{"node0", "a", 100 * kMbit, 0, {}},
                 {"node1", "a", 100 * kMbit, 0, {}},
                 {"a", "node2", 50 * kMbit, 0, {}},
                 {"node2", "node3", 100 * kMbit, 0, {}}};
  ClusterParts rails = gpu_nodes(3, 4, 2);
  rails.node.device_bandwidth = 1000 * kMbit;
  rails.node.pcie_bandwidth = 800 * kMbit;
  rails.node.nic_bandwidth = 100 * kMbit;
  rails.server_nodes = 1;
  ClusterParts switches = rails;
  switches.node.interconnect = Node::Interconnect::pcie;
  switches.node.pcie_switches = {{2, 600 * kMbit}};
  struct Case {
    const char* what;
    ClusterParts parts;
    std::vector<int> rails;
  };
  for (const Case& c : std::vector<Case>{{"star", bare_nodes(5, 100), {-1}},
                                         {"two leaves", bare_tree(4, 2, 100, 4), {-1}},
                                         {"two spines", clos, {-1}},
                                         {"two spines, hashed", hashed, {-1}},
                                         {"fat tree", fat_tree, {-1}},
                                         {"torus", torus, {-1}},
                                         {"dragonfly", dragonfly, {-1}},
                                         {"links", links, {-1}},
                                         {"nodes of devices", rails, {-1, 0, 1}},
                                         {"PCIe switches", switches, {-1}}}) {
    CAPTURE(c.what);
    const auto cluster = make_cluster(c.parts);
    std::vector<Endpoint> endpoints = first_devices(cluster->devices());
    for (int i = 0; i < cluster->server_nodes(); ++i) endpoints.push_back(cluster->server_processor(i));
    std::vector<Conversation> all;
    for (const Endpoint a : endpoints)
      for (const Endpoint b : endpoints)
        for (const int rail : c.rails)
          if (a != b) all.push_back({a, b, rail});
    const EmulationGraph graph = emulation_graph(*cluster, endpoints, all, kMostEmulatedBandwidth);
    CHECK(graph.left_out.empty());
    std::map<std::string, double> bandwidths;
    for (LinkId l = 0; l < cluster->links(); ++l) bandwidths[cluster->link_name(l)] = cluster->bandwidth(l);
    // Follow each conversation from host to host and compare with the cluster's route.
    for (const auto& [from, to, rail] : all) {
      std::vector<std::string> names;
      int at = graph.vertex_of(from);
      const int end = graph.vertex_of(to);
      while (at != end && names.size() < 20) {
        const auto next = std::find_if(graph.forwards.begin(), graph.forwards.end(),
                                       [&, f = from, t = to, r = rail](const auto& x) {
                                         return x.vertex == at && x.source == graph.address(f, r) &&
                                                x.destination == graph.address(t, r);
                                       });
        REQUIRE(next != graph.forwards.end());
        const auto& cable = graph.cables[next->cable];
        const bool forth = cable.a == at;
        const auto& direction = forth ? cable.forth : cable.back;
        if (!direction.name.empty()) {
          names.push_back(direction.name);
          CHECK(direction.bandwidth == bandwidths.at(direction.name));
        }
        at = forth ? cable.b : cable.a;
      }
      CHECK(names == names_of(*cluster, route_of(*cluster, from, to, rail)));
    }
  }
}

TEST_CASE("constants of shaping keep their bounds") {
  for (const double mbit : {1., 10., 100., 200., 400., 1000., 10000., 20000.}) {
    CAPTURE(mbit);
    const double bandwidth = mbit * kMbit;
    // A queue holds the windows of hundreds of connections, a segment (what TCP sends at once) is at most a
    // third of a window, and a bucket holds a packet.
    CHECK(window_segments(bandwidth, 0) * kSegmentBytes * 8L <= kQueueBytes);
    CHECK(segment_bytes(bandwidth) * 2 <= window_segments(bandwidth, 0) * kSegmentBytes);
    CHECK(segment_bytes(bandwidth) <= 65536);
    CHECK(bucket_bytes(bandwidth, true) >= 1514);
    CHECK(bucket_bytes(bandwidth, true) <= bucket_bytes(bandwidth, false));
  }
  CHECK(window_segments(125e6, 10e-3) >= 125e6 * 10e-3 / kSegmentBytes);
}

TEST_CASE("an emulated star and tree have their rates, and nothing stays behind", "[alone][release]") {
  if (!can_emulate()) return;
  const std::string before = own_devices();
  constexpr double kPayload = 1448. / 1514;
  constexpr std::size_t kBytes = 1 << 18;
  // Slow links keep their rate on a busy machine: a link loses time only if the processor is late by more
  // than the time in which its token bucket of 2,000 bytes fills (0.8 ms at 20 Mbit/s).
  struct Case {
    const char* what;
    ClusterParts parts;
    std::vector<Flow> flows;
    double mbit;  // per flow, max-min fair
    std::size_t namespaces;
  };
  for (const Case& c : std::vector<Case>{
           {"one flow of a star", bare_nodes(3, 20), {{0, 1}}, 20, 4},
           {"two senders to one host", bare_nodes(3, 20), {{0, 1}, {2, 1}}, 10, 4},
           {"both ways at once", bare_nodes(3, 20), {{0, 1}, {1, 0}}, 20, 4},
           {"inside a leaf", bare_tree(4, 2, 20, 4), {{0, 1}, {2, 3}}, 20, 7},
           {"across a tree of 4:1", bare_tree(4, 2, 20, 4), {{0, 2}, {1, 3}}, 5, 7},
       }) {
    CAPTURE(c.what);
    auto network = std::make_unique<EmulatedNetwork>(graph_of(c.parts, first_devices(c.parts.nodes)));
    CHECK(network->left_out().empty());
    const Probes probes(getpid());
    CHECK(probes.count() == c.namespaces);
    const double ideal_s = kBytes / (c.mbit * kMbit * kPayload);
    // A busy machine causes delays, but a transfer is never faster than its links.
    double least = 1e9;
    for (int i = 0; i < 3 || (least >= 1.3 && i < 30); ++i) {
      const double ratio = transfer_s(*network, c.flows, kBytes) / ideal_s;
      CHECK(ratio > 0.93);
      least = std::min(least, ratio);
    }
    CHECK(least < 1.3);
    CHECK(own_devices() == before);
    network.reset();
    CHECK(probes.gone_within(60));
  }
}

TEST_CASE("bytes that no link carries any more do not keep a network namespace", "[alone]") {
  if (!can_emulate()) return;
  auto network = std::make_unique<EmulatedNetwork>(graph_of(bare_nodes(2, 100), {0, 1}));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(7200);
  inet_pton(AF_INET, network->address(1).c_str(), &at.sin_addr);
  const Pipe listening, connected, down;
  Child receiver([&] {
    network->enter(1);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(fd, 1) != 0) _exit(2);
    listening.put(true);
    accept(fd, nullptr, nullptr);
    connected.put(true);
    down.take<bool>();
  });
  listening.take<bool>();
  Child sender([&] {
    network->enter(0);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) _exit(3);
    down.take<bool>();
    const std::vector<char> bytes(1000);
    if (write(fd, bytes.data(), bytes.size()) != 1000) _exit(4);
  });
  connected.take<bool>();
  const Probes probes(getpid());
  network->set_link_down("node0.nic0");
  down.put(true);
  down.put(true);
  CHECK(sender.wait() == 0);
  CHECK(receiver.wait() == 0);
  network.reset();
  // With Linux's default of 8 retransmissions, the kernel keeps the socket, and with it the namespace, for
  // 100 s (tcp_orphan_retries in its Documentation/networking/ip-sysctl.rst).
  CHECK(probes.gone_within(30));
}

TEST_CASE("an emulated cluster goes with its owner, also by kill -9", "[alone][release]") {
  if (!can_emulate()) return;
  const Pipe made;
  Child owner(
      [&] {
        EmulatedNetwork network(graph_of(bare_tree(4, 2, 100, 2), first_devices(4)));
        std::vector<std::unique_ptr<Child>> ranks;
        for (int rank = 0; rank < 4; ++rank) {
          const Pipe entered;
          ranks.push_back(std::make_unique<Child>([&] {
            network.enter(rank);
            entered.put(true);
            pause();
          }));
          entered.take<bool>();
          made.put(ranks.back()->pid());
        }
        pause();
      },
      true);
  std::vector<pid_t> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(made.take<pid_t>());
  const Probes probes(owner.pid());
  CHECK(probes.count() == 7);  // 4 hosts, 2 leaves, the spine
  CHECK(probes.alive() == 7);
  owner.wait();  // kills the owner
  CHECK(probes.gone_within(60));
  for (const pid_t rank : ranks) {
    // Dead, or at most a zombie for which its adoptive parent has not waited yet.
    std::ifstream stat("/proc/" + std::to_string(rank) + "/stat");
    std::string line;
    std::getline(stat, line);
    CHECK((line.empty() || line.find(") Z ") != std::string::npos));
  }
}

TEST_CASE("a link goes down and comes back", "[alone]") {
  if (!can_emulate()) return;
  EmulatedNetwork network(graph_of(bare_nodes(2, 100), {0, 1}));
  // Nobody listens: the connection is refused if packets get there and back; otherwise it times out or there
  // is no route. After a link change the kernel can take seconds to query the neighbour again.
  const auto reaches_within = [&](double seconds) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(7100);
    inet_pton(AF_INET, network.address(1).c_str(), &at.sin_addr);
    Child child([&] {
      network.enter(0);
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
      do {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);  // poll() tells the result
        pollfd answer{fd, POLLOUT, 0};
        poll(&answer, 1, 200);
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == ECONNREFUSED) _exit(0);
        close(fd);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      } while (std::chrono::steady_clock::now() < until);
      _exit(1);
    });
    return child.wait() == 0;
  };
  CHECK(reaches_within(30));
  for (const std::string name : {"node0.nic0", "node1.nic0.in"}) {
    CAPTURE(name);
    network.set_link_down(name);
    CHECK_FALSE(reaches_within(0.5));
    network.set_link_up(name);
    CHECK(reaches_within(30));
  }
  CHECK_THROWS_AS(network.set_link_down("node7.nic0"), InputError);
}

TEST_CASE("without root an emulated cluster stands in a user namespace, or one line says what it needs",
          "[alone]") {
  if (!can_emulate() || geteuid() != 0) return;
  const Pipe said;
  Child child([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    char text[256] = {};
    try {
      EmulatedNetwork network(graph_of(bare_nodes(2, 100), {0, 1}));
      Child rank([&] { network.enter(0); });
      if (rank.wait() != 0) _exit(3);
    } catch (const RunError& error) {
      std::snprintf(text, sizeof text, "%s", error.what());
    }
    said.put(text);
  });
  struct Text {
    char text[256];
  };
  const Text text = said.take<Text>();
  CHECK(child.wait() == 0);
  const std::string line = text.text;
  CHECK((line.empty() ||
         (line.find("needs root") != std::string::npos && line.find('\n') == std::string::npos)));
}
