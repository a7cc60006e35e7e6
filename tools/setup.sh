#!/usr/bin/env bash
# Install what rrl needs to build and run (Debian 12 names); with "tests" also what its tests need.
# Without root or sudo it prints what is missing. Usage: tools/setup.sh [tests]
set -euo pipefail

packages=(build-essential cmake pkg-config git libopenmpi-dev openmpi-bin libhdf5-dev libyaml-dev libcjson-dev libgmp-dev
          libpcre2-dev libutf8proc-dev libssl-dev libarchive-dev gnuplot-nox)
[ "${1:-}" = tests ] && packages+=(hdf5-tools python3 python3-h5py python3-pandas locales slurm-wlm munge)

missing=()
for p in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ]; then as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo)
else
    echo "These packages are missing and need root to install: ${missing[*]}" >&2
    echo "Ask for:  apt-get install --no-install-recommends ${missing[*]}" >&2
    echo "On a cluster, load modules for a C compiler, CMake, an MPI (3.1 or newer) and serial HDF5 instead." >&2
    exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >/dev/null
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
