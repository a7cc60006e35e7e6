#!/usr/bin/env python3
"""The works of `rrl bench` beside other programs that do the same, as far as they are installed.

    tools/bench_peers.py --model models/HuggingFaceTB--SmolLM2-135M-Instruct --json peers.json

prints a table and writes {"rows": [{"work", "peer", "ours", "theirs", "ratio", "target", ...}]}: ours and theirs are
rates (tokens/s, steps/s, GFLOP/s; MB for memory), ratio > 1 = ours is better, cpu_ratio the same by processor time,
target what the project asks for on this kind of machine or null. Peers are measured in turn with ours, --rounds times;
the median counts.

    peer           works                 needs
    transformers   decode, generate      torch, transformers (bf16)
    llama.cpp      decode, generate      llama-cpp-python, gguf, torch (F16, made from the model folder)
    vLLM           decode, generate      vllm for CPU in a Python of its own: --vllm-python
    torch + PEFT   train                 torch, transformers, peft (bf16)
    TRL            step                  torch, transformers, peft, trl, datasets (bf16)
    oneDNN         products              make bench_gemm, with libdnnl-dev found when cmake ran

decode = 128 new tokens behind prompts of 100 without the time for prompt and first token, generate = with it. Each peer
is a process of its own that loads the model once; "not installed" is said in its row. This file needs the standard
library only; --python names the Python that has the peers (default: this one). Beside other work on the machine use
--threads 1 and read cpu_ratio: threads that wait for each other at barriers are hurt most.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT, NEW, GROUP, RANK = 100, 128, 8, 8
TRAIN_ROWS, TRAIN_TOKENS = 8, 256
TEMPERATURE, TOP_P, TOP_K = 0.7, 0.95, 40

# work, peer, target with the tile instructions (AMX), target elsewhere
TARGETS = [
    ("decode-16", "transformers", 10, 3), ("decode-64", "transformers", 10, 3),
    ("decode-16", "llama.cpp", 8, 3), ("decode-64", "llama.cpp", 8, 3),
    ("decode-16", "vLLM", None, None), ("decode-64", "vLLM", None, None),
    ("train", "torch + PEFT", 8, 3), ("step", "TRL", 15, 5),
    ("step memory", "TRL", 1, 1), ("step memory", "2 GiB", 1, 1),
    ("decode-1", "bound", 0.8, 0.8), ("decode-16", "bound", 0.8, 0.8), ("decode-64", "bound", 0.6, 0.6),
    ("fleet-1", "one by one", 2, 2), ("fleet-4", "one by one", 2, 2),
    ("fleet-16", "one by one", 2, 2), ("durable", "at the end", 0.95, 0.95),
]


def target_of(work, peer, amx):
    for w, p, with_amx, without in TARGETS:
        if (w, p) == (work, peer):
            return with_amx if amx else without
    return None


# --- peers: each runs in a process of its own, reads names of works and answers a line of JSON


def prompt_text(i):
    """The prompts of rrl bench (src/bench/work_inputs.c)."""
    lines = []
    for k in range(16 * TRAIN_TOKENS // 80):
        lines.append(f"Problem {i * 7 + k + 1}: A farmer has {3 + (i + k) % 40} baskets with {12 + (5 * i + k) % 50} "
                     f"apples each and sells {7 + (3 * i + k) % 20} apples. How many apples are left?\n")
    return "".join(lines)


def prompt_ids(model, n, tokens):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
    return [tokenizer.encode(prompt_text(i), add_special_tokens=False).ids[:tokens] for i in range(n)]


class Stopwatch:
    """Seconds by the clock and of processor time of this process, all threads."""

    def __init__(self):
        self.start = time.perf_counter(), time.process_time()

    def read(self):
        return {"seconds": time.perf_counter() - self.start[0], "cpu_seconds": time.process_time() - self.start[1]}


def timed(call):
    watch = Stopwatch()
    call()
    return watch.read()


def load_torch(model, threads):
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    return torch, AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16)


class Transformers:
    """generate() of all prompts as one batch."""

    works = ["decode-16", "decode-64"]

    def __init__(self, model, threads):
        self.dir = model
        self.torch, self.model = load_torch(model, threads)

    def generate(self, ids, tokens):
        self.model.generate(ids, attention_mask=self.torch.ones_like(ids), do_sample=True, temperature=TEMPERATURE,
                            top_p=TOP_P, top_k=0, min_new_tokens=tokens, max_new_tokens=tokens,
                            pad_token_id=self.model.config.eos_token_id)

    def run(self, work):
        ids = self.torch.tensor(prompt_ids(self.dir, int(work.split("-")[1]), PROMPT))
        return {"first": timed(lambda: self.generate(ids, 1)), "whole": timed(lambda: self.generate(ids, NEW))}


class Vllm:
    """LLM.generate; it makes batches of its own."""

    works = Transformers.works

    def __init__(self, model, threads):
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
        # one process, so that its processor time is all of it
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import LLM, SamplingParams
        self.dir, self.settings = model, SamplingParams
        self.llm = LLM(model=model, dtype="bfloat16", max_model_len=512, enable_prefix_caching=False)

    def generate(self, prompts, tokens):
        settings = self.settings(temperature=TEMPERATURE, top_p=TOP_P, max_tokens=tokens, ignore_eos=True)
        self.llm.generate([{"prompt_token_ids": p} for p in prompts], settings, use_tqdm=False)

    def run(self, work):
        prompts = prompt_ids(self.dir, int(work.split("-")[1]), PROMPT)
        return {"first": timed(lambda: self.generate(prompts, 1)), "whole": timed(lambda: self.generate(prompts, NEW))}


def write_gguf(path, model):
    """The model folder as an F16 file without a vocabulary: ids go in and come out."""
    import gguf
    import numpy
    from safetensors.torch import load_file
    config = json.loads((Path(model) / "config.json").read_text())
    if config["model_type"] != "llama":
        raise ImportError(f"a GGUF is made of llama models only, this one is {config['model_type']}")
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, tensor in load_file(Path(model) / "model.safetensors").items():
        values = tensor.float().numpy()
        for part, n in (("q_proj", heads), ("k_proj", kv_heads)):
            if part in name:  # rotary pairs are neighbours there, halves here
                values = values.reshape(n, 2, values.shape[0] // n // 2, -1).swapaxes(1, 2).reshape(values.shape)
        to = numpy.float32 if values.ndim == 1 else numpy.float16
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), numpy.ascontiguousarray(values.astype(to)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    """One batch of all sequences a step, through the C interface, with its usual order of samplers (top-k 40 first)."""

    works = Transformers.works

    def __init__(self, model, threads):
        import llama_cpp
        self.lib, self.dir, self.threads = llama_cpp, model, threads
        llama_cpp.llama_backend_init()
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, None)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            write_gguf(path, model)
            self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama.cpp did not load the model")

    def open_context(self, n):
        settings = self.lib.llama_context_default_params()
        settings.n_ctx = n * (-(-(PROMPT + NEW) // 256) * 256)
        settings.n_seq_max = n
        settings.n_batch = settings.n_ubatch = 512
        settings.n_threads = settings.n_threads_batch = self.threads
        settings.kv_unified = False
        return self.lib.llama_init_from_model(self.model, settings)

    def decode(self, context, batch, rows):
        """rows: (token, position, sequence, wants logits)."""
        for i, (token, position, sequence, wants) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, wants
            batch.seq_id[i][0] = sequence
        batch.n_tokens = len(rows)
        if self.lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")

    def samplers(self):
        lib = self.lib
        chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        for s in (lib.llama_sampler_init_top_k(TOP_K), lib.llama_sampler_init_top_p(TOP_P, 1),
                  lib.llama_sampler_init_temp(TEMPERATURE), lib.llama_sampler_init_dist(1)):
            lib.llama_sampler_chain_add(chain, s)
        return chain

    def generate(self, context, prompts):
        lib, n = self.lib, len(prompts)
        batch, chain = lib.llama_batch_init(512, 0, 1), self.samplers()
        watch, tokens = Stopwatch(), []
        for s, prompt in enumerate(prompts):
            self.decode(context, batch, [(t, i, s, i == PROMPT - 1) for i, t in enumerate(prompt)])
            tokens.append(lib.llama_sampler_sample(chain, context, PROMPT - 1))
        first = watch.read()
        for step in range(1, NEW):
            self.decode(context, batch, [(tokens[s], PROMPT + step - 1, s, True) for s in range(n)])
            tokens = [lib.llama_sampler_sample(chain, context, s) for s in range(n)]
        whole = watch.read()
        lib.llama_sampler_free(chain)
        lib.llama_batch_free(batch)
        return {"first": first, "whole": whole}

    def run(self, work):
        n = int(work.split("-")[1])
        context = self.open_context(n)
        try:
            return self.generate(context, prompt_ids(self.dir, n, PROMPT))
        finally:
            self.lib.llama_free(context)


class Peft:
    """Forward and backward of a causal loss over 8 x 256 tokens."""

    works = ["train"]

    def __init__(self, model, threads):
        from peft import LoraConfig, get_peft_model
        self.torch, base = load_torch(model, threads)
        self.ids = self.torch.tensor(prompt_ids(model, TRAIN_ROWS, TRAIN_TOKENS))
        self.model = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear"))
        self.model.train()

    def step(self):
        self.model.zero_grad()
        self.model(input_ids=self.ids, labels=self.ids).loss.backward()

    def run(self, work):
        return {"whole": timed(self.step)}


class Trl:
    """A step of GRPOTrainer; its callback waits for the next request before each."""

    works = ["step"]

    def __init__(self, model, threads):
        self.dir, self.threads = model, threads

    def serve(self, answer):
        """Train until no work is asked for."""
        torch, model = load_torch(self.dir, self.threads)
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import AutoTokenizer, TrainerCallback
        from trl import GRPOConfig, GRPOTrainer

        class Turns(TrainerCallback):
            def on_step_begin(self, args, state, control, **more):
                if not sys.stdin.readline().strip():
                    os._exit(0)  # there is no other way out of the middle of a step
                self.watch = Stopwatch()

            def on_step_end(self, args, state, control, **more):
                answer({"whole": self.watch.read()})

        tokenizer = AutoTokenizer.from_pretrained(self.dir, model_input_names=["input_ids", "attention_mask"])
        prompts = [tokenizer.decode(ids) for ids in prompt_ids(self.dir, 2, PROMPT)]
        with tempfile.TemporaryDirectory() as folder:
            settings = GRPOConfig(output_dir=folder, per_device_train_batch_size=2 * GROUP, num_generations=GROUP,
                                  max_completion_length=NEW, max_prompt_length=PROMPT, temperature=TEMPERATURE,
                                  top_p=TOP_P, beta=0.04, bf16=True, use_cpu=True, max_steps=1000, save_strategy="no",
                                  report_to="none", disable_tqdm=True, gradient_checkpointing=False,
                                  generation_kwargs={"min_new_tokens": NEW})
            trainer = GRPOTrainer(model=model, args=settings, processing_class=tokenizer, callbacks=[Turns()],
                                  train_dataset=Dataset.from_dict({"prompt": prompts}),
                                  reward_funcs=lambda completions, **more: [i % 2 for i, _ in enumerate(completions)],
                                  peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear"))
            answer({"ready": True})
            trainer.train()


PEERS = {"transformers": Transformers, "llama.cpp": LlamaCpp, "vLLM": Vllm, "torch + PEFT": Peft, "TRL": Trl}


def serve(name, model, threads):
    """The peer's process: works on standard input, answers on what was standard output; all else goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what):
        what["peak_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(what), file=out, flush=True)

    try:
        peer = PEERS[name](model, threads)
        if hasattr(peer, "serve"):
            peer.serve(answer)
            return
        answer({"ready": True})
        for line in sys.stdin:
            answer(peer.run(line.strip()))
    except ImportError as e:
        answer({"missing": str(e)})


# --- this side


class Peer:
    """A peer's process. `missing` says why there is none (any more)."""

    def __init__(self, name, python, model, threads):
        self.name, self.works, self.missing, self.peak = name, PEERS[name].works, None, 0
        self.errors = tempfile.TemporaryFile("w+")
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
        command = [python, os.path.abspath(__file__), "--serve", name, "--model", model, "--threads", str(threads)]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            text=True, env=environment)
        except OSError as e:
            self.missing = f"not installed: {e}"
            return
        self.listen()

    def listen(self):
        line = self.process.stdout.readline()
        said = json.loads(line) if line else {}
        self.peak = said.get("peak_memory", self.peak)
        if not line:
            self.errors.seek(0)
            self.missing = "failed: " + (self.errors.read().strip().splitlines() or ["no message"])[-1]
        elif "missing" in said:
            self.missing = "not installed: " + said["missing"]
        return said

    def run(self, work):
        try:
            self.process.stdin.write(work + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # what it said last is told by listen()
        return self.listen()

    def close(self):
        if getattr(self, "process", None):
            self.process.stdin.close()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()


def difference(a, b):
    return {k: a[k] - b[k] for k in ("seconds", "cpu_seconds")}


def figures(work, said):
    """{work: (amount, times)} of a peer's answer."""
    if work.startswith("decode"):
        n = int(work.split("-")[1])
        return {work: (n * (NEW - 1), difference(said["whole"], said["first"])),
                work.replace("decode", "generate"): (n * NEW, said["whole"])}
    return {work: ((TRAIN_ROWS * TRAIN_TOKENS) if work == "train" else 1, said["whole"])}


def our_figures(row):
    """The same of a row of rrl bench."""
    work, found = row["work"], {row["work"]: (row["amount"], row)}
    if work.startswith("decode"):
        found[work.replace("decode", "generate")] = (row["amount"] / (NEW - 1) * NEW, row["parts"][0])
    return found


def rrl_bench(options, works):
    command = [options.rrl, "bench", "--quiet", "--json", "--model", options.model, "--dtype", "bfloat16", "--threads",
               str(options.threads), "--only", ",".join(works)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure(options, works, peers):
    """Ours and each peer in turn: {(who, work): [(amount, times)]}, the reports of rrl bench."""
    samples, reports = {}, []
    for turn in range(1, options.rounds + 1):
        for work in works:
            reports.append(rrl_bench(options, [work]))
            for row in reports[-1]["works"]:
                for name, figure in our_figures(row).items():
                    samples.setdefault(("ours", name), []).append(figure)
            for peer in peers:
                if work not in peer.works or peer.missing:
                    continue
                said = peer.run(work)
                if "whole" in said:
                    for name, figure in figures(work, said).items():
                        samples.setdefault((peer.name, name), []).append(figure)
            print(f"round {turn} of {options.rounds}: {work} done", file=sys.stderr)
    return samples, reports


def rate(samples, who, work, clock="seconds"):
    found = [amount / times[clock] for amount, times in samples.get((who, work), [])]
    return statistics.median(found) if found else None


def quotient(a, b):
    return a / b if a is not None and b else None


def row_of(work, peer, ours, theirs, amx, cpu_ratio=None, ratio=None, unit="", note=None):
    return {"work": work, "peer": peer, "ours": ours, "theirs": theirs, "ratio": ratio or quotient(ours, theirs),
            "cpu_ratio": cpu_ratio, "target": target_of(work, peer, amx), "unit": unit, "note": note}


def peer_rows(samples, peers, works, amx):
    rows = []
    for work in works:
        for name in [work] + ([work.replace("decode", "generate")] if work.startswith("decode") else []):
            for peer in peers:
                if work not in peer.works:
                    continue
                rows.append(row_of(name, peer.name, rate(samples, "ours", name), rate(samples, peer.name, name), amx,
                                   cpu_ratio=quotient(rate(samples, "ours", name, "cpu_seconds"),
                                                      rate(samples, peer.name, name, "cpu_seconds")),
                                   unit="steps/s" if name == "step" else "tokens/s", note=peer.missing))
    return rows


def own_rows(reports, amx):
    """Against the bound of the machine, and of ours against ours."""
    rows, seen = [], {}
    for report in reports:
        for row in report["works"]:
            seen.setdefault(row["work"], []).append(row)
    for work, found in seen.items():
        first, middle = found[0], lambda key: statistics.median(r[key] for r in found)
        for peer, ratio, cpu_ratio in (("bound", "ratio", "cpu_ratio"), (first["against"], "gain", "cpu_gain")):
            if first[ratio] is not None:
                rows.append(row_of(work, peer, middle("rate"), middle("rate") / middle(ratio), amx, middle(cpu_ratio),
                                   middle(ratio), first["unit"]))
    return rows


def memory_rows(reports, peers, amx):
    found = [row["peak_memory"] for r in reports for row in r["works"] if row["work"] == "step" and row["peak_memory"]]
    if not found:
        return []
    ours, rows = max(found) / 1e6, []
    others = [(p.name, p.peak, p.missing) for p in peers if "step" in p.works] + [("2 GiB", 2 * 1024 ** 3, None)]
    for name, peak, missing in others:
        theirs = peak / 1e6 if peak and not missing else None
        rows.append(row_of("step memory", name, ours, theirs, amx, None, quotient(theirs, ours), "MB", missing))
    return rows


def gemm_rows(options, amx):
    """From tests/bench_gemm, which runs oneDNN in turn with ours."""
    program, rows = Path(options.rrl).parent / "tests" / "bench_gemm", []
    if not program.exists():
        return [row_of("products", "oneDNN", None, None, amx, note=f"not installed: no {program}; make bench_gemm")]
    for threads in sorted({1, options.threads}):
        done = subprocess.run([str(program), "auto", str(threads)], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            shape = re.match(r"\s*\d+ thr\s+(\d+) x\s+(\d+)\s+M\s+(\d+)", line)
            if not shape:
                continue
            k, n, m = shape.groups()
            found = {name: float(value) for name, value in re.findall(r"(\w+)\s+([\d.]+)", line[shape.end():])}
            row = row_of(f"product {k} x {n}, {m} rows, threads {threads}", "oneDNN", found.get("warm"),
                         found.get("oneDNN"), amx, unit="GFLOP/s")
            row["target"] = 1.0 if int(m) >= 256 else 0.9 if int(m) >= 16 else None
            row["note"] = None if row["theirs"] else "not installed: bench_gemm was built without it"
            rows.append(row)
    return rows


def show(rows, amx, load):
    print(f"\n{'work':34} {'peer':13} {'ours':>9} {'theirs':>9} {'ratio':>7} {'(cpu)':>7} {'target':>7}")
    cell = lambda v, w: f"{'-':>{w}}" if v is None else f"{v:>{w}.0f}" if v >= 1000 else f"{v:>{w}.3g}"
    for r in rows:
        print(f"{r['work']:34} {r['peer']:13} {cell(r['ours'], 9)} {cell(r['theirs'], 9)} {cell(r['ratio'], 7)} "
              f"{cell(r['cpu_ratio'], 7)} {cell(r['target'], 7)} {r['unit'] if not r['note'] else r['note'][:60]}")
    print(f"\nload {load[0]:.1f} before, {os.getloadavg()[0]:.1f} after; AMX {'present' if amx else 'absent'}; "
          "ratio > 1 = ours is better; (cpu) = by processor time")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="model folder")
    p.add_argument("--json", help="file to write")
    p.add_argument("--rrl", default="build/cpu/rrl", help="our program (default: build/cpu/rrl)")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=2, help="turns of everybody (default: 2)")
    p.add_argument("--works", default="decode-1,decode-16,decode-64,train,step,fleet,durable,products")
    p.add_argument("--peers", default=",".join(PEERS), help="those to try (default: all)")
    p.add_argument("--python", default=sys.executable, help="Python with the peers (default: this one)")
    p.add_argument("--vllm-python", help="Python with vLLM for CPU")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    options = p.parse_args()
    options.model = os.path.abspath(options.model)
    return options


def main():
    options = arguments()
    if options.serve:
        serve(options.serve, options.model, options.threads)
        return
    load, works, amx = os.getloadavg(), options.works.split(","), False
    products = "products" in works
    works = [w for w in works if w != "products"]
    wanted = [n for n in options.peers.split(",") if any(w in works for w in PEERS[n].works)]
    peers = []
    try:
        for name in wanted:
            python = options.vllm_python if name == "vLLM" and options.vllm_python else options.python
            peers.append(Peer(name, python, options.model, options.threads))
        samples, reports = measure(options, works, peers)
        amx = any(r["isa"] == "amx" for r in reports)
        rows = peer_rows(samples, peers, works, amx) + own_rows(reports, amx) + memory_rows(reports, peers, amx)
    finally:
        for peer in peers:
            peer.close()
    if products:
        rows += gemm_rows(options, amx)
    show(rows, amx, load)
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": rows, "threads": options.threads, "load": load,
                                                  "amx": amx}, indent=1) + "\n")


if __name__ == "__main__":
    main()
