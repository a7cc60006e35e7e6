#!/usr/bin/env bash
# Runs that are killed or meet a fault, resumed, compared by digest, until a number of rounds or the time is up.
# Usage: tests/soak.sh RRL WORK_FOLDER SECONDS [SEED]
#
# Turn about: a SIGKILL at a random moment to a random rank of a split layout (until 100 hit one), and one visit of one fault
# site (RRL_FAULT; sites from `rrl --fault-sites`; of a fresh run and of one that resumes), n = 1, 2, ... until a run meets
# none. After each: no run hangs, the next one completes and has the digest of the undisturbed run. Where n counts, every
# segment and checkpoint is written (records.writer_share=1); killed runs and those that go on also join some of them.
# Prints what was done. Exit 1 on a difference; the run's folder is kept.
set -uo pipefail
rrl="$1" work="$2" seconds="$3" RANDOM="${4:-20}"
source="$(cd "$(dirname "$0")/.." && pwd)"
kills=100 longest=180 # longest: seconds after which a run counts as hanging, on a busy machine
begun=$SECONDS failures=0 killed=0 died=0 faults=0 rounds_done=0
declare -A visits kills_of=([0]=0 [1]=0 [2]=0 [3]=0)
names=(generator generator verifier learner) # of the ranks of a split layout
shares=(1 0.2 0.01)                          # of a core for the writer: the fewer, the more is joined
. "$source/tools/mpi_env.sh"
export OMPI_MCA_ess_singleton_isolated=1 # one rank alone needs no helper process
rm -rf "$work"
mkdir -p "$work"

small=(--quiet --threads 1 --set dataset.limit=4 --set experiment.train_dataset.limit=16 --set generation.max_tokens=12
    --set training.max_steps=6 --set training.save_steps=2 --set records.steps_per_segment=1)
roles=(--set parallel.roles.generators=2 --set parallel.roles.verifiers=1 --set parallel.roles.learners=1)
each=(--set records.writer_share=1)
command=(train "$source/configs/train.yaml" "${small[@]}" --set "output_dir=$work/out")

left() { [ $((SECONDS - begun)) -lt "$seconds" ]; }
alone() { { timeout -k 5 $longest "$rrl" "${command[@]}" "$@" >"$work/log" 2>&1; } 2>/dev/null; } # no word of kills
split() { timeout -k 5 $longest mpirun -n 4 "$rrl" "${command[@]}" "${roles[@]}" "$@" >"$work/log" 2>&1; }
digest() { "$rrl" show --digest "$work/out" 2>>"$work/log" | cut -c 1-64; }

fail() { # what
    failures=$((failures + 1))
    echo "FAILED: $*"
    tail -5 "$work/log"
    rm -rf "$work/failed-$failures" && cp -a "$work/out" "$work/failed-$failures" 2>/dev/null
}

hangs() { [ "$1" = 124 ] || [ "$1" = 137 ]; }

any_share() { share=(--set "records.writer_share=${shares[$((RANDOM % ${#shares[@]}))]}"); }

# Four ranks in the background, as $job; returns when they have claimed the folder.
start_split() {
    any_share
    mpirun -n 4 "$rrl" "${command[@]}" "${roles[@]}" "${share[@]}" >"$work/log" 2>&1 &
    job=$!
    while kill -0 $job 2>/dev/null && [ ! -e "$work/out/run.json" ]; do sleep 0.01; done
}

# The next run completes, in another layout than the one before, and is equal.
finish() { # what, start
    any_share
    alone "${share[@]}" || { fail "$1: resuming ends with $?"; return; }
    local found
    found="$(digest)"
    [ "$found" = "$want" ] || fail "$1: digest '$found', expected $want"
    [ -z "$(ls "$work/out/quarantine" 2>/dev/null)" ] || [ "${2:-}" = torn ] || fail "$1: steps made again differ"
}

random_kill() {
    local delay=$((RANDOM * duration_ms / 32768)) rank=$((RANDOM % 4)) ranks i
    rm -rf "$work/out"
    start_split
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    ranks=($(cat "/proc/$job/task/$job/children" 2>/dev/null))
    # on a machine that others use a run's length is not constant: the moments follow it
    if [ ${#ranks[@]} -eq 4 ] && kill -KILL "${ranks[$rank]}" 2>/dev/null; then
        died=$((died + 1)) kills_of[$rank]=$((${kills_of[$rank]} + 1)) duration_ms=$((duration_ms * 10 / 9))
    else
        duration_ms=$((duration_ms * 2 / 3))
    fi
    for ((i = 0; i < longest * 10; i++)); do kill -0 $job 2>/dev/null || break; sleep 0.1; done
    if kill -0 $job 2>/dev/null; then
        kill -KILL $job "${ranks[@]}" 2>/dev/null
        fail "kill of rank $rank after $delay ms: the others hang"
    fi
    wait $job 2>/dev/null
    killed=$((killed + 1))
    finish "kill of rank $rank after $delay ms"
}

# One visit of a site: killed there, then failing there. Sets met.
visit() { # site, n, start (fresh: nothing there; resumed: a killed run; torn: with a cut segment; again: a complete one)
    local site="$1" n="$2" start="$3" kind kinds="kill fail" more=() code
    case "$site" in *.write | *.fsync) kinds="kill fail full" ;; esac
    met=
    for kind in $kinds; do
        rm -rf "$work/out" "$work"/out.old-*
        [ "$start" = fresh ] || cp -a "$work/$start" "$work/out"
        [ "$start" != again ] || more=(--fresh)
        RRL_FAULT="*:$site:$n:$kind" alone "${each[@]}" "${more[@]}"
        code=$?
        if [ $kind = kill ]; then
            [ $code = 137 ] || return 0 # no visit n: the loop over n ends
            met=1
        elif hangs $code; then
            fail "$site visit $n $kind, $start: hangs"
        fi
        faults=$((faults + 1))
        [ -d "$work/out" ] || [ "$start" != again ] || mv "$work"/out.old-1 "$work/out"
        finish "$site visit $n $kind, $start" "$start"
    done
}

# The undisturbed run, its duration under four ranks, and a run killed half way.
split || { fail "undisturbed"; exit 1; }
want="$(digest)"
cp -a "$work/out" "$work/again"
rm -rf "$work/out"
start_split
start_ms=$(date +%s%3N)
wait $job || { fail "undisturbed again"; exit 1; }
duration_ms=$(($(date +%s%3N) - start_ms))
[ "$(digest)" = "$want" ] || fail "two undisturbed runs differ"
rm -rf "$work/out"
RRL_FAULT="*:segment.write:4:kill" alone "${each[@]}" && fail "a run killed at its fourth segment ended well"
cp -a "$work/out" "$work/resumed"
cp -a "$work/out" "$work/torn"
truncate -s 1000 "$(ls "$work"/torn/records/0*.h5 | tail -1)"

# Sites in turn, in an order of the seed; a site leaves the list when a run meets no visit n.
starts() {
    for site in $("$rrl" --fault-sites); do
        for start in fresh resumed; do echo "$RANDOM $site 1 $start"; done
        [ $site != quarantine.move ] || echo "$RANDOM $site 1 torn"
        [ $site != fresh.rename ] || echo "$RANDOM $site 1 again"
    done
}
mapfile -t todo < <(starts | sort -n | cut -d' ' -f2-)
while left && { [ ${#todo[@]} -gt 0 ] || [ $died -lt $kills ]; }; do
    if [ ${#todo[@]} -gt 0 ]; then
        read -r site n start <<<"${todo[0]}"
        todo=("${todo[@]:1}")
        visit "$site" "$n" "$start"
        if [ -n "$met" ]; then
            visits[$site]=$((${visits[$site]:-0} + 1))
            # there are thousands of allocations: those between two that are tried are like them
            [ $site != memory.alloc ] && n=$((n + 1)) || n=$((n * 3 / 2 + 1))
            todo+=("$site $n $start")
        fi
    fi
    if left && [ $died -lt $kills ]; then random_kill; fi
done

echo "$died of $killed runs lost a rank, $faults faults, $failures failures, ${#todo[@]} loops over a site unfinished, $((SECONDS - begun)) s"
for rank in 0 1 2 3; do echo "  rank $rank (${names[$rank]}): ${kills_of[$rank]} kills"; done
for site in $("$rrl" --fault-sites); do echo "  $site: ${visits[$site]:-0} visits"; done
if [ $failures = 0 ]; then rm -rf "$work"; else exit 1; fi
