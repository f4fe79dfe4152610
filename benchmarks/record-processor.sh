#!/bin/bash
# Calibrates a core of this machine for the trainings of benchmarks/processor/ and stores their recorded runs, which
# `rehearse validate FOLDER` compares with predictions. Takes about two minutes; needs an otherwise idle machine. Each
# training runs three times; the run with the smallest median is stored, because other work only slows a run down.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-benchmarks/recorded/processor}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for_all=()
for scenario in benchmarks/processor/*.toml; do for_all+=(--for "$scenario"); done
build/bin/rehearse-run calibrate --only-compute --seconds 80 --out "$work" --name here "${for_all[@]}"

mkdir -p "$folder"
for scenario in benchmarks/processor/*.toml; do
  name=$(basename "$scenario" .toml)
  least=
  for _ in 1 2 3; do
    build/bin/rehearse-run run "$scenario" --set "cluster.node.device_file=\"$work/here-device.toml\"" --format json \
      --trace "$work/$name.json.gz" >"$work/result.json"
    step=$(awk -F'[:,]' '/"step_time_s"/ {print $2; exit}' "$work/result.json")
    if [ -z "$least" ] || awk "BEGIN {exit !($step < $least)}"; then
      least=$step
      cp "$work/$name.json.gz" "$folder/$name.json.gz"
    fi
  done
  printf '%s: %s s a step\n' "$name" "$least" >&2
done
