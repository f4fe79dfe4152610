#include "simulator/trace/link_timeline.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "simulator/costs/transfer.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// How many times the payload of one op, run by every rank of a class, crosses each of the watched links.
using Crossings = std::vector<double>;

class Watch {
public:
  Watch(const Trace& trace, const Cluster& cluster, const std::vector<LinkTimeline>& watched)
      : trace_(trace), cluster_(cluster), column_(cluster.links(), -1), watched_(watched.size()) {
    for (std::size_t i = 0; i < watched.size(); ++i) column_[watched[i].link] = static_cast<int>(i);
  }

  // Of part `part` (message of an exchange; 0 for a collective) of the op in `row`; multiply by payload().
  const Crossings& crossings(std::size_t row, int part) {
    const int c = trace_.spans.rank_class[row];
    const RankClass& who = trace_.classes[c];
    const Job& job = trace_.run.jobs[who.job];
    const Schedule& schedule = schedule_of(trace_, row);
    const Communication& communication = communication_of(schedule);
    const int first = schedule.first_rank(who.role);
    const int program = communication.program_of_rank(first + who.ranks.front());
    const int slot = communication.slot(program, trace_.spans.op[row], part);
    const auto [it, fresh] = crossings_.try_emplace({&schedule, c, slot}, watched_, 0.0);
    if (!fresh || slot < 0) return it->second;
    for (const int rank : who.ranks) {
      for (const int number : communication.at(first + rank, slot)) {
        const Transfer& transfer = communication.transfers[number];
        if (transfer.collective) {
          const Slot& how = communication.slots(program)[slot];
          add_collective(schedule, job, transfer, number, how, first + rank, it->second);
        } else if (transfer.ranks.front() == first + rank) {
          add_route(job.endpoints[transfer.ranks[0]], job.endpoints[transfer.ranks[1]], -1, 1, it->second);
        }
      }
    }
    return it->second;
  }

private:
  const Communication& communication_of(const Schedule& schedule) {
    auto& slot = communications_[&schedule];
    if (!slot) slot = std::make_unique<Communication>(schedule);
    return *slot;
  }

  void add_route(Endpoint from, Endpoint to, int rail, double weight, Crossings& into) {
    route_.clear();
    cluster_.route(from, to, rail, route_);
    for (const LinkId link : route_) {
      if (column_[link] >= 0) into[column_[link]] += weight;
    }
  }

  // Every member adds what it sends itself.
  void add_collective(const Schedule& schedule, const Job& job, const Transfer& transfer, int number,
                      const Slot& how, int rank, Crossings& into) {
    const Endpoint self = job.endpoints[rank];
    if (how.collective.kind == CollectiveKind::all_to_all) {
      for (const int other : transfer.ranks) {
        if (other != rank) add_route(self, job.endpoints[other], -1, 1, into);
      }
      return;
    }
    const auto [it, fresh] = rings_.try_emplace({&schedule, number, how.collective.channels});
    if (fresh) {
      std::vector<Endpoint> members;
      for (const int member : transfer.ranks) members.push_back(job.endpoints[member]);
      const Rings rings = ring_orders(cluster_, members, how.collective.channels);
      for (std::size_t channel = 0; channel < rings.orders.size(); ++channel) {
        const auto& order = rings.orders[channel];
        for (std::size_t i = 0; i < order.size(); ++i) {
          it->second[order[i]].emplace_back(order[(i + 1) % order.size()], rings.rails[channel]);
        }
      }
    }
    const auto& next = it->second[self];
    for (const auto& [to, rail] : next)
      add_route(self, to, rail, 1.0 / static_cast<double>(next.size()), into);
  }

  const Trace& trace_;
  const Cluster& cluster_;
  std::vector<int> column_;  // of each link among the watched ones; -1
  std::size_t watched_;
  std::map<const Schedule*, std::unique_ptr<Communication>> communications_;
  std::map<std::tuple<const Schedule*, int, int>, Crossings> crossings_;
  std::map<std::tuple<const Schedule*, int, int>, std::map<Endpoint, std::vector<std::pair<Endpoint, int>>>>
      rings_;
  std::vector<LinkId> route_;
};

void spread(std::vector<double>& bins, double width_s, double begin_s, double end_s, double bytes) {
  const auto bin_of = [&](double t) {
    return std::min(static_cast<std::size_t>(std::max(t, 0.0) / width_s), bins.size() - 1);
  };
  const std::size_t first = bin_of(begin_s), last = bin_of(end_s);
  for (std::size_t bin = first; bin <= last; ++bin) {
    const double lo = std::max(begin_s, static_cast<double>(bin) * width_s);
    const double hi = std::min(end_s, static_cast<double>(bin + 1) * width_s);
    const double share = end_s > begin_s ? std::max(0.0, hi - lo) / (end_s - begin_s) : 1;
    bins[bin] += bytes * share / width_s;
  }
}

}  // namespace

std::vector<LinkTimeline> link_timelines(const Trace& trace, const Cluster& cluster, std::size_t count,
                                         std::size_t bins) {
  std::vector<LinkUse> busiest;
  for (const LinkUse& use : trace.link_use) {
    if (use.bytes > 0) busiest.push_back(use);
  }
  std::stable_sort(busiest.begin(), busiest.end(), [&](const LinkUse& a, const LinkUse& b) {
    return a.bytes / cluster.bandwidth(a.link) > b.bytes / cluster.bandwidth(b.link);
  });
  if (busiest.size() > count) busiest.resize(count);
  std::vector<LinkTimeline> timelines;
  if (!(trace.end_s > 0)) return timelines;
  for (const LinkUse& use : busiest) timelines.push_back({use.link, std::vector<double>(bins, 0.0)});
  if (timelines.empty()) return timelines;

  Watch watch(trace, cluster, timelines);
  const double width_s = trace.end_s / static_cast<double>(bins);
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    const Op& op = trace.op_of(row);
    if (!is_transfer(op)) continue;
    const RankClass& who = trace.classes[trace.spans.rank_class[row]];
    const Role& role = schedule_of(trace, row).roles[who.role];
    const auto add = [&](int part, double bytes) {
      const Crossings& crossings = watch.crossings(row, part);
      for (std::size_t i = 0; i < timelines.size(); ++i) {
        if (crossings[i] > 0) {
          spread(timelines[i].bytes_per_s, width_s, trace.spans.begin_s[row], trace.spans.end_s[row],
                 bytes * crossings[i]);
        }
      }
    };
    if (op.kind == OpKind::collective) {
      const double bytes = op.collective.bytes.at(role, who.ranks.front());
      TransferShape shape;
      shape.ranks = group_size(role, op.collective.group);
      add(0, op.collective.kind == CollectiveKind::all_to_all
                 ? bytes
                 : ring_cost(op.collective.kind, bytes, shape, Protocol::ideal).bytes_per_edge);
    } else {
      for (std::size_t part = 0; part < op.messages.size(); ++part) {
        const Message& message = op.messages[part];
        if (message.direction == Message::Direction::send) {
          add(static_cast<int>(part), message.bytes.at(role, who.ranks.front()));
        }
      }
    }
  }
  return timelines;
}

}  // namespace rehearse
