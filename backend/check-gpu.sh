#!/bin/bash
# Checks everything that takes a GPU, on a machine with the CUDA toolkit, NCCL, CMake and a compiler and nothing else,
# and leaves tests' output, profiles and recorded runs in one folder, for `rehearse validate` anywhere.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
  cat <<'END'
usage: backend/check-gpu.sh [FOLDER]   build, test, calibrate and record on this machine's GPUs, in 8 minutes at most;
                                       FOLDER (default check-gpu-results) takes the results
       backend/check-gpu.sh --carry    on a machine with the packages of setup.sh: copy the headers that the build
                                       takes to .headers/, to go along to a machine without packages
Exit status: 0 all steps passed, 1 a step failed (the others were done), 2 wrong usage.
END
}

carry() {
  local header found
  rm -rf .headers
  mkdir -p .headers
  for header in fmt toml++ CLI nlohmann eigen3/Eigen catch2/catch.hpp; do
    if [ ! -e "/usr/include/$header" ]; then
      printf 'check-gpu.sh: /usr/include/%s not found (./setup.sh installs it)\n' "$header" >&2
      [ "$header" = catch2/catch.hpp ] && continue # Catch2 3 is no header alone: its tests stay behind
      exit 1
    fi
    found=${header#eigen3/}
    mkdir -p ".headers/$(dirname "$found")"
    cp -rL "/usr/include/$header" ".headers/$found"
  done
  du -sh .headers
}

say() { printf '\n== %s\n' "$*"; }

seconds_left() { echo $((deadline - SECONDS)); }

# step NAME SECONDS COMMAND...: bounded by its own seconds and by what is left of all; its output goes to NAME.log.
step() {
  local name=$1 bound=$2 status began=$SECONDS
  shift 2
  [ "$bound" -le "$(seconds_left)" ] || bound=$(seconds_left)
  if [ "$bound" -le 0 ]; then
    printf '%-34s not done: no time left\n' "$name" | tee -a "$summary"
    failed=1
    return 1
  fi
  timeout --kill-after=5 "$bound" "$@" >"$out/$name.log" 2>&1 </dev/null
  status=$?
  local what=passed
  [ $status -eq 0 ] || what="failed with status $status"
  [ $status -ne 124 ] && [ $status -ne 137 ] || what="stopped after $bound s"
  printf '%-34s %s (%d s)\n' "$name" "$what" $((SECONDS - began)) | tee -a "$summary"
  if [ $status -ne 0 ]; then
    tail -n 15 "$out/$name.log" | sed 's/^/    /'
    failed=1
  fi
  return $status
}

# What is needed to say later what the figures were measured on.
versions() {
  date -u '+%F %T UTC'
  uname -srm
  git log -1 --format='rehearse %H' 2>/dev/null
  grep -m1 'model name' /proc/cpuinfo
  nproc
  nvidia-smi 2>&1
  nvidia-smi topo -m 2>&1
  "${CUDACXX:-nvcc}" --version
  cmake --version | head -n 1
  grep -E 'NCCL_(INCLUDE_DIR|LIBRARY)|CMAKE_CUDA_COMPILER:' "$build/CMakeCache.txt"
}

# record NAME RANKS SETTING...: a run of the perceptron below, as NAME.json, with what it printed.
record() {
  local name=$1 ranks=$2 overrides=() setting share=()
  shift 2
  for setting in "$@"; do overrides+=(--set "$setting"); done
  [ "$ranks" -le "$gpus" ] || share=(--oversubscribe)
  step "run-$name" 45 "$run" run "$out/scenario.toml" --device gpu "${share[@]}" --patience 20 --format json \
    --trace "$out/run-$name.json" "${overrides[@]}"
}

write_scenario() {
  cat >"$out/scenario.toml" <<'END'
# 67 MB of gradients in four layers.
[model.multi_layer_perceptron]
widths = [2048, 2048, 2048, 2048, 2048]
[training]
global_batch = 512
micro_batch = 64
precision = "fp32"
optimizer = "momentum"
[cluster]
nodes = 1
[cluster.node]
device = "h200"
devices = 1
nic_gbps = 100
[cluster.fabric]
kind = "switch"
[run]
steps = 10
warmup = 2
END
}

record_runs() {
  local ranks
  write_scenario
  record one 1
  for ranks in 2 3 4; do
    record "ring-$ranks" "$ranks" "strategy.data=$ranks" "cluster.nodes=$ranks" "training.global_batch=$((128 * ranks))"
    record "server-$ranks" "$ranks" "strategy.data=$((ranks - 1))" "cluster.nodes=$((ranks - 1))" \
      "training.global_batch=$((128 * (ranks - 1)))" 'strategy.gradients="parameter-server"'
    [ "$ranks" -eq 3 ] || record "pipeline-$ranks" "$ranks" "strategy.pipeline=$ranks" "cluster.nodes=$ranks"
  done
  record "bf16-2" 2 "strategy.data=2" "cluster.nodes=2" 'training.precision="bf16"'
}

case "${1:-}" in
  -h | --help) usage && exit 0 ;;
  --carry) carry && exit 0 ;;
  -*) usage >&2 && exit 2 ;;
esac
[ $# -le 1 ] || { usage >&2 && exit 2; }

SECONDS=0
deadline=470
failed=0
out=${1:-check-gpu-results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
build="build-gpu"
run=$build/bin/rehearse-run
summary=$out/summary.txt
: >"$summary"

say "Building in $build/"
options=(-DCMAKE_BUILD_TYPE=Release -DREHEARSE_BENCHMARKS=OFF -DREHEARSE_MPI=OFF)
[ ! -d .headers ] || options+=("-DREHEARSE_HEADERS=$PWD/.headers")
! command -v ninja >/dev/null || options+=(-G Ninja)
step configure 60 cmake -S . -B "$build" "${options[@]}"
if step build 240 cmake --build "$build" -j "$(nproc)" --target rehearse-run; then
  "$run" --version >>"$out/versions.log" 2>&1
  if ! grep -q 'GPU code for' "$out/configure.log"; then
    printf '%-34s %s\n' cuda "left out: $(grep -m1 -o 'runs on GPUs.*' "$out/configure.log")" | tee -a "$summary"
    failed=1
  fi
  tests=no
  if grep -q '^Tests are left out' "$out/configure.log"; then
    printf '%-34s left out: no catch2/catch.hpp came along\n' tests | tee -a "$summary"
  elif step build-tests 120 cmake --build "$build" -j "$(nproc)" --target test_cuda; then
    tests=yes
  fi

  say "Running on GPUs"
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
  versions >>"$out/versions.log" 2>&1
  if [ "$gpus" -eq 0 ]; then
    printf '%-34s not done: this machine has no GPU that answers (nvidia-smi -L)\n' "tests and runs" | tee -a "$summary"
    failed=1
  else
    # Tests that share a GPU through NCCL come last of the tests: what hangs there has used its own time only.
    if [ $tests = yes ]; then
      step test-arithmetic 90 "$build/bin/test_cuda" 'training on*'
      step test-messages 60 "$build/bin/test_cuda" 'messages*'
      step test-losses 120 "$build/bin/test_cuda" 'GPUs train*'
      if grep -qE 'skipped: (no GPU|cuda)' "$out"/test-*.log; then
        printf '%-34s skipped: CUDA finds no GPU, whatever nvidia-smi says\n' tests | tee -a "$summary"
        failed=1
      fi
    fi
    if "$run" --help | grep -q '^ *calibrate '; then
      step calibrate 180 "$run" calibrate --device gpu --out "$out/calibrated" --seconds 120 --only-compute
    else
      printf '%-34s not done: this rehearse-run does not calibrate\n' calibrate | tee -a "$summary"
    fi
    record_runs
  fi
fi

say "$([ $failed -eq 0 ] && echo "All passed" || echo "Some steps failed") in $SECONDS s; results in $out"
ls "$out"
exit $failed
