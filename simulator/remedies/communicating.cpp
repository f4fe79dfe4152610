#include <fmt/format.h>

#include "simulator/remedies/remedy_kinds.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {
namespace {

double gradients_s(const Situation& now) {
  return now.waiting_s(Purpose::gradient_sync) + now.waiting_s(Purpose::weights);
}

double host_s(const Situation& now) {
  return now.waiting_s(Purpose::host_copy) + now.waiting_s(Purpose::host_update) +
         now.waiting_s(Purpose::nvme);
}

// Collectives that overlap with computation slow it down.
double slowed_s(const Situation& now) {
  return now.metrics.breakdown.slowed_s;
}

// An upper estimate of the time of the optimizer, which shards shorten.
double update_s(const Situation& now) {
  return 0.1 * now.compute_s();
}

}  // namespace

void overlap_more(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (!strategy.overlap)
    found.push_back(
        {"gradients are sent during the backward pass", {"strategy.overlap=true"}, gradients_s(now)});
  if (strategy.pipeline > 1 && strategy.blocking_p2p)
    found.push_back({"transfers between stages do not hold up computation",
                     {"strategy.blocking_p2p=false"},
                     now.waiting_s(Purpose::pipeline) + now.bubble_s()});
  if (strategy.tensor > 1) {
    if (strategy.tensor_overlap == TensorOverlap::none)
      found.push_back({"the gradients of weights are computed during tensor communication",
                       {"strategy.tensor_overlap=weight-gradients"},
                       now.waiting_s(Purpose::tensor)});
    if (strategy.tensor_overlap != TensorOverlap::chunks)
      found.push_back({"products overlap with tensor communication in chunks",
                       {"strategy.tensor_overlap=chunks"},
                       now.waiting_s(Purpose::tensor)});
  }
  const auto* model = std::get_if<Transformer>(&now.scenario.model.shape);
  if (model && model->experts > 0 && !strategy.overlap_passes)
    found.push_back({"one micro-batch computes while another communicates",
                     {"strategy.overlap_passes=true"},
                     now.waiting_s(Purpose::experts)});
}

void share_tokens(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (strategy.tensor == 1 || strategy.sequence_parallel) return;
  found.push_back({"tensor ranks split the tokens where they do not split products",
                   {"strategy.sequence_parallel=true"},
                   now.waiting_s(Purpose::tensor) / 2 + 0.15 * now.compute_s()});
}

void change_gradient_sync(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (strategy.gradients != "all-reduce") return;
  const double waiting_s = gradients_s(now) + now.waiting_s(Purpose::fusion_cycle);
  if (strategy.all_reduce != Algorithm::automatic)
    found.push_back(
        {"the fastest algorithm is chosen for each message", {"strategy.all_reduce=auto"}, waiting_s});
  constexpr double kMiB = 1048576;
  for (const double factor : {4.0, 0.25})
    found.push_back({factor > 1 ? "larger buckets use the network better" : "smaller buckets overlap earlier",
                     {fmt::format("strategy.bucket_mb={:.4g}", factor * strategy.bucket_bytes / kMiB)},
                     waiting_s});
  if (strategy.bucket_copies != BucketCopies::none)
    found.push_back({"gradients are computed in their buckets",
                     {fmt::format("strategy.bucket_copies={}",
                                  strategy.bucket_copies == BucketCopies::in_out ? "in" : "none")},
                     0.1 * now.compute_s()});
}

void change_shards(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (s.strategy.offload.optimizer != OffloadTo::none)
    found.push_back({"there is enough memory to keep everything on the device",
                     {"strategy.offload=none", "strategy.offload_parameters=none"},
                     host_s(now) + now.other_s()});
  const auto strategy = gradient_strategy(s);
  const std::optional<SharedState> shared = strategy->shared_state(s);
  if (!shared) {
    if (strategy->sharded(1))
      found.push_back({"each rank updates only its shard of the weights",
                       {"strategy.zero_stage=1"},
                       update_s(now) + now.waiting_s(Purpose::gradient_sync)});
    return;
  }
  const double waiting_s = gradients_s(now) + slowed_s(now);
  if (shared->stage == 3) {
    if (shared->reshard)
      found.push_back({"weights are kept from the forward to the backward pass",
                       {"strategy.reshard_after_forward=false"},
                       waiting_s});
    if (shared->prefetch == 0)
      found.push_back({"weights are gathered ahead of their use", {"strategy.prefetch=1"}, waiting_s});
    if (shared->replicas == 1 && s.cluster->nodes() > 1)
      found.push_back({"shards inside a node are gathered on faster links",
                       {"strategy.fsdp=hybrid", "strategy.zero_stage=", "strategy.shard_degree="},
                       waiting_s});
  }
  for (int stage = shared->stage - 1; stage >= 1; --stage)
    found.push_back({stage == 1 ? "gradients are sent once a step" : "weights are not gathered in each pass",
                     {"strategy.fsdp=none", fmt::format("strategy.zero_stage={}", stage),
                      "strategy.reshard_after_forward=", "strategy.shard_degree="},
                     waiting_s});
  found.push_back({"nothing is gathered",
                   {"strategy.fsdp=none", "strategy.zero_stage=0", "strategy.reshard_after_forward=",
                    "strategy.shard_degree=", "strategy.offload=", "strategy.offload_parameters="},
                   waiting_s});
}

void change_context(const Situation& now, Remedies& found) {
  const StrategyChoice& strategy = now.scenario.strategy;
  if (strategy.context == 1) return;
  for (const ContextKind kind : {ContextKind::ring, ContextKind::all_gather, ContextKind::all_to_all})
    if (kind != strategy.context_kind)
      found.push_back(
          {"keys and values are exchanged in another way",
           {fmt::format("strategy.context_kind={}", kContextKindNames[static_cast<std::size_t>(kind)])},
           now.waiting_s(Purpose::context) + 0.1 * now.compute_s()});
  if (!strategy.zigzag)
    found.push_back({"shares from both ends of a sequence take the same time on all ranks",
                     {"strategy.zigzag=true"},
                     now.waiting_s(Purpose::context) + now.other_s()});
}

void change_servers(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (!s.strategy.gradients.ends_with("parameter-server")) return;
  const double at_most_s =
      now.waiting_s(Purpose::servers) + now.waiting_s(Purpose::gradient_sync) + now.other_s();
  // An asynchronous server trains something else than an all-reduce.
  if (s.strategy.parameter_server.mode == ParameterServer::Mode::sync)
    found.push_back(
        {"an all-reduce uses the links of all nodes", {"strategy.gradients=all-reduce"}, at_most_s});
  if (s.strategy.gradients == "parameter-server")
    for (const int times : {2, 4})
      found.push_back(
          {"more servers share the traffic",
           {fmt::format("strategy.parameter_server.servers={}", times * s.strategy.parameter_server.servers)},
           at_most_s});
}

}  // namespace rehearse
