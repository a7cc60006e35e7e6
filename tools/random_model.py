#!/usr/bin/env python3
"""A model folder with the shape of a known model and random bfloat16 weights, for measuring memory and speed where the
real weights are not at hand. Its text means nothing.

    tools/random_model.py FOLDER --shape qwen2.5-0.5b --tokenizer tests/golden/tokenizer-qwen
    build/rrl validate CONFIG --set model.name=FOLDER

The tokenizer is copied; its ids must be below the shape's vocabulary. Needs nothing but Python 3."""

import argparse
import array
import json
import os
import random
import shutil
import struct
import sys

SHAPES = {  # from the config.json of the releases
    "qwen2.5-0.5b": dict(model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_size=896, num_hidden_layers=24,
                         num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=151936,
                         max_position_embeddings=32768, rms_norm_eps=1e-6, rope_theta=1000000.0, eos_token_id=151645),
    "smollm2-135m": dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=576, num_hidden_layers=30,
                         num_attention_heads=9, num_key_value_heads=3, intermediate_size=1536, vocab_size=49152,
                         max_position_embeddings=8192, rms_norm_eps=1e-5, rope_theta=100000.0, eos_token_id=2),
}
POOL = 1000003  # normal numbers, taken round and round; prime, so that no two rows of a matrix are alike


def tensors(c):
    """(name, shape, constant or None = random) of every tensor."""
    hidden, wide = c["hidden_size"], c["intermediate_size"]
    head = hidden // c["num_attention_heads"]
    rows = {"q": hidden, "k": head * c["num_key_value_heads"], "v": head * c["num_key_value_heads"]}
    yield "model.embed_tokens.weight", (c["vocab_size"], hidden), None
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name, n in rows.items():
            yield f"{at}self_attn.{name}_proj.weight", (n, hidden), None
            if c["model_type"] == "qwen2":
                yield f"{at}self_attn.{name}_proj.bias", (n,), None
        yield f"{at}self_attn.o_proj.weight", (hidden, hidden), None
        yield f"{at}mlp.gate_proj.weight", (wide, hidden), None
        yield f"{at}mlp.up_proj.weight", (wide, hidden), None
        yield f"{at}mlp.down_proj.weight", (hidden, wide), None
        yield f"{at}input_layernorm.weight", (hidden,), 1.0
        yield f"{at}post_attention_layernorm.weight", (hidden,), 1.0
    yield "model.norm.weight", (hidden,), 1.0


def bfloat16(values):
    return array.array("H", (u >> 16 for (u,) in struct.iter_unpack("<I", struct.pack(f"<{len(values)}f", *values))))


def write_weights(path, config, seed):
    draw = random.Random(seed)
    pool = bfloat16([draw.gauss(0, 0.02) for _ in range(POOL)]).tobytes()
    header, at, sizes = {"__metadata__": {"format": "pt"}}, 0, []
    for name, shape, constant in tensors(config):
        size = 2
        for n in shape:
            size *= n
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        sizes.append((size, constant))
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        place = 0
        for size, constant in sizes:
            if constant is not None:
                f.write(bfloat16([constant]).tobytes() * (size // 2))
                continue
            while size > 0:
                part = pool[place:place + size]
                f.write(part)
                size -= len(part)
                place = (place + len(part)) % len(pool)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--shape", choices=sorted(SHAPES), required=True)
    p.add_argument("--tokenizer", required=True, help="folder with tokenizer.json and tokenizer_config.json")
    p.add_argument("--layers", type=int, help="fewer layers than the shape has")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    config = dict(SHAPES[a.shape], hidden_act="silu", tie_word_embeddings=True, torch_dtype="bfloat16")
    if a.layers:
        config["num_hidden_layers"] = a.layers
    if os.path.exists(a.folder):
        sys.exit(f"{a.folder} is there already; name another folder")
    work = f"{a.folder}.{os.getpid()}.tmp"
    os.makedirs(work)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(os.path.join(a.tokenizer, name), os.path.join(work, name))
    with open(os.path.join(work, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
    write_weights(os.path.join(work, "model.safetensors"), config, a.seed)
    os.rename(work, a.folder)  # appears whole


if __name__ == "__main__":
    main()
