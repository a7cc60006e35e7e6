"""Writes tables.json: hand-made records (drawn once, rounded) and what the tables of a report must say of them, by numpy
alone and not by the project's own code. tests/test_report_golden.c writes the records and reads the tables.
Run: python3 make_tables.py (numpy 2)."""
import itertools
import json
import pathlib

import numpy as np

rng = np.random.default_rng(20261005)
QUESTIONS, SAMPLES, SEEDS, MEMBERS = 6, 3, 4, 3
LEVELS, METHODS = (0.0, 0.3), ("base", "baseline", "robust")


def records(level, method, seed):
    rows = []
    skill = {"base": 0.4, "baseline": 0.7, "robust": 0.6}[method]
    for question in range(QUESTIONS):
        for _ in range(SAMPLES):
            answered = rng.random() < 0.85
            right = bool(answered and rng.random() < skill)
            votes = [bool(right != (rng.random() < level)) for _ in range(MEMBERS)]
            here = [rng.random() < 0.9 for _ in range(MEMBERS)]
            seen = [float(v) for v, h in zip(votes, here) if h]
            u = round(float(min(1, 4 * np.var(seen))), 3) if seen else 0.0
            reward = round(float(np.mean(seen)), 3) if seen and rng.random() < 0.9 else None
            rows.append({"question": question, "reward": reward, "correct": right, "disagreement": u, "answer": answered,
                         "tokens": int(rng.integers(3, 9)), "truncated": bool(rng.random() < 0.2),
                         "votes": [v if h else None for v, h in zip(votes, here)]})
    return rows


def f32(v):
    return float(np.float32(v))


def pass_at_k(n, c, k):
    return 1.0 if n - c < k else 1 - np.prod([1 - k / i for i in range(n - c + 1, n + 1)])


def metrics(rows):
    right = np.array([r["correct"] for r in rows], float)
    paid = [r for r in rows if r["reward"] is not None]
    reward, paid_right = np.array([f32(r["reward"]) for r in paid]), np.array([r["correct"] for r in paid], float)
    pairs = [(a, b) for r in rows for a, b in itertools.combinations(r["votes"], 2) if a is not None and b is not None]
    per_question = [[r["correct"] for r in rows if r["question"] == q] for q in range(QUESTIONS)]
    wrong, correct = paid_right == 0, paid_right == 1
    return {
        "independent_accuracy": right.mean(), "observed_reward": reward.mean(), "reward_coverage": len(paid) / len(rows),
        "paired_independent_accuracy": paid_right.mean(), "reward_hacking_gap": reward.mean() - paid_right.mean(),
        "false_positive_reward_rate": (reward[wrong] >= 0.5).mean() if wrong.any() else None,
        "false_negative_rate": (reward[correct] < 0.5).mean() if correct.any() else None,
        "reward_correctness_correlation": np.corrcoef(reward, paid_right)[0, 1] if np.ptp(reward) and np.ptp(paid_right) else None,
        "verifier_disagreement": np.mean([f32(r["disagreement"]) for r in rows]),
        "extraction_failure_rate": np.mean([not r["answer"] for r in rows]),
        "mean_generated_tokens": np.mean([r["tokens"] for r in rows]), "truncation_rate": np.mean([r["truncated"] for r in rows]),
        "member_agreement": np.mean([a == b for a, b in pairs]) if pairs else None,
        **{f"pass@{k}": np.mean([pass_at_k(SAMPLES, sum(c), k) for c in per_question]) for k in (1, 2, 3)},
    }


def by_question(rows, metric):
    out = []
    for q in range(QUESTIONS):
        mine = [r for r in rows if r["question"] == q]
        paid = [r for r in mine if r["reward"] is not None]
        if metric == "independent_accuracy":
            out.append(np.mean([r["correct"] for r in mine]))
        elif metric == "observed_reward":
            out.append(np.mean([f32(r["reward"]) for r in paid]) if paid else np.nan)
        else:
            out.append(np.mean([f32(r["reward"]) - r["correct"] for r in paid]) if paid else np.nan)
    return np.array(out, float)


def flips(d):
    signs = np.array(list(itertools.product([1, -1], repeat=len(d))))
    return float(np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12 * np.abs(d).sum()))


def holm(p):
    order, out, worst = np.argsort(p, kind="stable"), np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        out[i] = worst
    return out.tolist()


def failures(rows):
    high = [r["reward"] is not None and f32(r["reward"]) >= 0.5 for r in rows]
    count = lambda test: int(sum(map(bool, test)))
    questions = [[r["correct"] for r in rows if r["question"] == q] for q in range(QUESTIONS)]
    return {
        "completions": len(rows), "wrong_rewarded": count(h and not r["correct"] for r, h in zip(rows, high)),
        "right_unrewarded": count(r["reward"] is not None and not h and r["correct"] for r, h in zip(rows, high)),
        "right_missing": count(r["reward"] is None and r["correct"] for r in rows),
        "wrong_missing": count(r["reward"] is None and not r["correct"] for r in rows),
        "no_answer": count(not r["answer"] for r in rows), "truncated": count(r["truncated"] for r in rows),
        "truncated_no_answer": count(r["truncated"] and not r["answer"] for r in rows),
        "disagreed_wrong": count(r["disagreement"] > 0 and not r["correct"] for r in rows),
        "questions_never_right": count(not any(q) for q in questions),
        "questions_always_right": count(all(q) for q in questions),
    }


out = {"questions": QUESTIONS, "samples": SAMPLES, "members": MEMBERS, "records": [], "aggregates": [], "differences": []}
runs = {}
for level, method, seed in itertools.product(LEVELS, METHODS, range(1, SEEDS + 1)):
    rows = runs[level, method, seed] = records(level, method, seed)
    out["records"].append({"level": level, "method": method, "seed": seed, "rows": rows, "metrics": metrics(rows),
                           "failures": failures(rows)})
for level, method in itertools.product(LEVELS, METHODS):
    for name in ("independent_accuracy", "observed_reward", "reward_hacking_gap", "member_agreement", "pass@2"):
        v = np.array([metrics(runs[level, method, s])[name] for s in range(1, SEEDS + 1)], float)
        out["aggregates"].append({"level": level, "method": method, "metric": name, "mean": v.mean(), "std": v.std(ddof=1)})
for metric in ("independent_accuracy", "observed_reward", "reward_hacking_gap"):
    family = []
    for level, (b, a) in itertools.product(LEVELS, itertools.combinations(METHODS, 2)):
        x = np.array([by_question(runs[level, a, s], metric) - by_question(runs[level, b, s], metric) for s in range(1, SEEDS + 1)])
        seeds = np.nanmean(x, axis=1)
        family.append({"level": level, "metric": metric, "a": a, "b": b, "mean": seeds.mean(), "p": flips(seeds)})
    for row, p in zip(family, holm([r["p"] for r in family])):
        out["differences"].append({**row, "p_holm": p})
here = pathlib.Path(__file__).parent
(here / "tables.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
