"""Writes statistics.json: values that tests/test_statistics.c compares with, by numpy and scipy, none of them by the
project's own code. Run: python3 make_statistics.py (numpy 2, scipy 1.14 or later)."""
import itertools
import json
import pathlib

import numpy as np
from scipy import stats

rng = np.random.default_rng(20261004)


def crossed(x):
    """Satterthwaite's t interval of the mean of a complete two-way layout with both factors random."""
    s, q = x.shape
    mean, rows, columns = x.mean(), x.mean(1), x.mean(0)
    rest = x - rows[:, None] - columns[None, :] + mean
    v = [rows.var(ddof=1) / s, columns.var(ddof=1) / q, (rest**2).sum() / ((s - 1) * (q - 1)) / (s * q)]
    total = max(v[0], v[1], v[0] + v[1] - v[2])
    df = max(1.0, total**2 / (v[0] ** 2 / (s - 1) + v[1] ** 2 / (q - 1) + v[2] ** 2 / ((s - 1) * (q - 1))))
    half = stats.t.ppf(0.975, df) * np.sqrt(total)
    smallest = (stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)) * np.sqrt(total)
    return {"mean": mean, "low": mean - half, "high": mean + half, "df": df, "smallest": smallest}


def flips(d):
    """Share of all sign assignments whose |mean| reaches the observed one."""
    signs = np.array(list(itertools.product([1, -1], repeat=len(d))))
    return float(np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12 * np.abs(d).sum()))


def questions(x):
    """Percentile bootstrap over questions (20,000 draws, so the golden itself is known to about 1 %) and its p."""
    per_question = x.mean(0)
    draws = rng.integers(0, x.shape[1], (20000, x.shape[1]))
    low, high = np.percentile(per_question[draws].mean(1), [2.5, 97.5])
    signs = rng.choice([1, -1], (200000, x.shape[1]))
    p = np.mean(np.abs(signs @ per_question) >= abs(per_question.sum()) - 1e-12)
    return {"low": low, "high": high, "p": p, "deviation": per_question.std() / np.sqrt(x.shape[1])}


def study(s, q, effect, of_seed, of_question, noise):
    x = effect + rng.normal(0, of_seed, (s, 1)) + rng.normal(0, of_question, (1, q)) + rng.normal(0, noise, (s, q))
    x = np.round(x, 6)
    return {"x": x.tolist(), "method": {**crossed(x), "p": flips(x.mean(1))}, "runs": questions(x)}


out = {
    "t_quantile": [[p, df, stats.t.ppf(p, df)] for p in (0.6, 0.8, 0.975, 0.9995, 0.025) for df in (1, 2, 2.5, 7, 31.4, 1e4)]
    + [[p, None, stats.norm.ppf(p)] for p in (0.025, 0.8, 0.975)],
    "t_cdf": [[t, df, stats.t.cdf(t, df)] for t in (-40.0, -2.0, -0.3, 0.0, 1.0, 3.5) for df in (1, 3, 7.7, 50)],
    "studies": [study(8, 40, 0.1, 0.05, 0.1, 0.2), study(3, 24, 0.02, 0.2, 0.02, 0.1), study(12, 60, 0.0, 0.0, 0.0, 0.3)],
}
here = pathlib.Path(__file__).parent
(here / "statistics.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
