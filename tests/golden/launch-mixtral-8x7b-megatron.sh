#!/bin/bash
# Mixtral 8x7B on 8 x dgx-h100 (64 GPUs): data 8 x tensor 2 x pipeline 4.
# The settings were checked against Megatron-LM core_v0.19.0 (August 2026).
# Run it in Megatron-LM's folder on every node, with NODE_RANK and MASTER_ADDR, with TRAIN_ITERS (optimizer
# steps) and LR (learning rate) set. DATA_ARGS names the data and the tokenizer; without it the data are
# synthetic, to measure speed.
# Settings that do not change the speed, such as initialization, rotary base and learning-rate schedule, are
# left to Megatron-LM's defaults.
#
# What Megatron-LM does differently from the scenario, or leaves to you:
# * Megatron-LM always computes gradients of weights during tensor communication (tensor_overlap =
# "weight-gradients").
# * Megatron-LM's schedule without virtual stages waits for messages between stages (blocking_p2p = true).
# * Megatron-LM has no smaller first bucket of gradients (first_bucket_mb).
set -euo pipefail

: "${TRAIN_ITERS:?optimizer steps}" "${LR:?learning rate}"
: "${NODE_RANK:?number of this node, 0 to 7}" "${MASTER_ADDR:?address of node 0}"
read -r -a data <<< "${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 32000}"
export CUDA_DEVICE_MAX_CONNECTIONS=1

model=(
  --num-layers 32
  --hidden-size 4096
  --num-attention-heads 32
  --ffn-hidden-size 14336
  --untie-embeddings-and-output-weights
  --group-query-attention
  --num-query-groups 8
  --max-position-embeddings 4096
  --position-embedding-type rope
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --attention-dropout 0
  --hidden-dropout 0
  --num-experts 8
  --moe-router-topk 2
  --moe-ffn-hidden-size 14336
  --moe-grouped-gemm
)
parallel=(
  --tensor-model-parallel-size 2
  --pipeline-model-parallel-size 4
  --context-parallel-size 1
  --sequence-parallel
  --expert-model-parallel-size 8
  --expert-tensor-parallel-size 1
  --moe-token-dispatcher-type alltoall
  --moe-expert-capacity-factor 1.25
  --moe-pad-expert-input-to-capacity
)
gradients=(
  --use-distributed-optimizer
  --overlap-grad-reduce
  --ddp-bucket-size 13107200
  --overlap-param-gather
)
training=(
  --micro-batch-size 1
  --global-batch-size 256
  --seq-length 4096
  --train-iters "$TRAIN_ITERS"
  --lr "$LR"
  --optimizer adam
  --bf16
  --grad-reduce-in-bf16
)
memory=(
  --attention-backend flash
  --recompute-granularity full
  --recompute-method block
  --recompute-num-layers 2
)

exec torchrun --nnodes 8 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port "${MASTER_PORT:-29500}" \
  --nproc-per-node 8 pretrain_gpt.py \
  "${model[@]}" "${parallel[@]}" "${gradients[@]}" "${training[@]}" "${memory[@]}" "${data[@]}" "$@"
