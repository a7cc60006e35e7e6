#!/bin/sh
# Fetch GSM8K (openai/grade-school-math, MIT) into data/gsm8k and check it. Files that are there and right are kept.
set -eu
cd "$(dirname "$0")/../data/gsm8k"

base=https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data

right() { # FILE SHA256
    [ -f "$1" ] && printf '%s  %s\n' "$2" "$1" | sha256sum -c --status -
}

get() { # FILE SHA256
    if right "$1" "$2"; then
        echo "data/gsm8k/$1 is there"
        return
    fi
    curl --fail --silent --show-error --location --retry 3 -o "$1.tmp" "$base/$1"
    if ! right "$1.tmp" "$2"; then
        echo "data/gsm8k/$1: what was fetched has SHA-256 $(sha256sum "$1.tmp" | cut -d' ' -f1), expected $2" >&2
        rm -f "$1.tmp"
        exit 3
    fi
    mv "$1.tmp" "$1"
    echo "data/gsm8k/$1 fetched"
}

get train.jsonl 17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465
get test.jsonl 3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14
