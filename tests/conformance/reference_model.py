# SPDX-License-Identifier: MIT
"""A model with random weights, and what it computes in float64, written from the models' papers."""

import numpy as np

import reference_delta
from number_formats import FORMATS, random_tensor

VOCAB = 48
ROWS_AT_ONCE = 256  # of attention: thousands would not fit into memory


class Layer:
    """What a layer computes, by the papers. Numbers are the model's."""

    def __init__(self, **traits):
        self.norm, self.post_norm, self.parallel = "rms", False, False
        self.rotary, self.qk_norm, self.window, self.theta, self.stretch = "halves", False, 0, 10000.0, 1.0
        self.activation, self.gated, self.experts = "silu", True, 0
        self.pre_norm, self.sinks, self.whole_norm, self.yarn = True, False, False, True
        self.recurrent, self.gated_output = False, False
        self.dim, self.kv, self.ff, self.factors, self.score_scale = None, None, None, True, 0.0  # None: the model's
        self.values_are_keys, self.value_norm, self.scaled_stream = False, False, False
        self.beside, self.kv_from = False, None  # experts beside a plain half; the layer whose keys and values it uses
        self.__dict__.update(traits)


SILU = lambda x: x / (1 + np.exp(-x))
GELU = lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
ACTIVATIONS = {"silu": SILU, "gelu": GELU}


def clamped_swiglu(gate, up):
    gate = np.minimum(gate, 7)
    return gate / (1 + np.exp(-1.702 * gate)) * (np.clip(up, -7, 7) + 1)


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
        self.short_vectors, self.pooling, self.labels = False, None, ()
        self.embedding_scale, self.residual_scale, self.logit_divisor, self.attention_scale = 0.0, 1.0, 0.0, 0.0
        self.growth, self.log_multiplier, self.windows, self.shared_ff, self.ffn_norm = 0.0, 0.0, None, 0, "ffn_norm"
        self.state, self.interval, self.recurrent, self.drafts = None, 0, None, 0
        self.first_layout, self.shared_gate, self.fused_experts = False, False, False
        self.window_dim, self.window_theta = 0, 0.0
        self.borrowing, self.layer_embd = 0, 0
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

    def rows(self, name, n, columns):
        raw = (self.random.standard_normal((n, columns)) * 0.3).astype("<f4")
        self.tensors[name] = ("F32", [columns, n], raw.tobytes())
        self.values[name] = raw.astype(float)

    def norm(self, name, n, kind):
        self.vector(name + ".weight", 1 + 0.3 * self.random.standard_normal(n))
        if kind == "layer":
            self.vector(name + ".bias", 0.3 * self.random.standard_normal(n))

    def make_tensors(self):
        b = self.biases
        self.matrix("token_embd", VOCAB, self.embd)
        if self.positions:
            self.matrix("position_embd", self.context, self.embd, form="F32")
        if self.rope_factors:
            self.vector("rope_freqs.weight", np.array(self.rope_factors))
        if self.long_short:
            self.vector("rope_factors_long.weight", np.array(self.long_short[0]))
            self.vector("rope_factors_short.weight", np.array(self.long_short[1]))
        if self.layer_embd:
            self.matrix("per_layer_token_embd", VOCAB, self.layer_embd * self.layers)
            self.matrix("per_layer_model_proj", self.layer_embd * self.layers, self.embd)
            self.norm("per_layer_proj_norm", self.layer_embd, "rms")
        for i in range(self.layers):
            layer, p = self.layer(i), f"blk.{i}."
            if layer.pre_norm:
                self.norm(p + "attn_norm", self.embd, layer.norm)
            if layer.recurrent:
                reference_delta.make_tensors(self, p)
            else:
                self.make_attention(p, layer)
            if layer.post_norm:
                self.norm(p + "post_attention_norm", self.embd, layer.norm)
                self.norm(p + "post_ffw_norm", self.embd, layer.norm)
            if layer.pre_norm and not layer.parallel:
                self.norm(p + self.ffn_norm, self.embd, layer.norm)
            if layer.experts:
                self.matrix(p + "ffn_gate_inp", layer.experts, self.embd, form="F32", bias="experts" in b)
                if self.fused_experts:
                    self.matrix(p + "ffn_gate_up_exps", 2 * self.expert_ff, self.embd, layer.experts)
                else:
                    self.matrix(p + "ffn_gate_exps", self.expert_ff, self.embd, layer.experts)
                    self.matrix(p + "ffn_up_exps", self.expert_ff, self.embd, layer.experts)
                self.matrix(p + "ffn_down_exps", self.embd, self.expert_ff, layer.experts)
                if "experts" in b:
                    for part, n in ("gate", self.expert_ff), ("up", self.expert_ff), ("down", self.embd):
                        self.rows(f"{p}ffn_{part}_exps.bias", layer.experts, n)
                if self.shared_ff:
                    self.matrix(p + "ffn_gate_shexp", self.shared_ff, self.embd)
                    self.matrix(p + "ffn_up_shexp", self.shared_ff, self.embd)
                    self.matrix(p + "ffn_down_shexp", self.embd, self.shared_ff)
                if self.shared_gate:
                    self.vector(p + "ffn_gate_inp_shexp.weight", self.random.standard_normal(self.embd) * 0.3)
                if not layer.beside:
                    continue
                self.vector(p + "ffn_gate_inp.scale", 3 + self.random.standard_normal(self.embd))
                self.vector(p + "ffn_down_exps.scale", self.random.uniform(0.3, 2, layer.experts))
                for name in "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2":
                    self.norm(p + name, self.embd, layer.norm)
            ff = layer.ff or self.ff
            if layer.gated and not self.fused_gate_up:
                self.matrix(p + "ffn_gate", ff, self.embd)
            self.matrix(p + "ffn_up", ff * (2 if self.fused_gate_up else 1), self.embd, bias="all" in b)
            self.matrix(p + "ffn_down", self.embd, ff, bias="all" in b)
            if self.layer_embd:
                self.matrix(p + "inp_gate", self.layer_embd, self.embd)
                self.matrix(p + "proj", self.embd, self.layer_embd)
                self.norm(p + "post_norm", self.embd, layer.norm)
        self.norm("output_norm", self.embd, self.layer(0).norm)
        if not self.tied:
            self.matrix("output", VOCAB, self.embd, bias="head" in b)
        if self.labels:
            self.matrix("cls.output", len(self.labels), self.embd, bias="labels" in b)

    def make_attention(self, p, layer):
        b, dim = self.biases, layer.dim or self.dim
        q, kv = self.heads * dim, (layer.kv or self.kv) * dim
        if self.fused_qkv:
            self.matrix(p + "attn_qkv", q + 2 * kv, self.embd, bias="qkv" in b)
        else:
            for t, rows in zip("qkv", (2 * q if layer.gated_output else q, kv, kv)):
                if t != "v" or not layer.values_are_keys:
                    self.matrix(p + "attn_" + t, rows, self.embd, bias="qkv" in b)
        if layer.qk_norm:
            self.norm(p + "attn_q_norm", q if layer.whole_norm else dim, layer.norm)
            self.norm(p + "attn_k_norm", kv if layer.whole_norm else dim, layer.norm)
        if layer.sinks:
            self.vector(p + "attn_sinks.weight", self.random.standard_normal(self.heads))
        self.matrix(p + "attn_output", self.embd, q, bias="all" in b)
        if layer.scaled_stream:
            self.vector(p + "layer_output_scale.weight", self.random.uniform(0.5, 1.5, 1))

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
        if self.pooling:
            p[a + "pooling_type"] = {"mean": 1, "cls": 2, "last": 3, "rank": 4}[self.pooling]
        if self.labels:
            p |= {a + "classifier.output_labels": list(self.labels),
                  "tokenizer.chat_template.rerank": "{query}\n{document}"}
        for key, value in (("embedding_scale", self.embedding_scale), ("logit_scale", self.logit_divisor),
                           ("attention.scale", self.attention_scale), ("attention.temperature_scale", self.growth),
                           ("rope.scaling.yarn_log_multiplier", self.log_multiplier)):
            if value:
                p[a + key] = float(value)
        if self.residual_scale != 1:
            p[a + "residual_scale"] = float(self.residual_scale)
        if self.windows:
            p[a + "attention.sliding_window_pattern"] = [bool(w) for w in self.windows]
        layers = [self.layer(i) for i in range(self.layers)]
        if any(layer.kv for layer in layers):
            p[a + "attention.head_count_kv"] = np.array([layer.kv or self.kv for layer in layers], "<i4")
        if any(layer.ff for layer in layers):
            p[a + "feed_forward_length"] = np.array([layer.ff or self.ff for layer in layers], "<i4")
        if self.window_dim:
            p |= {a + "attention.key_length_swa": self.window_dim, a + "attention.value_length_swa": self.window_dim,
                  a + "rope.dimension_count_swa": self.window_dim, a + "rope.freq_base_swa": float(self.window_theta)}
        if self.borrowing:
            p[a + "attention.shared_kv_layers"] = self.borrowing
        if self.layer_embd:
            p[a + "embedding_length_per_layer_input"] = self.layer_embd
        if self.shared_ff:
            p[a + "expert_shared_feed_forward_length"] = self.shared_ff
        if self.experts:
            p |= {a + "expert_count": self.experts, a + "expert_used_count": self.used,
                  a + "expert_feed_forward_length": self.expert_ff}
        return p | (reference_delta.pairs(self) if self.state else {})

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
        n = (layer.dim or self.rope_dims) // 2
        speed = layer.theta ** (-np.arange(n) / n)
        magnitude = np.float64(np.float32(self.magnitude))
        if self.rope_factors and layer.factors:
            speed = speed / self.values["rope_freqs.weight"]
        if self.long_short:  # by what a sequence could grow to
            which = "long" if self.context > self.trained else "short"
            speed = speed / self.values[f"rope_factors_{which}.weight"]
        if self.yarn and layer.yarn:  # the pairs that turn `fast` times and more in the length of training stay as they are
            fast, slow = (2 * n * np.log(self.trained / (turns * 2 * np.pi)) / (2 * np.log(layer.theta))
                          for turns in self.yarn)
            fast, slow = max(0, np.floor(fast)), min(2 * n - 1, np.ceil(slow))
            kept = 1 - np.clip((np.arange(n) - fast) / max(slow - fast, 0.001), 0, 1)
            speed = speed * kept + speed / layer.stretch * (1 - kept)
            grown = 0.1 * np.log(layer.stretch)
            magnitude = magnitude * (grown + 1) / (np.float64(np.float32(self.log_multiplier)) * grown + 1)
        elif not layer.yarn:
            magnitude = 1
        else:
            speed = speed / layer.stretch
        angle = np.arange(len(heads))[:, None, None] * speed
        first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if layer.rotary == "pairs" else (slice(0, n), slice(n, 2 * n))
        out, x, y = heads.copy(), heads[..., first], heads[..., second]
        out[..., first] = (x * np.cos(angle) - y * np.sin(angle)) * magnitude
        out[..., second] = (x * np.sin(angle) + y * np.cos(angle)) * magnitude
        return out

    def attention(self, p, x, layer, kept):
        n, dim = len(x), layer.dim or self.dim
        if self.fused_qkv:
            q, k, v = np.split(self.linear(p + "attn_qkv", x),
                               [self.heads * self.dim, (self.heads + self.kv) * self.dim], 1)
        else:
            q, k, v = (self.linear(p + "attn_" + t, x) for t in ("qkk" if layer.values_are_keys else "qkv"))
        if layer.gated_output:  # a head's queries, then its gates
            q, gate = (t.reshape(n, -1) for t in np.split(q.reshape(n, self.heads, -1), 2, 2))
        if layer.whole_norm:
            q, k = self.normed(p + "attn_q_norm", q, layer.norm), self.normed(p + "attn_k_norm", k, layer.norm)
        q, k, v = (t.reshape(n, -1, dim) for t in (q, k, v))
        if layer.value_norm:
            v = v / np.sqrt((v * v).mean(-1, keepdims=True) + np.float64(np.float32(self.epsilon)))
        if layer.qk_norm and not layer.whole_norm:
            q, k = self.normed(p + "attn_q_norm", q, layer.norm), self.normed(p + "attn_k_norm", k, layer.norm)
        q, k = self.turned(q, layer), self.turned(k, layer)
        if layer.kv_from is not None:
            k, v = kept[f"blk.{layer.kv_from}."]
        kept[p] = k, v
        if self.growth:
            q = q * (1 + np.float64(np.float32(self.growth)) * np.log(1 + np.arange(n) // self.trained))[:, None, None]
        out = np.empty_like(q)
        for first in range(0, n, ROWS_AT_ONCE):
            rows = slice(first, min(n, first + ROWS_AT_ONCE))
            back = np.arange(n)[rows, None] - np.arange(rows.stop)
            seen = (back >= 0) & (back < (layer.window or n))
            for h in range(self.heads):
                g = h * k.shape[1] // self.heads
                scale = layer.score_scale or np.float64(np.float32(self.attention_scale)) or 1 / np.sqrt(dim)
                score = q[rows, h] @ k[: rows.stop, g].T * scale
                if self.score_cap:
                    score = self.score_cap * np.tanh(score / self.score_cap)
                weight = np.where(seen, np.exp(score - score.max(1, keepdims=True)), 0)
                total = weight.sum(1, keepdims=True)
                if layer.sinks:  # it has a share and no value
                    total = total + np.exp(self.values[p + "attn_sinks.weight"][h] - score.max(1, keepdims=True))
                out[rows, h] = weight / total @ v[: rows.stop, g]
        out = out.reshape(n, -1)
        return self.linear(p + "attn_output", out * reference_delta.SIGMOID(gate) if layer.gated_output else out)

    def feed_forward(self, p, x, layer, routed=None, experts=True):
        if layer.activation == "swiglu_clamped":
            act, gated = None, clamped_swiglu
        else:
            act = ACTIVATIONS[layer.activation]
            gated = lambda gate, up: act(gate) * up
        if layer.experts and experts:
            score = self.linear(p + "ffn_gate_inp", x if routed is None else routed)
            scale = self.values.get(p + "ffn_down_exps.scale", np.ones(layer.experts))
            if self.fused_experts:
                gates, ups = np.split(self.values[p + "ffn_gate_up_exps.weight"], 2, 1)
            else:
                gates, ups = (self.values[f"{p}ffn_{t}_exps.weight"] for t in ("gate", "up"))
            downs = self.values[p + "ffn_down_exps.weight"]
            bias = lambda t, e: self.values[f"{p}ffn_{t}_exps.bias"][e] if "experts" in self.biases else 0
            y = np.zeros_like(x)
            for i, row in enumerate(x):
                best = np.argsort(-score[i])[: self.used]
                share = np.exp(score[i, best] - score[i, best[0]])
                for e, s in zip(best, share / share.sum()):
                    inner = gated(gates[e] @ row + bias("gate", e), ups[e] @ row + bias("up", e))
                    y[i] += s * scale[e] * (downs[e] @ inner + bias("down", e))
            if self.shared_ff:
                shared = self.linear(p + "ffn_down_shexp", gated(self.linear(p + "ffn_gate_shexp", x),
                                                                 self.linear(p + "ffn_up_shexp", x)))
                if self.shared_gate:
                    shared *= reference_delta.SIGMOID(x @ self.values[p + "ffn_gate_inp_shexp.weight"])[:, None]
                y = y + shared
            return y
        up = self.linear(p + "ffn_up", x)
        if self.fused_gate_up:
            gate, up = np.split(up, 2, 1)
        elif layer.gated:
            gate = self.linear(p + "ffn_gate", x)
        return self.linear(p + "ffn_down", gated(gate, up) if layer.gated else act(up))

    def both_halves(self, p, x, layer):
        """A plain half and experts beside it, each with norms of its own; x is the stream."""
        norm = lambda name, y: self.normed(p + name, y, layer.norm)
        size = np.sqrt((x * x).mean(-1, keepdims=True) + np.float64(np.float32(self.epsilon)))
        routed = x / size * self.values[p + "ffn_gate_inp.scale"] / np.sqrt(self.embd)
        plain = self.feed_forward(p, norm("ffn_norm", x), layer, experts=False)
        mixed = self.feed_forward(p, norm("pre_ffw_norm_2", x), layer, routed)
        return norm("post_ffw_norm_1", plain) + norm("post_ffw_norm_2", mixed)

    def layer_inputs(self, ids, x):
        """What each layer gets of each id by itself, [ids, layers, numbers]."""
        shape = len(ids), self.layers, self.layer_embd
        projected = self.normed("per_layer_proj_norm", self.linear("per_layer_model_proj", x).reshape(shape)
                                / np.sqrt(self.embd), "rms")
        return (projected + np.sqrt(self.layer_embd) * self.values["per_layer_token_embd.weight"][ids].reshape(shape)) \
            / np.sqrt(2)

    def states(self, ids):
        """What the head reads: the last layer's output after the output norm."""
        x = self.values["token_embd.weight"][ids]
        if self.scaled:
            x = x * np.float64(np.sqrt(np.float32(self.embd)))
        if self.embedding_scale:
            x = x * np.float64(np.float32(self.embedding_scale))
        if self.positions:
            x = x + self.values["position_embd.weight"][: len(ids)]
        inputs, kept = self.layer_inputs(ids, x) if self.layer_embd else None, {}
        for i in range(self.layers):
            layer, p = self.layer(i), f"blk.{i}."
            after = (lambda name, y: self.normed(p + name, y, layer.norm)) if layer.post_norm else (lambda name, y: y)
            before = (lambda name, y: self.normed(p + name, y, layer.norm)) if layer.pre_norm else (lambda name, y: y)
            n = before("attn_norm", x)
            mixed = reference_delta.delta_net(self, p, n) if layer.recurrent else self.attention(p, n, layer, kept)
            y = after("post_attention_norm", mixed)
            if layer.parallel:
                x = x + y + self.feed_forward(p, n, layer)
                continue
            residual = np.float64(np.float32(self.residual_scale))
            x = x + residual * y
            y = self.both_halves(p, x, layer) if layer.beside else self.feed_forward(p, before(self.ffn_norm, x), layer)
            x = x + residual * after("post_ffw_norm", y)
            if self.layer_embd:
                gate = ACTIVATIONS[layer.activation](self.linear(p + "inp_gate", x))
                x = x + self.normed(p + "post_norm", self.linear(p + "proj", gate * inputs[:, i]), layer.norm)
            if layer.scaled_stream:
                x = x * self.values[p + "layer_output_scale.weight"]
        return self.normed("output_norm", x, self.layer(0).norm)

    def embedding(self, ids):
        states = self.states(ids)
        pooled = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[self.pooling or "mean"]
        return pooled / np.sqrt((pooled * pooled).sum())

    def scores(self, ids):
        """Of a model that ranks: each label's share of the last row."""
        y = self.linear("cls.output", self.states(ids)[-1:])[0]
        shares = np.exp(y - y.max())
        return shares / shares.sum() if len(self.labels) > 1 else y

    def logits(self, ids):
        x = self.states(ids)
        y = x @ self.values["token_embd.weight"].T if self.tied else self.linear("output", x)
        if self.logit_divisor:
            y = y / np.float64(np.float32(self.logit_divisor))
        return self.logit_cap * np.tanh(y / self.logit_cap) if self.logit_cap else y
