#!/usr/bin/env bash
# The study on a real Slurm: a grid array and its report, a warning with a requeue, cancelled and submitted again, the node
# daemon killed, one run over ranks of every role. Whatever happened, the digest is that of the undisturbed study.
# Usage: test_slurm.sh PROGRAM WORK_FOLDER      Exit 77 = skipped: Slurm is not installed
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/slurm_fixture.sh"
rrl=$1 work=$2 failures=0
if tool=$(slurm_missing); then
    echo "skipped: no $tool (tools/setup.sh tests installs Slurm)" >&2
    exit 77
fi
rm -rf "$work"
mkdir -p "$work" && cd "$work" || exit 1
state_dir=$(mktemp -d "${TMPDIR:-/tmp}/rrl-slurm.XXXXXX")
trap 'slurm_stop; rm -rf "$state_dir"' EXIT
export RRL_ROOT=$here/.. RRL=$rrl OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
submit=$RRL_ROOT/slurm/submit_study.sh

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then return; fi
    echo "FAILED: $what: $*" >&2
    failures=$((failures + 1))
}
wait_for() { # SECONDS COMMAND...: true within the time
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then return 1; fi
        sleep 0.2
    done
}
equal() { [ "$1" = "$2" ]; }
digest() { "$rrl" show --digest "$1"; }
has() { grep -q -- "$2" "$1"; }
queue_empty() { [ -z "$(squeue -h)" ]; }
job_gone() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
# Condition 1 of a study trains and has done at least 5 updates in this attempt or the ones before.
under_way() { "$rrl" status "$1" --json | grep -Eq '"index": 1, "status": "running".*"step": ([5-9]|[1-9][0-9]+),'; }
status_of() { "$rrl" status "$1" --json | sed -nE "s/^  \{\"index\": $2, \"status\": \"([a-z]+)\".*/\1/p" | head -1; }
# Only when something failed: what the jobs wrote.
evidence() { tail -n 30 ./*.out "$state_dir"/slurm*.log; }

cat >study.yaml <<YAML
seed: 7
dataset: {path: $RRL_ROOT/data/tiny/test.jsonl, limit: 6}
model: {name: $RRL_ROOT/data/tiny, cpu_threads: 1}
generation: {num_generations: 8, temperature: 0.7, max_tokens: 24}
training_verifier: {members: [rule, rule, rule]}
evaluation: {k: [1]}
training: {max_steps: STEPS, batch_size: 16, learning_rate: 1e-3, save_steps: 20, lora: {r: 4, alpha: 8}}
records: {steps_per_segment: 8}
experiment:
  label: Slurm
  seeds: [7]
  train_dataset: {path: $RRL_ROOT/data/tiny/train.jsonl, limit: 32}
  arms:
    - {name: flip, corruption: flip, levels: [0, 0.5], methods: [base, baseline]}
YAML
# Enough updates to be caught in the middle of, about 8 s on any machine.
sed -i 's/STEPS/20/' study.yaml
one=(train study.yaml --quiet --set 'experiment.arms=[]')
ms=$(date +%s%3N)
"$rrl" "${one[@]}" --set "output_dir=$work/timing" >timing.out || exit 1
steps=$((160000 / ($(date +%s%3N) - ms)))
sed -i "s/max_steps: 20/max_steps: $((steps < 40 ? 40 : steps))/" study.yaml
"$rrl" study study.yaml --quiet --set "output_dir=$work/plain" >plain.out || { cat plain.out; exit 1; }
want=$(digest plain)
slurm_start "$state_dir" 4 || exit 1

# Sets id to the array job.
submit_study() { # DIR [OPTIONS]
    "$submit" study.yaml --set "output_dir=$work/$1" --at-once 2 "${@:2}" >submit.out || cat submit.out
    id=$(sed -nE 's/^array job ([0-9]+):.*/\1/p' submit.out)
}
complete_and_equal() { # DIR WHAT
    check "$2: jobs end" wait_for 240 queue_empty
    check "$2: digest" equal "$(digest "$1")" "$want"
    check "$2: report" test -s "$1/report/report.md"
}

array_and_report() {
    submit_study grid --dry-run
    check "dry run shows the array" has submit.out '--array=0-3%2'
    check "dry run shows the scripts" has submit.out '#SBATCH --signal=B:USR2@120'
    check "dry run submits nothing" queue_empty
    submit_study grid
    check "array submitted" test -n "$id"
    check "submitted twice" equal "$("$submit" study.yaml --set "output_dir=$work/grid" 2>&1 | grep -c 'already')" 1
    complete_and_equal grid array
    check "the report job says what it found" has "$(ls rrl-grid-report-*.out)" '4 conditions, 4 complete'
    submit_study grid
    check "complete: nothing is submitted" has submit.out 'nothing to submit'
}

# Slurm's warning: a checkpoint, exit 4, the same task again later, in the same log.
warned_and_requeued() {
    local log
    submit_study warned
    check "warned: training" wait_for 60 under_way warned
    scancel --batch --signal=USR2 "${id}_1"
    complete_and_equal warned warned
    log=$(grep -l 'signal=USR2' rrl-warned-*.out)
    check "warned: requeued" has "$log" 'requeued=yes'
    check "warned: the log goes on" has "$log" 'restarts=1'
    check "warned: from the checkpoint" has warned/flip/level-0/seed-7/baseline/run.json '"checkpointed"'
}

# Cancelled is cancelled: no requeue; the next submission goes on from there.
cancelled_and_submitted_again() {
    submit_study cancelled
    check "cancelled: training" wait_for 60 under_way cancelled
    scancel "$id"
    check "cancelled: jobs end" wait_for 60 queue_empty
    check "cancelled: left to do" test "$(status_of cancelled 1)" != complete
    check "cancelled: not running" test "$(status_of cancelled 1)" != running
    submit_study cancelled
    complete_and_equal cancelled cancelled
}

# A rank killed without a warning, as when memory is gone: the task fails, the others go on, nothing is requeued.
killed() {
    submit_study killed
    check "killed: training" wait_for 60 under_way killed
    kill -KILL "$(sed -nE 's/.*"pid": ([0-9]+).*/\1/p' killed/flip/level-0/seed-7/baseline/lock)"
    check "killed: jobs end" wait_for 120 queue_empty
    check "killed: interrupted" equal "$(status_of killed 1)" interrupted
    check "killed: others went on" equal "$(status_of killed 3)" complete
    submit_study killed
    complete_and_equal killed killed
}

node_daemon_killed() {
    submit_study daemon
    check "daemon: training" wait_for 60 under_way daemon
    slurm_node_kill
    sleep 1
    slurm_node_start
    complete_and_equal daemon daemon
}

# One run over three ranks of one role each, warned in the middle, equals one rank undisturbed; mpirun in place of srun too.
train_split() {
    local split=(--set parallel.roles.generators=1 --set parallel.roles.verifiers=1 --set parallel.roles.learners=1)
    local train=(--parsable --ntasks-per-node=3 "$RRL_ROOT/slurm/train.sbatch" "${one[@]:1}")
    "$rrl" "${one[@]}" --set "output_dir=$work/one" >one.out 2>&1 || cat one.out
    id=$(sbatch "${train[@]}" "${split[@]}" --set "output_dir=$work/split")
    check "split: training" wait_for 60 grep -q '"step": [1-9]' split/progress.json
    scancel --batch --signal=USR2 "$id"
    check "split: job ends" wait_for 180 job_gone "$id"
    check "split: requeued" has "rrl-train-$id.out" 'requeued=yes'
    check "split: digest" equal "$(digest split)" "$(digest one)"
    id=$(RRL_LAUNCH=mpirun sbatch "${train[@]}" --set "output_dir=$work/mpirun" --set training.max_steps=5)
    check "mpirun: job ends" wait_for 60 job_gone "$id"
    check "mpirun: done" has "rrl-train-$id.out" 'exit=0'
    check "mpirun: three ranks" has "rrl-train-$id.out" 'ranks=3'
}

for part in array_and_report warned_and_requeued cancelled_and_submitted_again killed node_daemon_killed train_split; do
    before=$failures began=$SECONDS
    $part
    echo "$part: $((SECONDS - began)) s, $((failures - before)) failed"
done
if [ $failures -gt 0 ]; then evidence; fi
exit $((failures > 0))
