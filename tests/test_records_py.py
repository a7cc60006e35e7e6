"""tools/rrl_records.py on records whose content is known (record_case.c), and tools/example_analysis.py on the same.

test_records_py.py WRITER DIR: WRITER makes a run in a folder. Exit code 77 only where h5py or pandas is missing."""
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import h5py
    import numpy as np
    import pandas  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TOOLS = Path(__file__).resolve().parent.parent / "tools"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import rrl_records as rr  # noqa: E402

failed = 0


def check(got, want, what):
    global failed
    if got != want:
        print(f"{what}: {got!r}, expected {want!r}")
        failed += 1


writer, work = sys.argv[1], Path(sys.argv[2])
shutil.rmtree(work, ignore_errors=True)
study = work / "study"
RUNS = ["flip/level-0.2/seed-1/robust/run.h5", "flip/level-0.2/seed-2/robust/run.h5"]
for run in [*RUNS, "report/run.h5", "flip.old-1/robust/run.h5"]:  # the last two are no conditions
    (study / run).parent.mkdir(parents=True)
    subprocess.run([writer, str((study / run).parent)], check=True, stdout=subprocess.DEVNULL)
(study / "flip/level-0.2/seed-3/robust").mkdir(parents=True)  # not complete

# 11 updates, of which the 4th and 8th bring no completions; 2 groups of 4, 3 members; an evaluation of 5 x 4
STEPS, TRAINING, EVALUATION, MEMBERS = 11, 9 * 8, 20, 3
check([str(p.relative_to(study)) for p in rr.runs(study)], RUNS, "runs")
check(len(rr.runs(study / RUNS[0])), 1, "one file")
try:
    rr.runs(study / "flip/level-0.2/seed-3")
    check("no error", "FileNotFoundError", "a folder without records")
except FileNotFoundError:
    pass

training = rr.training(study)
check(list(training.columns[:5]), rr.KEYS, "keys")
check(len(training), 2 * STEPS, "updates")
check(training["seed"].iloc[0], 2**63 - 1, "seed")
check(training["run"].unique().tolist(), RUNS, "run")
check(np.allclose(training["loss"], 1 / (training["step"] + 3), rtol=0, atol=0), True, "loss")
check(training["kl"].isna().all(), True, "missing KL")

rollouts = rr.rollouts(study, text=True)
check(len(rollouts), 2 * TRAINING, "completions")
first = rollouts.iloc[:TRAINING]
sample = first["sample"].to_numpy()
check((first["correct"] == sample % 2).all(), True, "correct")
check(first["reward"].isna().tolist(), (sample == 2).tolist(), "missing rewards")
check(set(first["answer"][sample == 1]), {None}, "no answer")
check(set(first["answer"][sample == 3]), {"5/6"}, "answers")
check(set(first["response"][sample == 2]), {"caf\u00e9 \u2713 \U0001d7db"}, "texts")
check((first["example_id"] == "q-" + first["question"].astype(str)).all(), True, "question ids")
check((first["reference"] == (first["question"].astype(int) ** 2).astype(str)).all(), True, "references")
check(len(rr.rollouts(study, evaluation="final")), 2 * EVALUATION, "evaluation")
check("response" in rr.rollouts(study).columns, False, "texts unasked")
check(len(rr.rollouts(study, evaluation="none")), 0, "an evaluation that is not there")

verdicts = rr.verdicts(study)
check(len(verdicts), 2 * TRAINING * MEMBERS, "verdicts")
check(verdicts["kind"].iloc[:3].tolist(), ["exact", "rule", "rule"], "members")
check(set(verdicts["corruption"]), {"flip"}, "corruption")
joined = verdicts.merge(rollouts, left_on=["run", "rollout"], right_on=["run", "row"])
check(len(joined), len(verdicts), "verdicts with their completions")
check((joined["clean"] == joined["correct"]).all(), True, "clean verdicts")
check((joined["corrupted"] == (joined["member"] == joined["sample"])).all(), True, "corrupted")

evaluation = rr.evaluation(study)
check(evaluation["evaluation"].tolist(), ["final", "final"], "evaluations")
check(evaluation["independent_accuracy"].tolist(), [0.5, 0.5], "metric")
check(evaluation["pass@8"].isna().all(), True, "undefined metric")
check(evaluation["completions"].tolist(), [EVALUATION] * 2, "completions of an evaluation")

with h5py.File(study / RUNS[0]) as f:
    frame = rr.table(f["rollouts"])
    for c in frame:
        check(np.array_equal(frame[c], f["rollouts"][c], equal_nan=frame[c].dtype.kind == "f"), True, f"column {c}")
check(rr.units(study, "rollouts").loc["vote_entropy", "unit"], "bits", "units")

# The example wants the evaluation of a study, "test", with its metrics; the case has another with few.
MORE = np.array([(b"observed_reward", 0.25, 1), (b"reward_hacking_gap", -0.25, 1)],
                [("name", "S64"), ("value", "f8"), ("defined", "i4")])
for run in RUNS:
    with h5py.File(study / run, "r+") as f:
        f.move("evaluation/final", "evaluation/test")
        metrics = f["evaluation/test/metrics"][...].astype(MORE.dtype)
        del f["evaluation/test/metrics"]
        f["evaluation/test/metrics"] = np.concatenate([metrics, MORE])
done = subprocess.run([sys.executable, "-B", "-W", "error", str(TOOLS / "example_analysis.py"), str(study)],
                      capture_output=True, text=True)
check(done.returncode, 0, f"example: {done.stderr}")
check("erred_clean" in done.stdout and "robust" in done.stdout, True, "what the example prints")

if failed:
    print(f"{failed} checks failed")
sys.exit(failed != 0)
