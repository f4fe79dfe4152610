#include "backend/runtime/collective_table.hpp"

#include <algorithm>

namespace rehearse {
namespace {

using Connection = MessageTable::Connection;

class TableWriter {
public:
  TableWriter(int members, std::int64_t elements, std::vector<Connection> connections) {
    table_.members = members;
    table_.elements = elements;
    table_.connections = std::move(connections);
  }

  // Returns the message's number; `needed`: a message that must have come first, or -1.
  std::int64_t add(int connection, std::int64_t begin, std::int64_t end, bool reduce, std::int64_t needed) {
    if (begin == end) return needed;
    MessageTable::Message message;
    message.connection = connection;
    message.opens = needed < 0;
    message.reduce = reduce;
    message.begin = begin;
    message.end = end;
    message.behind = -1;
    if (needed >= 0) table_.needed.push_back(needed);
    table_.first_needed.push_back(static_cast<std::int64_t>(table_.needed.size()));
    table_.messages.push_back(message);
    return static_cast<std::int64_t>(table_.messages.size()) - 1;
  }
  MessageTable take() { return std::move(table_); }

private:
  MessageTable table_;
};

std::vector<Connection> ring(int members) {
  std::vector<Connection> connections;
  for (int i = 0; i < members; ++i) connections.push_back({i, (i + 1) % members});
  return connections;
}

// In step s member i passes on the part that it got in the step before.
MessageTable around_ring(bool reduce, int n, std::int64_t elements) {
  TableWriter writer(n, elements, ring(n));
  std::vector<std::int64_t> before(static_cast<std::size_t>(n), -1), now(before);
  for (int s = 0; s + 1 < n; ++s) {
    for (int i = 0; i < n; ++i) {
      const std::int64_t part = ((i - s - (reduce ? 1 : 0)) % n + n) % n;
      now[(i + 1) % n] = writer.add(i, elements * part / n, elements * (part + 1) / n, reduce, before[i]);
    }
    before = now;
  }
  return writer.take();
}

MessageTable along_chain(bool to_first, int n, std::int64_t elements, std::int64_t piece) {
  std::vector<Connection> connections;
  for (int i = 0; i + 1 < n; ++i)
    connections.push_back(to_first ? Connection{n - 1 - i, n - 2 - i} : Connection{i, i + 1});
  TableWriter writer(n, elements, connections);
  const std::int64_t pieces = piece > 0 ? std::max<std::int64_t>(1, (elements + piece - 1) / piece) : 1;
  for (std::int64_t p = 0; p < pieces; ++p) {
    std::int64_t before = -1;
    for (int c = 0; c + 1 < n; ++c)
      before = writer.add(c, elements * p / pieces, elements * (p + 1) / pieces, to_first, before);
  }
  return writer.take();
}

std::vector<Connection> pairs(int members) {
  std::vector<Connection> connections;
  for (int from = 0; from < members; ++from)
    for (int far = 1; far < members; ++far) connections.push_back({from, (from + far) % members});
  return connections;
}

MessageTable each_to_each(int n, std::int64_t elements) {
  const std::vector<Connection> connections = pairs(n);
  TableWriter writer(n, elements * n * n, connections);
  for (std::size_t c = 0; c < connections.size(); ++c) {
    const std::int64_t pair = static_cast<std::int64_t>(connections[c].from) * n + connections[c].to;
    writer.add(static_cast<int>(c), pair * elements, (pair + 1) * elements, false, -1);
  }
  return writer.take();
}

}  // namespace

MessageTable collective_table(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut,
                              std::int64_t piece_elements) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return message_table(plan, elements, cut);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return around_ring(kind == CollectiveKind::reduce_scatter, plan.members, elements);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return along_chain(kind == CollectiveKind::reduce, plan.members, elements, piece_elements);
    case CollectiveKind::all_to_all:
      return each_to_each(plan.members, elements);
  }
  return {};
}

std::vector<Connection> collective_connections(CollectiveKind kind, const CollectivePlan& plan) {
  if (kind == CollectiveKind::all_reduce) return connections_of(plan);
  return collective_table(kind, plan, plan.members, {}, 0).connections;
}

}  // namespace rehearse
