#include "backend/host/tcp_transport.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "backend/host/callers.hpp"
#include "backend/runtime/combine_numbers.hpp"
#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
constexpr std::size_t kPieceBytes = 256 * 1024;  // moved at once before other parcels are served
// How many seconds of silence on a connection in use mean that the peer's kernel does not answer.
constexpr int kSilence_s = 6;

// A socket that its owner closes.
class Socket {
public:
  explicit Socket(int file = -1) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket() {
    if (file_ >= 0) close(file_);
  }
  int file() const { return file_; }
  int release() { return std::exchange(file_, -1); }

private:
  int file_;
};

[[noreturn]] void fail(const std::string& what) {
  throw RunError(fmt::format("{}: {}", what, std::strerror(errno)));
}

void set(int socket, int level, int option, int value) {
  // Errors are ignored: not all systems support all options.
  setsockopt(socket, level, option, &value, sizeof value);
}

// The first message on a connection.
struct Greeting {
  char magic[8] = {'r', 'e', 'h', 'e', 'a', 'r', 's', 'e'};
  std::int32_t from = 0, to = 0, channel = 0;
};

// These calls block. They are used before the run, when sockets have a timeout.
void write_all(int socket, const void* data, std::size_t bytes, const std::string& to) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (n <= 0) fail("no connection to " + to);
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void read_all(int socket, void* data, std::size_t bytes, const std::string& from) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, at, bytes, 0);
    if (n == 0) throw RunError(from + " closed the connection before the run began");
    if (n < 0) fail("no data from " + from);
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void set_timeout(int socket, double seconds) {
  timeval time{static_cast<time_t>(seconds),
               static_cast<suseconds_t>((seconds - static_cast<long>(seconds)) * 1e6)};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

constexpr std::uint32_t kWhereFirstIs = 0xffffffff;  // in place of an address: rank 0's machine

struct Address {
  std::uint32_t ip = 0;  // network order
  std::uint16_t port = 0;
};

std::string text(const Address& address) {
  char buffer[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.ip, buffer, sizeof buffer);
  return fmt::format("{}:{}", buffer, ntohs(address.port));
}

Address look_up(const std::string& name, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0)
    throw RunError(
        fmt::format("the address of rank 0, \"{}\", cannot be found: {}", name, gai_strerror(error)));
  Address address;
  address.ip = reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr.s_addr;
  address.port = htons(static_cast<std::uint16_t>(port));
  freeaddrinfo(found);
  return address;
}

class TcpTransport : public Transport {
public:
  explicit TcpTransport(const TcpOptions& options) : options_(options) {
    if (options.ranks > 1) meet();
  }

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }
  std::string kind() const override { return "TCP"; }

  void open(const std::vector<Channel>& channels) override {
    std::size_t expected = 0;
    for (const Channel& channel : channels) {
      if (channel.to == options_.rank) ++expected;
      if (channel.from != options_.rank) continue;
      Socket socket = connect_to(addresses_[channel.to], peer_name(channel.to));
      Greeting greeting;
      greeting.from = channel.from;
      greeting.to = channel.to;
      greeting.channel = channel.number;
      write_all(socket.file(), &greeting, sizeof greeting, peer_name(channel.to));
      keep(outgoing_, {channel.to, channel.number}, std::move(socket));
    }
    Callers callers(listener_.file(), magic(), sizeof(Greeting));
    while (expected > 0) {
      const auto [file, said] = callers.next(options_.patience_s, "a connection of the run");
      Socket socket = accepted(file);
      Greeting greeting;
      std::memcpy(&greeting, said.data(), sizeof greeting);
      if (greeting.to != options_.rank) continue;  // a rank of another run, which looked for that port
      keep(incoming_, {greeting.from, greeting.channel}, std::move(socket));
      --expected;
    }
  }

  void progress(const std::vector<Parcel*>& parcels) override {
    std::vector<pollfd> waits;
    double last_s = monotonic_s();
    for (;;) {
      if (aborted_) throw RunError("stopped because another part of the run failed");
      bool ended = false, moved = false, waiting = false, drains = false;
      waits.clear();
      for (std::size_t i = 0; i < parcels.size(); ++i) {
        Parcel& p = *parcels[i];
        if (p.done || behind_another(parcels, i)) continue;
        waiting = true;
        const int socket = socket_of(p);
        const bool some = p.kind == Parcel::Kind::send ? push(socket, p) : pull(socket, p);
        moved = moved || some;
        ended = ended || p.done;
        if (!some) waits.push_back({socket, awaited(p), 0});
        drains = drains || draining(p);
      }
      if (ended || !waiting) return;
      if (moved) {
        last_s = monotonic_s();
        continue;
      }
      wait(waits, last_s, parcels, drains);
    }
  }

  std::size_t wait_any(const std::vector<Parcel*>& receives) override {
    std::vector<pollfd> waits;
    const double begin_s = monotonic_s();
    for (;;) {
      waits.clear();
      for (const Parcel* p : receives) waits.push_back({socket_of(*p), POLLIN, 0});
      wait(waits, begin_s, receives, false);
      for (std::size_t i = 0; i < waits.size(); ++i)
        if (waits[i].revents != 0) return i;
    }
  }

  void abort() override {
    aborted_ = true;
    for (const auto* sockets : {&outgoing_, &incoming_})
      for (const auto& [key, socket] : *sockets) shutdown(socket, SHUT_RDWR);
  }

private:
  using Key = std::pair<int, int>;  // peer, channel

  std::string peer_name(int rank) const {
    const bool known = rank < static_cast<int>(addresses_.size()) && addresses_[rank].ip != 0;
    return fmt::format("rank {}{}", rank, known ? fmt::format(" ({})", text(addresses_[rank])) : "");
  }

  // ----- connecting the ranks

  void meet() {
    const Address first = look_up(options_.first_address, options_.first_port);
    if (options_.rank == 0) {
      if (options_.first_listener >= 0) {
        listener_ = Socket(options_.first_listener);
      } else {
        listener_ = Socket(listen_anywhere(options_.first_port).socket);
      }
      addresses_.assign(static_cast<std::size_t>(options_.ranks), Address{});
      addresses_[0] = first;
      std::map<int, Socket> others;
      Callers callers(listener_.file(), magic(), sizeof(Greeting) + sizeof(Address));
      while (others.size() + 1 < static_cast<std::size_t>(options_.ranks)) {
        const auto [file, said] = callers.next(options_.patience_s, missing_ranks());
        Socket socket = accepted(file);
        Greeting greeting;
        std::memcpy(&greeting, said.data(), sizeof greeting);
        const int who = greeting.from;
        if (who < 1 || who >= options_.ranks || addresses_[who].ip != 0)
          throw RunError(fmt::format("rank {} connected to rank 0; expected: each of 1 to {} once", who,
                                     options_.ranks - 1));
        Address address;
        std::memcpy(&address, said.data() + sizeof greeting, sizeof address);
        sockaddr_in there{};
        socklen_t size = sizeof there;
        getpeername(socket.file(), reinterpret_cast<sockaddr*>(&there), &size);
        // A rank that connects over the loopback is on rank 0's machine, for which the other ranks use
        // another address.
        const bool here = (ntohl(there.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
        address.ip = here ? kWhereFirstIs : there.sin_addr.s_addr;
        addresses_[who] = address;
        others.emplace(who, std::move(socket));
      }
      for (auto& [who, socket] : others) {
        write_all(socket.file(), addresses_.data(), addresses_.size() * sizeof(Address), peer_name(who));
        keep_both(who, std::move(socket));
      }
      resolve(first);
    } else {
      const Listener own = listen_anywhere();
      listener_ = Socket(own.socket);
      Socket socket = connect_to(first, fmt::format("rank 0 ({})", text(first)));
      Greeting greeting;
      greeting.from = options_.rank;
      write_all(socket.file(), &greeting, sizeof greeting, "rank 0");
      Address address;
      address.port = htons(static_cast<std::uint16_t>(own.port));
      write_all(socket.file(), &address, sizeof address, "rank 0");
      addresses_.resize(static_cast<std::size_t>(options_.ranks));
      read_all(socket.file(), addresses_.data(), addresses_.size() * sizeof(Address), "rank 0");
      addresses_[0] = first;
      resolve(first);
      keep_both(0, std::move(socket));
    }
  }

  // Uses the address by which this rank knows rank 0, which can differ between ranks.
  void resolve(const Address& first) {
    for (Address& address : addresses_)
      if (address.ip == kWhereFirstIs) address.ip = first.ip;
  }

  // Returns the names of the ranks that have not connected to rank 0 yet.
  std::string missing_ranks() const {
    std::string names;
    int count = 0;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (addresses_[rank].ip != 0) continue;
      if (++count <= 8) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    }
    return fmt::format("rank{} {}{} of {} to come", count > 1 ? "s" : "", names,
                       count > 8 ? fmt::format(" and {} more", count - 8) : "", options_.ranks);
  }

  void keep_both(int peer, Socket socket) {
    incoming_[{peer, kControlChannel}] = socket.file();
    keep(outgoing_, {peer, kControlChannel}, std::move(socket));
  }

  void keep(std::map<Key, int>& sockets, Key key, Socket socket) {
    set_timeout(socket.file(), 0);
    fcntl(socket.file(), F_SETFL, fcntl(socket.file(), F_GETFL) | O_NONBLOCK);
    sockets[key] = socket.file();
    owned_.push_back(std::move(socket));
  }

  // Must be called before the connection is made, because its window depends on the buffers.
  void tune(int socket) const {
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilence_s * 1000);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, kSilence_s - 2);
    if (options_.buffer_bytes > 0) {
      set(socket, SOL_SOCKET, SO_SNDBUF, options_.buffer_bytes);
      set(socket, SOL_SOCKET, SO_RCVBUF, options_.buffer_bytes);
    }
    if (!options_.congestion.empty() &&
        setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, options_.congestion.data(),
                   static_cast<socklen_t>(options_.congestion.size())) != 0)
      fail(fmt::format("TCP's congestion control \"{}\" is not available", options_.congestion));
  }

  Socket connect_to(const Address& address, const std::string& name) const {
    const double begin_s = monotonic_s();
    for (;;) {
      Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket.file() < 0) fail("no socket");
      tune(socket.file());
      set_timeout(socket.file(), options_.patience_s);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = address.ip;
      to.sin_port = address.port;
      if (::connect(socket.file(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return socket;
      if (monotonic_s() - begin_s > options_.patience_s) fail("no connection to " + name);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the peer may not listen yet
    }
  }

  static std::string magic() { return {Greeting().magic, sizeof Greeting().magic}; }

  Socket accepted(int file) const {
    Socket socket(file);
    tune(file);
    set_timeout(file, options_.patience_s);
    return socket;
  }

  // ----- moving bytes

  int socket_of(const Parcel& p) const {
    const std::map<Key, int>& sockets = p.kind == Parcel::Kind::send ? outgoing_ : incoming_;
    const auto found = sockets.find({p.peer, p.channel});
    if (found == sockets.end())
      throw RunError(fmt::format("no channel {} between ranks {} and {}", p.channel, options_.rank, p.peer));
    return found->second;
  }

  [[noreturn]] void lost(const Parcel& p, const std::string& why) const {
    throw RunError(fmt::format("{} is gone: {}", peer_name(p.peer), why));
  }

  // Returns true if something moved.
  bool moved_or_fail(ssize_t n, const Parcel& p) const {
    if (n > 0) return true;
    if (n == 0) lost(p, "it closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    lost(p, errno == ETIMEDOUT ? fmt::format("no answer for {} s", kSilence_s) : std::strerror(errno));
  }

  static bool until_arrived(const Parcel& p) { return p.rendezvous || p.until_arrived; }

  // Returns whether all is written but not yet acknowledged, which the kernel does not signal.
  static bool draining(const Parcel& p) {
    return p.kind == Parcel::Kind::send && until_arrived(p) && !p.done && p.moved == kHeaderBytes + p.bytes;
  }

  // Returns whether the header is sent but the receiver has not announced yet that it waits.
  static bool uncleared(const Parcel& p) { return p.rendezvous && !p.cleared && p.moved == kHeaderBytes; }

  static short awaited(const Parcel& p) {
    if (draining(p)) return 0;
    return p.kind == Parcel::Kind::send && !uncleared(p) ? POLLOUT : POLLIN;
  }

  bool push(int socket, Parcel& p) const {
    if (draining(p)) {
      int left = 0;
      p.done = ioctl(socket, SIOCOUTQ, &left) != 0 || left == 0;
      return p.done;
    }
    if (uncleared(p)) {
      char word = 0;
      if (!moved_or_fail(recv(socket, &word, 1, MSG_DONTWAIT), p)) return false;
      p.cleared = true;
    }
    p.header = p.bytes;
    iovec parts[2];
    msghdr message{};
    message.msg_iov = parts;
    if (p.moved < kHeaderBytes)
      parts[message.msg_iovlen++] = {reinterpret_cast<char*>(&p.header) + p.moved, kHeaderBytes - p.moved};
    const std::size_t sent = p.moved < kHeaderBytes ? 0 : p.moved - kHeaderBytes;
    if (p.bytes > sent && (!p.rendezvous || p.cleared))
      parts[message.msg_iovlen++] = {p.data + sent, std::min(kPieceBytes, p.bytes - sent)};
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == 0 || !moved_or_fail(n, p)) return false;
    p.moved += static_cast<std::size_t>(n);
    p.done = p.moved == kHeaderBytes + p.bytes && (!until_arrived(p) || p.bytes == 0);
    return true;
  }

  bool pull(int socket, Parcel& p) const {
    bool some = false;
    if (p.rendezvous && !p.cleared) {
      const char word = 1;
      if (!moved_or_fail(::send(socket, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT), p)) return false;
      p.cleared = true;
    }
    if (p.moved < kHeaderBytes) {
      const ssize_t n =
          recv(socket, reinterpret_cast<char*>(&p.header) + p.moved, kHeaderBytes - p.moved, MSG_DONTWAIT);
      if (!moved_or_fail(n, p)) return false;
      some = true;
      p.moved += static_cast<std::size_t>(n);
      if (p.moved < kHeaderBytes) return true;
      p.over = p.header == 0;
      p.done = p.over || p.bytes == 0;
      if (!p.over && p.header != p.bytes)
        throw RunError(
            fmt::format("{} sent {} bytes where {} were expected", peer_name(p.peer), p.header, p.bytes));
      if (p.done) return true;
    }
    const std::size_t got = p.moved - kHeaderBytes;
    const ssize_t n = p.kind == Parcel::Kind::receive
                          ? recv(socket, p.data + got, std::min(kPieceBytes, p.bytes - got), MSG_DONTWAIT)
                          : pull_and_add(socket, p, got);
    if (!moved_or_fail(n, p)) return some;
    p.moved += static_cast<std::size_t>(n);
    p.done = p.moved == kHeaderBytes + p.bytes;
    // Acknowledges at once: the sender may be waiting for the last segment's acknowledgement, which would
    // otherwise come 40 ms late.
    if (p.done) set(socket, IPPROTO_TCP, TCP_QUICKACK, 1);
    return true;
  }

  // Stores the received part of an incomplete number in the parcel until the rest arrives.
  static ssize_t pull_and_add(int socket, Parcel& p, std::size_t got) {
    alignas(64) static thread_local std::byte came[kPieceBytes + sizeof p.rest];
    std::memcpy(came, p.rest, p.taken);
    const ssize_t n = recv(socket, came + p.taken, std::min(kPieceBytes, p.bytes - got), MSG_DONTWAIT);
    if (n <= 0) return n;
    const std::size_t here = p.taken + static_cast<std::size_t>(n), whole = here - here % sizeof p.rest;
    combine_numbers(p.type, p.reduction, p.data + got - p.taken, came, whole);
    p.taken = here - whole;
    std::memcpy(p.rest, came + whole, p.taken);
    return n;
  }

  void wait(std::vector<pollfd>& waits, double since_s, const std::vector<Parcel*>& parcels,
            bool drains) const {
    // Wakes up now and then to check whether the run was stopped, and often if a send may have arrived.
    const timespec look = drains ? timespec{0, 100'000} : timespec{0, 500'000'000};
    if (aborted_) throw RunError("stopped because another part of the run failed");
    if (ppoll(waits.data(), waits.size(), &look, nullptr) > 0) return;
    if (monotonic_s() - since_s < options_.patience_s) return;
    std::set<int> peers;
    for (const Parcel* p : parcels)
      if (!p->done) peers.insert(p->peer);
    std::string names;
    for (const int peer : peers) names += (names.empty() ? "" : ", ") + peer_name(peer);
    throw RunError(fmt::format("no progress for {} s; waiting for {}", options_.patience_s, names));
  }

  TcpOptions options_;
  Socket listener_;
  std::vector<Address> addresses_;
  std::vector<Socket> owned_;
  std::map<Key, int> outgoing_, incoming_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

Listener listen_anywhere(int port) {
  Listener listener;
  listener.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener.socket < 0) fail("no socket");
  Socket guard(listener.socket);
  set(listener.socket, SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_ANY);
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener.socket, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0)
    fail(fmt::format("cannot listen on port {}", port));
  if (listen(listener.socket, 4096) != 0) fail("cannot listen");
  socklen_t size = sizeof here;
  getsockname(listener.socket, reinterpret_cast<sockaddr*>(&here), &size);
  listener.port = ntohs(here.sin_port);
  guard.release();
  return listener;
}

std::unique_ptr<Transport> join_tcp(const TcpOptions& options) {
  return std::make_unique<TcpTransport>(options);
}

}  // namespace rehearse
