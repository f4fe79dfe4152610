// Keys of DeepSpeed's configuration: github.com/deepspeedai/DeepSpeed, tag v0.19.5,
// deepspeed/runtime/config.py, constants.py, zero/config.py, zero/offload_config.py,
// tensor_parallel/config.py.
#include "simulator/jobs/job_names.hpp"

namespace rehearse {
namespace {

using enum JobUse;
constexpr JobWord kPrecisions[] = {{"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"bfp16", "bf16"}};

constexpr JobName kDeepspeedNames[] = {
    {"train_batch_size", number, "training.global_batch"},
    {"train_micro_batch_size_per_gpu", number, "training.micro_batch"},
    {"gradient_accumulation_steps"},
    {"zero_optimization.stage", number, "strategy.zero_stage"},
    {"zero_optimization.overlap_comm"},
    {"zero_optimization.reduce_bucket_size"},
    {"zero_optimization.stage3_prefetch_bucket_size"},
    {"zero_optimization.prefetch_bucket_size"},
    {"zero_optimization.stage3_max_live_parameters"},
    {"zero_optimization.stage3_max_reuse_distance"},
    {"zero_optimization.mics_shard_size"},
    {"zero_optimization.zero_hpz_partition_size"},
    {"zero_optimization.offload_optimizer.device"},
    {"zero_optimization.offload_param.device"},
    {"zero_optimization.cpu_offload"},
    {"zero_optimization.cpu_offload_params"},
    {"zero_optimization.zero_quantized_weights", unmodelled},
    {"zero_optimization.zero_quantized_gradients", unmodelled},
    {"zero_optimization.offload_optimizer.ratio", unmodelled},
    {"zero_optimization.sub_group_size", ignored},
    {"zero_optimization", ignored},
    {"bf16.enabled"},
    {"bfloat16.enabled"},
    {"fp16.enabled"},
    {"communication_data_type", text, "training.gradient_precision", kPrecisions},
    {"optimizer.type"},
    {"optimizer.params.momentum"},
    {"optimizer", ignored},
    {"tensor_parallel.autotp_size", number, "strategy.tensor"},
    {"tensor_parallel.tp_size", number, "strategy.tensor"},
    {"sequence_parallel_size", number, "strategy.context"},
    {"data_parallel_size"},
    {"pipeline.stages"},
    {"activation_checkpointing.partition_activations"},
    {"activation_checkpointing.cpu_checkpointing"},
    {"activation_checkpointing", ignored},
    {"compile.deepcompile", unmodelled},
    {"compression_training", unmodelled},
    {"data_efficiency", unmodelled},
    {"curriculum_learning", unmodelled},
    {"sparse_attention", unmodelled},
    {"aio", unmodelled},
    {"amp.enabled", unmodelled},
    {"sparse_gradients", unmodelled},
    {"prescale_gradients", ignored},
    {"gradient_predivide_factor", ignored},
    {"gradient_clipping", ignored},
    {"fp16", ignored},
    {"bf16", ignored},
    {"scheduler", ignored},
    {"wall_clock_breakdown", ignored},
    {"steps_per_print", ignored},
    {"dump_state", ignored},
    {"zero_allow_untested_optimizer", ignored},
    {"zero_force_ds_cpu_optimizer", ignored},
    {"flops_profiler", ignored},
    {"comms_logger", ignored},
    {"tensorboard", ignored},
    {"wandb", ignored},
    {"csv_monitor", ignored},
    {"monitor_config", ignored},
    {"checkpoint", ignored},
    {"data_types", ignored},
    {"elasticity", ignored},
    {"autotuning", ignored},
    {"logging", ignored},
    {"memory_breakdown", ignored},
    {"seed", ignored},
    {"disable_allgather", ignored},
    {"timers", ignored},
    {"pipeline", ignored},
    {"tensor_parallel", ignored},
    {"compile", ignored},
};

}  // namespace

std::span<const JobName> deepspeed_names() {
  return kDeepspeedNames;
}

}  // namespace rehearse
