#!/bin/sh
# Without a GPU its checks are skipped, exit code 77, and say why; where RRL_REQUIRE_GPU=1 demands one they fail.
# Usage: gpu_demanded.sh GPU_CHECK EMULATED_MODULE GPU_CHECK_SCRIPT. Runs everywhere: what is missing is made to miss.
set -u
unset RRL_REQUIRE_GPU
failed=0

expect() { # exit code, what is said, command
    code=$1 said=$2
    shift 2
    out=$("$@" 2>&1)
    got=$?
    case $out in *"$said"*) ;; *) got="$got, without \"$said\"" ;; esac
    [ "$got" = "$code" ] && return
    echo "expected $code, got $got: $*"
    echo "$out"
    failed=1
}
both() { # what is said, command
    said=$1
    shift
    expect 77 "$said" "$@"
    expect 1 "$said" env RRL_REQUIRE_GPU=1 "$@"
    expect 77 "$said" env RRL_REQUIRE_GPU=0 "$@"
}

# no module; a module that finds no GPU; a GPU beyond the last
both "/nowhere/librrl_cuda.so" "$1" --module /nowhere/librrl_cuda.so --only ops
both "no GPU: no CUDA-capable device is detected" env EMULATED_GPUS=0 "$1" --module "$2" --only ops
both "no GPU 7: this process sees 1" "$1" --module "$2" --gpu 7 --only ops

# the script where there is a toolkit and no GPU
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for name in bash dirname realpath mktemp mkdir rm sed ls head uname env; do
    ln -s "$(command -v $name)" "$tools/$name"
done
printf '#!/bin/sh\nexit 9\n' >"$tools/nvidia-smi"
printf '#!/bin/sh\nexit 0\n' >"$tools/nvcc"
chmod +x "$tools/nvidia-smi" "$tools/nvcc"
both "nvidia-smi finds no GPU" env PATH="$tools" "$3" --only ops
exit $failed
