#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A GGUF model as its authors would have published it: config.json and tensors as Hugging Face's transformers have them.

    publish.py IN.gguf OUT_FOLDER MODEL_TYPE [TWIN.gguf]

The tables below say what each model type calls tensors and numbers, and how a tensor differs (rows in another order, 1
taken from norms, experts apart or together). They are written from the classes in transformers, and share nothing with
Quern's. Where a difference cannot be undone to the bit (w − 1 + 1), TWIN has the number that comes out: a folder and its
twin are the same model. make.py makes small ones; the command makes one of any file in F32, F16 or BF16.

Needs numpy."""

import json
import pathlib
import re
import struct
import sys

import numpy as np

from model_files import gguf, write_files

TYPES = {"F32": "<f4", "F16": "<u2", "BF16": "<u2", "U8": "u1", "F8_E4M3": "u1"}


class Source:
    """The tensors of a model: name → (form, dims fastest first, bytes), and its numbers by key without architecture."""

    def __init__(self, pairs, tensors):
        self.arch = pairs["general.architecture"]
        self.numbers = {k.removeprefix(self.arch + "."): v for k, v in pairs.items()}
        self.tensors, self.twin = tensors, dict(tensors)
        n = self.numbers.get
        self.heads, self.kv = n("attention.head_count"), n("attention.head_count_kv", n("attention.head_count"))
        self.dim = n("attention.key_length", n("embedding_length") // self.heads)
        self.key_heads, self.value_heads = n("ssm.group_count", 1), n("ssm.time_step_rank", 1)

    def array(self, name):
        form, dims, raw = self.tensors[name]
        return form, np.frombuffer(raw, TYPES[form]).reshape(dims[::-1])

    def settle(self, name, values):
        """What becomes of a tensor that cannot be undone."""
        form, dims, _ = self.tensors[name]
        self.twin[name] = (form, dims, values.astype("<f4").tobytes())


# ---- how a tensor differs: (source, GGUF name, array) → array ----


def same(source, name, a):
    return a


def less_one(source, name, a):
    a = (a - np.float32(1)).astype("<f4")
    source.settle(name, a + np.float32(1))
    return a


def logarithm(source, name, a):
    a = np.log(-a.astype(float)).astype("<f4")
    source.settle(name, -np.exp(a.astype(float)))
    return neighbours(source, name, a)


def halves(source, name, a):
    """Rows of a head's two halves alternate in GGUF's files."""
    rest = a.shape[1:]
    return a.reshape(-1, source.dim // 2, 2, *rest).swapaxes(1, 2).reshape(a.shape)


def turned(source, name, a):
    return np.ascontiguousarray(a.swapaxes(-1, -2)) if a.ndim > 1 else a


def neighbours(source, name, a):
    """Value heads that share a key head stand side by side; those of keys and queries before them stay."""
    if source.arch == "qwen3next":
        return a
    values, keys = source.value_heads, source.key_heads
    dim = source.numbers["ssm.inner_size"] // values
    if a.shape[0] == values:
        dim = 1
    first, last = a[: len(a) - values * dim], a[len(a) - values * dim :]
    last = last.reshape(values // keys, keys, dim, *a.shape[1:]).swapaxes(0, 1).reshape(last.shape)
    return np.concatenate([first, last])


def neighbours_in_columns(source, name, a):
    return np.ascontiguousarray(neighbours(source, name, a.T).T)


def with_middle(source, name, a):
    return neighbours(source, name, a)[:, None, :]


def as_row(source, name, a):
    return a[None, :]


def key_head_by_key_head(source, layer):
    """Of each key head its queries, keys, values and gates."""
    mixed, gate = (source.array(f"blk.{layer}.{t}.weight")[1] for t in ("attn_qkv", "attn_gate"))
    n, key = source.key_heads, source.numbers["ssm.state_size"]
    parts = [*np.split(mixed, [n * key, 2 * n * key]), gate]
    return np.concatenate([p.reshape(n, -1, mixed.shape[1]) for p in parts], 1).reshape(-1, mixed.shape[1])


# ---- names: GGUF's stem, without layer and ".weight" → (theirs, how) ----

OUTER = {"token_embd": ("model.embed_tokens", same), "output_norm": ("model.norm", same), "output": ("lm_head", same)}
NORMS = {"attn_norm": ("input_layernorm", same), "ffn_norm": ("post_attention_layernorm", same)}
ATTENTION = {f"attn_{t}": (f"self_attn.{t}_proj", same) for t in "qkv"} | {"attn_output": ("self_attn.o_proj", same)}
PAIRS = ATTENTION | {f"attn_{t}": (f"self_attn.{t}_proj", halves) for t in "qk"}
HEAD_NORMS = {f"attn_{t}_norm": (f"self_attn.{t}_norm", same) for t in "qk"}
MLP = {f"ffn_{t}": (f"mlp.{t}_proj", same) for t in ("gate", "up", "down")}
EXPERTS = {"ffn_gate_inp": ("mlp.gate", same)} | {
    f"ffn_{t}_exps": (f"mlp.experts.*.{t}_proj", same) for t in ("gate", "up", "down")}
AFTER = {"post_attention_norm": ("post_attention_layernorm", same), "post_ffw_norm": ("post_feedforward_layernorm", same)}
GEMMA = {"output_norm": ("model.norm", less_one), "attn_norm": ("input_layernorm", less_one),
         "post_attention_norm": ("post_attention_layernorm", less_one),
         "ffn_norm": ("pre_feedforward_layernorm", less_one), "post_ffw_norm": ("post_feedforward_layernorm", less_one)}
LLAMA = OUTER | NORMS | PAIRS | MLP
QWEN = OUTER | NORMS | ATTENTION | MLP
NEXT_NORM = {"post_attention_norm": ("post_attention_layernorm", same)}
DELTA = {"output_norm": ("model.norm", less_one), "attn_norm": ("input_layernorm", less_one),
         "post_attention_norm": ("post_attention_layernorm", less_one),
         "attn_q_norm": ("self_attn.q_norm", less_one), "attn_k_norm": ("self_attn.k_norm", less_one),
         "attn_qkv": ("linear_attn.in_proj_qkv", neighbours), "attn_gate": ("linear_attn.in_proj_z", neighbours),
         "ssm_beta": ("linear_attn.in_proj_b", neighbours), "ssm_alpha": ("linear_attn.in_proj_a", neighbours),
         "ssm_in": ("linear_attn.in_proj_qkvz", same), "ssm_ba": ("linear_attn.in_proj_ba", same),
         "ssm_conv1d": ("linear_attn.conv1d", with_middle), "ssm_a": ("linear_attn.A_log", logarithm),
         "ssm_dt.bias": ("linear_attn.dt_bias", neighbours), "ssm_norm": ("linear_attn.norm", same),
         "ssm_out": ("linear_attn.out_proj", neighbours_in_columns),
         "ffn_gate_inp_shexp": ("mlp.shared_expert_gate", as_row)} | {
             f"ffn_{t}_shexp": (f"mlp.shared_expert.{t}_proj", same) for t in ("gate", "up", "down")}

GEMMA4_NAMES = {
    "ffn_norm": ("pre_feedforward_layernorm", same), "layer_output_scale": ("layer_scalar", same),
    "ffn_gate_inp": ("router.proj", same), "ffn_gate_inp.scale": ("router.scale", same),
    "ffn_down_exps.scale": ("router.per_expert_scale", same), "ffn_gate_up_exps": ("experts.gate_up_proj", same),
    "ffn_down_exps": ("experts.down_proj", same), "pre_ffw_norm_2": ("pre_feedforward_layernorm_2", same),
    "post_ffw_norm_1": ("post_feedforward_layernorm_1", same), "post_ffw_norm_2": ("post_feedforward_layernorm_2", same),
    "per_layer_token_embd": ("model.embed_tokens_per_layer", same),
    "per_layer_model_proj": ("model.per_layer_model_projection", same),
    "per_layer_proj_norm": ("model.per_layer_projection_norm", same), "inp_gate": ("per_layer_input_gate", same),
    "proj": ("per_layer_projection", same), "post_norm": ("post_per_layer_input_norm", same)}

NAMES = {
    "llama": LLAMA, "mistral": LLAMA, "ministral3": LLAMA, "smollm3": LLAMA, "granite": LLAMA, "qwen2": QWEN,
    "qwen3": QWEN | HEAD_NORMS, "qwen3_moe": QWEN | HEAD_NORMS | EXPERTS,
    "mixtral": LLAMA | {"ffn_gate_inp": ("block_sparse_moe.gate", same)} | {
        f"ffn_{t}_exps": (f"block_sparse_moe.experts.*.{w}", same) for t, w in (("gate", "w1"), ("up", "w3"), ("down", "w2"))},
    "gemma2": QWEN | GEMMA,
    "gemma3_text": QWEN | GEMMA | {f"attn_{t}_norm": (f"self_attn.{t}_norm", less_one) for t in "qk"},
    "phi3": QWEN | {"attn_qkv": ("self_attn.qkv_proj", same), "ffn_up": ("mlp.gate_up_proj", same)},
    "phi": QWEN | {"output_norm": ("model.final_layernorm", same), "attn_output": ("self_attn.dense", same),
                   "ffn_up": ("mlp.fc1", same), "ffn_down": ("mlp.fc2", same)},
    "gpt2": {"token_embd": ("wte", same), "position_embd": ("wpe", same), "output_norm": ("ln_f", same),
             "output": ("lm_head", same), "attn_norm": ("ln_1", same), "ffn_norm": ("ln_2", same),
             "attn_qkv": ("attn.c_attn", turned), "attn_output": ("attn.c_proj", turned), "ffn_up": ("mlp.c_fc", turned),
             "ffn_down": ("mlp.c_proj", turned)},
    "granitemoe": LLAMA | {"ffn_gate_inp": ("block_sparse_moe.router.layer", same),
                           "ffn_down_exps": ("block_sparse_moe.output_linear", same),
                           "ffn_down_shexp": ("shared_mlp.output_linear", same)},
    "olmo2": QWEN | HEAD_NORMS | AFTER, "seed_oss": QWEN | NEXT_NORM,
    "gpt_oss": QWEN | NEXT_NORM | {"attn_sinks": ("self_attn.sinks", same), "ffn_gate_inp": ("mlp.router", same)},
    "qwen3_5_text": QWEN | HEAD_NORMS | DELTA, "qwen3_5_moe_text": QWEN | HEAD_NORMS | DELTA | {"ffn_gate_inp": ("mlp.gate", same)},
    "qwen3_next": QWEN | HEAD_NORMS | EXPERTS | DELTA,
    "gemma4_text": QWEN | HEAD_NORMS | AFTER | GEMMA4_NAMES,
}
NAMES |= {"granitemoeshared": NAMES["granitemoe"], "olmo3": NAMES["olmo2"], "gemma4_unified_text": NAMES["gemma4_text"]}
BARE = {"self_attn.sinks", "linear_attn.A_log", "linear_attn.dt_bias", "layer_scalar", "router.scale",
        "router.per_expert_scale", "experts.gate_up_proj", "experts.down_proj"}
# Two tensors of GGUF that are one: gate rows, then up rows, or one by one.
JOINED = {"granitemoe": {"exps": "block_sparse_moe.input_linear.weight", "shexp": "shared_mlp.input_linear.weight"},
          "qwen3_5_moe_text": {"exps": "mlp.experts.gate_up_proj"}, "gpt_oss": {"exps": "mlp.experts.gate_up_proj"}}
JOINED["granitemoeshared"] = JOINED["granitemoe"]


def split_name(name):
    """(prefix of GGUF's layer, number or None, stem, end)."""
    if name in ("ssm_a",) or re.fullmatch(r"blk\.\d+\.(ssm_a|ssm_dt\.bias|.*\.scale)", name):
        _, layer, stem = name.split(".", 2)
        return layer, stem, ""
    match = re.fullmatch(r"(?:blk\.(\d+)\.)?(.*)\.(weight|bias)", name)
    return match[1], match[2], match[3]


def qkv_parts(source, name, a):
    """phi: one by one."""
    q, kv = source.heads * source.dim, source.kv * source.dim
    return dict(zip("qkv", np.split(a, [q, q + kv])))


def join(model_type, source, layer, stem, end, a):
    """Gate and up together; None where they are not."""
    which = re.fullmatch(r"ffn_(gate|up)_(exps|shexp)", stem)
    to = JOINED.get(model_type, {}).get(which[2]) if which else None
    if not to:
        return None
    if which[1] == "gate":
        return ()  # with up
    gate = source.array(f"blk.{layer}.ffn_gate_{which[2]}.{end}")[1]
    if model_type == "gpt_oss":  # their rows take turns, and are columns there
        both = np.stack([gate, a], 2).reshape(gate.shape[0], -1, *gate.shape[2:])
        return (to + "_bias", both) if end == "bias" else (to, turned(source, "", both))
    return to, np.concatenate([gate, a], -2)


def blocks(source, layer, part):
    """MXFP4 of GGUF as pairs and exponents: [experts, rows, blocks, 17] → [..., 16], [...]."""
    form, dims, raw = source.tensors[f"blk.{layer}.ffn_{part}_exps.weight"]
    a = np.frombuffer(raw, "u1").reshape(dims[2], dims[1], dims[0] // 32, 17)
    values = np.concatenate([a[..., 1:] & 15, a[..., 1:] >> 4], -1)
    return values[..., 0::2] | values[..., 1::2] << 4, a[..., 0]


def publish_blocks(source, layer, part):
    """name → array, of gpt-oss's experts in MXFP4."""
    if part == "down":
        pairs, exponents = blocks(source, layer, "down")
        name = "down_proj"
    else:
        gates, ups = blocks(source, layer, "gate"), blocks(source, layer, "up")
        pairs, exponents = (np.stack([g, u], 2).reshape(g.shape[0], -1, *g.shape[2:]) for g, u in zip(gates, ups))
        name = "gate_up_proj"
    return {f"mlp.experts.{name}_blocks": pairs, f"mlp.experts.{name}_scales": exponents}


def publish_tensors(model_type, source, prefix):
    """name → (dtype, shape, bytes)."""
    names, out = NAMES[model_type], {}
    layers = "h." if model_type == "gpt2" else "model.layers."

    def put(layer, name, form, a):
        name = (f"{layers}{layer}." if layer else "") + name
        out[prefix(name)] = (form, list(a.shape), np.ascontiguousarray(a).tobytes())

    for name, (form, dims, raw) in source.tensors.items():
        layer, stem, end = split_name(name)
        trunk = source.numbers["block_count"] - source.numbers.get("nextn_predict_layers", 0)
        if stem.startswith("rope_") or (layer and int(layer) >= trunk):  # factors are numbers there; no draft layers
            continue
        if model_type == "qwen3_next" and stem == "attn_qkv":
            put(layer, "linear_attn.in_proj_qkvz.weight", form, key_head_by_key_head(source, layer))
            continue
        if model_type == "qwen3_next" and stem == "attn_gate":
            continue
        if form == "MXFP4":
            part = stem.split("_")[1]
            for to, a in publish_blocks(source, layer, part).items() if part != "gate" else ():
                put(layer, to, "U8", a)
            continue
        a = source.array(name)[1]
        joined = join(model_type, source, layer, stem, end, a)
        if joined is not None:
            if joined:
                put(layer, joined[0], form, joined[1])
            continue
        if stem == "ffn_down_exps" and model_type in ("gpt_oss", "qwen3_5_moe_text"):
            if model_type == "gpt_oss" and end == "weight":
                a = turned(source, name, a)
            put(layer, "mlp.experts.down_proj" + ("_bias" if end == "bias" else ""), form, a)
            continue
        if stem == "ffn_gate_up_exps" and not model_type.startswith("gemma4"):
            put(layer, "mlp.experts.gate_up_proj", form, a)
            continue
        if stem == "attn_qkv" and model_type == "phi":
            for t, part in qkv_parts(source, name, a).items():
                put(layer, f"self_attn.{t}_proj.{end}", form, part)
            continue
        theirs, how = names[stem]
        a = how(source, name, a)
        if "*" in theirs:
            for e, matrix in enumerate(a):
                put(layer, f"{theirs.replace('*', str(e))}.{end}", form, matrix)
        else:
            put(layer, theirs if theirs in BARE else f"{theirs}.{end}", form, a)
    trunk = source.numbers["block_count"]
    for layer in range(trunk - source.numbers.get("attention.shared_kv_layers", 0), trunk):  # there, and not used
        put(str(layer), "self_attn.k_norm.weight", "F32", np.full(3, 7, "<f4"))
        put(str(layer), "self_attn.v_proj.weight", "F32", np.full((2, 3), 7, "<f4"))
    return out


# ---- numbers ----

KEYS = {"context_length": "max_position_embeddings", "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
        "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim", "rope.freq_base": "rope_theta",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps", "attention.sliding_window": "sliding_window",
        "final_logit_softcapping": "final_logit_softcapping", "attn_logit_softcapping": "attn_logit_softcapping",
        "expert_used_count": "num_experts_per_tok", "embedding_scale": "embedding_multiplier",
        "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling", "ssm.conv_kernel": "linear_conv_kernel_dim",
        "ssm.state_size": "linear_key_head_dim", "ssm.group_count": "linear_num_key_heads",
        "ssm.time_step_rank": "linear_num_value_heads", "full_attention_interval": "full_attention_interval"}
GPT2_KEYS = {"max_position_embeddings": "n_positions", "hidden_size": "n_embd", "num_hidden_layers": "n_layer",
             "intermediate_size": "n_inner", "num_attention_heads": "n_head"}
LOCAL = ("mixtral", "granitemoe", "granitemoeshared", "gpt_oss")


def rope_of(model_type, source):
    n = source.numbers
    kind = n.get("rope.scaling.type")
    if "rope_factors_long.weight" in source.tensors:
        long, short = (np.frombuffer(source.tensors[f"rope_factors_{t}.weight"][2], "<f4") for t in ("long", "short"))
        rope = {"attention_factor": n["rope.scaling.attn_factor"]} if "rope.scaling.attn_factor" in n else {}
        return rope | {"type": "longrope", "long_factor": [float(x) for x in long], "short_factor": [float(x) for x in short]}
    if not kind or kind == "none":
        return None
    rope = {"rope_type": kind, "factor": n["rope.scaling.factor"]}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = n.get("rope.scaling.original_context_length", n["context_length"])
        for ours, theirs in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")):
            if "rope.scaling." + ours in n:
                rope[theirs] = n["rope.scaling." + ours]
        if "rope.scaling.yarn_log_multiplier" in n:
            rope |= {"mscale": 1.0, "mscale_all_dim": n["rope.scaling.yarn_log_multiplier"]}
        if "attention.temperature_scale" in n:
            rope["llama_4_scaling_beta"] = n["attention.temperature_scale"]
        if "rope.scaling.attn_factor" in n:
            rope["attention_factor"] = n["rope.scaling.attn_factor"] * (1 + 0.1 * float(np.log(rope["factor"])))
    return rope


def config_of_gemma4(model_type, source, config):
    """Heads of layers with a window have the plain keys; those of the others one by one where no key says them."""
    n = source.numbers
    windows, kv, ff = n["attention.sliding_window_pattern"], n["attention.head_count_kv"], n["feed_forward_length"]
    kv = [int(k) for k in kv] if isinstance(kv, (list, np.ndarray)) else [kv] * len(windows)
    ff = [int(f) for f in ff] if isinstance(ff, (list, np.ndarray)) else [ff] * len(windows)
    small, full = kv[list(windows).index(True)], kv[list(windows).index(False)]
    same_map = any(f"blk.{i}.attn_v.weight" not in source.tensors for i, w in enumerate(windows) if not w)
    borrowing = n.get("attention.shared_kv_layers", 0)
    factors = np.frombuffer(source.tensors["rope_freqs.weight"][2], "<f4")
    del config["hidden_act"], config["rope_theta"]
    config |= {"hidden_activation": "gelu_pytorch_tanh", "num_key_value_heads": small, "intermediate_size": ff[0],
               "head_dim": n["attention.key_length_swa"], "attention_k_eq_v": same_map, "num_kv_shared_layers": borrowing,
               "use_double_wide_mlp": ff[-1] != ff[0], "vocab_size_per_layer_input": config["vocab_size"],
               "hidden_size_per_layer_input": n.get("embedding_length_per_layer_input", 0),
               "enable_moe_block": "expert_count" in n, "use_bidirectional_attention": "vision",
               "layer_types": [("full_attention", "sliding_attention")[w] for w in windows],
               "rope_parameters": {
                   "full_attention": {"rope_type": "proportional", "rope_theta": n["rope.freq_base"],
                                      "partial_rotary_factor": int((factors < 1e30).sum()) / len(factors)},
                   "sliding_attention": {"rope_type": "default", "rope_theta": n["rope.freq_base_swa"]}}}
    if "expert_count" in n:
        config["top_k_experts"] = config.pop("num_experts_per_tok")
    if same_map or small == full:
        return config | {"global_head_dim": source.dim, "num_global_key_value_heads": full if same_map else None}
    return config | {"per_layer_config": {str(i): {"head_dim": source.dim, "num_key_value_heads": full}
                                          for i, w in enumerate(windows) if not w}}


def publish_config(model_type, source):
    n = source.numbers
    config = {"model_type": model_type, "vocab_size": source.tensors["token_embd.weight"][1][1],
              "hidden_act": "silu", "tie_word_embeddings": "output.weight" not in source.tensors}
    config |= {theirs: n[ours] for ours, theirs in KEYS.items() if ours in n}
    if "expert_count" in n:
        config["num_local_experts" if model_type in LOCAL else "num_experts"] = n["expert_count"]
        width = n.get("expert_feed_forward_length", n.get("feed_forward_length"))
        config["intermediate_size" if model_type in LOCAL else "moe_intermediate_size"] = width
    if "expert_shared_feed_forward_length" in n:
        key = "shared_intermediate_size" if model_type in LOCAL else "shared_expert_intermediate_size"
        config[key] = n["expert_shared_feed_forward_length"]
    if model_type.startswith("granite"):
        config["attention_multiplier"] = n.get("attention.scale", float(1 / np.sqrt(np.float32(source.dim))))
    rope = rope_of(model_type, source)
    if rope:
        config["rope_scaling"] = rope
    if "rope_factors_long.weight" in source.tensors:
        config["original_max_position_embeddings"] = n.get("rope.scaling.original_context_length", n["context_length"])
    dims = n.get("rope.dimension_count", source.dim)
    if dims != source.dim:
        config["partial_rotary_factor"] = dims / source.dim
    if model_type.startswith("gemma4"):
        return config_of_gemma4(model_type, source, config)
    if model_type.startswith("gemma"):
        config["query_pre_attn_scalar"] = source.dim
        config["hidden_activation"] = "gelu_pytorch_tanh"
    if model_type == "phi":
        config |= {"hidden_act": "gelu_new", "layer_norm_eps": n["attention.layer_norm_epsilon"]}
    if model_type == "gpt2":
        config |= {"activation_function": "gelu_new", "layer_norm_epsilon": n["attention.layer_norm_epsilon"]}
        config = {GPT2_KEYS.get(k, k): v for k, v in config.items()}
    if model_type == "qwen3_moe":
        config["norm_topk_prob"] = True
    if model_type == "smollm3":
        config["no_rope_layers"] = [int(i % 4 != 3) for i in range(n["block_count"])]
    if "attention.sliding_window_pattern" in n:
        config["layer_types"] = [("full_attention", "sliding_attention")[w] for w in n["attention.sliding_window_pattern"]]
    if model_type in ("seed_oss", "gpt_oss"):
        config["attention_bias"] = True
    if "ssm.inner_size" in n:
        config["linear_value_head_dim"] = n["ssm.inner_size"] // n["ssm.time_step_rank"]
        config["partial_rotary_factor"] = dims / source.dim
    drafts = n.get("nextn_predict_layers", 0)
    if drafts:
        config["num_hidden_layers"] -= drafts
    if "attention.recurrent_layers" in n:
        config["layer_types"] = [("full_attention", "linear_attention")[r]
                                 for r in n["attention.recurrent_layers"][: config["num_hidden_layers"]]]
    return config


WRAPPERS = {"gemma3": "gemma3_text", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text", "mistral3": "ministral3",
            "gemma4": "gemma4_text", "gemma4_unified": "gemma4_unified_text"}


def publish(model_type, pairs, tensors):
    """config.json as a dict; name → (dtype, shape, bytes); the tensors of the twin."""
    source = Source(pairs, tensors)
    inner = WRAPPERS.get(model_type, model_type)
    if inner != model_type:  # the text is a part of a model for pictures, too
        prefix = lambda name: name if name.startswith("lm_head") else "model.language_" + name
        config = {"model_type": model_type, "text_config": publish_config(inner, source), "vision_config": {}}
        config["tie_word_embeddings"] = config["text_config"].pop("tie_word_embeddings")
        out = publish_tensors(inner, source, prefix)
        out["model.vision_tower.patch.weight"] = ("F32", [2], bytes(8))
        if model_type.startswith("gemma4"):
            for part in ("embed_vision", "audio_tower", "embed_audio", "vision_embedder"):
                out[f"model.{part}.weight"] = ("F32", [2], bytes(8))
    else:
        prefix = lambda name: name
        config = publish_config(inner, source)
        out = publish_tensors(inner, source, prefix)
    if any(form == "MXFP4" for form, _, _ in tensors.values()):
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    return config, out, source.twin


# ---- the command ----


def read_gguf(path):
    data, at = pathlib.Path(path).read_bytes(), 24
    n_tensors, n_pairs = struct.unpack_from("<QQ", data, 8)

    def number(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        n = number("Q")
        at += n
        return data[at - n : at].decode(errors="replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, n = number("I"), number("Q")
            return [value(inner) for _ in range(n)]
        return number("BbHhIif?__Qqd"[kind])

    pairs = {}
    for _ in range(n_pairs):
        key = text()
        pairs[key] = value(number("I"))
    forms = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 39: ("MXFP4", 32, 17), 8: ("Q8_0", 32, 34)}
    infos = []
    for _ in range(n_tensors):
        name = text()
        dims = [number("Q") for _ in range(number("I"))]
        infos.append((name, dims, forms[number("I")], number("Q")))
    base = (at + 31) // 32 * 32
    tensors = {}
    for name, dims, (form, block, size), offset in infos:
        n = int(np.prod(dims)) // block * size
        tensors[name] = (form, dims, data[base + offset : base + offset + n])
    return pairs, tensors


def dequantize_rest(tensors):
    """Q8_0 as F32: published models have no such blocks."""
    out = {}
    for name, (form, dims, raw) in tensors.items():
        if form == "Q8_0":
            a = np.frombuffer(raw, np.dtype([("d", "<f2"), ("q", "i1", 32)]))
            form, raw = "F32", (a["d"].astype("<f4")[:, None] * a["q"]).astype("<f4").tobytes()
        out[name] = (form, dims, raw)
    return out


def main(path, out, model_type, twin=None):
    pairs, tensors = read_gguf(path)
    pairs = {k: v for k, v in pairs.items() if not k.startswith("tokenizer.")}
    tensors = dequantize_rest(tensors)
    config, published, twins = publish(model_type, pairs, tensors)
    write_files(pathlib.Path(out), config, published)
    if twin:
        arrays = {k: v for k, v in pairs.items() if not isinstance(v, list) or (v and isinstance(v[0], bool))}  # numbers of each layer as GGUF has them
        arrays |= {k: np.array(v, "<i4") for k, v in pairs.items() if isinstance(v, list) and v and type(v[0]) is int}
        pathlib.Path(twin).write_bytes(gguf(arrays, twins))


if __name__ == "__main__":
    main(*sys.argv[1:])
