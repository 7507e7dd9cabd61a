# SPDX-License-Identifier: MIT
"""Gated delta nets (Yang, Kautz, Hatamizadeh 2024) in float64, and the tensors that Qwen's files have of them.

`model` is a reference_model.Model; its `state` is (key heads, value heads, length of a key, length of a value, taps)."""

import numpy as np

SIGMOID = lambda x: 1 / (1 + np.exp(-x))
UNIT = lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def make_tensors(model, p):
    n_keys, n_values, key, value, taps = model.state
    channels, inner = 2 * n_keys * key + n_values * value, n_values * value
    if model.first_layout:
        model.matrix(p + "ssm_in", channels + inner, model.embd)
    else:
        model.matrix(p + "attn_qkv", channels, model.embd)
        model.matrix(p + "attn_gate", inner, model.embd)
    if model.arch == "qwen3next":
        model.matrix(p + "ssm_ba", 2 * n_values, model.embd)
    else:
        model.matrix(p + "ssm_beta", n_values, model.embd)
        model.matrix(p + "ssm_alpha", n_values, model.embd)
    model.matrix(p + "ssm_conv1d", channels, taps, form="F32")
    model.vector(p + "ssm_dt.bias", model.random.standard_normal(n_values))
    model.vector(p + "ssm_a", -np.exp(model.random.uniform(-3, 1, n_values)))
    model.norm(p + "ssm_norm", value, "rms")
    model.matrix(p + "ssm_out", model.embd, inner)


def inputs(model, p, x):
    """Queries, keys and values before the convolution, side by side; gates; betas and alphas of each value head."""
    n_keys, n_values, key, value, _ = model.state
    n, shared = len(x), n_values // n_keys
    if model.first_layout:  # each key head has its queries, keys, values and gates together
        parts = model.linear(p + "ssm_in", x).reshape(n, n_keys, 2 * key + 2 * shared * value)
        q, k, v, gate = np.split(parts, np.cumsum([key, key, shared * value]), 2)
        mixed, gate = np.concatenate([t.reshape(n, -1) for t in (q, k, v)], 1), gate.reshape(n, -1)
    else:
        mixed, gate = model.linear(p + "attn_qkv", x), model.linear(p + "attn_gate", x)
    if model.arch == "qwen3next":
        both = model.linear(p + "ssm_ba", x).reshape(n, n_keys, 2, shared)
        beta, alpha = both[:, :, 0].reshape(n, -1), both[:, :, 1].reshape(n, -1)
    else:
        beta, alpha = model.linear(p + "ssm_beta", x), model.linear(p + "ssm_alpha", x)
    return mixed, gate, beta, alpha


def delta_net(model, p, x):
    n_keys, n_values, key, value, taps = model.state
    n, weights = len(x), model.values
    mixed, gate, beta, alpha = inputs(model, p, x)
    before = np.concatenate([np.zeros((taps - 1, mixed.shape[1])), mixed])
    after = sum(before[t : t + n] * weights[p + "ssm_conv1d.weight"][:, t] for t in range(taps))
    after = after * SIGMOID(after)
    q, k, v = np.split(after, [n_keys * key, 2 * n_keys * key], 1)
    q, k, v = UNIT(q.reshape(n, n_keys, key)), UNIT(k.reshape(n, n_keys, key)), v.reshape(n, n_values, value)
    heads = np.arange(n_values)
    whose = heads * n_keys // n_values if model.arch == "qwen3next" else heads % n_keys
    decay = np.exp(weights[p + "ssm_a"] * np.log1p(np.exp(alpha + weights[p + "ssm_dt.bias"])))
    beta = SIGMOID(beta)
    out = np.empty((n, n_values, value))
    for h in heads:
        state = np.zeros((value, key))
        for t in range(n):
            state = decay[t, h] * state
            wrong = v[t, h] - state @ k[t, whose[h]]
            state = state + beta[t, h] * np.outer(wrong, k[t, whose[h]])
            out[t, h] = state @ q[t, whose[h]] / np.sqrt(key)
    gate = gate.reshape(n, n_values, value)
    out = model.normed(p + "ssm_norm", out, "rms") * (gate * SIGMOID(gate))
    return model.linear(p + "ssm_out", out.reshape(n, -1))


def pairs(model):
    n_keys, n_values, key, value, taps = model.state
    a = model.arch + "."
    p = {a + "ssm.conv_kernel": taps, a + "ssm.state_size": key, a + "ssm.group_count": n_keys,
         a + "ssm.time_step_rank": n_values, a + "ssm.inner_size": n_values * value}
    if model.interval:
        p[a + "full_attention_interval"] = model.interval
    if model.recurrent:
        p[a + "attention.recurrent_layers"] = [bool(r) for r in model.recurrent]
    if model.drafts:
        p |= {a + "block_count": model.layers + model.drafts, a + "nextn_predict_layers": model.drafts}
    return p
