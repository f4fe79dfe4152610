// Tests ranks connected by TCP: messages arrive complete and in order, and errors are reported.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "backend/host/host_hardware.hpp"
#include "backend/host/launch.hpp"
#include "backend/runtime/combine_numbers.hpp"
#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;

namespace {

void require(bool condition, const std::string& what) {  // for ranks: the launch reports the failure
  if (!condition) throw RunError(what);
}

Parcel parcel(Parcel::Kind kind, int peer, int channel, std::vector<float>& data) {
  Parcel p;
  p.kind = kind;
  p.peer = peer;
  p.channel = channel;
  p.data = reinterpret_cast<std::byte*>(data.data());
  p.bytes = data.size() * sizeof(float);
  return p;
}

std::string failure_of(int ranks, const std::function<void(Transport&)>& body, double patience_s = 60) {
  LaunchOptions options;
  options.ranks = ranks;
  options.patience_s = patience_s;
  try {
    launch(options, body);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool told(const std::string& failure, const std::string& expected) {
  UNSCOPED_INFO(failure);
  return failure.find(expected) != std::string::npos;
}

// Opens a channel for each connection of the table, whose members are the ranks.
void open_for(Transport& transport, const MessageTable& table) {
  std::vector<Channel> channels;
  for (std::size_t c = 0; c < table.connections.size(); ++c)
    if (const Connection& ends = table.connections[c];
        ends.from == transport.rank() || ends.to == transport.rank())
      channels.push_back({ends.from, ends.to, static_cast<int>(c)});
  transport.open(channels);
}

Payload payload_of(std::vector<float>& buffer) {
  return {reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof buffer.front()};
}

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

}  // namespace

TEST_CASE("Messages of all sizes arrive in their order") {
  // From a single number to more than socket buffers and single reads hold.
  const std::vector<std::size_t> sizes = {1, 3, 1000, 65535, 65537, 3'000'001};
  const std::string failure = failure_of(3, [&](Transport& transport) {
    const int next = (transport.rank() + 1) % 3, before = (transport.rank() + 2) % 3;
    transport.open({{transport.rank(), next, 7}, {before, transport.rank(), 7}});
    std::vector<std::vector<float>> sent, received;
    std::vector<Parcel> parcels;
    for (const std::size_t size : sizes) {
      sent.push_back(numbers(size, static_cast<float>(transport.rank())));
      received.emplace_back(size, 0.0f);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      parcels.push_back(parcel(Parcel::Kind::send, next, 7, sent[i]));
      parcels.push_back(parcel(Parcel::Kind::receive, before, 7, received[i]));
    }
    std::vector<Parcel*> pointers;
    for (Parcel& p : parcels) pointers.push_back(&p);
    carry(transport, pointers);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      require(received[i] == numbers(sizes[i], static_cast<float>(before)), "something else arrived");
  });
  CHECK(failure.empty());
  CAPTURE(failure);
}

// A sender waits until its message has arrived, which the kernel may acknowledge late. Both ranks send each
// other messages, as in a ring of two, and do something else in between.
TEST_CASE("Senders do not wait for delayed acknowledgements", "[alone]") {
  const std::string failure = failure_of(2, [](Transport& transport) {
    const int other = 1 - transport.rank();
    transport.open({{0, 1, 0}, {1, 0, 1}});
    std::vector<double> seconds;
    for (int i = 0; i < 40; ++i) {
      std::vector<float> out = numbers(1000, 1), in(1000);
      Parcel send = parcel(Parcel::Kind::send, other, transport.rank(), out),
             receive = parcel(Parcel::Kind::receive, other, other, in);
      send.rendezvous = receive.rendezvous = true;
      const auto begin = std::chrono::steady_clock::now();
      carry(transport, {&send, &receive});
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
    std::sort(seconds.begin(), seconds.end());
    const double most = seconds[seconds.size() * 3 / 4];
    require(most < 5e-3, "a quarter of the messages took " + std::to_string(most) + " s");
  });
  CAPTURE(failure);
  CHECK(failure.empty());
}

TEST_CASE("Received numbers are combined with those that are there") {
  const std::size_t count = 1'000'003;
  using Reduction = Collective::Reduction;
  const Reduction reduction = GENERATE(Reduction::sum, Reduction::maximum);
  CHECK(failure_of(2, [&](Transport& transport) {
          transport.open({{0, 1, 0}});
          std::vector<float> own = numbers(count, transport.rank() == 0 ? 1 : 10);
          Parcel p = parcel(transport.rank() == 0 ? Parcel::Kind::send : Parcel::Kind::receive_combine,
                            1 - transport.rank(), 0, own);
          p.reduction = reduction;
          carry(transport, {&p});
          if (transport.rank() == 0) return;
          for (std::size_t i = 0; i < count; ++i) {
            const auto came = static_cast<float>(1 + i), was = static_cast<float>(10 + i);
            require(own[i] == (reduction == Reduction::sum ? came + was : was), "a wrong result");
          }
        }).empty());
}

TEST_CASE("Pairs of halves that are received are added as halves") {
  const std::size_t count = 300'002;  // more than is moved at once
  const auto of = [](std::size_t i, float first) { return first + static_cast<float>(i % 1000) / 8; };
  CHECK(failure_of(2, [&](Transport& transport) {
          transport.open({{0, 1, 0}});
          std::vector<std::uint16_t> own(count);
          for (std::size_t i = 0; i < count; ++i)
            own[i] = half_from_float(of(i, transport.rank() == 0 ? 1 : 10));
          Parcel p;
          p.kind = transport.rank() == 0 ? Parcel::Kind::send : Parcel::Kind::receive_combine;
          p.peer = 1 - transport.rank();
          p.data = reinterpret_cast<std::byte*>(own.data());
          p.bytes = count * sizeof own[0];
          p.type = Precision::fp16;
          carry(transport, {&p});
          if (transport.rank() == 0) return;
          for (std::size_t i = 0; i < count; ++i)
            require(float_from_half(own[i]) == of(i, 1) + of(i, 10), "a wrong sum");
        }).empty());
}

TEST_CASE("A message of no bytes says that no more will come, and who comes first is taken") {
  CHECK(failure_of(3, [](Transport& transport) {
          transport.open(transport.rank() == 0
                             ? std::vector<Channel>{{1, 0, 1}, {2, 0, 2}}
                             : std::vector<Channel>{{transport.rank(), 0, transport.rank()}});
          std::vector<float> data(5, static_cast<float>(transport.rank())), nothing;
          if (transport.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            Parcel p = parcel(Parcel::Kind::send, 0, 1, data);
            carry(transport, {&p});
          } else if (transport.rank() == 2) {
            Parcel p = parcel(Parcel::Kind::send, 0, 2, nothing);
            carry(transport, {&p});
          } else {
            Parcel one = parcel(Parcel::Kind::receive, 1, 1, data);
            std::vector<float> other(5);
            Parcel two = parcel(Parcel::Kind::receive, 2, 2, other);
            require(transport.wait_any({&one, &two}) == 1, "rank 2 came first");
            carry(transport, {&two});
            require(two.over, "rank 2 sent something");
            carry(transport, {&one});
            require(!one.over && data[4] == 1, "rank 1 sent five numbers");
          }
        }).empty());
}

TEST_CASE("What goes wrong between ranks is told") {
  const auto receive = [](Transport& transport, int from) {
    std::vector<float> data(100);
    Parcel p = parcel(Parcel::Kind::receive, from, 0, data);
    carry(transport, {&p});
  };
  const auto open = [](Transport& transport) { transport.open({{1, 0, 0}}); };
  CHECK(told(failure_of(2,
                        [&](Transport& t) {
                          open(t);
                          if (t.rank() == 0) receive(t, 1);
                          if (t.rank() == 1) throw RunError("the dog ate it");
                        }),
             "rank 1: the dog ate it"));
  CHECK(told(failure_of(
                 2,
                 [&](Transport& t) {
                   open(t);
                   if (t.rank() == 0) receive(t, 1);
                   if (t.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
                 },
                 1),
             "no progress for 1 s; waiting for rank 1"));
  CHECK(told(failure_of(2,
                        [&](Transport& t) {
                          open(t);
                          if (t.rank() == 0) receive(t, 1);
                          if (t.rank() == 1) std::raise(SIGKILL);
                        }),
             "rank 1 was ended by signal 9"));
  CHECK(told(failure_of(2,
                        [&](Transport& t) {
                          open(t);
                          std::vector<float> data(t.rank() == 0 ? 100 : 99);
                          Parcel p = parcel(t.rank() == 0 ? Parcel::Kind::receive : Parcel::Kind::send,
                                            1 - t.rank(), 0, data);
                          carry(t, {&p});
                        }),
             "sent 396 bytes where 400 were expected"));
}

TEST_CASE("Ranks gather, broadcast and read one clock") {
  CHECK(failure_of(4, [](Transport& transport) {
          const std::string own = std::string(static_cast<std::size_t>(transport.rank()) * 100'000, 'x');
          const std::vector<std::string> all = gather(transport, own);
          for (std::size_t r = 0; r < all.size(); ++r)
            require(all[r].size() == r * 100'000, "gathered something else");
          require(broadcast(transport, transport.rank() == 0 ? "word" : "") == "word",
                  "broadcast something else");
          const ClockReading clock = read_clock(transport);
          require(clock.offset_s == 0 && clock.error_s == 0, "one machine has one clock");
          barrier(transport);
        }).empty());
}

// Checks each kind of collective other than all-reduce by its definition.
TEST_CASE("Collectives of all kinds move the right numbers") {
  using enum CollectiveKind;
  const CollectiveKind kind = GENERATE(reduce_scatter, all_gather, broadcast, reduce, all_to_all);
  const int n = GENERATE(2, 3, 5);
  const std::int64_t elements = GENERATE(1, 7, 1000);
  const bool two_rings = GENERATE(false, true);  // the second one rotated and reversed
  CAPTURE(static_cast<int>(kind), n, elements, two_rings);
  CollectivePlan plan;
  plan.members = n;
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  plan.lanes.push_back({two_rings ? 0.5 : 1, {{Stage::Kind::all_reduce, {order}}}});
  std::rotate(order.rbegin(), order.rbegin() + 1, order.rend());
  std::reverse(order.begin(), order.end());
  if (two_rings) plan.lanes.push_back({0.5, {{Stage::Kind::all_reduce, {order}}}});
  CollectiveWiring wiring;
  for (int r = 0; r < n; ++r) wiring.ranks.push_back(r);
  wiring.table = message_table(kind, plan, elements, {100, 64});
  const std::string failure = failure_of(n, [&](Transport& transport) {
    const int self = transport.rank();
    open_for(transport, wiring.table);
    // Element e of member m is 1000 m + e % 1000.
    std::vector<float> buffer(static_cast<std::size_t>(wiring.table.elements));
    for (std::size_t e = 0; e < buffer.size(); ++e)
      buffer[e] = static_cast<float>(1000 * self + static_cast<int>(e % 1000));
    const std::vector<float> before = buffer;
    run_table(transport, wiring, self, payload_of(buffer));
    const auto value = [](int member, std::size_t e) {
      return static_cast<float>(1000 * member + static_cast<int>(e % 1000));
    };
    const auto sum = [&](std::size_t e) {
      float all = 0;
      for (int m = 0; m < n; ++m) all += value(m, e);
      return all;
    };
    for (std::size_t e = 0; e < buffer.size(); ++e) {
      // Find the member whose part of the buffer contains the element.
      int part = 0;
      while (static_cast<std::int64_t>(e) >= elements * (part + 1) / n) ++part;
      if (kind == reduce_scatter && part == self) require(buffer[e] == sum(e), "reduce-scatter");
      if (kind == all_gather) require(buffer[e] == value(part, e), "all-gather");
      if (kind == broadcast) require(buffer[e] == value(0, e), "broadcast");
      if (kind == reduce && self == 0) require(buffer[e] == sum(e), "reduce");
      if (kind != all_to_all) continue;
      const auto from = static_cast<int>(static_cast<std::int64_t>(e) / elements / n);
      const auto to = static_cast<int>(static_cast<std::int64_t>(e) / elements % n);
      require(buffer[e] == (to == self && from != self ? value(from, e) : before[e]), "all-to-all");
    }
  });
  CHECK(failure.empty());
  CAPTURE(failure);
}

TEST_CASE("What is no rank is dropped from the port of rank 0") {
  const Listener listener = listen_anywhere();
  std::vector<int> strangers;
  const auto call_with = [&](const std::string& says) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(listener.port));
    REQUIRE(connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    if (!says.empty()) CHECK(send(socket, says.data(), says.size(), MSG_NOSIGNAL) > 0);
    strangers.push_back(socket);
  };
  call_with("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  call_with("");  // says nothing
  call_with("rehear");
  call_with(std::string(100'000, '\0'));
  call_with("");
  close(strangers.back());
  strangers.pop_back();
  std::string failures;
  std::mutex mutex;
  const auto join = [&](int rank) {
    try {
      TcpOptions options;
      options.rank = rank;
      options.ranks = 3;
      options.first_port = listener.port;
      options.first_listener = rank == 0 ? listener.socket : -1;
      options.patience_s = 20;
      const std::unique_ptr<Transport> transport = join_tcp(options);
      const std::vector<std::string> all = gather(*transport, std::to_string(rank));
      if (rank == 0) require(all == std::vector<std::string>{"0", "1", "2"}, "other ranks");
      barrier(*transport);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      failures += error.what();
    }
  };
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1, 2}) ranks.emplace_back(join, rank);
  for (std::thread& rank : ranks) rank.join();
  CHECK(failures.empty());
  CAPTURE(failures);
  for (const int socket : strangers) close(socket);
}

// 1 + 1 + 2^24 is 2^24 + 2 in this order and 2^24 if the large number comes second.
TEST_CASE("The members of a tree add in the same order whoever comes first") {
  CollectivePlan plan;
  plan.algorithm = Algorithm::tree;
  plan.members = 3;
  Stage stage;
  stage.kind = Stage::Kind::trees;
  stage.parents = {{-1, 0, 0}};
  plan.lanes = {{1, {stage}}};
  CollectiveWiring wiring;
  wiring.ranks = {0, 1, 2};
  wiring.table = message_table(CollectiveKind::all_reduce, plan, 1000, {0, 100});
  const auto with_late = [&](int late) {
    const test::Scratch scratch;
    const std::string failure = failure_of(3, [&](Transport& transport) {
      const int self = transport.rank();
      open_for(transport, wiring.table);
      barrier(transport);
      if (self == late) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::vector<float> buffer(1000, self == 2 ? 16777216.0F : 1.0F);
      run_table(transport, wiring, self, payload_of(buffer));
      require(buffer == std::vector<float>(1000, buffer.front()), "numbers differ");
      if (self == 0) (void)scratch.write("sum", std::to_string(buffer.front()));
    });
    CHECK(failure.empty());
    return test::read_file(scratch.path("sum"));
  };
  const std::string sum = with_late(2);
  CHECK(sum == with_late(1));
}

// Completes all receives at once but each send one call later, to show which transfers are in progress
// together.
class SlowSends : public Transport {
public:
  int rank() const override { return 0; }
  int ranks() const override { return 4; }
  std::string kind() const override { return "none"; }
  void open(const std::vector<Channel>&) override {}
  void progress(const std::vector<Parcel*>& parcels) override {
    std::vector<int> sending;
    for (Parcel* p : parcels) {
      if (p->kind == Parcel::Kind::send) sending.push_back(p->peer);
      if (p->kind == Parcel::Kind::send && !p->until_arrived) at_once = true;
    }
    most_sends = std::max(most_sends, sending.size());
    peers.insert(peers.end(), sending.begin(), sending.end());
    const bool receives = sending.size() < parcels.size();
    for (Parcel* p : parcels)
      if (!receives || p->kind != Parcel::Kind::send) p->done = true;
  }
  std::size_t wait_any(const std::vector<Parcel*>&) override { return 0; }
  void abort() override {}

  std::size_t most_sends = 0;
  bool at_once = false;
  std::vector<int> peers;  // of all sends seen in progress
};

TEST_CASE("What a member sends in the stages of a plan follows one another") {
  using Kind = Stage::Kind;
  const std::vector<std::vector<int>> near = {{0, 1}, {2, 3}}, far = {{0, 2}, {1, 3}};
  CollectivePlan plan;
  plan.algorithm = Algorithm::halving_doubling;
  plan.members = 4;
  plan.lanes = {{1,
                 {{Kind::reduce_scatter, near},
                  {Kind::reduce_scatter, far},
                  {Kind::all_gather, far},
                  {Kind::all_gather, near}}}};
  CollectiveWiring wiring;
  wiring.ranks = {0, 1, 2, 3};
  wiring.table = message_table(CollectiveKind::all_reduce, plan, 64, {});
  std::vector<float> buffer(64);
  SlowSends transport;
  run_table(transport, wiring, 0, payload_of(buffer));
  CHECK(transport.most_sends == 1);
  CHECK_FALSE(transport.at_once);
  transport.peers.erase(std::unique(transport.peers.begin(), transport.peers.end()), transport.peers.end());
  CHECK(transport.peers == std::vector<int>{1, 2, 1});
}

// Numbers of the other members that arrive at once; sends read their data as late as they may.
class LateSends : public Transport {
public:
  int rank() const override { return 0; }
  int ranks() const override { return 4; }
  std::string kind() const override { return "none"; }
  void open(const std::vector<Channel>&) override {}
  void progress(const std::vector<Parcel*>& parcels) override {
    const bool receives = std::any_of(parcels.begin(), parcels.end(),
                                      [](const Parcel* p) { return p->kind != Parcel::Kind::send; });
    for (Parcel* p : parcels) {
      auto* numbers = reinterpret_cast<float*>(p->data);
      const std::size_t count = p->bytes / sizeof(float);
      if (p->kind == Parcel::Kind::send) {
        if (receives) continue;
        require(std::equal(numbers + 1, numbers + count, numbers), "numbers that were not added alike");
        sent.push_back(*numbers);
      } else {
        for (std::size_t i = 0; i < count; ++i)
          numbers[i] = p->kind == Parcel::Kind::receive ? 10 : numbers[i] + 10;
      }
      p->done = true;
    }
  }
  std::size_t wait_any(const std::vector<Parcel*>&) override { return 0; }
  void abort() override {}

  std::vector<float> sent;  // by message
};

TEST_CASE("Members that swap send what they had before they add what came") {
  CollectivePlan plan;
  plan.algorithm = Algorithm::recursive_doubling;
  plan.members = 4;
  plan.lanes = {{1, {{Stage::Kind::swap, {{0, 1}, {2, 3}}}, {Stage::Kind::swap, {{0, 2}, {1, 3}}}}}};
  CollectiveWiring wiring;
  wiring.ranks = {0, 1, 2, 3};
  for (const std::int64_t most : {0, 16}) {
    wiring.table = message_table(CollectiveKind::all_reduce, plan, 64, {most, 0});
    std::vector<float> buffer(64, 1);
    LateSends transport;
    run_table(transport, wiring, 0, payload_of(buffer));
    const std::size_t pieces = most > 0 ? 4 : 1;
    std::vector<float> expected(pieces, 1);
    expected.insert(expected.end(), pieces, 11);
    CHECK(transport.sent == expected);
    CHECK(buffer == std::vector<float>(64, 21));
  }
}

TEST_CASE("Members that swap more than sockets hold get the same sums to the last bit") {
  const int n = GENERATE(2, 3, 8);
  const std::int64_t most = GENERATE(0, 100'000);
  CAPTURE(n, most);
  const std::shared_ptr<const Cluster> cluster = make_cluster(testing::star_of(n));
  const CollectivePlan plan =
      collective_plan(Algorithm::recursive_doubling, *cluster, testing::all_devices(*cluster), 0);
  CollectiveWiring wiring;
  for (int r = 0; r < n; ++r) wiring.ranks.push_back(r);
  wiring.table = message_table(CollectiveKind::all_reduce, plan, 1'000'003, {most, 0});
  const std::string failure = failure_of(n, [&](Transport& transport) {
    const int self = transport.rank();
    open_for(transport, wiring.table);
    std::vector<float> buffer(1'000'003);
    for (std::size_t e = 0; e < buffer.size(); ++e)
      buffer[e] = 1 / static_cast<float>(static_cast<std::size_t>(self) + e % 1000 + 1);
    run_table(transport, wiring, self, payload_of(buffer));
    for (std::size_t e = 0; e < buffer.size(); ++e) {
      double sum = 0;
      for (int m = 0; m < n; ++m) sum += 1 / static_cast<double>(static_cast<std::size_t>(m) + e % 1000 + 1);
      require(std::abs(buffer[e] - sum) < 1e-6 * sum, "another sum");
    }
    const std::string bytes(reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(float));
    const std::vector<std::string> all = gather(transport, std::to_string(std::hash<std::string>{}(bytes)));
    if (self == 0)
      require(std::all_of(all.begin(), all.end(), [&](const std::string& own) { return own == all[0]; }),
              "members differ");
  });
  CAPTURE(failure);
  CHECK(failure.empty());
}
