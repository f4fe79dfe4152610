#!/bin/bash
# Carries out every strategy on every emulated cluster of benchmarks/emulated/ and keeps the records, which
# `rehearse validate FOLDER` judges. Takes about ten minutes; needs root and iproute2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-benchmarks/recorded/emulated}
only=${2:-}  # names that contain this

# Name, scenario, and what is changed in it.
runs='
star-4-16mb-ring               star-4-16mb
star-4-16mb-halving-doubling   star-4-16mb       strategy.all_reduce="halving-doubling"
star-4-16mb-server             star-4-16mb       strategy.gradients="parameter-server"
star-4-16mb-2-servers          star-4-16mb       strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-4-16mb-pipeline           star-4-16mb       strategy.data=1 strategy.pipeline=4
star-4-16mb-data-x-pipeline    star-4-16mb       strategy.data=2 strategy.pipeline=2
star-8-4mb-ring                star-8-4mb
star-8-4mb-halving-doubling    star-8-4mb        strategy.all_reduce="halving-doubling"
star-8-4mb-server              star-8-4mb        strategy.gradients="parameter-server"
star-8-4mb-2-servers           star-8-4mb        strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-8-4mb-pipeline            star-8-4mb        strategy.data=1 strategy.pipeline=8
star-8-4mb-data-x-pipeline     star-8-4mb        strategy.data=2 strategy.pipeline=4
star-4-64mb-ring               star-4-64mb
star-4-64mb-halving-doubling   star-4-64mb       strategy.all_reduce="halving-doubling"
star-4-64mb-2-servers          star-4-64mb       strategy.gradients="parameter-server" strategy.parameter_server.servers=2
star-4-1mb-ring                star-4-1mb
star-4-1mb-server              star-4-1mb        strategy.gradients="parameter-server"
star-4-1mb-pipeline            star-4-1mb        strategy.data=1 strategy.pipeline=4
tree-2to1-8-16mb-ring          tree-2to1-8-16mb
tree-2to1-8-16mb-halving-doubling tree-2to1-8-16mb strategy.all_reduce="halving-doubling"
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
'

mkdir -p "$folder"
failed=0
while read -r name scenario changes; do
  [ -n "$name" ] && [[ $name == *"$only"* ]] || continue
  sets=()
  for change in $changes; do sets+=(--set "$change"); done
  printf '%s\n' "$name" >&2
  build/bin/rehearse-run emulate "benchmarks/emulated/$scenario.toml" "${sets[@]}" --format json \
    --trace "$folder/$name.json.gz" >/dev/null || failed=1
done <<<"$runs"
exit $failed
