"""A record as h5py and pandas see it, and its digest computed again from docs/records.md alone.

test_record_h5py.py WRITER DIR: WRITER makes a run in DIR. Exit code 77 only where h5py or pandas is missing."""
import hashlib
import json
import math
import shutil
import struct
import subprocess
import sys

try:
    import h5py
    import numpy as np
    import pandas as pd
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

NOT_IN_DIGEST = {"step_time", "time/rollout", "time/verify", "time/learn", "idle/generators",
                 "idle/verifiers", "idle/learners", "peak_memory"}
SET = ["answer", "logprobs", "rollouts", "text", "tokens", "verdicts"]


def check(got, want, what):
    if got != want:
        print(f"{what}: {got!r}, expected {want!r}")
        check.failed += 1


check.failed = 0


def value_bytes(a):
    """Little-endian bytes, NaN as one pattern."""
    a = np.array(a)
    if a.dtype.kind == "f":
        a[np.isnan(a)] = np.array(0x7FC00000, "<u4").view("<f4") if a.dtype.itemsize == 4 else np.nan
        if a.dtype.itemsize == 8:
            a.view("<u8")[np.isnan(a)] = 0x7FF8000000000000
    return a.astype(a.dtype.newbyteorder("<")).tobytes()


def text_bytes(b):
    return struct.pack("<I", len(b)) + b


def table_bytes(ds, skip=()):
    out = b""
    for name in ds.dtype.names:
        if name in skip:
            continue
        column = ds[...][name]
        out += b"".join(text_bytes(t) for t in column) if column.dtype.kind == "S" else value_bytes(column)
    return out


def texts_bytes(group, name, lengths):
    """Rows are padded with NUL to one width, and may hold NULs themselves."""
    width = group[name].dtype.itemsize
    raw = group[name][...].tobytes()
    return b"".join(text_bytes(raw[i * width : i * width + max(n, 0)]) for i, n in enumerate(lengths))


def completions_bytes(g):
    rows = g["rollouts"][...]
    return (
        table_bytes(g["rollouts"])
        + texts_bytes(g, "text", rows["text_bytes"].tolist())
        + texts_bytes(g, "answer", rows["answer_bytes"].tolist())
        + value_bytes(g["tokens"][...])
        + value_bytes(g["logprobs"][...])
        + table_bytes(g["verdicts"])
    )


def adapter_bytes(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    header.pop("__metadata__", None)
    out = b""
    for name in sorted(header):
        begin, end = header[name]["data_offsets"]
        out += text_bytes(name.encode()) + value_bytes(np.frombuffer(raw[8 + n + begin : 8 + n + end], "<f4"))
    return out


def digest(f, adapter):
    data = completions_bytes(f) + table_bytes(f["training"], NOT_IN_DIGEST)
    for name in sorted(f["evaluation"]):
        e = f["evaluation"][name]
        data += text_bytes(name.encode()) + table_bytes(e["questions"]) + completions_bytes(e) + table_bytes(e["metrics"])
    return hashlib.sha256(data + adapter_bytes(adapter)).hexdigest()


def check_shape(f):
    check(sorted(f), sorted(SET + ["config", "evaluation", "members", "provenance", "questions", "training"]), "/")
    check(sorted(f["evaluation/final"]), sorted(SET + ["metrics", "questions"]), "/evaluation/final")
    check(f.attrs["format"].decode(), "rrl-records", "format")
    check(int(f.attrs["format_version"]), 1, "format_version")
    check(int(f.attrs["seed"]), 2**63 - 1, "seed")
    check(float(f.attrs["level"]), 0.2, "level")
    check(f["config"][()].decode(), "seed: 42\n", "/config")
    check(json.loads(f["provenance"][()]), {"host": "b"}, "/provenance")
    # packed: no padding in the file
    check(f["verdicts"].dtype.itemsize, 8 + 2 + 4 + 4 + 4 + 1 + 1, "bytes of a verdict")
    for name in ("rollouts", "verdicts", "training", "questions", "members"):
        ds = f[name]
        names = [c.decode() for c in ds.attrs["columns"]]
        check(names, list(ds.dtype.names), f"columns of {name}")
        for a in ("unit", "missing", "meaning"):
            check(len(ds.attrs[a]), len(names), f"{a} of {name}")
        check((ds.compression, ds.shuffle, ds.fletcher32), ("gzip", True, True), f"filters of {name}")
    units = dict(zip(f["rollouts"].dtype.names, f["rollouts"].attrs["unit"]))
    check(units["logprob_sum"], b"nats", "unit of logprob_sum")
    check(f["logprobs"].attrs["unit"], b"nats", "unit of logprobs")


def check_values(f):
    rows = pd.DataFrame(f["rollouts"][...])
    check(len(rows), 9 * 2 * 4, "completions")
    check(rows["step"].tolist()[:8], [0] * 8, "step")
    check(rows["finish"].tolist()[:4], [0, 0, 0, 1], "finish")
    check(int(rows["reward"].isna().sum()), 18, "missing rewards")
    check(float(rows["reward"][1]), 1 / 1024, "reward")
    check(rows["answer_bytes"].tolist()[:4], [1, -1, 3, 3], "answer_bytes")
    text = f["text"][...]
    check(text[2].decode(), "caf\u00e9 \u2713 \U0001d7db", "text")
    check(f["answer"][3], b"5/6", "answer")
    lengths = rows["tokens"].to_numpy()
    check(rows["token_offset"].tolist(), (np.cumsum(lengths) - lengths).tolist(), "token_offset")
    check(len(f["tokens"]), int(lengths.sum()), "tokens")
    training = pd.DataFrame(f["training"][...])
    check(training["step"].tolist(), list(range(11)), "training step")
    check(training["loss"].tolist()[2], 0.2, "loss")
    check(bool(training["kl"].isna().all()), True, "kl")
    metrics = {m["name"].decode(): (float(m["value"]), int(m["defined"])) for m in f["evaluation/final/metrics"][...]}
    check(metrics["independent_accuracy"], (0.5, 1), "metric")
    check(math.isnan(metrics["pass@8"][0]) and metrics["pass@8"][1] == 0, True, "undefined metric")
    verdicts = pd.DataFrame(f["verdicts"][...])
    check(verdicts["rollout"].tolist()[:4], [0, 0, 0, 1], "verdict rollout")
    check(verdicts["member"].tolist()[:4], [0, 1, 2, 0], "verdict member")


def main(writer, folder):
    shutil.rmtree(folder, ignore_errors=True)
    printed = subprocess.run([writer, folder], check=True, capture_output=True, text=True).stdout.strip()
    with h5py.File(f"{folder}/run.h5") as f:
        check_shape(f)
        check_values(f)
        check(digest(f, f"{folder}/adapter/adapter_model.safetensors"), printed, "digest")
    dump = shutil.which("h5dump")
    if dump:
        said = subprocess.run([dump, "-d", "/training", f"{folder}/run.h5"], capture_output=True, text=True)
        check((said.returncode, "frac_reward_zero_std" in said.stdout), (0, True), "h5dump")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
