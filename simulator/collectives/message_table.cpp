#include "simulator/collectives/message_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace rehearse {
namespace {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

Range part_of(Range whole, std::int64_t number, std::int64_t parts) {
  return {whole.begin + whole.size() * number / parts, whole.begin + whole.size() * (number + 1) / parts};
}

std::int64_t pieces_of(std::int64_t size, std::int64_t most) {
  return most > 0 && size > most ? (size + most - 1) / most : 1;
}

// What has arrived at one member: for each range of elements, the messages that it contains, and those that
// had to leave before.
class Arrived {
public:
  void collect(Range range, std::vector<std::int64_t>& messages) const {
    for (auto it = segment_at(range.begin); it != segments_.end() && it->first < range.end; ++it)
      if (it->second.end > range.begin)
        messages.insert(messages.end(), it->second.messages.begin(), it->second.messages.end());
  }
  void add(Range range, std::int64_t message, bool reduce) {
    split(range.begin);
    split(range.end);
    std::int64_t at = range.begin;
    auto it = segments_.lower_bound(range.begin);
    while (at < range.end) {
      if (it == segments_.end() || it->first > at) {  // nothing has arrived here yet
        const std::int64_t end = it == segments_.end() ? range.end : std::min(range.end, it->first);
        it = segments_.emplace_hint(it, at, Segment{end, {}});
      }
      if (!reduce) it->second.messages.clear();
      it->second.messages.push_back(message);
      at = it->second.end;
      ++it;
    }
  }

private:
  struct Segment {
    std::int64_t end = 0;
    std::vector<std::int64_t> messages;
  };
  using Segments = std::map<std::int64_t, Segment>;

  Segments::const_iterator segment_at(std::int64_t place) const {
    auto it = segments_.upper_bound(place);
    if (it != segments_.begin()) --it;
    return it;
  }
  void split(std::int64_t place) {
    auto it = segments_.upper_bound(place);
    if (it == segments_.begin()) return;
    --it;
    if (it->first == place || it->second.end <= place) return;
    Segment upper = it->second;
    it->second.end = place;
    segments_.emplace(place, std::move(upper));
  }

  Segments segments_;
};

class Writer {
public:
  Writer(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut)
      : kind_(kind), plan_(plan), cut_(cut), arrived_(static_cast<std::size_t>(plan.members)) {
    table_.members = plan.members;
    table_.elements = elements;
    table_.connections = connections_of(course_of(kind), plan);
    for (std::size_t c = 0; c < table_.connections.size(); ++c) {
      const Connection& connection = table_.connections[c];
      numbers_[{connection.lane, connection.tree, connection.from, connection.to}] = static_cast<int>(c);
    }
  }

  MessageTable write() {
    if (kind_ == CollectiveKind::all_to_all) {
      pairs();
      return std::move(table_);
    }
    double before = 0;
    for (lane_ = 0; lane_ < static_cast<int>(plan_.lanes.size()); ++lane_) {
      const Lane& lane = plan_.lanes[lane_];
      const double behind = lane_ + 1 == static_cast<int>(plan_.lanes.size()) ? 1 : before + lane.share;
      received_.assign(static_cast<std::size_t>(plan_.members), {});
      stage_ = 0;
      first_of_stage_ = static_cast<std::int64_t>(table_.messages.size());
      switch (kind_) {
        case CollectiveKind::all_reduce:
          blocks_.assign(static_cast<std::size_t>(plan_.members), {between(whole(), before, behind)});
          for (; stage_ < static_cast<int>(lane.stages.size()); ++stage_) {
            first_of_stage_ = static_cast<std::int64_t>(table_.messages.size());
            write_stage(lane.stages[stage_]);
          }
          break;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
          ring(ring_of(lane), before, behind);
          break;
        case CollectiveKind::broadcast:
        case CollectiveKind::reduce:
          chain(chain_of(lane, course_of(kind_)), between(whole(), before, behind));
          break;
        case CollectiveKind::all_to_all:
          break;
      }
      before = behind;
    }
    return std::move(table_);
  }

private:
  // The order in which a member receives: step by step, or each message on arrival
  // (MessageTable::Message::behind).
  enum class Order { in_steps, as_they_come };

  Range whole() const { return {0, table_.elements}; }
  static Range between(Range range, double begin, double end) {
    const auto place = [&](double share) {
      return range.begin + std::llround(share * static_cast<double>(range.size()));
    };
    return {place(begin), place(end)};
  }

  void write_stage(const Stage& stage) {
    switch (stage.kind) {
      case Stage::Kind::all_reduce:
        reduce_scatter(stage);
        all_gather(stage);
        break;
      case Stage::Kind::reduce_scatter:
        reduce_scatter(stage);
        break;
      case Stage::Kind::all_gather:
        all_gather(stage);
        break;
      case Stage::Kind::give:
      case Stage::Kind::take_back:
        for (const PlanEdge& edge : stage_edges(stage))
          send(edge, blocks_[edge.from].back(), stage.kind == Stage::Kind::give, cut_.most, Order::in_steps);
        break;
      case Stage::Kind::swap:
        for (const std::vector<int>& pair : stage.groups) swap(pair[0], pair[1]);
        break;
      case Stage::Kind::trees:
        trees(stage);
        break;
      case Stage::Kind::switched:  // in_messages() has replaced them
        break;
    }
  }

  // In step s, place i sends part i - 1 - s, to which all places before it have already added.
  void reduce_scatter(const Stage& stage) {
    const int size = static_cast<int>(stage.groups.front().size());
    for (int s = 0; s + 1 < size; ++s)
      for (const std::vector<int>& group : stage.groups)
        for (int i = 0; i < size; ++i)
          send({group[i], group[(i + 1) % size]},
               part_of(blocks_[group[i]].back(), (i - 1 - s + 2 * size) % size, size), true, cut_.most,
               Order::in_steps);
    for (const std::vector<int>& group : stage.groups)
      for (int i = 0; i < size; ++i) blocks_[group[i]].push_back(part_of(blocks_[group[i]].back(), i, size));
  }

  void all_gather(const Stage& stage) {
    const int size = static_cast<int>(stage.groups.front().size());
    for (const std::vector<int>& group : stage.groups)
      for (const int member : group) blocks_[member].pop_back();
    for (int s = 0; s + 1 < size; ++s)
      for (const std::vector<int>& group : stage.groups)
        for (int i = 0; i < size; ++i)
          send({group[i], group[(i + 1) % size]},
               part_of(blocks_[group[i]].back(), (i - s + size) % size, size), false, cut_.most,
               Order::in_steps);
  }

  // Writes the same steps for a stand-alone reduce-scatter or all-gather. There, part i belongs to member i,
  // wherever that member is in the ring; the lane carries its share of every part.
  void ring(const std::vector<int>& order, double share_begin, double share_end) {
    const int size = static_cast<int>(order.size());
    const bool reduce = kind_ == CollectiveKind::reduce_scatter;
    for (int s = 0; s + 1 < size; ++s)
      for (int i = 0; i < size; ++i) {
        const int owner = order[(i - s - (reduce ? 1 : 0) + 2 * size) % size];
        send({order[i], order[(i + 1) % size]},
             between(part_of(whole(), owner, size), share_begin, share_end), reduce, cut_.most,
             Order::in_steps);
      }
  }

  void chain(const std::vector<int>& order, Range block) {
    const std::int64_t pieces = pieces_of(block.size(), cut_.most_pipelined);
    for (std::int64_t p = 0; p < pieces; ++p)
      for (std::size_t i = 0; i + 1 < order.size(); ++i)
        send({order[i], order[i + 1]}, part_of(block, p, pieces), kind_ == CollectiveKind::reduce, 0,
             Order::as_they_come);
  }

  void pairs() {
    const std::int64_t members = plan_.members, each = table_.elements;
    table_.elements *= members * members;
    for (const Connection& connection : table_.connections) {
      const std::int64_t begin = (connection.from * members + connection.to) * each;
      send({connection.from, connection.to}, {begin, begin + each}, false, 0, Order::as_they_come);
    }
  }

  // Sends piece by piece: up, with the members farthest from the root first, and down again.
  void trees(const Stage& stage) {
    std::vector<std::vector<int>> far_first;
    for (const std::vector<int>& parents : stage.parents) far_first.push_back(farthest_first(parents));
    const auto count = static_cast<std::int64_t>(stage.parents.size());
    const Range block = blocks_.front().back();
    const std::int64_t pieces = pieces_of(part_of(block, 0, count).size(), cut_.most_pipelined);
    for (std::int64_t p = 0; p < pieces; ++p)
      for (std::int64_t t = 0; t < count; ++t) {
        const Range piece = part_of(part_of(block, t, count), p, pieces);
        const std::vector<int>& order = far_first[t];
        const int tree = static_cast<int>(t);
        for (const int m : order) send({m, stage.parents[t][m], tree}, piece, true, 0, Order::as_they_come);
        for (auto m = order.rbegin(); m != order.rend(); ++m)
          send({stage.parents[t][*m], *m, tree}, piece, false, 0, Order::as_they_come);
      }
  }

  void send(const PlanEdge& edge, Range range, bool reduce, std::int64_t most, Order order) {
    if (range.size() == 0) return;
    const int connection = numbers_.at({lane_, edge.tree, edge.from, edge.to});
    const std::int64_t pieces = pieces_of(range.size(), most);
    std::vector<std::int64_t> earlier;
    if (order == Order::in_steps) earlier.swap(received_[edge.to]);
    for (std::int64_t p = 0; p < pieces; ++p) {
      const Range piece = part_of(range, p, pieces);
      const std::int64_t number = write(connection, edge.from, piece, reduce, behind(earlier, p));
      if (order == Order::in_steps) received_[edge.to].push_back(number);
      arrived_[edge.to].add(piece, number, reduce);
    }
  }

  // Writes both messages of a piece before either is added: each carries what its sender had before.
  void swap(int one, int other) {
    const std::array<int, 2> members = {one, other};
    const Range range = blocks_[one].back();
    if (range.size() == 0) return;
    const std::int64_t pieces = pieces_of(range.size(), cut_.most);
    std::array<std::vector<std::int64_t>, 2> earlier;  // by receiver
    for (const int m : {0, 1}) earlier[m].swap(received_[members[m]]);
    for (std::int64_t p = 0; p < pieces; ++p) {
      const Range piece = part_of(range, p, pieces);
      std::array<std::int64_t, 2> sent;  // by sender
      for (const int m : {0, 1})
        sent[m] = write(numbers_.at({lane_, 0, members[m], members[1 - m]}), members[m], piece, true,
                        behind(earlier[1 - m], p));
      for (const int m : {0, 1}) {
        table_.messages[sent[m]].after_sent = sent[1 - m];
        // The member's own message stands for what the range contained before, which that message needs.
        arrived_[members[m]].add(piece, sent[m], false);
        arrived_[members[m]].add(piece, sent[1 - m], true);
        received_[members[m]].push_back(sent[1 - m]);
      }
    }
  }

  // Adds a message to the table and returns its number.
  std::int64_t write(int connection, int from, Range piece, bool reduce, std::int64_t behind) {
    std::vector<std::int64_t>& needed = table_.needed;
    const auto first = static_cast<std::ptrdiff_t>(needed.size());
    arrived_[from].collect(piece, needed);
    std::sort(needed.begin() + first, needed.end());
    needed.erase(std::unique(needed.begin() + first, needed.end()), needed.end());
    const bool opens = static_cast<std::ptrdiff_t>(needed.size()) == first || needed.back() < first_of_stage_;
    table_.first_needed.push_back(static_cast<std::int64_t>(needed.size()));
    table_.messages.push_back({connection, lane_, stage_, opens, reduce, piece.begin, piece.end, behind});
    return static_cast<std::int64_t>(table_.messages.size()) - 1;
  }

  // Returns the message behind which the receiver takes in piece p, given those that it takes in during the
  // previous step; -1: none.
  static std::int64_t behind(const std::vector<std::int64_t>& earlier, std::int64_t p) {
    return earlier.empty() ? -1 : earlier[std::min(static_cast<std::size_t>(p), earlier.size() - 1)];
  }

  const CollectiveKind kind_;
  const CollectivePlan& plan_;
  const Cut cut_;
  MessageTable table_;
  // Connection numbers, by lane, tree, sender and receiver.
  std::map<std::tuple<int, int, int, int>, int> numbers_;
  std::vector<Arrived> arrived_;
  std::vector<std::vector<Range>> blocks_;  // by member: a stack with the block of the current phase on top
  std::vector<std::vector<std::int64_t>> received_;  // by member: the messages of its last step
  int lane_ = 0, stage_ = 0;
  std::int64_t first_of_stage_ = 0;
};

}  // namespace

MessageTable message_table(CollectiveKind kind, const CollectivePlan& plan, std::int64_t elements, Cut cut) {
  return Writer(kind, in_messages(plan), elements, cut).write();
}

double message_count(const CollectivePlan& plan, double elements, Cut cut) {
  const auto pieces = [](double size, std::int64_t most) {
    return most > 0 ? std::max(1.0, std::ceil(size / static_cast<double>(most))) : 1.0;
  };
  double count = 0;
  for (const Lane& lane : plan.lanes) {
    const std::vector<StageShare> shares = stage_shares(lane);
    for (std::size_t s = 0; s < lane.stages.size(); ++s) {
      const Stage& stage = lane.stages[s];
      const double edges = static_cast<double>(stage_edges(stage).size()), bytes = shares[s].edge * elements;
      if (stage.kind == Stage::Kind::trees)
        count += edges * pieces(bytes, cut.most_pipelined);
      else
        count += edges * stage_steps(stage) * pieces(bytes / stage_steps(stage), cut.most);
    }
  }
  return count;
}

}  // namespace rehearse
