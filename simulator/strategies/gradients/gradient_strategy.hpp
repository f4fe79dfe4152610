// Declares how the ranks that share a batch combine their gradients: one file per strategy, and a table of
// all of them.
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
#include "simulator/strategies/programs/stage_hooks.hpp"

namespace rehearse {

// The number of server nodes that a strategy needs, and the key that says so.
struct ServerNodes {
  int count = 0;
  Place asked_at;
};

enum class WaitedFor { slower_ranks, servers_and_slower_ranks, servers };
inline constexpr std::array<std::string_view, 3> kWaitedForNames = {"slower ranks",
                                                                    "servers and slower ranks", "servers"};

// How the gradients of ranks that share a sequence are combined.
enum class ContextGradients {
  refused,    // the strategy does not support such ranks
  with_data,  // they are summed together with those of the ranks that share a batch
  apart,      // they are summed before the strategy sees them
};

// How ranks with the same weights shard their state.
struct SharedState {
  int stage = 1;                 // ZeRO stage: 1 shards optimizer state, 2 also gradients, 3 also weights
  int shards = 1, replicas = 1;  // `replicas` groups of `shards` ranks; each group holds everything once
  int prefetch = 1;              // units whose weights are gathered ahead of their pass
  bool reshard = true;           // stage 3: weights are also dropped after the forward pass
};

class GradientStrategy {
public:
  virtual ~GradientStrategy() = default;
  // Returns the text for the headline of an answer: "ring all-reduce", "2 parameter servers".
  virtual std::string headline(const Scenario& scenario) const = 0;
  // Refuses settings that this scenario does not support, citing the key's place in [strategy].
  virtual void fit(Section& strategy, const Scenario& scenario) const;
  virtual ContextGradients context_gradients() const { return ContextGradients::refused; }
  // Returns the server nodes that the strategy needs if the scenario does not give cluster.server_nodes.
  virtual std::optional<ServerNodes> server_nodes(Section& strategy, const StrategyChoice& choice) const;
  // Returns whom a worker waits for when it does not wait for a transfer.
  virtual WaitedFor waited_for(const Scenario& scenario) const;
  // Advice for steps that wait most for the synchronization of gradients, and for those that wait most for
  // other ranks (waited_for()). `busiest`: the link that was used most.
  virtual Advice less_communication(const Scenario& scenario, const LinkPlace& busiest) const;
  virtual Advice less_waiting(const Scenario& scenario, const LinkPlace& busiest) const;
  // Advice for steps that wait most for gathered weights.
  virtual Advice less_gathering(const Scenario& scenario) const;
  // Returns the number of optimizer steps in one run of the schedule.
  virtual int optimizer_steps() const { return 1; }
  // Returns how state is sharded; nullopt if every rank holds everything.
  virtual std::optional<SharedState> shared_state(const Scenario&) const { return std::nullopt; }
  // Returns the same strategy with ZeRO stage `stage` over the ranks that share a batch; null if it already
  // shards that much, or cannot.
  virtual std::shared_ptr<const GradientStrategy> sharded(int stage) const;
  // Returns why training with it differs from training on one rank, other than in rounding; empty: it does
  // not.
  virtual std::string learns_otherwise(const Scenario& scenario) const;
  // Writes the programs of all ranks to plan.schedule. A strategy with other roles than the workers overrides
  // it, and adds the roles together with their endpoints and programs.
  virtual void write(StepPlan& plan) const { write_workers(plan); }

protected:
  // Returns what the strategy adds to the workers of a pipeline stage, whose program begin_stage() has begun.
  virtual std::unique_ptr<StageHooks> worker(StepPlan& plan, int stage) const;
  // Writes the workers' programs, one per stage; returns the rest of each StageProgram.
  std::vector<StageProgram> write_workers(StepPlan& plan) const;
};

// A value of strategy.gradients.
struct GradientStrategyEntry {
  std::string_view name;
  std::string_view summary;  // one line, for `rehearse list strategies`
  std::string_view more;     // some sentences, for `rehearse show NAME`
  std::string_view keys;     // an example of [strategy]
  // Parses the strategy's own table in [strategy], which may be absent; rejects unknown keys. Settings that
  // other code needs go to `choice`; the strategy stores the rest itself.
  std::shared_ptr<const GradientStrategy> (*read)(Section& strategy, StrategyChoice& choice);
};

// Returns all strategies; the first is the default. To add a strategy, write a file with its entry, and add a
// line to gradient_strategies.inc.
std::span<const GradientStrategyEntry* const> gradient_strategies();
const GradientStrategyEntry* find_gradient_strategy(std::string_view name);  // null if there is none

// Returns the scenario's strategy. A scenario that was built by hand may only name it.
std::shared_ptr<const GradientStrategy> gradient_strategy(const Scenario& scenario);

}  // namespace rehearse
