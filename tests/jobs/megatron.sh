#!/bin/bash
# GPT-3 175B on 96 x dgx-a100 (768 GPUs): data 16 x pipeline 48.
# The settings were checked against Megatron-LM core_v0.19.0 (August 2026).
# Run it in Megatron-LM's folder on every node, with NODE_RANK and MASTER_ADDR, with TRAIN_ITERS (optimizer
# steps) and LR (learning rate) set. DATA_ARGS names the data and the tokenizer; without it the data are
# synthetic, to measure speed.
# Settings that do not change the speed, such as initialization, rotary base and learning-rate schedule, are
# left to Megatron-LM's defaults.
#
# What Megatron-LM does differently from the scenario, or leaves to you:
# * Megatron-LM pads the vocabulary of 50257 to 50304, a multiple of 128 (128 for each tensor rank).
# * Megatron-LM's schedule without virtual stages waits for messages between stages (blocking_p2p = true).
# * Megatron-LM has no smaller first bucket of gradients (first_bucket_mb).
set -euo pipefail

: "${TRAIN_ITERS:?optimizer steps}" "${LR:?learning rate}"
: "${NODE_RANK:?number of this node, 0 to 95}" "${MASTER_ADDR:?address of node 0}"
read -r -a data <<< "${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 50257}"
export CUDA_DEVICE_MAX_CONNECTIONS=1

model=(
  --num-layers 96
  --hidden-size 12288
  --num-attention-heads 96
  --ffn-hidden-size 49152
  --max-position-embeddings 2048
  --position-embedding-type learned_absolute
  --normalization LayerNorm
  --attention-dropout 0.1
  --hidden-dropout 0.1
)
parallel=(
  --tensor-model-parallel-size 1
  --pipeline-model-parallel-size 48
  --context-parallel-size 1
)
gradients=(
  --overlap-grad-reduce
  --ddp-bucket-size 13107200
)
training=(
  --micro-batch-size 1
  --global-batch-size 3072
  --seq-length 2048
  --train-iters "$TRAIN_ITERS"
  --lr "$LR"
  --optimizer adam
  --bf16
  --grad-reduce-in-bf16
)
memory=(
  --attention-backend flash
  --recompute-granularity full
  --recompute-method uniform
  --recompute-num-layers 1
)

exec torchrun --nnodes 96 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port "${MASTER_PORT:-29500}" \
  --nproc-per-node 8 pretrain_gpt.py \
  "${model[@]}" "${parallel[@]}" "${gradients[@]}" "${training[@]}" "${memory[@]}" "${data[@]}" "$@"
