#!/bin/bash
# Runs every strategy on every emulated cluster of benchmarks/emulated/ and stores the recorded runs, which
# `rehearse validate FOLDER` compares with predictions. Takes about ten minutes; needs root, iproute2 and an
# otherwise idle machine. A run is repeated, at most twice, if the middle half of its steps spans more than
# 5 % of the median; the run with the smallest spread is stored.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-benchmarks/recorded/emulated}
only=${2:-}  # record only runs whose names contain this

# Name of the run, scenario, and changes to the scenario.
runs='
star-4-16mb-ring               star-4-16mb
star-4-16mb-halving-doubling   star-4-16mb       strategy.all_reduce="halving-doubling"
star-4-16mb-tree               star-4-16mb       strategy.all_reduce="tree"
star-4-16mb-server             star-4-16mb       strategy.gradients="parameter-server"
star-4-16mb-2-servers          star-4-16mb       strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-4-16mb-pipeline           star-4-16mb       strategy.data=1 strategy.pipeline=4
star-4-16mb-data-x-pipeline    star-4-16mb       strategy.data=2 strategy.pipeline=2
star-8-4mb-ring                star-8-4mb
star-8-4mb-halving-doubling    star-8-4mb        strategy.all_reduce="halving-doubling"
star-8-4mb-tree                star-8-4mb        strategy.all_reduce="tree"
star-8-4mb-server              star-8-4mb        strategy.gradients="parameter-server"
star-8-4mb-2-servers           star-8-4mb        strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-8-4mb-pipeline            star-8-4mb        strategy.data=1 strategy.pipeline=8
star-8-4mb-data-x-pipeline     star-8-4mb        strategy.data=2 strategy.pipeline=4
star-4-64mb-ring               star-4-64mb
star-4-64mb-halving-doubling   star-4-64mb       strategy.all_reduce="halving-doubling"
star-4-64mb-tree               star-4-64mb       strategy.all_reduce="tree"
star-4-64mb-2-servers          star-4-64mb       strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-4-1mb-ring                star-4-1mb
star-4-1mb-server              star-4-1mb        strategy.gradients="parameter-server"
star-4-1mb-pipeline            star-4-1mb        strategy.data=1 strategy.pipeline=4
tree-2to1-8-16mb-ring          tree-2to1-8-16mb
tree-2to1-8-16mb-halving-doubling tree-2to1-8-16mb strategy.all_reduce="halving-doubling"
tree-2to1-8-16mb-tree          tree-2to1-8-16mb  strategy.all_reduce="tree"
tree-2to1-8-16mb-server        tree-2to1-8-16mb  strategy.gradients="parameter-server"
tree-2to1-8-16mb-2-servers     tree-2to1-8-16mb  strategy.gradients="parameter-server" strategy.parameter_server.servers=2
tree-2to1-8-16mb-data-x-pipeline tree-2to1-8-16mb strategy.data=2 strategy.pipeline=4
tree-4to1-8-16mb-ring          tree-4to1-8-16mb
tree-4to1-8-16mb-halving-doubling tree-4to1-8-16mb strategy.all_reduce="halving-doubling"
tree-4to1-8-16mb-2-servers     tree-4to1-8-16mb  strategy.gradients="parameter-server" strategy.parameter_server.servers=2
tree-4to1-8-16mb-data-x-pipeline tree-4to1-8-16mb strategy.data=4 strategy.pipeline=2
slow-link-4-16mb-ring          slow-link-4-16mb
slow-link-4-16mb-server        slow-link-4-16mb  strategy.gradients="parameter-server"
slow-link-4-16mb-pipeline      slow-link-4-16mb  strategy.data=1 strategy.pipeline=4
nodes-2x4-8mb-ring             nodes-2x4-8mb
nodes-2x4-8mb-hierarchical     nodes-2x4-8mb     strategy.all_reduce="hierarchical"
nodes-2x4-8mb-halving-doubling nodes-2x4-8mb     strategy.all_reduce="halving-doubling"
nodes-2x4-8mb-tree             nodes-2x4-8mb     strategy.all_reduce="tree"
star-4-gpt-ring                star-4-gpt
star-4-gpt-zero-1              star-4-gpt        strategy.zero_stage=1
star-4-gpt-zero-3              star-4-gpt        strategy.zero_stage=3
star-4-gpt-fsdp-kept-weights   star-4-gpt        strategy.fsdp="full" strategy.reshard_after_forward=false
star-4-gpt-tensor              star-4-gpt        strategy.data=1 strategy.tensor=4
star-4-gpt-sequence            star-4-gpt        strategy.data=1 strategy.tensor=4 strategy.sequence_parallel=true
star-4-gpt-tensor-x-data       star-4-gpt        strategy.data=2 strategy.tensor=2
star-4-gpt-ring-attention      star-4-gpt        strategy.data=1 strategy.context=4
star-4-gpt-gathered-context    star-4-gpt        strategy.data=1 strategy.context=4 strategy.context_kind="all-gather"
star-4-gpt-ulysses             star-4-gpt        strategy.data=1 strategy.context=4 strategy.context_kind="all-to-all"
star-4-gpt-context-x-tensor    star-4-gpt        strategy.data=1 strategy.context=2 strategy.tensor=2
star-4-experts-4               star-4-experts    strategy.expert=4
star-4-experts-2               star-4-experts    strategy.expert=2
star-4-experts-replicated      star-4-experts
tree-2to1-8-gpt-zero-3         tree-2to1-8-gpt   strategy.zero_stage=3
tree-2to1-8-gpt-zero-3-x-tensor tree-2to1-8-gpt  strategy.zero_stage=3 strategy.data=4 strategy.tensor=2
tree-2to1-8-gpt-tensor-4       tree-2to1-8-gpt   strategy.data=2 strategy.tensor=4
tree-2to1-8-gpt-ring-attention tree-2to1-8-gpt   strategy.data=2 strategy.context=4
tree-2to1-8-gpt-zb-h1          tree-2to1-8-gpt   strategy.data=2 strategy.pipeline=4 strategy.schedule="zb-h1"
tree-2to1-8-experts-8          tree-2to1-8-experts strategy.expert=8
tree-2to1-8-experts-4          tree-2to1-8-experts strategy.expert=4
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the interquartile range of the step times in percent of the median, from a result in JSON.
spread() {
  awk -F'[:,]' '/"lower_quartile_s"/ {low = $2} /"median_s"/ {median = $2} /"upper_quartile_s"/ {high = $2}
    END {printf "%.1f", (median > 0 ? 100 * (high - low) / median : 100)}' "$1"
}

mkdir -p "$folder"
failed=0
while read -r name scenario changes; do
  [ -n "$name" ] && [[ $name == *"$only"* ]] || continue
  sets=()
  for change in $changes; do sets+=(--set "$change"); done
  record=$folder/$name.json.gz
  least=
  for _ in 1 2 3; do
    build/bin/rehearse-run emulate "benchmarks/emulated/$scenario.toml" "${sets[@]}" --format json \
      --trace "$record" >"$work/result.json" || continue
    percent=$(spread "$work/result.json")
    printf '%s: half of the steps within %s %%\n' "$name" "$percent" >&2
    if [ -z "$least" ] || awk "BEGIN {exit !($percent < $least)}"; then
      least=$percent
      cp "$record" "$work/best.json.gz"
    fi
    awk "BEGIN {exit !($percent <= 5)}" && break
  done
  [ -n "$least" ] && cp "$work/best.json.gz" "$record" || failed=1
done <<<"$runs"
exit $failed
