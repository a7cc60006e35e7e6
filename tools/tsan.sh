#!/usr/bin/env bash
# ThreadSanitizer on the thread pool, the recorder's thread, the device's ops, the engine and whole runs with several
# threads: alone, of two ranks, and of split roles whose learners send each other rows alone; the recorder's thread
# writes each segment and checkpoint, or joins what waits.
# Usage: tools/tsan.sh [BUILD_FOLDER]   Exit 1 on a race, 77 where the compiler has no ThreadSanitizer.
# tools/tsan.supp says what of other libraries is left out, and why.
set -euo pipefail
source="$(cd "$(dirname "$0")/.." && pwd)"
build="${1:-$source/build/tsan}"
. "$source/tools/mpi_env.sh"
mkdir -p "$build"
echo 'int main(void) { return 0; }' >"$build/probe.c"
cc -fsanitize=thread "$build/probe.c" -o "$build/probe" 2>/dev/null && "$build/probe" || { echo "no ThreadSanitizer"; exit 77; }

tests="test_pool test_writer test_base_log test_device test_bf16 test_slot test_rollout"
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g -fsanitize=thread" >"$build/configure.log"
# shellcheck disable=SC2086
make -C "$build" -j"$(nproc)" $tests rrl >"$build/make.log" 2>&1 || { tail -30 "$build/make.log"; exit 1; }

export TSAN_OPTIONS="suppressions=$source/tools/tsan.supp exitcode=66 halt_on_error=0"
bad=0
run() { # name, command
    name="$1"
    shift
    if "$@" >"$build/$name.log" 2>&1; then echo "clean: $name"; else echo "FAILED ($?): $name, $build/$name.log"; bad=1; fi
}

for test in $tests; do run "$test" "$build/tests/$test"; done
small=(--quiet --set dataset.limit=4 --set training.max_steps=4 --set training.save_steps=1
    --set records.steps_per_segment=1 --set generation.max_tokens=12)
split=(--set parallel.roles.generators=1 --set parallel.roles.verifiers=1 --set parallel.roles.learners=2)
rm -rf "$build"/run*
train() { # name, command before the program, settings
    run "$1" $2 "$build/rrl" train "$source/configs/train.yaml" "${small[@]}" --set "output_dir=$build/run_$1" "${@:3}"
}
train alone "" --threads 4 --set records.writer_share=1
train joined "" --threads 4
train ranks "mpirun -n 2" --threads 4 --set records.writer_share=1
train split "mpirun -n 4" --threads 2 "${split[@]}"
exit $bad
