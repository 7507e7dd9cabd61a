#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes models/: tiny models of every architecture and number format, and what they compute.

Weights are random bits in each format's own blocks; what they stand for is read back from the bytes by the published
layouts, and a forward pass in float64, written from the models' papers, gives logits, greedy continuations and
embeddings. Nothing here is shared with Quern's code, so that agreement means something. NAME.gguf is the model, NAME.case.json its prompts,
greedy ids and the margins of their steps in standard deviations of the logits, NAME.logits.f32 the logits after each
prompt, NAME.embeddings.f32 the means of their final states, of length one. conformance_logits.c and
conformance_embeddings.c compare them; their first comments say when a case passes. The folder-… cases are models as
Hugging Face publishes them, twin-… the same ones as GGUF files.

Needs numpy. The same bytes come out on every machine, but for the last bits of logits and embeddings."""

import json
import pathlib
import struct

import numpy as np

VOCAB = 48
PROMPTS = (1, 9, 40)  # ids; the last goes beyond a block of keys and values
GREEDY_STEPS = 6

# ---- number formats: random blocks, and the values of bytes ----

IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], float)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

# name: number in files, elements of a block, fields in the order of the file. A field is (name, bytes).
FORMATS = {
    "F32": (0, 1, [("real", 4)]),
    "F16": (1, 1, [("half", 2)]),
    "BF16": (30, 1, [("top", 2)]),
    "Q4_0": (2, 32, [("d", 2), ("qs", 16)]),
    "Q4_1": (3, 32, [("d", 2), ("m", 2), ("qs", 16)]),
    "Q5_0": (6, 32, [("d", 2), ("qh", 4), ("qs", 16)]),
    "Q5_1": (7, 32, [("d", 2), ("m", 2), ("qh", 4), ("qs", 16)]),
    "Q8_0": (8, 32, [("d", 2), ("qs", 32)]),
    "Q2_K": (10, 256, [("scales", 16), ("qs", 64), ("d", 2), ("m", 2)]),
    "Q3_K": (11, 256, [("qh", 32), ("qs", 64), ("scales", 12), ("d", 2)]),
    "Q4_K": (12, 256, [("d", 2), ("m", 2), ("scales", 12), ("qs", 128)]),
    "Q5_K": (13, 256, [("d", 2), ("m", 2), ("scales", 12), ("qh", 32), ("qs", 128)]),
    "Q6_K": (14, 256, [("qs", 128), ("qh", 64), ("scales", 16), ("d", 2)]),
    "IQ4_NL": (20, 32, [("d", 2), ("qs", 16)]),
    "IQ4_XS": (23, 256, [("d", 2), ("high", 2), ("low", 4), ("qs", 128)]),
    "MXFP4": (39, 32, [("e", 1), ("qs", 16)]),
}


def bits(b, n):
    """The n-bit fields of bytes, low bits first: [..., bytes] → [..., bytes, 8 / n]."""
    return (b[..., None] >> np.arange(0, 8, n)) & ((1 << n) - 1)


def halves(b):
    """Nibbles: the low ones of all bytes, then the high ones."""
    return np.concatenate([b & 15, b >> 4], -1).astype(float)


def half(b):
    return np.ascontiguousarray(b).view("<f2").astype(float)


def six_bits(s):
    """Q4_K's and Q5_K's twelve bytes: eight scales, eight minimums."""
    first, second, third = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], 1)
    mins = np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], 1)
    return scales.astype(float), mins.astype(float)


def nibble_pairs(qs):
    """Q4_K and Q5_K: 32 bytes hold two groups, in their low and high halves."""
    return np.stack([qs.reshape(-1, 4, 32) & 15, qs.reshape(-1, 4, 32) >> 4], 2).reshape(-1, 8, 32)


def bit_pairs(qs):
    """Q2_K and Q3_K: 32 bytes hold four groups of 32, low bits first."""
    return np.moveaxis(bits(qs.reshape(-1, 2, 32), 2), 3, 2).reshape(-1, 8, 32)


def values_of(name, f):
    """[blocks, elements] from fields, each [blocks, bytes]."""
    if name == "F32":
        return np.ascontiguousarray(f["real"]).view("<f4").astype(float)
    if name == "F16":
        return half(f["half"])
    if name == "BF16":
        return (np.ascontiguousarray(f["top"]).view("<u2").astype(np.uint32) << 16).view(np.float32).astype(float)
    if name == "MXFP4":
        return 2.0 ** (f["e"].astype(float) - 127) * E2M1[halves(f["qs"]).astype(int)]
    d = half(f["d"])
    if name == "Q8_0":
        return d * f["qs"].view(np.int8)
    if name == "Q4_0":
        return d * (halves(f["qs"]) - 8)
    if name == "Q4_1":
        return d * halves(f["qs"]) + half(f["m"])
    if name == "IQ4_NL":
        return d * IQ4[halves(f["qs"]).astype(int)]
    if name in ("Q5_0", "Q5_1"):
        q = halves(f["qs"]) + 16.0 * bits(f["qh"], 1).reshape(-1, 32)
        return d * (q - 16) if name == "Q5_0" else d * q + half(f["m"])
    if name == "IQ4_XS":
        s = bits(f["low"], 4).reshape(-1, 8) | bits(f["high"], 2).reshape(-1, 8) << 4
        q = halves(f["qs"].reshape(-1, 8, 16)).astype(int)
        return (d[:, :, None] * (s - 32.0)[:, :, None] * IQ4[q]).reshape(-1, 256)
    if name == "Q2_K":
        q = bit_pairs(f["qs"]).reshape(-1, 16, 16)
        s, m = f["scales"] & 15, f["scales"] >> 4
        return (d[..., None] * s[..., None] * q - half(f["m"])[..., None] * m[..., None]).reshape(-1, 256)
    if name == "Q3_K":
        s = f["scales"]
        low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
        high = np.moveaxis(bits(s[:, 8:], 2), 2, 1).reshape(-1, 16)
        top = np.moveaxis(bits(f["qh"], 1), 2, 1).reshape(-1, 16, 16)
        q = bit_pairs(f["qs"]).reshape(-1, 16, 16) | top << 2
        scale = (low | high << 4) - 32.0
        return (d[..., None] * scale[..., None] * (q - 4.0)).reshape(-1, 256)
    if name in ("Q4_K", "Q5_K"):
        s, m = six_bits(f["scales"])
        q = nibble_pairs(f["qs"]).astype(float)
        if name == "Q5_K":
            q = q + 16.0 * np.moveaxis(bits(f["qh"], 1), 2, 1)
        return (d[..., None] * s[..., None] * q - half(f["m"])[..., None] * m[..., None]).reshape(-1, 256)
    assert name == "Q6_K"
    low = np.moveaxis(bits(f["qs"].reshape(-1, 2, 64), 4), 3, 2).reshape(-1, 256)
    high = np.moveaxis(bits(f["qh"].reshape(-1, 2, 32), 2), 3, 2).reshape(-1, 256)
    q = (low | high << 4).reshape(-1, 16, 16) - 32.0
    return (d[..., None] * f["scales"].view(np.int8).astype(float)[..., None] * q).reshape(-1, 256)


def random_fields(name, n, random, centred):
    """Random blocks, before their scales are chosen: those are 1. `centred` blocks have a minimum that puts the middle
    of the quants on 0."""
    _, elements, fields = FORMATS[name]
    f = {k: random.integers(0, 256, (n, size), np.uint8) for k, size in fields}
    if "d" in f:
        f["d"] = np.full((n, 1), 1, "<f2").view(np.uint8).reshape(n, 2)
    if name == "MXFP4":
        f["e"] = random.integers(126, 129, (n, 1), np.uint8)
    if "m" in f and centred:
        middle = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}[name]
        f["m"] = np.full((n, 1), middle, "<f2").view(np.uint8).reshape(n, 2)
        if name == "Q2_K":  # minimums equal to the scales
            f["scales"] = (f["scales"] & 15) * 17
        elif elements == 256:
            s = f["scales"]
            s[:, 4:8], s[:, 8:] = s[:, 0:4], (s[:, 8:] & 15) * 17
    return f


def random_tensor(name, rows, columns, deviation, random):
    """(bytes, values [rows, columns]) of that standard deviation, nearly."""
    number, elements, fields = FORMATS[name]
    n = rows * columns // elements
    if elements == 1:
        real = (random.standard_normal((n, 1)) * deviation).astype("<f4")
        if name == "F16":
            raw = real.astype("<f2").view(np.uint8).reshape(n, 2)
        elif name == "BF16":
            raw = (real.view("<u4") >> 16).astype("<u2").view(np.uint8).reshape(n, 2)
        else:
            raw = real.view(np.uint8).reshape(n, 4)
        f = {fields[0][0]: raw}
    else:
        f = random_fields(name, n, random, True)
        size = np.sqrt((values_of(name, f) ** 2).mean())
        factor = deviation / size * random.choice([-1.0, 1.0], (n, 1)) * random.uniform(0.7, 1.3, (n, 1))
        if name == "MXFP4":
            f["e"] = (f["e"].astype(int) + round(float(np.log2(deviation / size)))).astype(np.uint8)
        for k in {"d", "m"} & f.keys():
            f[k] = (half(f[k]) * factor).astype("<f2").view(np.uint8).reshape(n, 2)
    raw = np.concatenate([f[k] for k, _ in fields], 1)
    return raw.tobytes(), values_of(name, f).reshape(rows, columns)


# ---- files ----


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
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


# ---- architectures ----


class Layer:
    """What a layer computes, by the papers. Numbers are the model's."""

    def __init__(self, **traits):
        self.norm, self.post_norm, self.parallel = "rms", False, False
        self.rotary, self.qk_norm, self.window, self.theta, self.stretch = "halves", False, 0, 10000.0, 1.0
        self.activation, self.gated, self.experts = "silu", True, 0
        self.__dict__.update(traits)


SILU = lambda x: x / (1 + np.exp(-x))
GELU = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
ACTIVATIONS = {"silu": SILU, "gelu": GELU}


class Model:
    def __init__(self, architecture, seed, form="F16", **numbers):
        self.arch, self.form, self.random = architecture, form, np.random.default_rng(seed)
        self.embd, self.heads, self.kv, self.dim, self.ff, self.layers = 32, 4, 2, 8, 48, 2
        self.context, self.tied, self.rope_dims, self.rope_factors = 64, False, None, None
        self.trained, self.yarn, self.long_short, self.magnitude = 0, None, None, 1.0
        self.experts, self.used, self.expert_ff = 0, 0, 0
        self.window, self.theta, self.stretch, self.score_cap, self.logit_cap = 0, 10000.0, 1.0, 0.0, 0.0
        self.layer = lambda i: Layer()
        self.biases, self.fused_qkv, self.fused_gate_up, self.positions, self.scaled = (), False, False, False, False
        self.epsilon, self.epsilon_key = 1e-5, "attention.layer_norm_rms_epsilon"
        self.short_vectors = False
        self.__dict__.update(numbers)
        self.rope_dims = self.rope_dims or self.dim
        self.trained = self.trained or self.context
        self.tensors, self.values = {}, {}
        self.make_tensors()

    # -- weights --

    def matrix(self, name, rows, columns, count=1, form=None, bias=False):
        form = form or self.form
        if columns % FORMATS[form][1]:
            form = "Q8_0" if columns % 32 == 0 else "F16"
        raw, values = random_tensor(form, rows * count, columns, 1.5 / np.sqrt(columns), self.random)
        dims = [columns, rows] if count == 1 else [columns, rows, count]
        self.tensors[name + ".weight"] = (form, dims, raw)
        self.values[name + ".weight"] = values if count == 1 else values.reshape(count, rows, columns)
        if bias:
            self.vector(name + ".bias", self.random.standard_normal(rows) * 0.3)

    def vector(self, name, values):
        raw = values.astype("<f4")
        if self.short_vectors and not name.startswith("rope"):  # as BF16 has them
            raw = (raw.view("<u4") & 0xFFFF0000).view("<f4")
        self.tensors[name] = ("F32", [len(raw)], raw.tobytes())
        self.values[name] = raw.astype(float)

    def norm(self, name, n, kind):
        self.vector(name + ".weight", 1 + 0.3 * self.random.standard_normal(n))
        if kind == "layer":
            self.vector(name + ".bias", 0.3 * self.random.standard_normal(n))

    def make_tensors(self):
        q, kv, b = self.heads * self.dim, self.kv * self.dim, self.biases
        self.matrix("token_embd", VOCAB, self.embd)
        if self.positions:
            self.matrix("position_embd", self.context, self.embd, form="F32")
        if self.rope_factors:
            self.vector("rope_freqs.weight", np.array(self.rope_factors))
        if self.long_short:
            self.vector("rope_factors_long.weight", np.array(self.long_short[0]))
            self.vector("rope_factors_short.weight", np.array(self.long_short[1]))
        for i in range(self.layers):
            layer, p = self.layer(i), f"blk.{i}."
            self.norm(p + "attn_norm", self.embd, layer.norm)
            if self.fused_qkv:
                self.matrix(p + "attn_qkv", q + 2 * kv, self.embd, bias="qkv" in b)
            else:
                for t, rows in zip("qkv", (q, kv, kv)):
                    self.matrix(p + "attn_" + t, rows, self.embd, bias="qkv" in b)
            if layer.qk_norm:
                self.norm(p + "attn_q_norm", self.dim, layer.norm)
                self.norm(p + "attn_k_norm", self.dim, layer.norm)
            self.matrix(p + "attn_output", self.embd, q, bias="all" in b)
            if layer.post_norm:
                self.norm(p + "post_attention_norm", self.embd, layer.norm)
                self.norm(p + "post_ffw_norm", self.embd, layer.norm)
            if not layer.parallel:
                self.norm(p + "ffn_norm", self.embd, layer.norm)
            if layer.experts:
                self.matrix(p + "ffn_gate_inp", layer.experts, self.embd, form="F32")
                self.matrix(p + "ffn_gate_exps", self.expert_ff, self.embd, layer.experts)
                self.matrix(p + "ffn_up_exps", self.expert_ff, self.embd, layer.experts)
                self.matrix(p + "ffn_down_exps", self.embd, self.expert_ff, layer.experts)
                continue
            if layer.gated and not self.fused_gate_up:
                self.matrix(p + "ffn_gate", self.ff, self.embd)
            self.matrix(p + "ffn_up", self.ff * (2 if self.fused_gate_up else 1), self.embd, bias="all" in b)
            self.matrix(p + "ffn_down", self.embd, self.ff, bias="all" in b)
        self.norm("output_norm", self.embd, self.layer(0).norm)
        if not self.tied:
            self.matrix("output", VOCAB, self.embd, bias="head" in b)

    def pairs(self):
        a = self.arch + "."
        p = {"general.architecture": self.arch, "general.name": "tiny " + self.arch, a + "context_length": self.context,
             a + "embedding_length": self.embd, a + "block_count": self.layers, a + "feed_forward_length": self.ff,
             a + "attention.head_count": self.heads, a + "attention.head_count_kv": self.kv,
             a + "attention.key_length": self.dim, a + "attention.value_length": self.dim,
             a + self.epsilon_key: self.epsilon}
        if self.layer(0).rotary:
            p |= {a + "rope.freq_base": float(self.theta), a + "rope.dimension_count": self.rope_dims}
        if self.stretch != 1:
            p |= {a + "rope.scaling.type": "yarn" if self.yarn else "linear",
                  a + "rope.scaling.factor": float(self.stretch)}
        if self.trained != self.context:
            p[a + "rope.scaling.original_context_length"] = self.trained
        if self.yarn and self.yarn != (32, 1):
            p |= {a + "rope.scaling.yarn_beta_fast": float(self.yarn[0]),
                  a + "rope.scaling.yarn_beta_slow": float(self.yarn[1])}
        if self.magnitude != 1:
            p[a + "rope.scaling.attn_factor"] = float(self.magnitude)
        if self.window:
            p[a + "attention.sliding_window"] = self.window
        if self.score_cap:
            p[a + "attn_logit_softcapping"] = float(self.score_cap)
        if self.logit_cap:
            p[a + "final_logit_softcapping"] = float(self.logit_cap)
        if self.experts:
            p |= {a + "expert_count": self.experts, a + "expert_used_count": self.used,
                  a + "expert_feed_forward_length": self.expert_ff}
        return p

    # -- what they compute --

    def linear(self, name, x):
        y = x @ self.values[name + ".weight"].T
        return y + self.values[name + ".bias"] if name + ".bias" in self.values else y

    def normed(self, name, x, kind):
        if kind == "layer":
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float64(np.float32(self.epsilon)))
        y = x * self.values[name + ".weight"]
        return y + self.values[name + ".bias"] if kind == "layer" else y

    def turned(self, heads, layer):
        """heads: [positions, heads, dim]."""
        if not layer.rotary:
            return heads
        n = self.rope_dims // 2
        speed = layer.theta ** (-np.arange(n) / n)
        magnitude = np.float64(np.float32(self.magnitude))
        if self.rope_factors:
            speed = speed / self.values["rope_freqs.weight"]
        if self.long_short:  # by what a sequence could grow to
            which = "long" if self.context > self.trained else "short"
            speed = speed / self.values[f"rope_factors_{which}.weight"]
        if self.yarn:  # the pairs that turn `fast` times and more in the length of training stay as they are
            fast, slow = (2 * n * np.log(self.trained / (turns * 2 * np.pi)) / (2 * np.log(layer.theta))
                          for turns in self.yarn)
            fast, slow = max(0, np.floor(fast)), min(2 * n - 1, np.ceil(slow))
            kept = 1 - np.clip((np.arange(n) - fast) / max(slow - fast, 0.001), 0, 1)
            speed = speed * kept + speed / layer.stretch * (1 - kept)
            magnitude = magnitude * (0.1 * np.log(layer.stretch) + 1)
        else:
            speed = speed / layer.stretch
        angle = np.arange(len(heads))[:, None, None] * speed
        first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if layer.rotary == "pairs" else (slice(0, n), slice(n, 2 * n))
        out, x, y = heads.copy(), heads[..., first], heads[..., second]
        out[..., first] = (x * np.cos(angle) - y * np.sin(angle)) * magnitude
        out[..., second] = (x * np.sin(angle) + y * np.cos(angle)) * magnitude
        return out

    def attention(self, p, x, layer):
        n = len(x)
        if self.fused_qkv:
            q, k, v = np.split(self.linear(p + "attn_qkv", x),
                               [self.heads * self.dim, (self.heads + self.kv) * self.dim], 1)
        else:
            q, k, v = (self.linear(p + "attn_" + t, x) for t in "qkv")
        q, k, v = (t.reshape(n, -1, self.dim) for t in (q, k, v))
        if layer.qk_norm:
            q, k = self.normed(p + "attn_q_norm", q, layer.norm), self.normed(p + "attn_k_norm", k, layer.norm)
        q, k = self.turned(q, layer), self.turned(k, layer)
        out = np.empty_like(q)
        back = np.arange(n)[:, None] - np.arange(n)
        seen = (back >= 0) & (back < (layer.window or n))
        for h in range(self.heads):
            g = h * self.kv // self.heads
            score = q[:, h] @ k[:, g].T / np.sqrt(self.dim)
            if self.score_cap:
                score = self.score_cap * np.tanh(score / self.score_cap)
            weight = np.where(seen, np.exp(score - score.max(1, keepdims=True)), 0)
            out[:, h] = weight / weight.sum(1, keepdims=True) @ v[:, g]
        return self.linear(p + "attn_output", out.reshape(n, -1))

    def feed_forward(self, p, x, layer):
        act = ACTIVATIONS[layer.activation]
        if layer.experts:
            score = self.linear(p + "ffn_gate_inp", x)
            gates, ups, downs = (self.values[f"{p}ffn_{t}_exps.weight"] for t in ("gate", "up", "down"))
            y = np.zeros_like(x)
            for i, row in enumerate(x):
                best = np.argsort(-score[i])[: self.used]
                share = np.exp(score[i, best] - score[i, best[0]])
                for e, s in zip(best, share / share.sum()):
                    y[i] += s * (downs[e] @ (act(gates[e] @ row) * (ups[e] @ row)))
            return y
        up = self.linear(p + "ffn_up", x)
        if self.fused_gate_up:
            gate, up = np.split(up, 2, 1)
        elif layer.gated:
            gate = self.linear(p + "ffn_gate", x)
        return self.linear(p + "ffn_down", act(gate) * up if layer.gated else act(up))

    def states(self, ids):
        """What the head reads: the last layer's output after the output norm."""
        x = self.values["token_embd.weight"][ids]
        if self.scaled:
            x = x * np.float64(np.sqrt(np.float32(self.embd)))
        if self.positions:
            x = x + self.values["position_embd.weight"][: len(ids)]
        for i in range(self.layers):
            layer, p = self.layer(i), f"blk.{i}."
            after = (lambda name, y: self.normed(p + name, y, layer.norm)) if layer.post_norm else (lambda name, y: y)
            n = self.normed(p + "attn_norm", x, layer.norm)
            y = after("post_attention_norm", self.attention(p, n, layer))
            if layer.parallel:
                x = x + y + self.feed_forward(p, n, layer)
                continue
            x = x + y
            y = self.feed_forward(p, self.normed(p + "ffn_norm", x, layer.norm), layer)
            x = x + after("post_ffw_norm", y)
        return self.normed("output_norm", x, self.layer(0).norm)

    def embedding(self, ids):
        mean = self.states(ids).mean(0)
        return mean / np.sqrt((mean * mean).sum())

    def logits(self, ids):
        x = self.states(ids)
        y = x @ self.values["token_embd.weight"].T if self.tied else self.linear("output", x)
        return self.logit_cap * np.tanh(y / self.logit_cap) if self.logit_cap else y


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
}
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
    for name, content in files.items():
        (out / name).write_text(json.dumps(content, ensure_ascii=False) + "\n")


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
    for seed, (name, (shards, extra, architecture, numbers)) in enumerate(FOLDERS.items()):
        model = Model(architecture, 500 + seed, **numbers)
        case, *expected = case_of(name, model)
        twin = "twin-" + name
        write_folder(out / name, model, shards, extra)
        (out / (twin + ".gguf")).write_bytes(gguf(model.pairs(), model.tensors))
        for case_name, file in ((name, name), (twin, twin + ".gguf")):
            write_case(out, case_name, case | {"model": file}, *expected)


if __name__ == "__main__":
    main()
