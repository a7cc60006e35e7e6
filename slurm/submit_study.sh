#!/usr/bin/env bash
# Submit a study: an array job with a task for each condition that is not complete, and a report job after it. Submitting
# again is how a study goes on after anything: what is complete, or running just now, is left out.
#   slurm/submit_study.sh CONFIG [--set KEY=VALUE]... [--at-once K] [--dry-run] [-- OPTIONS OF SBATCH FOR THE ARRAY]
#   --at-once K   tasks that run at one time (8)
#   --dry-run     print the commands and the scripts, submit nothing
# Example: slurm/submit_study.sh configs/quick.yaml --at-once 4 -- --ntasks-per-node=2 --time=2:00:00
set -euo pipefail
usage() { sed -nE '2,8s/^# ?//p' "$0" >&2; exit 2; }

export RRL_ROOT=${RRL_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
. "$RRL_ROOT/slurm/job.sh"
config='' at_once=8 dry='' sets=() options=()
while [ $# -gt 0 ]; do
    case $1 in
    --set) [ $# -gt 1 ] || usage; sets+=(--set "$2"); shift ;;
    --at-once) [ $# -gt 1 ] || usage; at_once=$2; shift ;;
    --dry-run) dry=yes ;;
    --) shift; options=("$@"); break ;;
    -*) usage ;;
    *) [ -z "$config" ] || usage; config=$1 ;;
    esac
    shift
done
if [ -z "$config" ] || ! [[ $at_once =~ ^[1-9][0-9]*$ ]]; then usage; fi
read -ra everywhere <<<"${RRL_SBATCH:-}"

# The plan is the same whatever the ranks; here is one.
one_rank=(--set parallel.ranks_per_team=1 --set parallel.roles.generators=0 --set parallel.roles.verifiers=0
          --set parallel.roles.learners=0)
"${rrl[@]}" study "$config" "${sets[@]}" "${one_rank[@]}" --dry-run --quiet >/dev/null
state=$("${rrl[@]}" status "$config" "${sets[@]}" --json)
dir=$(sed -nE '1s/^\{"path": "([^"]+)",.*/\1/p' <<<"$state")
[ -n "$dir" ] || { echo "$0: rrl status $config --json names no folder in its first line: ${state%%$'\n'*}" >&2; exit 1; }
conditions=$(sed '/"stores": /,$d' <<<"$state")
total=$(grep -c '^  {"index": ' <<<"$conditions")
mapfile -t left < <(sed -nE 's/^  \{"index": ([0-9]+), "status": "(waiting|checkpointed|interrupted|failed)", .*/\1/p' \
    <<<"$conditions")
if [ ${#left[@]} = 0 ]; then
    echo "$dir: nothing to submit: each of the $total conditions is complete or running (rrl status $dir)"
    exit 0
fi

# "0 1 2 5" as 0-2,5
ranges() {
    local first='' last='' i list=''
    for i in "$@" end; do
        if [ -n "$last" ] && [ "$i" = $((last + 1)) ] 2>/dev/null; then
            last=$i
            continue
        fi
        if [ -n "$first" ]; then
            if [ "$first" = "$last" ]; then list+=,$first; else list+=,$first-$last; fi
        fi
        first=$i last=$i
    done
    echo "${list#,}"
}

name=rrl-$(basename "$dir")
comment="rrl study $dir"
array=(sbatch --parsable "--job-name=$name" "--comment=$comment" "--array=$(ranges "${left[@]}")%$at_once" "${everywhere[@]}"
       "${options[@]}" "$RRL_ROOT/slurm/grid.sbatch" "$config" "${sets[@]}")
report=(sbatch --parsable "--job-name=$name-report" "--comment=$comment" --kill-on-invalid-dep=yes "${everywhere[@]}"
        "$RRL_ROOT/slurm/report.sbatch" "$dir")
if [ -n "$dry" ]; then
    printf '%q ' "${array[@]}"
    printf '\n%q --dependency=afterany:ARRAY' "${report[0]}"
    printf ' %q' "${report[@]:1}"
    printf '\n'
    for script in grid.sbatch report.sbatch job.sh; do
        printf '\n# ---- %s\n' "slurm/$script"
        cat "$RRL_ROOT/slurm/$script"
    done
    exit 0
fi

queued=$(squeue -h -o '%F %k' --me | awk -v want="$comment" '{id = $1; sub(/^[0-9]+ /, ""); if ($0 == want) print id}' |
    sort -u | tr '\n' ' ')
if [ -n "$queued" ]; then
    echo "$dir: jobs of this study are in the queue already: $queued(scancel them, or wait)" >&2
    exit 1
fi
id=$("${array[@]}")
id=${id%%;*}
after=$("${report[0]}" "--dependency=afterany:$id" "${report[@]:1}")
echo "array job $id: conditions $(ranges "${left[@]}") of 0-$((total - 1)); report job ${after%%;*} after it"
echo "how far they are: rrl status $dir"
