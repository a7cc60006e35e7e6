"""Looking at a study with pandas: python3 tools/example_analysis.py runs/quick. Cells are marked for editors that run
them one by one; each prints what it makes."""
import sys

import pandas as pd

import rrl_records as rr

folder = sys.argv[1] if len(sys.argv) > 1 else "runs/quick"
CONDITION = ["arm", "level", "method"]
pd.set_option("display.width", 100, "display.max_columns", 20, "display.precision", 3)

# %% What is there: one row a run, its evaluation by the independent judge and by the ensemble it was trained on.
runs = rr.evaluation(folder)
METRICS = ["independent_accuracy", "observed_reward", "reward_hacking_gap"]
print(runs[[*CONDITION, "seed", "evaluation", *METRICS]].to_string())

# %% Means over seeds. A level that is NaN belongs to an arm with fixed members: dropna=False keeps it.
means = runs.groupby(CONDITION, dropna=False)[["independent_accuracy", "observed_reward"]]
print(means.agg(["mean", "std", "count"]).to_string())

# %% Where reward and correctness part: the learning curves, in tenths of the run.
training = rr.training(folder)
if len(training):
    training["tenth"] = (10 * training["step"] / (training.groupby("run")["step"].transform("max") + 1)).astype(int)
    print(training.groupby([*CONDITION, "tenth"], dropna=False)[["observed_reward", "independent_accuracy"]].mean()
          .unstack("tenth").to_string())

# %% Is disagreement a warning? Share right among training completions, by how far the members disagree.
rollouts = rr.rollouts(folder, text=True)
rollouts = rollouts[rollouts["method"] != "base"]
if len(rollouts):
    bands = pd.cut(rollouts["disagreement"], [-0.01, 0, 0.5, 1], labels=["none", "some", "much"])
    banded = rollouts.groupby([*CONDITION, bands], dropna=False, observed=True)["correct"]
    print(banded.agg(["mean", "size"]).to_string())

# %% The wrong answers that were rewarded most: what was learnt from.
if len(rollouts):
    wrong = rollouts[rollouts["correct"] == 0].sort_values(["reward", "step"], ascending=[False, True], kind="stable")
    print(wrong[[*CONDITION, "step", "example_id", "reference", "answer", "reward"]].head(10).to_string(index=False))

# %% How often each member erred, before and after its corruption, on the test questions.
test = rr.rollouts(folder, evaluation="test")
members = rr.verdicts(folder, evaluation="test").merge(
    test[["run", "row", "correct"]], left_on=["run", "rollout"], right_on=["run", "row"])
members["errs"] = (members["reward"] >= 0.5) != (members["correct"] == 1)
members["erred_clean"] = (members["clean"] >= 0.5) != (members["correct"] == 1)
print(members[members["available"] == 1].groupby([*CONDITION, "member", "corruption"], dropna=False)
      [["erred_clean", "errs"]].mean().to_string())

# %% Two methods on the same questions and seeds: difference of accuracy a question, and how many questions moved.
test["level"] = test["level"].map(str)  # pivot_table has no rows for NaN
wide = test.pivot_table(index=["arm", "level", "seed", "example_id"], columns="method", values="correct")
if {"baseline", "robust"} <= set(wide.columns):
    wide["difference"] = wide["robust"] - wide["baseline"]
    moved = wide.dropna(subset=["difference"]).reset_index().groupby(["arm", "level"], dropna=False)["difference"]
    print(moved.agg(["mean", "count", lambda d: (d > 0).sum(), lambda d: (d < 0).sum()])
          .set_axis(["robust - baseline", "questions", "better", "worse"], axis=1).to_string())
