#!/usr/bin/env bash
# tools/final_study.sh from gate to evidence: once, again, with a condition that fails, and refused at the gate.
# Usage: test_final_study.sh PROGRAM FOLDER
set -uo pipefail
rrl=$1 work=$2
root=$(cd "$(dirname "$0")/.." && pwd)
export RRL=$rrl
failed=0

check() { # WHAT CONDITION...
    local what=$1
    shift
    "$@" || { echo "failed: $what ($*)"; failed=1; }
}

rm -rf "$work"
mkdir -p "$work"
cat >"$work/study.yaml" <<YAML
output_dir: $work/study
dataset: {path: $root/data/tiny/test.jsonl, limit: 4}
model:
  name: $root/data/tiny
  prompt_template: "Solve the problem. End with 'Final answer: <answer>'.\n\nProblem: {question}\n\nSolution:"
generation: {max_tokens: 40, num_generations: 2}
evaluation: {k: [1, 2]}
training_verifier: {members: [rule, rule, rule]}
training: {max_steps: 1, batch_size: 2, learning_rate: 1e-3}
experiment:
  train_dataset: {path: $root/data/tiny/train.jsonl, limit: 4}
  qualification_dataset: {path: $root/data/tiny/validation.jsonl, limit: 8}
  qualification_min_pass1: 0.01
  methods: [base, baseline]
YAML

final() { bash "$root/tools/final_study.sh" "$work/study.yaml" --threads 1 "$@" >"$work/out" 2>"$work/err"; }

# A condition that cannot be recorded (the study writes run.h5 of the store of the base, base, baseline) is reported as
# failed; all the rest is there and archived.
RRL_FAULT='*:run.write:3:fail' final
check "a failed condition gives the study's exit code" [ $? -eq 1 ]
check "its record is missing" [ ! -e "$work/study/none/level-0/seed-42/baseline/run.h5" ]
check "the other one is there" [ -e "$work/study/none/level-0/seed-42/base/run.h5" ]
check "the report is there" [ -e "$work/study/report/report.md" ]
check "the archive is there" [ -e "$work/study.evidence.tar" ]
check "the failure is in the archive" \
    bash -c "tar xOf '$work/study.evidence.tar' study/EVIDENCE.json | grep -q '\"status\": \"failed\"'"

# The same command makes up for it.
final
check "the second time" [ $? -eq 0 ]
check "all conditions" [ -e "$work/study/none/level-0/seed-42/baseline/run.h5" ]
check "measured once" grep -q 'measured before' "$work/out"
check "all steps" [ "$(grep -c '^=== ' "$work/out")" -eq 4 ]
check "verified" grep -q 'as the manifest says' "$work/out"
check "its history stays" grep -q '"status":.*"failed"' "$work/study/none/level-0/seed-42/baseline/run.json"
before=$(cat "$work"/study/none/level-0/seed-42/*/run.h5 | sha256sum)

# Once more does nothing to the records.
final
check "the third time" [ $? -eq 0 ]
check "records untouched" [ "$before" = "$(cat "$work"/study/none/level-0/seed-42/*/run.h5 | sha256sum)" ]

# Refused at the gate: nothing of the study begins.
final --set experiment.qualification_min_pass1=1 --set output_dir="$work/refused"
check "refused" [ $? -eq 3 ]
check "why" grep -q 'does not qualify' "$work/err"
check "nothing began" [ ! -e "$work/refused/study.json" ]
check "nothing archived" [ ! -e "$work/refused.evidence.tar" ]

[ $failed -eq 0 ] && rm -rf "$work"
exit $failed
