# SPDX-License-Identifier: MIT
"""Models as files: one of GGUF, or a folder as Hugging Face publishes them."""

import json
import struct

import numpy as np

from number_formats import FORMATS
from reference_model import VOCAB

# ---- GGUF ----


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, list) and isinstance(value[0], str):
        return text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    if isinstance(value, list):  # of bools
        return text(key) + struct.pack(f"<IIQ{len(value)}?", 9, 7, len(value), *value)
    if isinstance(value, np.ndarray):  # of 32-bit integers
        return text(key) + struct.pack("<IIQ", 9, 5, len(value)) + value.tobytes()
    if isinstance(value, bool):
        return text(key) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    return text(key) + struct.pack("<If", 6, value)


def gguf(pairs, tensors):
    """tensors: name → (format, dims fastest first, bytes)."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pair(k, v) for k, v in pairs.items())
    offset, data = 0, b""
    for name, (form, dims, raw) in tensors.items():
        out += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        out += struct.pack("<IQ", FORMATS[form][0], offset)
        data += raw + bytes(-len(raw) % 32)
        offset = len(data)
    return out + bytes(-len(out) % 32) + data


# ---- folders ----

STEMS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
         "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
STEMS |= {"attn_" + t: f"self_attn.{t}_proj" for t in "qkv"} | {"ffn_" + t: f"mlp.{t}_proj" for t in ("gate", "up", "down")}


def folder_tensors(model):
    """name → (dtype, shape, bytes). Where GGUF's rows of a head's two halves alternate, they stand apart here."""
    out = {}
    for name, (form, dims, raw) in model.tensors.items():
        *layer, stem, end = name.rsplit(".", 2)
        if stem == "rope_freqs":
            continue
        prefix = f"model.layers.{layer[0][4:]}." if layer else ""
        if stem in ("attn_q", "attn_k") and model.arch == "llama":
            rows = np.frombuffer(raw, np.uint8).reshape(-1, model.dim // 2, 2, len(raw) // dims[1])
            raw = rows.swapaxes(1, 2).tobytes()
        if form == "F32" and model.short_vectors:
            form, raw = "BF16", (np.frombuffer(raw, "<u4") >> 16).astype("<u2").tobytes()
        out[f"{prefix}{STEMS[stem]}.{end}"] = (form, dims[::-1], raw)
    return out


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def folder_tokenizer():
    """48 tokens: letters, a space, what merges make of them, and two that are special."""
    words = list("abcdefghijklmnopqrstuvwxyz") + ["Ġ", ".", ",", "!"]
    merges = ["t h", "th e", "Ġ the", "i n", "a n", "an d", "Ġ and", "e r", "o n", "r e", "Ġ a", "o u", "s t", "l l", "e d",
              "i s"]
    words += [m.replace(" ", "") for m in merges]
    added = [{"id": len(words) + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, t in enumerate(("<|start|>", "<|stop|>"))]
    assert len(words) + len(added) == VOCAB
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False,
                      "vocab": {w: i for i, w in enumerate(words)}, "merges": merges}}


def write_files(out, config, tensors):
    """A folder of one shard."""
    out.mkdir(exist_ok=True)
    (out / "model.safetensors").write_bytes(safetensors(tensors))
    for name, content in (("config.json", config), ("tokenizer.json", folder_tokenizer())):
        (out / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")


def write_folder(out, model, shards, extra):
    config = {"model_type": model.arch, "vocab_size": VOCAB, "hidden_size": model.embd, "intermediate_size": model.ff,
              "num_hidden_layers": model.layers, "num_attention_heads": model.heads,
              "num_key_value_heads": model.kv, "head_dim": model.dim, "max_position_embeddings": model.context,
              "rms_norm_eps": model.epsilon, "rope_theta": model.theta, "hidden_act": "silu",
              "tie_word_embeddings": model.tied} | extra
    tensors = list(folder_tensors(model).items())
    names = ["model.safetensors"] if shards == 1 else [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    out.mkdir(exist_ok=True)
    for i, name in enumerate(names):
        (out / name).write_bytes(safetensors(dict(tensors[i::shards])))
    files = {"config.json": config, "tokenizer.json": folder_tokenizer(),
             "tokenizer_config.json": {"eos_token": "<|stop|>", "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"},
             "generation_config.json": {"eos_token_id": [47, 46]}}
    if shards > 1:
        files["model.safetensors.index.json"] = {"weight_map": {t[0]: names[i % shards] for i, t in enumerate(tensors)}}
    if model.pooling:  # as sentence-transformers says it
        files["1_Pooling/config.json"] = {
            "word_embedding_dimension": model.embd, "pooling_mode_cls_token": model.pooling == "cls",
            "pooling_mode_mean_tokens": model.pooling == "mean", "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False, "pooling_mode_weightedmean_tokens": False,
            "pooling_mode_lasttoken": model.pooling == "last", "include_prompt": True}
        (out / "1_Pooling").mkdir(exist_ok=True)
    for name, content in files.items():
        (out / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")
