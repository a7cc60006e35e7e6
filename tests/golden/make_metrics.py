"""Makes metrics.json: judged completions and their metrics, worked out with exact fractions from the definitions.

Nothing here comes from the program. Shares, means and pass@k are fractions of integers (pass@k from its other form,
1 - C(n-c, k) / C(n, k)); the correlation is Python's statistics.correlation. Run: python3 make_metrics.py > metrics.json
"""
import json
import random
import statistics
import struct
import sys
from fractions import Fraction
from itertools import combinations
from math import comb


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def mean(values):
    values = [Fraction(v) for v in values]
    return sum(values) / len(values) if values else None


def same_key(answer):
    """None for no answer, a number for a number, else the text."""
    if answer is None:
        return None
    try:
        return Fraction(answer.replace(",", ""))
    except ValueError:
        return answer.casefold()


def metrics(rows, ks):
    judged = [r for r in rows if r["correct"] is not None]
    rewarded = [r for r in rows if r["reward"] is not None]
    both = [r for r in judged if r["reward"] is not None]
    questions = {}
    for r in rows:
        questions.setdefault(r["question"], []).append(r)
    out = {
        "independent_accuracy": mean(r["correct"] for r in judged),
        "observed_reward": mean(r["reward"] for r in rewarded),
        "reward_coverage": mean(r["reward"] is not None for r in rows),
        "paired_independent_accuracy": mean(r["correct"] for r in both),
        "false_positive_reward_rate": mean(r["reward"] >= 0.5 for r in both if not r["correct"]),
        "false_negative_rate": mean(r["reward"] < 0.5 for r in both if r["correct"]),
        "verifier_disagreement": mean(r["u"] for r in rows),
        "confidence": mean(r["c"] for r in rows),
        "extraction_failure_rate": mean(r["answer"] is None for r in rows),
        "mean_generated_tokens": mean(r["tokens"] for r in rows),
        "truncation_rate": mean(r["truncated"] for r in rows),
    }
    observed, paired = out["observed_reward"], out["paired_independent_accuracy"]
    out["reward_hacking_gap"] = None if observed is None or paired is None else observed - paired
    try:
        out["reward_correctness_correlation"] = statistics.correlation(
            [r["reward"] for r in both], [float(r["correct"]) for r in both])
    except statistics.StatisticsError:
        out["reward_correctness_correlation"] = None
    keys = [[same_key(r["answer"]) for r in q] for q in questions.values()]
    out["answer_consistency"] = mean(mean(a == b for a, b in combinations(k, 2)) for k in keys if len(k) > 1)
    out["answer_diversity"] = mean(Fraction(len(set(k)), len(k)) for k in keys)
    for k in ks:
        each = []
        for q in questions.values():
            n = len(q)
            if k <= n and all(r["correct"] is not None for r in q):
                c = sum(r["correct"] for r in q)
                each.append(1 - Fraction(comb(n - c, k), comb(n, k)))
        out[f"pass@{k}"] = mean(each)
    return {name: None if v is None else float(v) for name, v in out.items()}


def row(question, correct, reward, answer, u=0.0, c=1.0, tokens=4, truncated=False):
    return {"question": question, "correct": correct, "reward": reward, "answer": answer, "u": f32(u), "c": f32(c),
            "tokens": tokens, "truncated": truncated}


def random_rows(seed, n_questions, n_samples, missing):
    rng = random.Random(seed)
    rows = []
    for q in range(n_questions):
        skill = rng.random()
        for _ in range(n_samples):
            correct = int(rng.random() < skill)
            votes = [correct ^ (rng.random() < 0.2) for _ in range(3)]
            reward = None if rng.random() < missing else f32(sum(votes) / 3)
            answer = str(7 * q) if correct else rng.choice([None, str(rng.randrange(3)), f"{7 * q}/2", "forty two"])
            p = sum(votes) / 3
            rows.append(row(q, correct, reward, answer, min(1, 4 * p * (1 - p)), rng.random(), rng.randrange(1, 49),
                            rng.random() < 0.1))
    return rows


CASES = [
    ("no completions", [1], []),
    ("one right completion", [1, 4], [row(0, 1, 1.0, "5")]),
    ("every reward missing", [1, 2], [row(0, 1, None, "5"), row(0, 0, None, None)]),
    ("constant rewards that no float holds", [1, 2],
     [row(q, (q + s) % 2, f32(0.1), "1") for q in range(3) for s in range(4)]),
    ("all right: no wrong one to reward", [1, 2], [row(0, 1, 1.0, "5"), row(0, 1, f32(1 / 3), "5")]),
    ("a reward of one half counts as given", [1, 2], [row(0, 0, 0.5, "4"), row(0, 1, 0.5, "5"), row(0, 1, 0.0, "5")]),
    ("equal answers in other words", [1],
     [row(0, 1, 1.0, a) for a in ["0.5", "1/2", "2/4", ".50"]] +
     [row(1, 0, 0.0, a) for a in ["1,000", "1000", "Red", "red"]] + [row(2, 0, 0.0, None), row(2, 0, 0.0, None)]),
    ("not judged", [1], [row(0, None, 1.0, "5"), row(0, 1, 1.0, "5"), row(1, 1, 0.0, "5"), row(1, 0, 1.0, None)]),
    ("groups of different sizes", [1, 2, 3],
     [row(0, 1, 1.0, "5"), row(1, 1, 1.0, "1"), row(1, 0, 0.0, "2"), row(2, 0, 0.0, "3"), row(2, 0, 0.0, "3"),
      row(2, 1, 1.0, "4", tokens=48, truncated=True)]),
    ("32 questions x 8, three noisy members", [1, 4, 8], random_rows(1, 32, 8, 0.0)),
    ("20 questions x 5, one reward in four missing", [1, 2, 5, 6], random_rows(2, 20, 5, 0.25)),
]

cases = [{"name": name, "k": k, "rows": rows, "want": metrics(rows, k)} for name, k, rows in CASES]
json.dump({"origin": "tests/golden/make_metrics.py (exact fractions, Python's statistics; Python 3.11), 2026-11-29", "cases": cases},
          sys.stdout, indent=None, separators=(", ", ": "))
print()
