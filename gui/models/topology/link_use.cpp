#include "gui/models/topology/link_use.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/trace/link_crossings.hpp"

namespace rehearse::gui {

namespace {

// Duration in seconds over which bytes are taken to flow if the transfer's span has no length.
constexpr double kInstant = 1e-9;

// The kind of link: inside a node, at a network card, or in the network.
int kind_of(const Cluster& cluster, LinkId link) {
  return static_cast<int>(cluster.link_place(link).kind);
}

}  // namespace

double LinkUsage::Pattern::until(double time_s) const {
  const auto at = std::upper_bound(time.begin(), time.end(), time_s) - time.begin();
  if (at == 0) return 0;
  return carried[at - 1] + rate[at - 1] * (time_s - time[at - 1]);
}

LinkUsage::LinkUsage(const Trace& trace, std::shared_ptr<const Cluster> cluster)
    : cluster_(std::move(cluster)), columns_of_(cluster_->links(), -1) {
  LinkCrossings crossings(trace, *cluster_);
  for (std::size_t row = 0; row < trace.spans.size(); ++row) {
    for (const LinkCrossings::Part& part : crossings.parts(row)) {
      if (static_cast<std::size_t>(crossings.patterns()) > patterns_.size())
        patterns_.resize(crossings.patterns());
      if (crossings.crossings(part.pattern).empty() || !(part.bytes > 0)) continue;
      patterns_[part.pattern].senders.push_back(
          {row, trace.spans.begin_s[row],
           std::max(trace.spans.end_s[row], trace.spans.begin_s[row] + kInstant), part.bytes});
      if (pattern_of_row_.empty() || pattern_of_row_.back() != std::pair(row, part.pattern))
        pattern_of_row_.emplace_back(row, part.pattern);
    }
  }
  std::vector<std::tuple<LinkId, int, double>> crossed;  // link, pattern, times
  for (int p = 0; p < static_cast<int>(patterns_.size()); ++p) {
    Pattern& pattern = patterns_[p];
    std::sort(pattern.senders.begin(), pattern.senders.end(), [](const auto& a, const auto& b) {
      return std::tie(a.begin_s, a.row) < std::tie(b.begin_s, b.row);
    });
    std::vector<std::pair<double, double>> changes;  // time, change of the rate
    double latest = 0;
    for (const Pattern::Sender& sender : pattern.senders) {
      const double rate = sender.bytes / (sender.end_s - sender.begin_s);
      changes.emplace_back(sender.begin_s, rate);
      changes.emplace_back(sender.end_s, -rate);
      latest = std::max(latest, sender.end_s);
      pattern.latest_end.push_back(latest);
    }
    std::sort(changes.begin(), changes.end());
    double carried = 0, rate = 0;
    int under_way = 0;
    for (const auto& [time, change] : changes) {
      if (!pattern.time.empty()) carried += rate * (time - pattern.time.back());
      under_way += change > 0 ? 1 : change < 0 ? -1 : 0;
      rate = under_way == 0 ? 0 : rate + change;  // discards rounding errors when nothing flows
      pattern.time.push_back(time);
      pattern.carried.push_back(carried);
      pattern.rate.push_back(rate);
    }
    for (const LinkCrossing& crossing : crossings.crossings(p)) {
      crossed.emplace_back(crossing.link, p, crossing.times);
      pattern.links.push_back(crossing.link);
    }
  }
  std::sort(crossed.begin(), crossed.end());
  std::map<std::tuple<double, int, std::vector<std::pair<int, double>>>, int> column_of;
  std::vector<std::pair<int, double>> own;
  for (std::size_t i = 0; i < crossed.size();) {
    const LinkId link = std::get<0>(crossed[i]);
    own.clear();
    for (; i < crossed.size() && std::get<0>(crossed[i]) == link; ++i)
      own.emplace_back(std::get<1>(crossed[i]), std::get<2>(crossed[i]));
    const double bandwidth = cluster_->bandwidth(link);
    const auto [it, fresh] =
        column_of.try_emplace({bandwidth, kind_of(*cluster_, link), own}, static_cast<int>(first_of_.size()));
    if (fresh) {
      first_of_.push_back(link);
      bandwidth_.push_back(bandwidth);
      members_.push_back(0);
      for (const auto& [pattern, times] : own) weights_.push_back({pattern, times});
      first_weight_.push_back(weights_.size());
    }
    columns_of_[link] = it->second;
    ++members_[it->second];
    ++used_;
  }
}

LinkUsage::Load LinkUsage::load(double begin_s, double end_s) const {
  Load load{begin_s, end_s, {}};
  std::vector<double> carried;
  carried.reserve(patterns_.size());
  for (const Pattern& pattern : patterns_)
    carried.push_back(std::max(0.0, pattern.until(end_s) - pattern.until(begin_s)));
  load.bytes.reserve(first_of_.size());
  for (int column = 0; column < static_cast<int>(first_of_.size()); ++column) {
    double bytes = 0;
    for (const Weight& weight : weights(column)) bytes += weight.times * carried[weight.pattern];
    load.bytes.push_back(bytes);
  }
  return load;
}

std::vector<LinkUsage::Busy> LinkUsage::busiest(const Load& load, std::size_t count) const {
  std::vector<Busy> all;
  for (std::size_t column = 0; column < first_of_.size(); ++column)
    if (load.bytes[column] > 0)
      all.push_back(
          {first_of_[column], members_[column] - 1, use(load, first_of_[column]), load.bytes[column]});
  std::sort(all.begin(), all.end(), [](const Busy& a, const Busy& b) {
    // Uses that differ by less than 1e-9 count as equal and are sorted by link.
    return a.use > b.use * (1 + 1e-9) || (a.use >= b.use * (1 - 1e-9) && a.link < b.link);
  });
  if (all.size() > count) all.resize(count);
  return all;
}

std::vector<double> LinkUsage::use_over_time(LinkId link, double begin_s, double end_s,
                                             std::size_t bins) const {
  std::vector<double> use(bins, 0.0);
  if (columns_of_[link] < 0 || !(end_s > begin_s)) return use;
  const double width_s = (end_s - begin_s) / static_cast<double>(bins);
  const double most = cluster_->bandwidth(link) * width_s;
  for (const Weight& weight : weights(columns_of_[link])) {
    const Pattern& pattern = patterns_[weight.pattern];
    double before = pattern.until(begin_s);
    for (std::size_t bin = 0; bin < bins; ++bin) {
      const double now = pattern.until(begin_s + static_cast<double>(bin + 1) * width_s);
      use[bin] += std::max(0.0, now - before) * weight.times / most;
      before = now;
    }
  }
  return use;
}

std::vector<LinkUsage::User> LinkUsage::users(LinkId link, double begin_s, double end_s) const {
  std::vector<User> users;
  std::vector<std::pair<double, User>> found;  // by begin
  if (columns_of_[link] < 0) return users;
  for (const Weight& weight : weights(columns_of_[link])) {
    const Pattern& pattern = patterns_[weight.pattern];
    const auto first = std::upper_bound(pattern.latest_end.begin(), pattern.latest_end.end(), begin_s) -
                       pattern.latest_end.begin();
    for (auto i = static_cast<std::size_t>(first); i < pattern.senders.size(); ++i) {
      const Pattern::Sender& sender = pattern.senders[i];
      if (sender.begin_s >= end_s) break;
      if (sender.end_s > begin_s)
        found.push_back({sender.begin_s, {sender.row, sender.bytes * weight.times}});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.row) < std::tie(b.first, b.second.row);
  });
  for (const auto& [begin, user] : found) {
    // Merges several messages of one op.
    if (!users.empty() && users.back().row == user.row)
      users.back().bytes += user.bytes;
    else
      users.push_back(user);
  }
  return users;
}

std::vector<LinkId> LinkUsage::links_of(std::size_t row) const {
  std::vector<LinkId> links;
  const auto first = std::lower_bound(pattern_of_row_.begin(), pattern_of_row_.end(), std::pair(row, -1));
  for (auto it = first; it != pattern_of_row_.end() && it->first == row; ++it)
    links.insert(links.end(), patterns_[it->second].links.begin(), patterns_[it->second].links.end());
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace rehearse::gui
