#!/usr/bin/env bash
# Build and test: every test of the cpu preset, then the unit tests under the sanitizers. Usage: tools/test.sh [cpu|asan|all]
set -euo pipefail
cd "$(dirname "$0")/.."
what="${1:-all}"
tools/setup.sh tests
. tools/mpi_env.sh
jobs="$(nproc)"

run() { # preset, ctest arguments
    preset="$1"
    shift
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" -j "$jobs" | grep -E 'warning|error|\*\*\*' || true
    cmake --build --preset "$preset" -j "$jobs" >/dev/null # fails here if the build above did
    ctest --preset "$preset" -j "$jobs" "$@"
}

[ "$what" = asan ] || run cpu -LE 'slow|soak|fuzz'
[ "$what" = cpu ] || run cpu-asan -L unit
