#!/usr/bin/env bash
# Run configs/embedded.yaml again and compare the digest of each of its 54 records with docs/study/digests.txt.
# Usage: tools/reproduce_study.sh [FOLDER] [RANKS]   (default runs/embedded, one rank a core)
set -euo pipefail
cd "$(dirname "$0")/.."
dir="${1:-runs/embedded}"
ranks="${2:-$(nproc)}"
tools/setup.sh
. tools/mpi_env.sh

cmake --preset cpu >/dev/null
cmake --build --preset cpu --target rrl -j "$(nproc)" >/dev/null
rrl=build/cpu/rrl
mpirun -n "$ranks" "$rrl" study configs/embedded.yaml --threads 1 --quiet --set output_dir="$dir"

differ=0
while read -r want run; do
    found="$("$rrl" show --digest "$dir/$run")"
    [ "$found" = "$want" ] || { echo "differs: $run: $found, expected $want"; differ=$((differ + 1)); }
done <docs/study/digests.txt
echo "$(wc -l <docs/study/digests.txt) records, $differ differ"
[ "$differ" -eq 0 ]
