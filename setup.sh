#!/bin/bash
# Installs missing packages, builds Rehearse, and shows or tests it. Supports Debian 12 and 13, Ubuntu 24.04.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# A|B lists a package's names in Debian and Ubuntu; the first one that the distribution knows is used.
packages=(g++ cmake ninja-build libsimgrid-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libyaml-cpp-dev)
# What the other programs and the tests need: as many packages again.
more_packages=(catch2 libbenchmark-dev locales libeigen3-dev libopenmpi-dev openmpi-bin iproute2
  qt6-base-dev libqt6opengl6-dev 'qt6-svg-dev|libqt6svg6-dev' 'qt6-charts-dev|libqt6charts6-dev' libsimdjson-dev
  libboost-context-dev fonts-dejavu-core)

usage() {
  cat <<'END'
usage: ./setup.sh demo    install what `rehearse` needs, build it, and simulate two of the shipped scenarios
       ./setup.sh window  install what is missing, build, and open the demo's timelines in the window
       ./setup.sh test    install what is missing, build, and run all tests
Packages come from apt (with sudo unless you are root). Everything else stays in the folder build/.
All can be run again at any time.
END
}

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf 'setup.sh: %s\n' "$*" >&2
  exit 1
}

installed() { # A|B: succeeds if either is installed
  local name
  for name in ${1//|/ }; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return
  done
  return 1
}

named_here() { # A|B: prints the first name that apt knows, else A
  local name
  [[ $1 == *"|"* ]] || { echo "$1" && return; }
  for name in ${1//|/ }; do
    apt-cache show "$name" >/dev/null 2>&1 && echo "$name" && return
  done
  echo "${1%%|*}"
}

install_missing() {
  command -v apt-get >/dev/null ||
    fail "apt-get not found; install by hand what these Debian packages hold, then use cmake: ${packages[*]}"
  local package missing=() root=()
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "All packages are installed"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "run as root or install sudo; missing packages: ${missing[*]}"
    root=(sudo)
  fi
  say "Installing with apt: ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
  local named=()
  for package in "${missing[@]}"; do named+=("$(named_here "$package")"); done
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${named[@]}"
}

# Prints the number of compile jobs: at most one per processor and per 1.5 GB of memory.
jobs() {
  local processors memory_kb by_memory
  processors=$(nproc)
  memory_kb=$(awk '/^MemTotal:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kb / 1500000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((by_memory < processors ? by_memory : processors))
}

build() { # targets; without any, builds all
  # Warnings are errors only in CI: another compiler's warnings must not keep anyone from building. CI also tests with the
  # standard library's assertions.
  local options=("${required[@]}" -DREHEARSE_UNITY=ON
    ${CI:+-DREHEARSE_WERROR=ON -DCMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS})
  say "Configuring (cmake --preset release ${options[*]})"
  cmake --preset release "${options[@]}" ||
    fail "CMake could not configure the build, or would leave out a part whose packages are installed; see above"
  say "Building in build/ with $(jobs) jobs"
  cmake --build --preset release -j "$(jobs)" ${1:+--target "$@"}
}

demo() {
  local scenario name
  for scenario in simulator/scenarios/resnet50-ring.toml simulator/scenarios/gpt3-175b.toml; do
    name=$(basename "$scenario" .toml)
    say "build/bin/rehearse simulate $scenario --trace build/$name.trace.json.gz"
    build/bin/rehearse simulate "$scenario" --trace "build/$name.trace.json.gz"
  done
  say "The timelines are in build/resnet50-ring.trace.json.gz and build/gpt3-175b.trace.json.gz"
  echo "To see them: ./setup.sh window. Or open https://ui.perfetto.dev, choose \"Open trace file\", and pick one."
}

window() {
  local trace=build/gpt3-175b.trace.json.gz
  [ -e "$trace" ] || build/bin/rehearse simulate simulator/scenarios/gpt3-175b.toml --trace "$trace"
  say "build/bin/rehearse-gui $trace"
  build/bin/rehearse-gui "$trace"
}

if [ $# -eq 0 ] || [[ $1 =~ ^(-h|--help|help)$ ]]; then
  usage
  exit 0
fi
if [ $# -ne 1 ] || [[ ! $1 =~ ^(demo|window|test)$ ]]; then
  printf 'setup.sh: unknown argument: %s\n' "$*" >&2
  usage >&2
  exit 2
fi
required=(-DREHEARSE_REQUIRE_ALL=OFF -DREHEARSE_REQUIRE_SIMULATOR=ON)
if [ "$1" != demo ]; then
  required=(-DREHEARSE_REQUIRE_ALL=ON)
  packages+=("${more_packages[@]}")
fi
install_missing
case $1 in
  demo)
    build rehearse
    demo
    ;;
  window)
    build rehearse rehearse-gui
    window
    ;;
  test)
    build
    say "Testing (ctest --preset release)"
    ctest --preset release -j "$(nproc)"
    ;;
esac
