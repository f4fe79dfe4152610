#!/bin/bash
# Llama 3.1 405B on 2,048 x dgx-h100 (16,384 GPUs): data 128 x tensor 8 x pipeline 16.
# The settings were checked against Megatron-LM core_v0.19.0 (August 2026).
# Run it in Megatron-LM's folder on every node, with NODE_RANK and MASTER_ADDR, with TRAIN_ITERS (optimizer
# steps) and LR (learning rate) set. DATA_ARGS names the data and the tokenizer; without it the data are
# synthetic, to measure speed.
# Settings that do not change the speed, such as initialization, rotary base and learning-rate schedule, are
# left to Megatron-LM's defaults.
#
# What Megatron-LM does differently from the scenario, or leaves to you:
# * Megatron-LM pads the vocabulary of 128256 to 129024, a multiple of 1024 (128 for each tensor rank).
# * Megatron-LM always computes gradients of weights during tensor communication (tensor_overlap =
# "weight-gradients").
# * Megatron-LM has no smaller first bucket of gradients (first_bucket_mb).
set -euo pipefail

: "${TRAIN_ITERS:?optimizer steps}" "${LR:?learning rate}"
: "${NODE_RANK:?number of this node, 0 to 2047}" "${MASTER_ADDR:?address of node 0}"
read -r -a data <<< "${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 128256}"
export CUDA_DEVICE_MAX_CONNECTIONS=1

model=(
  --num-layers 126
  --hidden-size 16384
  --num-attention-heads 128
  --ffn-hidden-size 53248
  --untie-embeddings-and-output-weights
  --group-query-attention
  --num-query-groups 8
  --max-position-embeddings 131072
  --position-embedding-type rope
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --attention-dropout 0
  --hidden-dropout 0
)
parallel=(
  --tensor-model-parallel-size 8
  --pipeline-model-parallel-size 16
  --context-parallel-size 1
  --sequence-parallel
  --pipeline-model-parallel-layout "Et|(tt|)*62tL"
)
gradients=(
  --use-distributed-optimizer
  --overlap-grad-reduce
  --ddp-bucket-size 13107200
  --overlap-param-gather
)
training=(
  --micro-batch-size 1
  --global-batch-size 2048
  --seq-length 8192
  --train-iters "$TRAIN_ITERS"
  --lr "$LR"
  --optimizer adam
  --bf16
  --grad-reduce-in-bf16
)
memory=(
  --attention-backend flash
)

exec torchrun --nnodes 2048 --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" --master-port "${MASTER_PORT:-29500}" \
  --nproc-per-node 8 pretrain_gpt.py \
  "${model[@]}" "${parallel[@]}" "${gradients[@]}" "${training[@]}" "${memory[@]}" "${data[@]}" "$@"
