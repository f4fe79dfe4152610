// How the ranks that share a batch bring their gradients together: one file for each way, and a table of all.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/scenario/advice.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// How many nodes of servers a strategy needs, and the key that says so.
struct ServerNodes {
  int count = 0;
  Place asked_at;
};

enum class WaitedFor { slower_ranks, servers_and_slower_ranks, servers };
inline constexpr std::array<std::string_view, 3> kWaitedForNames = {"slower ranks",
                                                                    "servers and slower ranks", "servers"};

// What becomes of the gradients of ranks that share a sequence.
enum class ContextGradients {
  refused,    // the strategy has no place for such ranks
  with_data,  // they are summed together with those of the ranks that share a batch
  apart,      // they are summed before the strategy sees them
};

// How ranks with the same weights share out what they hold.
struct SharedState {
  int stage = 1;                 // of ZeRO: optimizer state, from 2 on gradients, at 3 weights too
  int shards = 1, replicas = 1;  // `replicas` groups of `shards` ranks that together hold everything once
  int prefetch = 1;              // units whose weights are gathered ahead of their pass
  bool reshard = true;           // stage 3: weights are dropped behind the forward pass, too
};

class GradientStrategy {
public:
  virtual ~GradientStrategy() = default;
  // For the headline of an answer: "ring all-reduce", "2 parameter servers".
  virtual std::string headline(const Scenario& scenario) const = 0;
  // Refuses what this scenario cannot have, by the place of the key in [strategy].
  virtual void fit(Section& strategy, const Scenario& scenario) const;
  virtual ContextGradients context_gradients() const { return ContextGradients::refused; }
  // The server nodes that it needs where the scenario does not give cluster.server_nodes.
  virtual std::optional<ServerNodes> server_nodes(Section& strategy, const StrategyChoice& choice) const;
  // Whom a worker waits for that waits for no transfer.
  virtual WaitedFor waited_for(const Scenario& scenario) const;
  // If the sync of gradients is what a step waits for most, or whom it waits for. `busiest`: the link that
  // was used most.
  virtual Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const;
  virtual Advice less_waiting(const Scenario& scenario, const LinkPlace& busiest) const;
  // If a step waits most for weights that are gathered.
  virtual Advice less_gathering(const Scenario& scenario) const;
  // Nothing where every rank holds all.
  virtual std::optional<SharedState> shared_state(const Scenario&) const { return std::nullopt; }
  // The same with ranks that share a batch sharing out what stage `stage` of ZeRO shares out: null if it does
  // so already, or cannot.
  virtual std::shared_ptr<const GradientStrategy> sharded(int stage) const;
  // Writes the programs of all ranks to plan.schedule; roles besides the workers are added with their
  // endpoints.
  virtual void write(StepPlan& plan) const = 0;
};

// A value of strategy.gradients.
struct GradientStrategyEntry {
  std::string_view name;
  std::string_view summary;  // one line, for `rehearse list strategies`
  std::string_view more;     // some sentences, for `rehearse show NAME`
  std::string_view keys;     // an example of [strategy]
  // Parses the strategy's own table in [strategy], which may be absent; rejects unknown keys. What other code
  // needs goes to `choice`; the strategy keeps the rest itself.
  std::shared_ptr<const GradientStrategy> (*read)(Section& strategy, StrategyChoice& choice);
};

// All of them; the first is the default. A new strategy is a file with its entry, and a line in
// gradient_strategies.inc.
std::span<const GradientStrategyEntry* const> gradient_strategies();
const GradientStrategyEntry* find_gradient_strategy(std::string_view name);  // null if there is none

// What the scenario chose; one that was made by hand may name it only.
std::shared_ptr<const GradientStrategy> gradient_strategy(const Scenario& scenario);

}  // namespace rehearse
