// Computes how much of each link's capacity is used over any time range.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse::gui {

// Assumes that a transfer carries its bytes evenly from begin to end. Links that the same transfers cross
// equally often share a column, which makes queries over all links cheap.
class LinkUsage {
public:
  // Slow; do not call on the window's thread. Times are in the trace's seconds.
  LinkUsage(const Trace& trace, std::shared_ptr<const Cluster> cluster);

  struct Load {  // the load of all links over a time range
    double begin_s = 0, end_s = 0;
    std::vector<double> bytes;  // by column
    double length_s() const { return end_s - begin_s; }
  };
  Load load(double begin_s, double end_s) const;
  double bytes(const Load& load, LinkId link) const {
    return columns_of_[link] < 0 ? 0 : load.bytes[columns_of_[link]];
  }
  // Returns the used share of the link's capacity.
  double use(const Load& load, LinkId link) const {
    return columns_of_[link] < 0 || !(load.length_s() > 0)
               ? 0
               : load.bytes[columns_of_[link]] / (bandwidth_[columns_of_[link]] * load.length_s());
  }

  struct Busy {
    LinkId link = 0;
    int like_it = 0;  // other links of the same kind with the same load
    double use = 0, bytes = 0;
  };
  // Returns the used links, the busiest first; links with equal load are represented by the first of them.
  std::vector<Busy> busiest(const Load& load, std::size_t count) const;

  // Returns the mean use in `bins` equal intervals, for a plot.
  std::vector<double> use_over_time(LinkId link, double begin_s, double end_s, std::size_t bins) const;

  // A row of the trace that sends over a link, with the total bytes it puts on the link.
  struct User {
    std::size_t row = 0;
    double bytes = 0;
  };
  // Returns all transfers active in the time range, sorted by begin.
  std::vector<User> users(LinkId link, double begin_s, double end_s) const;
  // Returns the links that the op of a row crosses, ascending.
  std::vector<LinkId> links_of(std::size_t row) const;

  const Cluster& cluster() const { return *cluster_; }
  std::size_t used_links() const { return used_; }

private:
  // What one pattern of transfers carries over time: from time[i] on, after carried[i] bytes, at rate[i]
  // bytes/s.
  struct Pattern {
    std::vector<double> time, carried, rate;
    struct Sender {
      std::size_t row = 0;
      double begin_s = 0, end_s = 0, bytes = 0;
    };
    std::vector<Sender> senders;     // sorted by begin
    std::vector<double> latest_end;  // latest end of the senders up to this one
    std::vector<LinkId> links;
    double until(double time_s) const;  // bytes carried until then
  };
  struct Weight {
    int pattern = 0;
    double times = 0;
  };
  std::span<const Weight> weights(int column) const {
    return {weights_.data() + first_weight_[column], weights_.data() + first_weight_[column + 1]};
  }

  std::shared_ptr<const Cluster> cluster_;
  std::vector<Pattern> patterns_;
  std::vector<int> columns_of_;    // by link; -1: never used
  std::vector<LinkId> first_of_;   // by column
  std::vector<int> members_;       // by column
  std::vector<double> bandwidth_;  // by column
  std::vector<std::size_t> first_weight_ = {0};
  std::vector<Weight> weights_;
  std::vector<std::pair<std::size_t, int>> pattern_of_row_;  // ascending
  std::size_t used_ = 0;
};

}  // namespace rehearse::gui
