#!/usr/bin/env bash
# From nothing to the quick study's table: packages, build, the study on the embedded model, the report.
# Usage: tools/quickstart.sh [ranks]   (default: one rank a core)
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/mpi_env.sh

ranks="${1:-$(nproc)}"
cmake --preset cpu >/dev/null
cmake --build --preset cpu --target rrl -j "$(nproc)" >/dev/null
echo "running configs/quick.yaml on $ranks ranks (one thread each)"
mpirun -n "$ranks" build/cpu/rrl study configs/quick.yaml --threads 1
