// Builds roles, works and ops by hand for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/schedule/schedule.hpp"

namespace rehearse::testing {

// Returns a role over `axes`, innermost first.
inline Role role(const std::string& name, std::vector<Axis> axes) {
  return {name, {Mesh(std::move(axes))}};
}

inline Work work(double seconds) {
  Work w;
  Kernel k;
  k.kind = Kernel::Kind::fixed;
  k.seconds = seconds;
  w.kernels = {k};
  return w;
}

inline Op compute(const std::string& name, int stream, int work_index, std::vector<Dependency> after = {}) {
  Op op;
  op.name = name;
  op.stream = stream;
  op.work = work_index;
  op.after = std::move(after);
  return op;
}

inline Op all_reduce(const std::string& name, int stream, Group group, Quantity bytes,
                     std::vector<Dependency> after = {}, int channels = 0) {
  Op op;
  op.name = name;
  op.kind = OpKind::collective;
  op.stream = stream;
  op.after = std::move(after);
  op.collective.group = std::move(group);
  op.collective.bytes = std::move(bytes);
  op.collective.channels = channels;
  return op;
}

inline Message send(Peer peer, Quantity bytes, int tag = 0) {
  return {Message::Direction::send, std::move(peer), std::move(bytes), tag};
}
inline Message receive(Peer peer, Quantity bytes, int tag = 0) {
  return {Message::Direction::receive, std::move(peer), std::move(bytes), tag};
}

inline Op host(const std::string& name, int stream, std::vector<Dependency> after = {}) {
  Op op;
  op.name = name;
  op.kind = OpKind::host;
  op.stream = stream;
  op.after = std::move(after);
  return op;
}

inline Op exchange(const std::string& name, int stream, std::vector<Message> messages,
                   std::vector<Dependency> after = {}) {
  Op op;
  op.name = name;
  op.kind = OpKind::exchange;
  op.stream = stream;
  op.messages = std::move(messages);
  op.after = std::move(after);
  return op;
}

}  // namespace rehearse::testing
