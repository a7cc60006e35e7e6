#!/usr/bin/env bash
# A study from gate to evidence, with one command: qualify, study, report, export, verify. What is done is not done again,
# so the same command continues after a stop, a failure or a kill. Conditions that failed do not keep the report from those
# that did not; the exit code is then that of the study.
#
#   tools/final_study.sh CONFIG [--set KEY=VALUE ...] [--threads N] [--isa NAME]
#
# RRL: the program (default build/cpu/rrl). RRL_RANKS: ranks under mpirun (default 1: without mpirun).
set -uo pipefail

[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
rrl=${RRL:-$root/build/cpu/rrl}
[ -x "$rrl" ] || { echo "$rrl: no program there; build it (README.md) or set RRL" >&2; exit 1; }
. "$root/tools/mpi_env.sh"
run=("$rrl")
[ "${RRL_RANKS:-1}" -gt 1 ] && run=(mpirun -n "$RRL_RANKS" "$rrl")

step() { echo; echo "=== $1"; }

plan=$("$rrl" validate "$@") || exit
dir=$(sed -n 's/^output  *//p' <<<"$plan")

if grep -q '^qualify ' <<<"$plan"; then
    step "qualify: may this model enter the study?"
    "$rrl" qualify "$@" || exit
fi

step "study"
"${run[@]}" study "$@"
study=$?
# Stopped by a signal: nothing more now, the same command goes on. Refused: there is nothing to report.
[ $study -eq 4 ] && exit 4
[ $study -ne 0 ] && [ ! -e "$dir/study.json" ] && exit $study
[ $study -ne 0 ] && echo "the study ended with exit code $study; what is there is reported and kept" >&2

step "report"
"$rrl" report "$dir" || exit
step "export"
"$rrl" export "$dir" && "$rrl" verify "$dir.evidence.tar" || exit
exit $study
