#!/bin/bash
# Calibrates a core of this machine for each training of benchmarks/processor/ and stores the recorded runs, which
# `rehearse validate FOLDER` compares with predictions. Takes about five minutes; needs an otherwise idle machine. Each
# training is calibrated right before it runs, because the speed of a virtual machine changes from minute to minute, and
# runs three times; the run with the smallest median is stored, because other work only slows a run down.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-benchmarks/recorded/processor}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$folder"
for scenario in benchmarks/processor/*.toml; do
  name=$(basename "$scenario" .toml)
  build/bin/rehearse-run calibrate --only-compute --seconds 20 --out "$work" --name here --for "$scenario" >/dev/null
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
