#!/usr/bin/env python3
"""Make data/arithmetic: sums, differences and products that a model of 135 M parameters gets right about half the time.

    python3 tools/make_arithmetic.py FOLDER

Four classes take turns, no question comes twice, and the bytes depend on nothing but this file.
"""
import json
import os
import random
import sys

SPLITS = {"train": 320, "validation": 64, "test": 128}
# class -> operator, both ranges (inclusive)
CLASSES = {
    "addition": ("+", (10, 49), (10, 49)),
    "small-addition": ("+", (10, 49), (2, 9)),
    "subtraction": ("-", (10, 29), (2, 9)),
    "multiplication": ("*", (2, 12), (2, 13)),
}
SEED = 20250207


def draws(kind):
    """All questions of a class in a fixed random order."""
    op, (a_low, a_high), (b_low, b_high) = CLASSES[kind]
    pairs = [(a, b) for a in range(a_low, a_high + 1) for b in range(b_low, b_high + 1)]
    random.Random(f"{SEED} {kind}").shuffle(pairs)
    for a, b in pairs:
        answer = {"+": a + b, "-": a - b, "*": a * b}[op]
        yield {"question": f"What is {a} {op} {b}?", "answer": str(answer), "metadata": {"class": kind}}


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    sources = [draws(kind) for kind in CLASSES]
    for split, n in SPLITS.items():
        with open(os.path.join(sys.argv[1], f"{split}.jsonl"), "w", encoding="ascii") as f:
            for i in range(n):
                row = {"id": f"arithmetic-{split}-{i:04d}", **next(sources[i % len(sources)])}
                f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
