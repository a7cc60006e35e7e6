#!/usr/bin/env bash
# Fuzzes one target. Usage: tests/fuzz/run.sh TARGET BUILD_FOLDER SECONDS [libFuzzer arguments]
# Builds with clang, address and undefined-behaviour sanitizers; new inputs go to BUILD_FOLDER/found/TARGET, one that fails
# to BUILD_FOLDER/failed (add it to tests/corpus/TARGET with the fix). Exit 77 where clang or its libFuzzer is missing.
set -euo pipefail
source="$(cd "$(dirname "$0")/../.." && pwd)"
name="$1" build="$2" seconds="$3"
shift 3
clang="$(command -v clang || true)"
[ -n "$clang" ] || { echo "no clang (Debian: clang libclang-rt-14-dev)"; exit 77; }
mkdir -p "$build/found/$name" "$build/failed"
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' >"$build/probe.c"
"$clang" -fsanitize=fuzzer,address "$build/probe.c" -o "$build/probe" 2>/dev/null || { echo "clang without libFuzzer"; exit 77; }

cmake -S "$source" -B "$build" -DCMAKE_C_COMPILER="$clang" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined" >"$build/configure.log"
make -C "$build" -j2 "fuzz_$name" >"$build/make-$name.log" 2>&1 || { tail -30 "$build/make-$name.log"; exit 1; }

dictionary=()
[ ! -f "$source/tests/fuzz/$name.dict" ] || dictionary=(-dict="$source/tests/fuzz/$name.dict")
# an input of 10 s is a hang, one that takes 1 GiB a bomb
exec "$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$build/failed/$name-" "${dictionary[@]}" "$@" "$build/found/$name" "$source/tests/corpus/$name"
