#!/usr/bin/env bash
# Check and measure the CUDA back end on a machine that has a GPU, the CUDA toolkit and a C++ compiler, and nothing else:
# no MPI, HDF5, CMake. Below four minutes on 8 cores. Usage:
#
#   tools/gpu_check.sh [--json FILE] [--gpu N] [--only ops,step,ranks,speed] [--work DIR] [--emulated | --compile ARCH]
#
# It compiles the engine (base, device, model, rollout, learn) and the CUDA module for the GPU that is there, then
#   ops    every op of the table against the CPU's reference: bits under `exact`, bounds under `run`
#   step   two GRPO steps against the CPU; recorded = trained log-probs under `exact`; the same bits again under
#          `run`, and without graphs
#   ranks  NCCL between two processes on the one GPU, where libnccl.so.2 is
#   speed  decode and training tokens/s at Qwen2.5-0.5B's shape beside the bounds of memory and tensor cores
# and compute-sanitizer over the steps, where that is installed. FILE (gpu_check.json) gets all of it.
# --emulated: the module for the emulated GPU of tests/cuda_host instead; --compile sm_90: compile and link only. Both are
# for trying out the script where there is no GPU.
# Exit code 0 = all good, 1 = something failed, 77 = no GPU or no toolkit (with RRL_REQUIRE_GPU=1: 1).
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
json=$PWD/gpu_check.json work= emulated= arch=native pass=()
while [ $# -gt 0 ]; do
    case $1 in
        --json) json=$(realpath -m "$2"); shift 2 ;;
        --work) work=$(realpath -m "$2"); shift 2 ;;
        --gpu | --only) pass+=("$1" "$2"); shift 2 ;;
        --emulated) emulated=1; shift ;;
        --compile) arch=$2; shift 2 ;;
        *) sed -n 2,20p "$0"; exit 2 ;;
    esac
done
[ -n "$work" ] || { work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; }
mkdir -p "$work/rrl"
cd "$root"

skip() {
    echo "$1"
    [ "${RRL_REQUIRE_GPU:-}" = 1 ] && exit 1
    exit 77
}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc "${CUDA_HOME:-/nowhere}/bin/nvcc" 2>/dev/null | head -n 1 || true)
if [ -z "$emulated" ]; then
    [ -n "$nvcc" ] || skip "nvcc is not found: in PATH, \$CUDA_HOME/bin or /usr/local/cuda/bin"
    [ "$arch" != native ] || nvidia-smi -L >/dev/null 2>&1 || skip "nvidia-smi finds no GPU"
fi

# --- what is compiled: a command line a file
flags=(-O3 -g1 -fPIC -ffp-contract=off -fno-math-errno -fno-trapping-math -fvisibility=hidden -Wno-psabi
       -I"$work" -Iinclude -Isrc -Itests -Itools/gpu_check)
kernels=(src/device/cpu/kernels*.c src/device/cpu/bf16_kernels.c)
sources=(src/base/{status,memory,random,files,fault,exactmath,text}.c src/data/group.c
         src/device/{device,collective_pair,collective_staged,cuda_module}.c
         src/model/{model,forward,rope,adapter,slot,slot_plan,slot_backward}.c src/rollout/*.c src/learn/{grpo,learner}.c
         tests/ops_cases.c tests/ops_written.c tools/gpu_check/[!f]*.c)
for f in src/device/cpu/*.c; do
    case " ${kernels[*]} src/device/cpu/bf16_amx.c src/device/cpu/bf16_amx_works.c " in *" $f "*) ;; *) sources+=("$f") ;; esac
done
printf '#define RRL_VERSION "check"\n#define RRL_GIT_COMMIT ""\n' >"$work/rrl/version.h"
compile() { # prefix of the object, source, compiler and options
    local object=$work/$1$(basename "$2").o
    printf '%s -c %s -o %s\n' "${*:3}" "$2" "$object"
}
list() {
    for f in "${sources[@]}"; do compile main. "$f" cc -std=gnu17 "${flags[@]}"; done
    for f in "${kernels[@]}"; do
        compile portable. "$f" cc -std=gnu17 "${flags[@]}" -DRRL_ISA=portable -DRRL_ISA_portable
        [ "$(uname -m)" = x86_64 ] || continue
        compile avx2. "$f" cc -std=gnu17 "${flags[@]}" -DRRL_ISA=avx2 -DRRL_ISA_avx2 -mavx2 -mfma
        compile avx512. "$f" cc -std=gnu17 "${flags[@]}" -DRRL_ISA=avx512 -DRRL_ISA_avx512 "${avx512[@]}"
    done
    if [ "$(uname -m)" = x86_64 ]; then
        compile main. src/device/cpu/bf16_amx.c cc -std=gnu17 "${flags[@]}" "${avx512[@]}" -mavx512bf16
        compile main. src/device/cpu/bf16_amx_works.c cc -std=gnu17 "${flags[@]}"
    fi
    for f in src/base/{memory,exactmath}.c src/device/cuda/cuda_status.c; do
        compile module. "$f" cc -std=gnu17 "${flags[@]}"
    done
    if [ -n "$emulated" ]; then
        compile main. tools/gpu_check/facts_none.c cc -std=gnu17 "${flags[@]}"
        for f in src/device/cuda/*.cu tests/cuda_host/*.cpp; do
            case $f in */blaslt.cu | *_calls.cu) continue ;; esac
            compile module. "$f" c++ -std=c++20 -Itests/cuda_host "${flags[@]}" -Wno-unknown-pragmas -x c++
        done
    else
        compile main. tools/gpu_check/facts.cu "$nvcc" "${cuda[@]}"
        for f in src/device/cuda/*.cu; do compile module. "$f" "$nvcc" "${cuda[@]}"; done
    fi
}
avx512=(-mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512)
[ "$(uname -m)" = x86_64 ] && flags+=(-DRRL_X86)
cuda=(-std=c++20 -O3 -fmad=false -arch="$arch" -Xcompiler=-fPIC,-fvisibility=hidden -Iinclude -Isrc -Itools/gpu_check)

began=$SECONDS
# the slowest first: nvcc's files are at the end of the list
list | tac | xargs -P "$(nproc)" -I{} sh -c '{} || exit 255'
if [ -n "$emulated" ]; then
    c++ -shared -o "$work/librrl_cuda.so" "$work"/module.*.o -lm
    c++ -o "$work/gpu_check" "$work"/{main,portable,avx2,avx512}.*.o -ldl -lm -lpthread
    pass+=(--small)
else
    libraries=$(cd "$(dirname "$(realpath "$nvcc")")/../lib64" && pwd)
    "$nvcc" -shared -cudart shared -o "$work/librrl_cuda.so" "$work"/module.*.o -lcublasLt -ldl -lm -Xlinker -rpath,"$libraries"
    shopt -s nullglob
    "$nvcc" -cudart static -o "$work/gpu_check" "$work"/{main,portable,avx2,avx512}.*.o -ldl -lm -lpthread
fi
echo "compiled in $((SECONDS - began)) s"
[ "$arch" = native ] || exit 0

failed=0
"$work/gpu_check" --module "$work/librrl_cuda.so" --json "$json" "${pass[@]}" || failed=$?
[ "$failed" = 77 ] && skip "the CUDA runtime finds no GPU"

# --- memory and races of the kernels, within a minute
if [ -z "$emulated" ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        if timeout 45 compute-sanitizer --tool "$tool" --error-exitcode 9 "$work/gpu_check" --module "$work/librrl_cuda.so" \
            --small --only step >"$work/$tool.log" 2>&1; then echo "ok       compute-sanitizer $tool"
        elif [ $? = 124 ]; then echo "told     compute-sanitizer $tool: not done in 45 s"
        else echo "FAILED   compute-sanitizer $tool"; tail -n 20 "$work/$tool.log"; failed=1; fi
    done
fi
echo "$((SECONDS - began)) s in all; $json"
exit "$failed"
