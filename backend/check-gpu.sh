#!/bin/bash
# Checks everything that needs a GPU, on a machine with only the CUDA toolkit, NCCL, CMake and a compiler, and
# leaves the tests' output, profiles and recorded runs in one folder, for `rehearse validate` on any machine.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
  cat <<'END'
usage: backend/check-gpu.sh [--only PART] [FOLDER]
           build, test, calibrate and record on this machine's GPUs, in 8 minutes at most; FOLDER (default
           check-gpu-results) takes the results; PART: test, calibrate or record
       backend/check-gpu.sh --carry
           on a machine with the packages of setup.sh: copy the headers that the build takes to .headers/, to go along
           to a machine without packages
Environment: CHECK_GPU_BUILD    a folder that is built already and is used as it is (default: build-gpu, built here)
             CHECK_GPU_PRELOAD  a library for LD_PRELOAD of the programs that use GPUs
             CHECK_GPU_SECONDS  for the measurements of a device (90); half as long for those of links
             CHECK_GPU_WIDTH    of the recorded perceptron's layers (2048)
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

wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }

seconds_left() { echo $((deadline - SECONDS)); }

# step NAME SECONDS COMMAND...: runs the command for at most SECONDS, and at most for the rest of the total
# time; writes its output to NAME.log.
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

# Prints the details of the system on which the figures are measured.
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

# Ranks share GPUs if there are more ranks than GPUs.
sharing() { [ "$1" -le "$gpus" ] || echo --oversubscribe; }

# record NAME RANKS SETTING...: runs the perceptron below and stores the record as NAME.json, with the output.
record() {
  local name=$1 ranks=$2 overrides=() setting
  shift 2
  for setting in "$@"; do overrides+=(--set "$setting"); done
  # shellcheck disable=SC2046 # one option or none
  step "run-$name" 45 "${on_gpu[@]}" "$run" run "$out/scenario.toml" --device gpu $(sharing "$ranks") --patience 20 \
    --format json --trace "$out/run-$name.json" "${overrides[@]}"
}

write_scenario() {
  local width=${CHECK_GPU_WIDTH:-2048}
  cat >"$out/scenario.toml" <<END
# Four layers; of 2048 they have 67 MB of gradients.
[model.multi_layer_perceptron]
widths = [$width, $width, $width, $width, $width]
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
  record "bf16-2" 2 "strategy.data=2" "cluster.nodes=2" 'training.precision="bf16"' \
    'training.gradient_precision="fp32"'
}

# Tests that share a GPU through NCCL come last: a test that hangs then only uses up its own time.
run_tests() {
  step test-arithmetic 90 "${on_gpu[@]}" "$build/bin/test_cuda" 'training on*'
  step test-messages 60 "${on_gpu[@]}" "$build/bin/test_cuda" 'messages*'
  step test-losses 120 "${on_gpu[@]}" "$build/bin/test_cuda" 'GPUs train*'
  if grep -qE 'skipped: (no GPU|cuda)' "$out"/test-*.log; then
    printf '%-34s skipped: CUDA finds no GPU, whatever nvidia-smi says\n' tests | tee -a "$summary"
    failed=1
  fi
}

calibrate() {
  local seconds=${CHECK_GPU_SECONDS:-90} ranks=$((gpus > 2 ? gpus : 2))
  mkdir -p "$out/calibrated"
  step calibrate-device $((seconds + 60)) "${on_gpu[@]}" "$run" calibrate --device gpu --only-compute \
    --seconds "$seconds" --out "$out/calibrated" --name gpu
  # shellcheck disable=SC2046 # one option or none
  step calibrate-links $((seconds / 2 + 60)) "${on_gpu[@]}" "$run" calibrate --device gpu --only-links \
    --ranks "$ranks" $(sharing "$ranks") --seconds $(((seconds + 1) / 2)) --out "$out/calibrated" --name gpu \
    --table "$out/calibrated/links.csv"
}

# Builds what is needed; sets `tests` to whether there are tests to run.
build_here() {
  local options=(-DCMAKE_BUILD_TYPE=Release -DREHEARSE_BENCHMARKS=OFF -DREHEARSE_MPI=OFF)
  say "Building in $build/"
  [ ! -d .headers ] || options+=("-DREHEARSE_HEADERS=$PWD/.headers")
  ! command -v ninja >/dev/null || options+=(-G Ninja)
  step configure 60 cmake -S . -B "$build" "${options[@]}"
  step build 240 cmake --build "$build" -j "$(nproc)" --target rehearse-run || return 1
  if ! grep -q 'GPU code for' "$out/configure.log"; then
    printf '%-34s %s\n' cuda "left out: $(grep -m1 -o 'runs on GPUs.*' "$out/configure.log")" | tee -a "$summary"
    failed=1
  fi
  tests=no
  if grep -q '^Tests are left out' "$out/configure.log"; then
    printf '%-34s left out: no catch2/catch.hpp came along\n' tests | tee -a "$summary"
  elif wants test && step build-tests 120 cmake --build "$build" -j "$(nproc)" --target test_cuda; then
    tests=yes
  fi
  return 0
}

only=
case "${1:-}" in
  -h | --help) usage && exit 0 ;;
  --carry) carry && exit 0 ;;
  --only)
    only=${2:-}
    case "$only" in test | calibrate | record) shift 2 ;; *) usage >&2 && exit 2 ;; esac
    ;;
  -*) usage >&2 && exit 2 ;;
esac
[ $# -le 1 ] || { usage >&2 && exit 2; }

SECONDS=0
deadline=470
failed=0
tests=yes
out=${1:-check-gpu-results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
build=${CHECK_GPU_BUILD:-build-gpu}
run=$build/bin/rehearse-run
on_gpu=(env)
[ -z "${CHECK_GPU_PRELOAD:-}" ] || on_gpu+=("LD_PRELOAD=$CHECK_GPU_PRELOAD")
summary=$out/summary.txt
: >"$summary"

if [ -n "${CHECK_GPU_BUILD:-}" ] || build_here; then
  "$run" --version >>"$out/versions.log" 2>&1
  say "Running on GPUs"
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
  versions >>"$out/versions.log" 2>&1
  if [ "$gpus" -eq 0 ]; then
    printf '%-34s not done: this machine has no GPU that answers (nvidia-smi -L)\n' "tests and runs" | tee -a "$summary"
    failed=1
  else
    ! wants test || [ $tests = no ] || run_tests
    ! wants calibrate || calibrate
    ! wants record || record_runs
  fi
fi

say "$([ $failed -eq 0 ] && echo "All passed" || echo "Some steps failed") in $SECONDS s; results in $out"
ls "$out"
exit $failed
