#!/usr/bin/env python3
"""Turn a llama-architecture GGUF file into a Hugging Face model folder.

    python3 tools/gguf_to_hf.py MODEL.gguf FOLDER [--dtype bf16|f32]

Needs numpy only. Quantised weights are dequantised: they are not the values of the original release. A dequantised value
needs more digits than bf16 has, so bf16 (the type of most releases, the default) rounds once more; the largest error of
that is printed. f32 keeps the values as llama.cpp computes them. The bytes written depend on the GGUF and --dtype alone.
"""
import argparse
import json
import os
import struct
import sys

import numpy as np

# --- reading GGUF (v2 and v3, little-endian): head, metadata, tensor table, padding, tensor data

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Cursor:
    """Reads values one after the other from a buffer."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        value = struct.unpack_from(layout, self.data, self.at)[0]
        self.at += struct.calcsize(layout)
        return value

    def text(self):
        n = self.take("<Q")
        self.at += n
        return bytes(self.data[self.at - n:self.at]).decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            element, n = self.take("<I"), self.take("<Q")
            return [self.value(element) for _ in range(n)]
        if kind not in SCALARS:
            raise SystemExit(f"metadata of the unknown type {kind}")
        return self.take(SCALARS[kind])


def read_gguf(path):
    """(metadata, {name: (shape, type, bytes)}); shapes outermost dimension first."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    c = Cursor(data)
    magic, version = c.take("4s"), c.take("<I")
    if magic != b"GGUF" or version not in (2, 3):
        raise SystemExit(f"{path}: no GGUF file of version 2 or 3")
    n_tensors, n_values = c.take("<Q"), c.take("<Q")
    meta = {}
    for _ in range(n_values):
        key = c.text()
        meta[key] = c.value(c.take("<I"))
    table = []
    for _ in range(n_tensors):
        name = c.text()
        shape = [c.take("<Q") for _ in range(c.take("<I"))]
        table.append((name, shape[::-1], c.take("<I"), c.take("<Q")))
    align = meta.get("general.alignment", 32)
    start = -(-c.at // align) * align
    tensors = {}
    for name, shape, kind, offset in table:
        if kind not in ENCODINGS:
            raise SystemExit(f"{path}: tensor {name} is of the ggml type {kind}; known: {sorted(ENCODINGS)}")
        layout, block, _ = ENCODINGS[kind]
        size = int(np.prod(shape)) // block * np.dtype(layout).itemsize
        tensors[name] = (shape, kind, data[start + offset:start + offset + size])
    return meta, tensors


# --- weights

def dequantize_q4_1(b):
    """Blocks of 32: value = d q + m; the low nibbles are the first 16 values, the high ones the rest."""
    q = np.concatenate([b["q"] & 15, b["q"] >> 4], axis=1).astype(np.float32)
    return q * b["d"].astype(np.float32)[:, None] + b["m"].astype(np.float32)[:, None]


def dequantize_q8_0(b):
    return b["q"].astype(np.float32) * b["d"].astype(np.float32)[:, None]


# ggml type -> layout of a block, values in it, blocks -> f32
ENCODINGS = {
    0: ("<f4", 1, lambda b: b),
    1: ("<f2", 1, lambda b: b.astype(np.float32)),
    3: ([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], 32, dequantize_q4_1),
    8: ([("d", "<f2"), ("q", "i1", 32)], 32, dequantize_q8_0),
}

TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_name(name):
    if name in TOP:
        return TOP[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in IN_BLOCK:
        return f"model.layers.{parts[1]}.{IN_BLOCK[parts[2]]}.{parts[3]}"
    raise SystemExit(f"tensor {name} has no place in a Llama model")


def unpermute(w, heads):
    """GGUF holds q and k with the two halves of each head interleaved (pairs rotate as neighbours); undo it."""
    return w.reshape(heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def weight(name, shape, kind, data, heads, kv_heads):
    """A tensor as f32, rows in Hugging Face's order."""
    layout, _, decode = ENCODINGS[kind]
    w = decode(data.view(layout)).reshape(shape)
    if ".attn_q." in name:
        return unpermute(w, heads)
    if ".attn_k." in name:
        return unpermute(w, kv_heads)
    return w


def round_bf16(w):
    """(bf16 words, largest relative error): nearest, ties to even; w is finite."""
    bits = np.ascontiguousarray(w).view(np.uint32)
    words = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    back = (words << 16).astype(np.uint32).view(np.float32)
    nonzero = w != 0
    error = np.abs(back - w)[nonzero] / np.abs(w[nonzero])
    return words.astype("<u2"), float(error.max(initial=0))


def write_weights(path, meta, tensors, dtype):
    """The safetensors file: length of the header, header, tensors in the order of the GGUF."""
    heads = meta["llama.attention.head_count"]
    kv_heads = meta.get("llama.attention.head_count_kv", heads)
    header, at, worst = {"__metadata__": {"format": "pt"}}, 0, 0.0
    for name, (shape, _, _) in tensors.items():
        end = at + int(np.prod(shape)) * (2 if dtype == "bf16" else 4)
        header[hf_name(name)] = {"dtype": dtype.upper(), "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, (shape, kind, data) in tensors.items():
            w = weight(name, shape, kind, data, heads, kv_heads)
            if not np.isfinite(w).all():
                raise SystemExit(f"tensor {name} holds numbers that are not finite")
            if dtype == "bf16":
                w, error = round_bf16(w)
                worst = max(worst, error)
            f.write(w.astype(w.dtype.newbyteorder("<"), copy=False).tobytes())
    return worst


# --- the JSON files

def short(x):
    """GGUF stores float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(x)))


def model_config(meta, tied, dtype):
    hidden, heads = meta["llama.embedding_length"], meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "head_dim": meta.get("llama.attention.key_length", hidden // heads),
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
        "pad_token_id": meta.get("tokenizer.ggml.padding_token_id"),
        "rms_norm_eps": short(meta["llama.attention.layer_norm_rms_epsilon"]),
        "rope_scaling": None,
        "rope_theta": short(meta.get("llama.rope.freq_base", 10000.0)),
        "tie_word_embeddings": tied,
        "torch_dtype": {"bf16": "bfloat16", "f32": "float32"}[dtype],
        "use_cache": True,
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
    }


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPLITS = {
    "gpt-2": BYTE_LEVEL,
    "smollm": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]},
}
CONTROL = 3  # type of tokens that stand for no text
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def control_tokens(meta):
    kinds = meta["tokenizer.ggml.token_type"]
    return [(i, t) for i, t in enumerate(meta["tokenizer.ggml.tokens"]) if kinds[i] == CONTROL]


def tokenizer(meta):
    split = meta.get("tokenizer.ggml.pre", "gpt-2")
    if meta["tokenizer.ggml.model"] != "gpt2" or split not in SPLITS:
        raise SystemExit(f"the tokenizer {meta['tokenizer.ggml.model']}/{split} is not one of gpt2/{sorted(SPLITS)}")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": t, **FLAGS} for i, t in control_tokens(meta)],
        "normalizer": None,
        "pre_tokenizer": SPLITS[split],
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {t: i for i, t in enumerate(meta["tokenizer.ggml.tokens"])},
            "merges": meta["tokenizer.ggml.merges"],
        },
    }


def tokenizer_config(meta):
    tokens = meta["tokenizer.ggml.tokens"]
    config = {
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): {"content": t, **FLAGS} for i, t in control_tokens(meta)},
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta["llama.context_length"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        if f"tokenizer.ggml.{key}_token_id" in meta:
            config[f"{name}_token"] = tokens[meta[f"tokenizer.ggml.{key}_token_id"]]
    if "tokenizer.chat_template" in meta:
        config["chat_template"] = meta["tokenizer.chat_template"]
    return config


def write_json(path, value, indent=2):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, indent=indent, separators=None if indent else (",", ":"))
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gguf", metavar="MODEL.gguf")
    parser.add_argument("folder", metavar="FOLDER", help="made if missing")
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16", help="type of the written weights")
    args = parser.parse_args()
    meta, tensors = read_gguf(args.gguf)
    if meta["general.architecture"] != "llama":
        raise SystemExit(f"{args.gguf}: architecture {meta['general.architecture']}, expected llama")
    os.makedirs(args.folder, exist_ok=True)
    config = model_config(meta, "output.weight" not in tensors, args.dtype)
    end_tokens = {k: config[k] for k in ("bos_token_id", "eos_token_id", "pad_token_id")}
    for name, value, indent in (("config.json", config, 2), ("generation_config.json", end_tokens, 2),
                                ("tokenizer.json", tokenizer(meta), None),
                                ("tokenizer_config.json", tokenizer_config(meta), 2)):
        write_json(os.path.join(args.folder, name), value, indent)
    worst = write_weights(os.path.join(args.folder, "model.safetensors"), meta, tensors, args.dtype)
    print(f"{args.folder}: {len(tensors)} tensors as {args.dtype}, {config['vocab_size']} tokens; "
          f"largest relative rounding error of a weight {worst:.2e}")


if __name__ == "__main__":
    sys.exit(main())
