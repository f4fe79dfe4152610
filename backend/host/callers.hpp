// Accepts connections of which each begins with a known message, and drops those that do not.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rehearse {

// Port scanners, health checks and other programs connect to any port. They are dropped when they send
// something else, close the connection, or say nothing for some seconds; meanwhile others are accepted.
class Callers {
public:
  // `magic`: the first bytes of the message, which has `bytes` bytes in all. The listener must outlive this.
  Callers(int listener, std::string magic, std::size_t bytes)
      : listener_(listener), magic_(std::move(magic)), bytes_(bytes) {}
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;
  ~Callers();

  // Returns the socket of the next connection with such a message, and the message; the caller closes the
  // socket. Throws RunError "waited ... for WHAT" if none comes within the patience.
  std::pair<int, std::vector<char>> next(double patience_s, const std::string& what);

private:
  struct Caller {
    int socket = -1;
    double since_s = 0;
    std::vector<char> came;
  };
  enum class State { waits, complete, wrong };
  State read_more(Caller& caller) const;
  void accept_caller();

  const int listener_;
  const std::string magic_;
  const std::size_t bytes_;
  std::vector<Caller> waiting_;
};

}  // namespace rehearse
