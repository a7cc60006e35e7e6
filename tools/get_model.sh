#!/usr/bin/env bash
# Fetch a pinned revision of a model from a hub into models/<owner>--<name>@<revision>, whole or not at all.
# Usage: tools/get_model.sh OWNER/NAME REVISION [HUB]     (HUB: https://huggingface.co or a mirror of it)
#
# REVISION is a commit; its first 7 digits are enough. Every file is compared with the size the hub tells, weights with
# the hub's SHA-256 too; the SHA-256 of all files is printed and kept as SHA256SUMS. Nothing in the tests needs this.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 2 ] || [ $# -gt 3 ] || [[ ! $1 =~ ^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$ ]] || [[ ! $2 =~ ^[A-Za-z0-9._-]+$ ]]; then
    echo "usage: tools/get_model.sh OWNER/NAME REVISION [HUB]" >&2
    exit 2
fi
id="$1" revision="$2" hub="${3:-https://huggingface.co}"
folder="models/${id/\//--}@$revision"
part="$folder.part"
headers="$(mktemp)"
trap 'rm -f "$headers"' EXIT

fetch() { curl --fail --silent --show-error --location --retry 3 --connect-timeout 20 "$@"; }

# The whole commit of an abbreviated one: the hub's addresses may want all 40 digits.
commit_of() {
    local whole=""
    if [[ $revision =~ ^[0-9a-f]{7,39}$ ]]; then
        whole="$(fetch "$hub/api/models/$id/commits/main" | grep -o "\"id\":\"${revision}[0-9a-f]*\"" | head -n 1 |
            cut -d'"' -f4)" || true
    fi
    echo "${whole:-$revision}"
}

# The last value of a header over all redirects.
header() { tr -d '\r"' <"$headers" | awk -v name="$1:" 'tolower($1) == name { v = $2 } END { print v }'; }

# FILE optional|required: into $part. The first answer, before the redirect to a store, tells size and SHA-256 of large
# files (x-linked-size, x-linked-etag); small ones have a content-length alone.
get() {
    local url="$hub/$id/resolve/$commit/$1" size sha found
    if ! fetch --head --dump-header "$headers" --output /dev/null "$url" 2>/dev/null; then
        [ "$2" = optional ] && return
        echo "$url: not there, or the hub cannot be reached" >&2
        exit 3
    fi
    size="$(header x-linked-size)" sha="$(header x-linked-etag)"
    size="${size:-$(header content-length)}"
    found="$(stat -c %s "$part/$1" 2>/dev/null || echo 0)"
    if [ -z "$size" ] || [ "$found" -ge "$size" ]; then rm -f "$part/$1"; fi # nothing to go on with
    fetch --continue-at - --output "$part/$1" "$url"
    found="$(stat -c %s "$part/$1")"
    if [ -n "$size" ] && [ "$found" != "$size" ]; then
        echo "$part/$1: $found bytes, the hub says $size; run this again" >&2
        rm -f "$part/$1"
        exit 3
    fi
    if [[ $sha =~ ^[0-9a-f]{64}$ ]] && ! echo "$sha  $part/$1" | sha256sum --check --status -; then
        echo "$part/$1: SHA-256 is not $sha, as the hub says; run this again" >&2
        rm -f "$part/$1"
        exit 3
    fi
}

if [ -d "$folder" ]; then
    echo "$folder is there"
    (cd "$folder" && sha256sum --check --quiet SHA256SUMS)
    exit 0
fi
commit="$(commit_of)"
mkdir -p "$part"
get config.json required
get generation_config.json optional
get tokenizer.json required
get tokenizer_config.json required
get model.safetensors.index.json optional
if [ -f "$part/model.safetensors.index.json" ]; then
    shards="$(grep -o '"[A-Za-z0-9._-]*\.safetensors"' "$part/model.safetensors.index.json" | tr -d '"' | sort -u)"
    for shard in $shards; do get "$shard" required; done
else
    get model.safetensors required
fi
(cd "$part" && sha256sum -- *.json *.safetensors >SHA256SUMS && cat SHA256SUMS)
mv "$part" "$folder"
echo "$folder fetched (commit $commit)"
