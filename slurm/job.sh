# shellcheck shell=bash
# Sourced by the job scripts and by submit_study.sh: where the program is, how a step is started, and what a warning and an
# exit code mean. What a cluster wants otherwise stands in slurm/site.sh (see site.sh.example), which is sourced first.
#
#   RRL           the program, with a container's words before it if need be   default: build/cpu/rrl of this project
#   RRL_LAUNCH    what starts the ranks of a step                              default: srun --mpi=pmix --wait=60
#   RRL_GRACE     seconds from Slurm's warning until the job is requeued even if the step has not stopped   default: 90
#   RRL_MAX_RESTARTS  requeues after which a job gives up                      default: 1000
#   RRL_SCRATCH   a folder on each node's own disk for temporary files         default: none
#   RRL_STAGE_MODEL   a model folder that is copied there first and read there default: none

RRL_ROOT=${RRL_ROOT:-${SLURM_SUBMIT_DIR:-$PWD}}
if [ -r "$RRL_ROOT/slurm/site.sh" ]; then . "$RRL_ROOT/slurm/site.sh"; fi
read -ra rrl <<<"${RRL:-$RRL_ROOT/build/cpu/rrl}"
read -ra launch <<<"${RRL_LAUNCH:-srun --mpi=pmix --wait=60}"

say() { printf 'ts=%(%Y-%m-%dT%H:%M:%SZ)T level=info event=job %s\n' -1 "$*"; }

# A task of an array by its own name: the bare number of an array's last task means the whole array.
job_name() {
    if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then
        echo "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
    else
        echo "$SLURM_JOB_ID"
    fi
}

job_field() { scontrol show job -o "$(job_name)" | sed -nE "s/.*[[:space:]]$1=([^[:space:]]*).*/\1/p"; }

# The program stops by itself when no further step fits before this time; older Slurms do not set it.
set_end_time() {
    local end
    if [ -n "${SLURM_JOB_END_TIME:-}" ]; then return; fi
    end=$(date -d "$(job_field EndTime)" +%s 2>/dev/null) && export SLURM_JOB_END_TIME=$end
}

each_node() { srun --mpi=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 "$@"; }

# Temporary files, and the model if asked for, on the nodes' own disks. Records stay where the config says: they must
# outlive the node.
use_scratch() {
    if [ -z "${RRL_SCRATCH:-}" ]; then return; fi
    scratch=$RRL_SCRATCH/rrl-$SLURM_JOB_ID
    each_node mkdir -p "$scratch" || exit 1
    trap 'each_node rm -rf "$scratch"' EXIT
    export TMPDIR=$scratch
    if [ -z "${RRL_STAGE_MODEL:-}" ]; then return; fi
    each_node cp -r "$RRL_STAGE_MODEL" "$scratch/model" || exit 1
    staged=(--set "model.name=$scratch/model")
}

check_gpus() {
    local ranks=${SLURM_NTASKS_PER_NODE:-${SLURM_NTASKS:-1}}
    if [ "${SLURM_GPUS_ON_NODE:-0}" -gt "$ranks" ]; then
        say "note=\"$SLURM_GPUS_ON_NODE GPUs and $ranks ranks a node: give sbatch --ntasks-per-node=$SLURM_GPUS_ON_NODE\""
    fi
}

# Again later, from the checkpoint; unless somebody is ending the job, who then decides himself.
requeue() {
    local state
    state=$(job_field JobState)
    if [ "$state" != RUNNING ]; then
        say "requeued=no state=$state"
    elif [ "${SLURM_RESTART_COUNT:-0}" -ge "${RRL_MAX_RESTARTS:-1000}" ]; then
        say "requeued=no restarts=$SLURM_RESTART_COUNT"
    else
        say "requeued=yes restarts=${SLURM_RESTART_COUNT:-0}"
        scontrol requeue "$(job_name)"
    fi
}

# USR2 to the step whatever came: srun and mpirun pass it on to every rank, while TERM would make them kill the ranks.
warn() { # SIGNAL
    interrupted=yes
    if [ -z "$warned" ]; then
        warned=$1
        say "signal=$1 step_pid=${step:-none}"
        if [ "$1" = USR2 ]; then
            (trap 'kill $!' TERM; sleep "${RRL_GRACE:-90}" & wait $! && requeue) &
            timer=$!
        fi
    fi
    if [ -n "$step" ]; then kill -USR2 "$step" 2>/dev/null; fi
}

# Run rrl WORDS as a step of the job; sets code. 4 = stopped with a checkpoint, and so is 140 after a warning: the signal
# came before the program could listen.
run_step() {
    local ended
    step='' timer='' warned='' code=''
    trap 'warn USR2' USR2 USR1 # USR1 where somebody asked sbatch for that; the program is told USR2
    trap 'warn TERM' TERM
    "${launch[@]}" "${rrl[@]}" "$@" &
    step=$!
    while :; do
        interrupted=
        wait "$step"
        ended=$?
        if [ "$ended" != 127 ] || [ -z "$code" ]; then code=$ended; fi # 127: its code was fetched before
        if [ -z "$interrupted" ]; then break; fi
    done
    if [ -n "$timer" ]; then kill "$timer" 2>/dev/null; fi
    if [ -n "$warned" ] && [ "$code" = 140 ]; then code=4; fi
}

# The whole of a job script: run_job WORDS of rrl.
run_job() {
    staged=()
    export SRUN_CPUS_PER_TASK=${SRUN_CPUS_PER_TASK:-${SLURM_CPUS_PER_TASK:-1}}
    set_end_time
    check_gpus
    use_scratch
    say "host=$(hostname -s) nodes=${SLURM_JOB_NUM_NODES:-1} ranks=${SLURM_NTASKS:-1} restarts=${SLURM_RESTART_COUNT:-0}"
    run_step "$@" "${staged[@]}"
    say "exit=$code"
    if [ "$code" = 4 ]; then requeue; fi
    exit "$code"
}
