// Defines what to train, where, how, and how exactly to simulate it. reading/read_scenario.hpp reads it from
// files.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/costs/framework.hpp"
#include "simulator/costs/operating_cost.hpp"
#include "simulator/costs/optimizer.hpp"
#include "simulator/input/checkpoint.hpp"
#include "simulator/input/data.hpp"
#include "simulator/scenario/default_attention.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct Training {
  double global_batch = 0;      // samples per optimizer step, over all ranks
  double micro_batch = 1;       // samples
  double sequence_length = 0;   // tokens; 0: the model's own
  double predicted_tokens = 0;  // per sample, by a masked language model: computes their logits; 0: all
  double target_samples = 0;    // of the entire training, from tokens, samples or epochs; 0: not given
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::bf16;  // in which gradients are sent: training.gradient_precision
  Precision activation_precision = Precision::bf16;  // in which activations are sent between stages
  Optimizer optimizer = Optimizer::adam;
  AttentionKernels attention = AttentionKernels::unfused;
  AttentionReason attention_reason = AttentionReason::given;
  Recompute recompute = Recompute::none;
  int recompute_layers = 0;  // the first layers of each (virtual) stage that are recomputed; 0: all
  bool fused_loss = false;   // one kernel computes the loss and overwrites the logits with their gradients
  bool cuda_graphs = false;  // kernels are launched by graphs, which take no host time
  bool blocking_launches = false;  // each launch waits until its kernel has ended (CUDA_LAUNCH_BLOCKING=1)
};

enum class PipelineSchedule {
#define PIPELINE_SCHEDULE(schedule, name, entry) schedule,
#include "simulator/scenario/pipeline_schedules.inc"
#undef PIPELINE_SCHEDULE
};
inline constexpr auto kPipelineScheduleNames = std::to_array<std::string_view>({
#define PIPELINE_SCHEDULE(schedule, name, entry) name,
#include "simulator/scenario/pipeline_schedules.inc"
#undef PIPELINE_SCHEDULE
});

// How ranks that share a sequence obtain each other's keys and values.
enum class ContextKind { ring, all_gather, all_to_all };
inline constexpr std::array<std::string_view, 3> kContextKindNames = {"ring", "all-gather", "all-to-all"};

class GradientStrategy;  // simulator/strategies/gradients/gradient_strategy.hpp

// Settings for gradients = "parameter-server".
struct ParameterServer {
  int servers = 1;
  // On processors of dedicated server nodes, on those of the workers' nodes, or on the workers' devices.
  enum class Placement { dedicated, colocated, devices } placement = Placement::dedicated;
  enum class Mode { sync, async, stale_synchronous } mode = Mode::sync;
  int staleness = 0;  // stale-synchronous: rounds that a worker may be ahead of the slowest
};
inline constexpr std::array<std::string_view, 3> kServerPlacementNames = {"dedicated", "colocated",
                                                                          "devices"};
inline constexpr std::array<std::string_view, 3> kServerModeNames = {"sync", "async", "stale-synchronous"};

// How gradients are compressed before the all-reduce (simulator/strategies/gradients/compression.hpp).
enum class Compression { none, fp16, top_k, one_bit, power_sgd };
inline constexpr std::array<std::string_view, 5> kCompressionNames = {"none", "fp16", "top-k", "one-bit",
                                                                      "powersgd"};
struct CompressionChoice {
  Compression kind = Compression::none;
  double density = 0.01;  // top-k: share of the gradients that is sent
  double rank = 4;        // PowerSGD
};

// What overlaps with tensor communication (simulator/strategies/programs/overlap.hpp).
enum class TensorOverlap { none, weight_gradients, chunks };
inline constexpr std::array<std::string_view, 3> kTensorOverlapNames = {"none", "weight-gradients", "chunks"};

// Where ranks that shard optimizer state store it: in device memory, or off the device, in which case the
// optimizer step runs on the host's processors; and where they store the shards of their weights.
enum class OffloadTo { none, cpu, nvme };
inline constexpr std::array<std::string_view, 3> kOffloadNames = {"none", "cpu", "nvme"};
struct OffloadChoice {
  OffloadTo optimizer = OffloadTo::none, parameters = OffloadTo::none;
  bool uses_nvme() const { return optimizer == OffloadTo::nvme || parameters == OffloadTo::nvme; }
};

inline constexpr int kMaxDegree = 1'000'000;  // of an axis

// PyTorch's DistributedDataParallel counts single tensors; a segment here has at most a weight and its bias.
enum class BucketUnit { layer, tensor };
inline constexpr std::array<std::string_view, 2> kBucketUnitNames = {"layer", "tensor"};
// Whether gradients are computed in their buckets, copied (and scaled) into them, or also copied back.
enum class BucketCopies { none, in, in_out };
inline constexpr std::array<std::string_view, 3> kBucketCopiesNames = {"none", "in", "in-out"};

// How rows reach the experts of other ranks: one row for each expert; one for each rank that has any of a
// token's experts; or one for each node, which is spread inside it.
enum class ExpertDispatch { experts, ranks, nodes };
inline constexpr std::array<std::string_view, 3> kExpertDispatchNames = {"experts", "ranks", "nodes"};

// By what layers are divided among stages: their own times, or these on the slowest device of each stage.
enum class StagesBy { time, speed };
inline constexpr std::array<std::string_view, 2> kStagesByNames = {"time", "speed"};
// How the ranks of the data axis share the samples of a micro-batch: evenly, or in proportion to their speed.
enum class BatchBy { equal, speed };
inline constexpr std::array<std::string_view, 2> kBatchByNames = {"equal", "speed"};

struct StrategyChoice {
  std::string title;  // of a named strategy: "PyTorch DistributedDataParallel"
  // What the named strategy and the framework do not offer: keys, or keys with a value
  // ("strategy.zero_stage=2"). Scenarios may set them; advice does not.
  std::vector<std::string> lacks;
  int data = 1, context = 1, tensor = 1, pipeline = 1;
  ContextKind context_kind = ContextKind::ring;
  bool zigzag = true;              // each rank's share of a sequence is a piece from either end of it
  bool sequence_parallel = false;  // the tensor axis splits tokens where it does not split products
  TensorOverlap tensor_overlap = TensorOverlap::none;
  int tensor_chunks = 4;
  // A tensor that all tensor ranks have is sent to the next stage in parts, one from each, and gathered.
  bool scatter_gather = false;
  // For a mixture of experts: the ranks that distribute its experts; the ranks that share each expert (0: as
  // many as tensor); the rows for which an expert has room, over the mean (0: for all); and how much experts
  // differ in their rows (standard deviation over mean).
  int expert = 1, expert_tensor = 0;
  double capacity_factor = 0, expert_imbalance = 0;
  ExpertDispatch expert_dispatch = ExpertDispatch::experts;
  std::vector<std::string> placement;  // axis names, innermost first
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;         // model parts that each stage holds
  int microbatch_group = 0;       // that run through one part before the next; 0: as many as stages
  std::vector<int> stage_layers;  // of each model part, in the model's order; empty: balanced by time
  StagesBy stages_by = StagesBy::time;
  BatchBy batch_by = BatchBy::equal;
  int moved_samples = 0;  // with BatchBy::speed: of each micro-batch, at most; 0: as many as it takes
  bool blocking_p2p = false;
  bool overlap_passes = false;  // a forward and a backward pass take turns, one computing, one communicating
  std::string gradients = "all-reduce";                       // name of the gradient strategy
  std::shared_ptr<const GradientStrategy> gradient_strategy;  // with the settings it read; null: its defaults
  Algorithm all_reduce = Algorithm::ring;
  double chunk_bytes = 0;  // chunk_kb x 1024; 0: the entire share of a ring step
  int channels = 0;        // 0: as many as the node has NICs
  double bucket_bytes = 25 * 1048576.0;
  double first_bucket_bytes = 1048576;  // limit of the first bucket, which lets communication begin early
  // What buckets are filled with, in order of the backward pass: gradients of whole layers, or of segments.
  BucketUnit bucket_unit = BucketUnit::layer;
  BucketCopies bucket_copies = BucketCopies::none;
  bool overlap = true;
  CompressionChoice compression;
  OffloadChoice offload;
  ParameterServer parameter_server;
};

// How real ranks execute the scenario: [run]. Simulations do not use it.
struct RealRun {
  int steps = 1, warmup = 0;  // measured steps, and unmeasured ones before them
  std::uint64_t seed = 1;     // of weights and data
  double learning_rate = 0;   // 0: the optimizer's default (backend/training/optimizer.hpp)
  // Computed, or replaced by sleeping as long as the device's profile says: for more ranks than cores.
  enum class Compute { real, timed } compute = Compute::real;
  // All-reduces on processors: message by message as the schedule says, or by MPI's implementation, whatever
  // it does. automatic: `schedule` on processors, `library` on GPUs.
  enum class Collectives { automatic, schedule, library } collectives = Collectives::automatic;
  // Where ranks run: wherever the system puts them, or each with all its threads on a separate core.
  enum class Bind { none, core } bind = Bind::none;
  bool cuda_graphs = false;  // on GPUs: each step is launched as one CUDA graph
  std::string data;          // the file of tokens to train on; empty: data are made from the seed
};
inline constexpr std::array<std::string_view, 2> kRunComputeNames = {"real", "timed"};
inline constexpr std::array<std::string_view, 3> kRunCollectivesNames = {"auto", "schedule", "library"};
inline constexpr std::array<std::string_view, 2> kRunBindNames = {"none", "core"};

struct Scenario {
  std::string name;                                           // the file's name without folder and extension
  std::vector<std::pair<std::string, std::string>> settings;  // {"cluster.nodes", "4"}, as the file sets it
  // A scenario file that gives this scenario wherever it is read: overrides and the strategy's preset are
  // applied, the contents of other files are included. Empty: the scenario was not read from a document.
  std::string text;
  std::vector<std::string> ignored;  // keys that do not apply beside others: "strategy.sequence_parallel"
  std::vector<std::string> notes;    // on how the scenario was read, in full sentences for the result
  Model model;
  Training training;
  Framework framework;
  Data data;
  Checkpoint checkpoint;
  std::shared_ptr<const Cluster> cluster;
  StrategyChoice strategy;
  EngineOptions engine;
  CostTerms cost;
  RealRun run;
  int steps = 1;
  // Of random draws in a simulation: the starting phases of asynchronous workers, and the loads of experts.
  std::uint64_t seed = 1;
  int microbatches = 1;  // per data-parallel rank and step: global_batch / (micro_batch x data)

  // Here they are only declared: many sources copy it, and each would compile the copy again.
  Scenario();
  Scenario(const Scenario&);
  Scenario(Scenario&&) noexcept;
  Scenario& operator=(const Scenario&);
  Scenario& operator=(Scenario&&) noexcept;
  ~Scenario();
};

// A schedule has ops for each micro-batch of each stage, so their number is bounded before it is written.
inline constexpr std::int64_t kMaxMicrobatches = 65'536, kMaxPasses = 524'288;

}  // namespace rehearse
