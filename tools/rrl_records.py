"""Records of rrl as pandas data frames, for one run or a whole study: h5py and pandas, nothing of rrl itself.

    import rrl_records as rr
    rr.training("runs/quick").groupby(["arm", "level", "method"], dropna=False)["reward"].mean()

Every frame begins with the columns arm, level, seed, method and run (path of the record below the folder); level is
NaN where the members are fixed, so group with dropna=False. NaN is "missing" everywhere. Runs in progress have no
run.h5 and are left out. Meanings and units of the columns: docs/records.md, or units(folder, "rollouts")."""
from pathlib import Path

import h5py
import pandas as pd

KEYS = ["arm", "level", "seed", "method", "run"]
LEFT_OUT = ("report", "quarantine", "qualification")  # beside the conditions of a study; and NAME.old-N


def runs(folder):
    """Paths of the complete records below a folder, sorted; a file is itself."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    found = [p for p in folder.rglob("run.h5")
             if not any(d in LEFT_OUT or ".old-" in d for d in p.relative_to(folder).parts)]
    if not found:
        raise FileNotFoundError(f"{folder}: no run.h5 below it")
    return sorted(found)


def table(dataset):
    """A compound dataset as a frame; texts are decoded."""
    rows = dataset[...]
    frame = pd.DataFrame({name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in rows.dtype.names})
    for name in rows.dtype.names:
        if rows.dtype[name].kind == "S":
            frame[name] = [cell.decode() for cell in rows[name]]
    return frame


def units(folder, name):
    """Unit and meaning of each column of a table of the first record."""
    with h5py.File(runs(folder)[0]) as f:
        rows = {k: [v.decode() for v in f[name].attrs[k]] for k in ("columns", "unit", "missing", "meaning")}
    return pd.DataFrame(rows).set_index("columns")


def _each(folder, make):
    """make(file) of every record, one below the other, with its keys in front."""
    frames = []
    for path in runs(folder):
        with h5py.File(path) as f:
            frame, at = make(f), f.attrs
            keys = [at["arm"].decode(), float(at["level"]), int(at["seed"]), at["method"].decode(),
                    str(path.relative_to(folder)) if Path(folder).is_dir() else path.name]
            for i, (key, value) in enumerate(zip(KEYS, keys)):
                frame.insert(i, key, value)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _completions(f, evaluation):
    """The group that holds a set of completions, or None: training has none in an evaluated base model, and so on."""
    name = f"evaluation/{evaluation}" if evaluation else "/"
    return f[name] if name in f and len(f[name]["rollouts"]) else None


def rollouts(folder, evaluation=None, text=False):
    """A row a completion of training, or of the named evaluation ("test" in a study), with example_id and reference;
    with text also response and answer (None = none extracted)."""
    def make(f):
        at = _completions(f, evaluation)
        if at is None:
            return pd.DataFrame({"step": pd.Series(dtype="int64")})
        frame = table(at["rollouts"])
        frame.insert(0, "row", range(len(frame)))
        questions = table(at["questions"])
        if len(questions):
            frame["example_id"] = questions["id"].to_numpy()[frame["question"]]
            frame["reference"] = questions["reference"].to_numpy()[frame["question"]]
        if text:
            frame["response"] = [t.decode() for t in at["text"][...]]
            answers = zip(at["answer"][...], frame["answer_bytes"])
            frame["answer"] = [t.decode() if n >= 0 else None for t, n in answers]
        return frame
    return _each(folder, make)


def verdicts(folder, evaluation=None):
    """A row a completion and member: clean and corrupted reward, with kind and corruption of the member. Merges with
    rollouts on KEYS and rollout = row."""
    def make(f):
        at = _completions(f, evaluation)
        if at is None:
            return pd.DataFrame({"rollout": pd.Series(dtype="uint64")})
        members = table(f["members"])[["kind", "corruption", "probability"]]
        return table(at["verdicts"]).join(members, on="member")
    return _each(folder, make)


def training(folder):
    """A row an optimiser update."""
    return _each(folder, lambda f: table(f["training"]))


def evaluation(folder):
    """A row a run and evaluation, with its metrics as columns; undefined ones are NaN."""
    def make(f):
        rows = []
        for name, at in f["evaluation"].items():
            metrics = table(at["metrics"])
            rows.append({"evaluation": name, "questions": len(at["questions"]), "completions": len(at["rollouts"]),
                         **dict(zip(metrics["name"], metrics["value"].where(metrics["defined"] != 0)))})
        return pd.DataFrame(rows, columns=None if rows else ["evaluation"])
    return _each(folder, make)
