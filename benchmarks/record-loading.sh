#!/bin/bash
# Runs the loaders of benchmarks/loading/ on an emulated cluster and stores the recorded runs, which `rehearse validate FOLDER`
# compares with predictions. Takes a minute; needs root and iproute2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(realpath -m "${1:-benchmarks/recorded/loading}")
program=$PWD/build/bin/rehearse-run

# Name of the run, and changes to the scenario.
runs='
no-workers   data.loader.workers=0
workers-2    data.loader.workers=2
workers-4    data.loader.workers=4
together-2   data.loader.kind="samples" data.loader.workers=2
drive        data.loader.workers=6 data.storage.title="drive" data.storage.kind="local" data.storage.read_gb_per_s=0.1 run.data="samples"
shared       data.loader.workers=6 data.storage.title="server" data.storage.kind="shared" data.storage.read_gb_per_s=0.3 run.data="samples"
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp benchmarks/loading/star-4.toml "$work"
# 1024 samples of 64 KiB in 8 files.
mkdir "$work/samples"
printf 'type = "uint8"\nnumbers = 65536\nsamples = 1024\n' >"$work/samples/index.toml"
for file in 0 1 2 3 4 5 6 7; do head -c $((128 * 65536)) /dev/urandom >"$work/samples/$file.bin"; done

mkdir -p "$folder"
cd "$work"
while read -r name changes; do
  [ -n "$name" ] || continue
  sets=()
  for change in $changes; do sets+=(--set "$change"); done
  "$program" emulate star-4.toml "${sets[@]}" --trace "$name.json.gz" >"$name.txt"
  cp "$name.json.gz" "$folder"
done <<<"$runs"
