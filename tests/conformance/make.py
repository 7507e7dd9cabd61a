#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes models/: tiny models of every architecture and number format, and what they compute.

Weights are random bits in each format's own blocks (number_formats.py); what they stand for is read back from the
bytes, and a forward pass in float64 (reference_model.py) gives logits, greedy continuations and embeddings. Nothing here
is shared with Quern's code, so that agreement means something. NAME.gguf is the model, NAME.case.json its prompts, greedy
ids and the margins of their steps in standard deviations of the logits, NAME.logits.f32 the logits after each prompt,
NAME.embeddings.f32 the means of their final states, or what else the file says to pool, of length one. conformance_logits.c and conformance_embeddings.c
compare them; their first comments say when a case passes. The folder-… cases are models as Hugging Face publishes them,
twin-… the same ones as GGUF files (model_files.py); folder-CASE is CASE so published (publish.py).

Needs numpy. The same bytes come out on every machine, but for the last bits of logits and embeddings."""

import json
import pathlib

import numpy as np

from model_files import gguf, write_files, write_folder
from number_formats import FORMATS
from publish import publish
from reference_model import VOCAB, Layer, Model

PROMPTS = (1, 9, 40)  # ids; the last goes beyond a block of keys and values
GREEDY_STEPS = 6

# Qualified by what is special; numbers are small, odd where odd ones are possible.
LAYER_NORM = {"epsilon_key": "attention.layer_norm_epsilon"}
ARCHITECTURES = {
    "llama-F32": ("llama", dict(form="F32", layer=lambda i: Layer(rotary="pairs"))),
    "llama-BF16": ("llama", dict(form="BF16", layer=lambda i: Layer(rotary="pairs"), dim=12, heads=3, kv=1)),
    "llama-linear-F16": ("llama", dict(stretch=4.0, layer=lambda i: Layer(rotary="pairs", stretch=4.0))),
    "llama-factors-tied-F16": ("llama", dict(tied=True, rope_factors=[1.0, 1.5, 4.0, 8.0],
                                             layer=lambda i: Layer(rotary="pairs"))),
    "mixtral-F16": ("llama", dict(experts=5, used=2, expert_ff=24,
                                  layer=lambda i: Layer(rotary="pairs", experts=5))),
    "qwen2-F16": ("qwen2", dict(biases=("qkv",), tied=True, embd=28, theta=1e6, layer=lambda i: Layer(theta=1e6))),
    "qwen3-F16": ("qwen3", dict(theta=1e6, dim=16, layer=lambda i: Layer(theta=1e6, qk_norm=True))),
    "qwen3moe-F16": ("qwen3moe", dict(theta=1e6, dim=16, experts=8, used=3, expert_ff=16,
                                      layer=lambda i: Layer(theta=1e6, qk_norm=True, experts=8))),
    "gemma2-F16": ("gemma2", dict(tied=True, scaled=True, window=20, score_cap=50.0, logit_cap=30.0, layers=3,
                                  layer=lambda i: Layer(post_norm=True, activation="gelu",
                                                        window=0 if i % 2 else 20))),
    "gemma3-F16": ("gemma3", dict(tied=True, scaled=True, window=12, theta=1e6, stretch=8.0, layers=6,
                                  layer=lambda i: Layer(post_norm=True, activation="gelu", qk_norm=True,
                                                        window=0 if i == 5 else 12, theta=1e6 if i == 5 else 1e4,
                                                        stretch=8.0 if i == 5 else 1.0))),
    "phi2-F16": ("phi2", dict(biases=("qkv", "all", "head"), fused_qkv=True, kv=4, rope_dims=4, **LAYER_NORM,
                              layer=lambda i: Layer(norm="layer", parallel=True, activation="gelu", gated=False))),
    "phi3-F16": ("phi3", dict(fused_qkv=True, fused_gate_up=True, window=25, layer=lambda i: Layer(window=25))),
    "gpt2-F16": ("gpt2", dict(biases=("qkv", "all"), fused_qkv=True, kv=4, positions=True, **LAYER_NORM,
                              layer=lambda i: Layer(norm="layer", rotary=None, activation="gelu", gated=False))),
}


# Added behind the others, whose seeds stay as they are. Bases are small, so that pairs of every speed occur.
SCALED = {
    "llama-yarn-F16": ("llama", dict(heads=2, kv=1, dim=16, stretch=4.0, yarn=(32, 1), trained=32, theta=20.0,
                                     layer=lambda i: Layer(rotary="pairs", stretch=4.0, theta=20.0))),
    "qwen2-yarn-F16": ("qwen2", dict(heads=2, kv=1, dim=16, stretch=2.0, yarn=(2.0, 0.5), trained=32, theta=20.0,
                                     magnitude=0.8, biases=("qkv",),
                                     layer=lambda i: Layer(stretch=2.0, theta=20.0))),
    "phi3-long-F16": ("phi3", dict(fused_qkv=True, fused_gate_up=True, trained=16, magnitude=1.2247,
                                   long_short=([1.0, 1.7, 3.0, 9.0], [1.0, 1.05, 1.2, 1.3]))),
    "phi3-short-F16": ("phi3", dict(fused_qkv=True, fused_gate_up=True, rope_dims=6, magnitude=1.19,
                                    long_short=([1.0, 3.0, 9.0], [1.0, 1.1, 1.5]))),
}


# What embeddings are made of, where the file says so.
POOLED = {
    "qwen3-last-F32": ("qwen3", dict(form="F32", pooling="last", theta=1e6, dim=16, tied=True,
                                     layer=lambda i: Layer(theta=1e6, qk_norm=True))),
    "llama-cls-F16": ("llama", dict(pooling="cls", layer=lambda i: Layer(rotary="pairs"))),
}


# Heads that rank pairs of texts.
RANKING = {
    "qwen3-rank-F32": ("qwen3", dict(form="F32", pooling="rank", labels=("yes", "no"), theta=1e6, dim=16, tied=True,
                                     layer=lambda i: Layer(theta=1e6, qk_norm=True))),
    "qwen3-rank-one-F32": ("qwen3", dict(form="F32", pooling="rank", labels=("relevant",), biases=("labels",), dim=16,
                                         tied=True, layer=lambda i: Layer(qk_norm=True))),
}


# Families of 2025 and 2026.
NEWER = {
    "gpt-oss-F16": ("gpt-oss", dict(biases=("qkv", "all", "experts"), experts=5, used=2, expert_ff=24, window=12,
                                    theta=20.0, stretch=4.0, yarn=(32, 1), trained=32, dim=16, heads=4, layers=2,
                                    ffn_norm="post_attention_norm",
                                    layer=lambda i: Layer(sinks=True, experts=5, window=0 if i % 2 else 12, theta=20.0,
                                                          stretch=4.0, activation="swiglu_clamped"))),
    "mistral3-F16": ("mistral3", dict(growth=0.3, log_multiplier=1.0, theta=20.0, stretch=4.0, yarn=(4.0, 1.0), trained=16,
                                      dim=12, layer=lambda i: Layer(rotary="pairs", theta=20.0, stretch=4.0))),
    "smollm3-F16": ("smollm3", dict(layers=4, tied=True, layer=lambda i: Layer(rotary=None if i == 3 else "pairs"))),
    "granite-F16": ("granite", dict(embedding_scale=6.0, residual_scale=0.3, logit_divisor=5.0, attention_scale=0.2,
                                    tied=True, layer=lambda i: Layer(rotary="pairs"))),
    "granitemoe-F16": ("granitemoe", dict(experts=6, used=3, expert_ff=48, shared_ff=40, embedding_scale=3.0,
                                          residual_scale=0.5, logit_divisor=4.0,
                                          layer=lambda i: Layer(rotary="pairs", experts=6))),
    "olmo2-F16": ("olmo2", dict(layer=lambda i: Layer(pre_norm=False, post_norm=True, qk_norm=True, whole_norm=True))),
    "olmo3-F16": ("olmo2", dict(window=10, windows=(1, 1, 0), layers=3, theta=20.0, stretch=4.0, yarn=(32, 1), trained=32,
                                layer=lambda i: Layer(pre_norm=False, post_norm=True, qk_norm=True, whole_norm=True,
                                                      theta=20.0, window=0 if i == 2 else 10, yarn=i == 2,
                                                      stretch=4.0 if i == 2 else 1.0))),
    "seed_oss-F16": ("seed_oss", dict(biases=("qkv",), dim=12, ffn_norm="post_attention_norm", layer=lambda i: Layer())),
}


def hybrid(attends, **traits):
    """Layers of which these attend."""
    return lambda i: Layer(recurrent=i not in attends, gated_output=True, qk_norm=True, **traits)


HYBRID = dict(ffn_norm="post_attention_norm", epsilon=1e-6, rope_dims=4, theta=1e4)
HYBRIDS = {
    "qwen35-F16": ("qwen35", dict(HYBRID, state=(2, 6, 8, 12, 4), layers=4, interval=2, layer=hybrid((1, 3)))),
    "qwen35-listed-F32": ("qwen35", dict(HYBRID, form="F32", state=(3, 3, 5, 7, 3), layers=3, recurrent=(1, 0, 1, 0), drafts=1,
                                         tied=True, layer=hybrid((1,)))),
    "qwen35moe-F16": ("qwen35moe", dict(HYBRID, state=(2, 4, 8, 8, 4), layers=2, interval=2, experts=6, used=3, expert_ff=24,
                                        shared_ff=40, shared_gate=True, fused_experts=True, layer=hybrid((1,), experts=6))),
    "qwen3next-F16": ("qwen3next", dict(HYBRID, state=(2, 6, 8, 8, 4), layers=4, experts=5, used=2, expert_ff=16, shared_ff=24,
                                        shared_gate=True, layer=hybrid((3,), experts=5))),
    "qwen3next-first-F16": ("qwen3next", dict(HYBRID, state=(2, 4, 8, 12, 2), layers=3, interval=3, experts=5, used=2,
                                              expert_ff=16, shared_ff=24, shared_gate=True, first_layout=True,
                                              layer=hybrid((2,), experts=5))),
}


def gemma4_layer(full, ff=None, values_are_keys=True, **traits):
    """Layers of two kinds; `full` are those without a window."""
    common = dict(post_norm=True, activation="gelu", qk_norm=True, value_norm=True, score_scale=1.0, scaled_stream=True)
    return lambda i: Layer(**common | traits | (
        dict(dim=16, kv=1, theta=1e6, values_are_keys=values_are_keys) if i in full
        else dict(dim=8, kv=2, window=12, theta=1e4, factors=False)), ff=ff[i] if ff else None)


GEMMA4 = dict(tied=True, scaled=True, window=12, theta=1e6, logit_cap=30.0, dim=16, window_dim=8, window_theta=1e4,
              rope_factors=[1.0, 1.0] + [1e30] * 6, epsilon=1e-6)
GEMMA4S = {
    "gemma4-F16": ("gemma4", dict(GEMMA4, layers=4, windows=(1, 1, 0, 1), layer=gemma4_layer((2,)))),
    "gemma4-widths-F32": ("gemma4", dict(GEMMA4, form="F32", layers=3, windows=(0, 1, 0), layer=gemma4_layer(
        (0, 2), ff=(48, 20, 36), values_are_keys=False))),
    "gemma4-moe-F16": ("gemma4", dict(GEMMA4, layers=3, windows=(1, 0, 1), experts=6, used=2, expert_ff=24, fused_experts=True,
                                      layer=gemma4_layer((1,), experts=6, beside=True))),
    "gemma4-e-F16": ("gemma4", dict(GEMMA4, layers=6, windows=(1, 0, 1, 1, 0, 1), borrowing=3, layer_embd=12,
                                    layer=lambda i: gemma4_layer(
                                        (1, 4), ff=(32, 32, 32, 64, 64, 64), values_are_keys=False,
                                        kv_from={3: 2, 4: 1, 5: 2}.get(i))(i))),
}


# ---- the same as Hugging Face's folders ----


def llama3_factors(theta, dim, factor, low, high, trained):
    """What Llama 3 divides its frequencies by, as its authors wrote it: by wave lengths."""
    factors = []
    for wave in 2 * np.pi * theta ** (np.arange(dim // 2) / (dim // 2)):
        smooth = (trained / wave - low) / (high - low)
        between = 1 / ((1 - smooth) / factor + smooth)
        factors.append(1.0 if wave < trained / high else factor if wave > trained / low else between)
    return factors


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
YARN = {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32, "beta_fast": 2.0, "beta_slow": 0.5,
        "attention_factor": 0.9}
FOLDERS = {
    "folder-llama-BF16": (2, {"rope_scaling": LLAMA3}, "llama",
                          dict(form="BF16", short_vectors=True, theta=20.0,
                               rope_factors=llama3_factors(20.0, 8, 8.0, 1.0, 4.0, 32),
                               layer=lambda i: Layer(rotary="pairs", theta=20.0))),
    "folder-qwen2-F16": (1, {"rope_scaling": YARN, "tie_word_embeddings": True}, "qwen2",
                         dict(tied=True, biases=("qkv",), heads=2, kv=1, dim=16, stretch=2.0, yarn=(2.0, 0.5), trained=32,
                              theta=20.0, magnitude=0.9 / (1 + 0.1 * np.log(2.0)),
                              layer=lambda i: Layer(stretch=2.0, theta=20.0))),
    "folder-qwen3-F32": (3, {"head_dim": 16}, "qwen3",
                         dict(form="F32", theta=1e6, dim=16, layer=lambda i: Layer(theta=1e6, qk_norm=True))),
    "folder-qwen3-last-F32": (1, {"head_dim": 16}, "qwen3",
                              dict(form="F32", pooling="last", theta=1e6, dim=16,
                                   layer=lambda i: Layer(theta=1e6, qk_norm=True))),
}


# Cases from above as their authors would have published them (publish.py).
PUBLISHED = {"mixtral-F16": "mixtral", "qwen3moe-F16": "qwen3_moe", "gemma2-F16": "gemma2", "gemma3-F16": "gemma3",
             "phi2-F16": "phi", "phi3-F16": "phi3", "phi3-long-F16": "phi3", "gpt2-F16": "gpt2", "gpt-oss-F16": "gpt_oss",
             "mistral3-F16": "mistral3", "smollm3-F16": "smollm3", "granite-F16": "granite",
             "granitemoe-F16": "granitemoeshared", "olmo2-F16": "olmo2", "olmo3-F16": "olmo3", "seed_oss-F16": "seed_oss",
             "qwen35-F16": "qwen3_5_text", "qwen35-listed-F32": "qwen3_5", "qwen35moe-F16": "qwen3_5_moe",
             "qwen3next-F16": "qwen3_next", "qwen3next-first-F16": "qwen3_next",
             "gemma4-F16": "gemma4_unified", "gemma4-moe-F16": "gemma4", "gemma4-e-F16": "gemma4_text"}


def models():
    for seed, (name, (architecture, numbers)) in enumerate(ARCHITECTURES.items()):
        yield name, Model(architecture, 100 + seed, **numbers)
    for seed, form in enumerate(FORMATS):
        wide = FORMATS[form][1] == 256
        if FORMATS[form][1] > 1:
            yield "format-" + form, Model("llama", 200 + seed, form, embd=256 if wide else 96, heads=4, kv=1, dim=8, ff=32,
                                          layers=1, layer=lambda i: Layer(rotary="pairs"))
    yield "qwen3moe-Q4_K", Model("qwen3moe", 300, "Q4_K", embd=256, dim=8, experts=4, used=2, expert_ff=32, layers=1,
                                 layer=lambda i: Layer(qk_norm=True, experts=4))
    for seed, (name, (architecture, numbers)) in enumerate(SCALED.items()):
        yield name, Model(architecture, 400 + seed, **numbers)
    for seed, (name, (architecture, numbers)) in enumerate(POOLED.items()):
        yield name, Model(architecture, 600 + seed, **numbers)
    for seed, (name, (architecture, numbers)) in enumerate(NEWER.items()):
        yield name, Model(architecture, 700 + seed, **numbers)
    for seed, (name, (architecture, numbers)) in enumerate(HYBRIDS.items()):
        yield name, Model(architecture, 800 + seed, **numbers)
    for seed, (name, (architecture, numbers)) in enumerate(GEMMA4S.items()):
        yield name, Model(architecture, 900 + seed, **numbers)


def case_of(name, model):
    random = np.random.default_rng(1)
    prompts = [[int(i) for i in random.integers(0, VOCAB, n)] for n in PROMPTS]
    logits, greedy = [], []
    for prompt in prompts:
        ids, steps = list(prompt), {"ids": [], "margin_in_std": []}
        logits.append(model.logits(ids)[-1])
        for _ in range(GREEDY_STEPS):
            y = model.logits(ids)[-1]
            order = np.argsort(-y)
            steps["ids"].append(int(order[0]))
            steps["margin_in_std"].append(round(float((y[order[0]] - y[order[1]]) / y.std()), 5))
            ids.append(int(order[0]))
        greedy.append(steps)
    embeddings = np.array([model.embedding(prompt) for prompt in prompts])
    return {"model": name + ".gguf", "prompts": prompts, "greedy": greedy}, np.array(logits), embeddings


def write_ranking(out, name, model):
    """Scores, and no logits: such a model has none that mean anything."""
    random = np.random.default_rng(1)
    prompts = [[int(i) for i in random.integers(0, VOCAB, n)] for n in PROMPTS]
    case = {"model": name + ".gguf", "prompts": prompts, "pooling": "rank", "width": len(model.labels)}
    scores = np.array([model.scores(prompt) for prompt in prompts])
    (out / (name + ".gguf")).write_bytes(gguf(model.pairs(), model.tensors))
    (out / (name + ".case.json")).write_text(json.dumps(case) + "\n")
    (out / (name + ".pooled.f32")).write_bytes(scores.astype("<f4").tobytes())


def write_case(out, name, case, logits, embeddings):
    (out / (name + ".case.json")).write_text(json.dumps(case) + "\n")
    (out / (name + ".logits.f32")).write_bytes(logits.astype("<f4").tobytes())
    (out / (name + ".embeddings.f32")).write_bytes(embeddings.astype("<f4").tobytes())


def main():
    out = pathlib.Path(__file__).with_name("models")
    out.mkdir(exist_ok=True)
    for name, model in models():
        case, *expected = case_of(name, model)
        (out / (name + ".gguf")).write_bytes(gguf(model.pairs(), model.tensors))
        write_case(out, name, case, *expected)
        if name in PUBLISHED:
            config, tensors, _ = publish(PUBLISHED[name], model.pairs(), model.tensors)
            write_files(out / ("folder-" + name), config, tensors)
            write_case(out, "folder-" + name, case | {"model": "folder-" + name, "twin": name + ".gguf"}, *expected)
    for seed, (name, (architecture, numbers)) in enumerate(RANKING.items()):
        write_ranking(out, name, Model(architecture, 1000 + seed, **numbers))
    for seed, (name, (shards, extra, architecture, numbers)) in enumerate(FOLDERS.items()):
        model = Model(architecture, 500 + seed, **numbers)
        case, *expected = case_of(name, model)
        twin = "twin-" + name
        write_folder(out / name, model, shards, extra)
        (out / (twin + ".gguf")).write_bytes(gguf(model.pairs(), model.tensors))
        for case_name, file in ((name, name), (twin, twin + ".gguf")):
            more = {"twin": twin + ".gguf"} if file == name else {}
            write_case(out, case_name, case | {"model": file} | more, *expected)


if __name__ == "__main__":
    main()
