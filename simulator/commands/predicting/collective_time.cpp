#include "simulator/commands/predicting/collective_time.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "models/text/toml_text.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/collectives/cost.hpp"
#include "simulator/costs/nccl_constants.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/algorithm.hpp"

namespace rehearse {
namespace {

Group everyone() {
  return {{{0}}};
}

Schedule schedule_of(int ranks, std::vector<Op> ops) {
  Schedule schedule;
  schedule.roles = {{"rank", {Mesh({{"data", ranks}})}}};
  Program program;
  program.name = "rank";
  program.streams = {"communication"};
  program.ops = std::move(ops);
  schedule.programs = {std::move(program)};
  return schedule;
}

Op collective_op(Exchange kind, double bytes, int ranks, Algorithm algorithm) {
  Op op;
  op.kind = OpKind::collective;
  op.collective.kind = static_cast<CollectiveKind>(kind);
  op.collective.algorithm = algorithm;
  op.collective.group = everyone();
  op.collective.bytes = kind == Exchange::all_to_all ? bytes / ranks : bytes;
  return op;
}

Op send_receive_op(double bytes) {
  Op op;
  op.kind = OpKind::exchange;
  op.messages = {{Message::Direction::send, Peer::along(0, 1, true), bytes},
                 {Message::Direction::receive, Peer::along(0, -1, true), bytes}};
  return op;
}

// Returns the seconds from the beginning of each op to the end of its last rank. The ops follow one another;
// each begins on all ranks at the same time if the previous one ends on all ranks at the same time.
std::vector<double> simulated_s(std::vector<Op> ops, const Cluster& cluster, int ranks,
                                const EngineOptions& options) {
  const std::size_t count = ops.size();
  for (std::size_t i = 0; i < count; ++i) ops[i].name = fmt::format("{}", i);
  Job job;
  job.name = "collective";
  job.phases = {{std::make_shared<Schedule>(schedule_of(ranks, std::move(ops))), 1}};
  job.endpoints.resize(static_cast<std::size_t>(ranks));
  std::iota(job.endpoints.begin(), job.endpoints.end(), 0);
  Run run;
  run.jobs = {std::move(job)};
  const Trace trace = simulate_in_child(run, cluster, options);
  std::vector<double> begin_s(count, 0), end_s(count, 0);
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const auto op = static_cast<std::size_t>(trace.spans.op[i]);
    begin_s[op] = std::max(begin_s[op], trace.spans.begin_s[i]);
    end_s[op] = std::max(end_s[op], trace.spans.end_s[i]);
  }
  for (std::size_t i = 0; i < count; ++i) end_s[i] -= begin_s[i];
  return end_s;
}

EngineOptions options_of(Protocol::Software software) {
  EngineOptions options;
  options.protocol.software = software;
  return options;
}

// Finds the protocol that the cost model uses for a collective of this kind.
class ProtocolOf {
public:
  ProtocolOf(Exchange kind, const Cluster& cluster, int ranks, Protocol protocol)
      : kind_(kind),
        cluster_(cluster),
        protocol_(std::move(protocol)),
        members_(static_cast<std::size_t>(ranks)) {
    std::iota(members_.begin(), members_.end(), 0);
  }
  std::string_view operator()(Algorithm algorithm, double bytes) {
    if (members_.size() < 2) return {};
    auto [plan, fresh] = plans_.try_emplace(algorithm);
    if (fresh)
      plan->second = on_network(collective_plan(algorithm, cluster_, members_, 0), cluster_, members_);
    const StageOnNetwork& stage = plan->second.lanes.front().front();
    if (kind_ == Exchange::all_reduce) return stage_cost(algorithm, stage, bytes, protocol_, 0).protocol;
    if (kind_ == Exchange::send_receive) return message_cost(bytes, stage.shape, protocol_).protocol;
    const double counted = kind_ == Exchange::all_to_all ? bytes / stage.shape.ranks : bytes;
    return ring_cost(static_cast<CollectiveKind>(kind_), counted, stage.shape, protocol_).protocol;
  }

private:
  Exchange kind_;
  const Cluster& cluster_;
  Protocol protocol_;
  std::vector<Endpoint> members_;
  std::map<Algorithm, PlanOnNetwork> plans_;
};

}  // namespace

std::vector<CollectiveTime> collective_times(Exchange kind, const std::shared_ptr<const Cluster>& cluster,
                                             int ranks, const std::vector<double>& bytes, Algorithm asked,
                                             Protocol::Software software) {
  std::vector<Endpoint> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  Scenario scenario;
  scenario.cluster = cluster;
  scenario.strategy.all_reduce = asked;
  scenario.engine = options_of(software);
  if (const std::string why = asked == Algorithm::automatic ? "" : misfit(asked, *cluster, members);
      kind == Exchange::all_reduce && !why.empty())
    throw InputError({"--algorithm"}, fmt::format("is \"{}\", for a group with {}",
                                                  kAlgorithmNames[static_cast<std::size_t>(asked)], why));
  AlgorithmChoice choice(scenario);
  std::vector<Algorithm> algorithms(bytes.size(), Algorithm::ring);
  if (kind == Exchange::all_reduce && ranks > 1)
    for (std::size_t i = 0; i < bytes.size(); ++i) algorithms[i] = choice.of(members, bytes[i]);

  std::vector<CollectiveTime> times(bytes.size());
  ProtocolOf protocol(kind, *cluster, ranks, scenario.engine.protocol);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    times[i].bytes = bytes[i];
    times[i].chosen = algorithms[i];
    const bool direct = kind == Exchange::all_to_all || kind == Exchange::send_receive;
    if (!direct) times[i].algorithm = kAlgorithmNames[static_cast<std::size_t>(algorithms[i])];
    times[i].protocol = protocol(algorithms[i], bytes[i]);
  }
  const std::vector<double> seconds = simulated_again_s(kind, *cluster, ranks, times, scenario.engine);
  for (std::size_t i = 0; i < bytes.size(); ++i) times[i].time_s = seconds[i];
  return times;
}

std::vector<CollectiveAlternative> collective_alternatives(Exchange kind, const Cluster& cluster, int ranks,
                                                           const std::vector<CollectiveTime>& times,
                                                           Protocol::Software software) {
  std::vector<CollectiveAlternative> found;
  const bool direct = kind == Exchange::all_to_all || kind == Exchange::send_receive;
  if (direct || ranks < 2 || cluster.node().device.compute_capability == 0) return found;
  std::vector<Endpoint> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  EngineOptions options = options_of(software);
  std::vector<Algorithm> algorithms = {Algorithm::ring};
  if (kind == Exchange::all_reduce) algorithms = candidates(cluster, members, options.protocol);
  for (const Algorithm algorithm : algorithms)
    for (std::size_t p = 0; p < nccl::kProtocols.size(); ++p) {
      options.protocol.only = static_cast<int>(p);
      ProtocolOf protocol(kind, cluster, ranks, options.protocol);
      std::vector<CollectiveTime> with;
      std::vector<std::size_t> sizes;
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (protocol(algorithm, times[i].bytes) != nccl::kProtocols[p]) continue;
        with.push_back(times[i]);
        with.back().chosen = algorithm;
        sizes.push_back(i);
      }
      if (with.empty()) continue;
      CollectiveAlternative& one = found.emplace_back();
      one.algorithm = algorithm;
      one.protocol = nccl::kProtocols[p];
      one.times_s.assign(times.size(), std::numeric_limits<double>::quiet_NaN());
      const std::vector<double> seconds = simulated_again_s(kind, cluster, ranks, with, options);
      for (std::size_t k = 0; k < sizes.size(); ++k) one.times_s[sizes[k]] = seconds[k];
    }
  return found;
}

std::vector<double> simulated_again_s(Exchange kind, const Cluster& cluster, int ranks,
                                      const std::vector<CollectiveTime>& times,
                                      const EngineOptions& options) {
  std::vector<double> seconds(times.size(), 0);
  if (kind == Exchange::send_receive) {  // its ranks end at different times: simulate each size separately
    for (std::size_t i = 0; i < times.size(); ++i)
      seconds[i] = simulated_s({send_receive_op(times[i].bytes)}, cluster, ranks, options).front();
    return seconds;
  }
  std::map<Algorithm, std::vector<std::size_t>> simulated_together;
  for (std::size_t i = 0; i < times.size(); ++i) simulated_together[times[i].chosen].push_back(i);
  for (const auto& [algorithm, sizes] : simulated_together) {
    std::vector<Op> ops;
    for (const std::size_t i : sizes) ops.push_back(collective_op(kind, times[i].bytes, ranks, algorithm));
    const std::vector<double> together_s = simulated_s(std::move(ops), cluster, ranks, options);
    for (std::size_t k = 0; k < sizes.size(); ++k) seconds[sizes[k]] = together_s[k];
  }
  return seconds;
}

double algorithm_bandwidth(const CollectiveTime& time) {
  return time.time_s > 0 ? time.bytes / time.time_s : 0;
}

double bus_factor(Exchange kind, int ranks) {
  const double n = ranks;
  switch (kind) {
    case Exchange::all_reduce:
      return 2 * (n - 1) / n;
    case Exchange::reduce_scatter:
    case Exchange::all_gather:
    case Exchange::all_to_all:
      return (n - 1) / n;
    case Exchange::broadcast:
    case Exchange::reduce:
    case Exchange::send_receive:
      break;
  }
  return 1;
}

bool is_cluster_preset(const std::string& name) {
  const std::vector<std::string> known = cluster_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return true;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) return false;
  const std::string near = nearest_name(name, known);
  throw InputError(
      {"--cluster"},
      fmt::format("is {}; allowed: {}, or the path of a file{}", in_quotes(name), fmt::join(known, ", "),
                  near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

std::shared_ptr<const Cluster> collective_cluster(const CollectivePlace& place) {
  const bool preset = is_cluster_preset(place.cluster);
  const auto with = [&](int nodes, int devices_per_node) {
    std::string text =
        fmt::format("[cluster]\n{} = {}\n", preset ? "preset" : "file", toml_string(place.cluster));
    if (nodes > 0) text += fmt::format("nodes = {}\n", nodes);
    if (devices_per_node > 0) text += fmt::format("devices_per_node = {}\n", devices_per_node);
    Document document = Document::parse_text(text, "--cluster");
    for (const std::string& assignment : place.overrides) document.set(assignment);
    Section root = document.root();
    Section section = root.section("cluster");
    auto cluster = read_cluster(section, "");
    root.finish();
    return cluster;
  };
  int each = place.devices_per_node;
  if (place.nodes > 0 && place.devices > 0 && each == 0) {
    const auto all = with(place.nodes, 0);
    if (place.devices > all->devices()) return all;  // which the caller refuses
    if (place.devices % place.nodes != 0)
      throw InputError({"--devices"}, fmt::format("is {} on {} nodes; allowed: a multiple of {}",
                                                  place.devices, place.nodes, place.nodes));
    each = place.devices / place.nodes;
    if (each == all->node().devices) return all;
  }
  int nodes = place.nodes;
  if (nodes == 0 && place.devices > 0) {
    const int here = with(1, each)->node().devices;
    nodes = (place.devices + here - 1) / here;
  }
  return with(nodes, each);
}

}  // namespace rehearse
