// How much of every link's capacity is used over any stretch of time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gui/models/time_scale.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse::gui {

// A transfer is taken to carry its bytes evenly from begin to end. Links that the same transfers cross
// equally often share a column, so that a question about all links costs little.
class LinkUsage {
public:
  // Slow: not on the window's thread. Times are the trace's seconds.
  LinkUsage(const Trace& trace, std::shared_ptr<const Cluster> cluster);

  struct Load {  // of all links, over a stretch of time
    double begin_s = 0, end_s = 0;
    std::vector<double> bytes;  // by column
    double length_s() const { return end_s - begin_s; }
  };
  Load load(double begin_s, double end_s) const;
  double bytes(const Load& load, LinkId link) const {
    return columns_of_[link] < 0 ? 0 : load.bytes[columns_of_[link]];
  }
  // Share of the capacity.
  double use(const Load& load, LinkId link) const {
    return columns_of_[link] < 0 || !(load.length_s() > 0)
               ? 0
               : load.bytes[columns_of_[link]] / (bandwidth_[columns_of_[link]] * load.length_s());
  }

  struct Busy {
    LinkId link = 0;
    int like_it = 0;  // others of the same kind that carry the same
    double use = 0, bytes = 0;
  };
  // Used links, the busiest first; of equal ones the first stands for all.
  std::vector<Busy> busiest(const Load& load, std::size_t count) const;

  // Mean use over equal stretches of time, for a plot.
  std::vector<double> use_over_time(LinkId link, double begin_s, double end_s, std::size_t bins) const;

  // A row of the trace that sends over a link, and what it puts on it in all.
  struct User {
    std::size_t row = 0;
    double bytes = 0;
  };
  // All that are under way in the stretch of time, by their begin.
  std::vector<User> users(LinkId link, double begin_s, double end_s) const;
  // The links that the op of a row crosses, ascending.
  std::vector<LinkId> links_of(std::size_t row) const;

  const Cluster& cluster() const { return *cluster_; }
  std::size_t used_links() const { return used_; }

private:
  // What one pattern of transfers carries as time goes by: after time[i] another rate[i] bytes/s.
  struct Pattern {
    std::vector<double> time, carried, rate;
    struct Sender {
      std::size_t row = 0;
      double begin_s = 0, end_s = 0, bytes = 0;
    };
    std::vector<Sender> senders;     // by begin
    std::vector<double> latest_end;  // of senders up to this one
    std::vector<LinkId> links;
    double until(double time_s) const;  // bytes
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
