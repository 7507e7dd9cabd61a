# SPDX-License-Identifier: MIT
"""Runs a GGUF file of the demo model's kind with numpy: the measure of what is shipped.

It shares no code with the training: weights, shape and vocabulary all come from the file, so a wrong rotary
convention, a wrong merge or a rounding error of the format shows up in the evaluation. Many prompts at once, each row
with its own length.
"""
import math

import numpy as np

import gguf
from vocabulary import Vocabulary


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Reader:
    def __init__(self, path):
        pairs, self.tensors = gguf.read(path)
        assert pairs["general.architecture"] == "llama" and pairs["tokenizer.ggml.pre"] == "qwen2"
        self.vocabulary = Vocabulary(merge.split(" ") for merge in pairs["tokenizer.ggml.merges"])
        assert self.vocabulary.pieces == pairs["tokenizer.ggml.tokens"], "pieces do not follow from the merges"
        self.end = pairs["tokenizer.ggml.eos_token_id"]
        self.template = pairs["tokenizer.chat_template"]
        self.layers = pairs["llama.block_count"]
        self.heads, self.kv_heads = pairs["llama.attention.head_count"], pairs["llama.attention.head_count_kv"]
        self.head_width = pairs["llama.embedding_length"] // self.heads
        self.epsilon = pairs["llama.attention.layer_norm_rms_epsilon"]
        steps = np.arange(0, self.head_width, 2) / self.head_width
        self.frequencies = (pairs["llama.rope.freq_base"] ** -steps).astype(np.float32)

    def prompt(self, messages, thinking=False):
        """The ids of the chat template, rendered with the opening of an answer, or of a thought before it."""
        ids = [i for m in messages for i in self.vocabulary.message(m["role"], m["content"])]
        return ids + self.vocabulary.message("assistant") + (self.vocabulary.encode_rendered("<think>\n") if thinking else [])

    def rotate(self, x, positions):
        """x: (rows, length, heads, head_width), positions: (rows, length)."""
        angles = (positions[..., None] * self.frequencies)[:, :, None]
        cos, sin = np.cos(angles), np.sin(angles)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return out

    def forward(self, ids, positions, cache):
        """Logits (rows, length, vocabulary) of new ids; K and V are put into the cache at their positions."""
        rows, length = ids.shape
        weight = lambda name: self.tensors[name + ".weight"]
        x = weight("token_embd")[ids]
        row = np.arange(rows)[:, None]
        group = self.heads // self.kv_heads
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = rms_norm(x, weight(name + "attn_norm"), self.epsilon)
            split = lambda part, heads: (y @ weight(name + part).T).reshape(rows, length, heads, self.head_width)
            q = self.rotate(split("attn_q", self.heads), positions)
            keys, values = cache[layer]
            keys[row, positions] = self.rotate(split("attn_k", self.kv_heads), positions)
            values[row, positions] = split("attn_v", self.kv_heads)
            seen = np.arange(keys.shape[1]) <= positions[..., None]
            mixed = np.empty_like(q)
            for head in range(self.heads):
                scores = q[:, :, head] @ keys[:, :, head // group].transpose(0, 2, 1) / math.sqrt(self.head_width)
                mixed[:, :, head] = softmax(np.where(seen, scores, -np.inf)) @ values[:, :, head // group]
            x = x + mixed.reshape(rows, length, -1) @ weight(name + "attn_output").T
            y = rms_norm(x, weight(name + "ffn_norm"), self.epsilon)
            gate = y @ weight(name + "ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ weight(name + "ffn_up").T)) @ weight(name + "ffn_down").T
        return rms_norm(x, weight("output_norm"), self.epsilon) @ weight("token_embd").T

    def cache(self, rows, length):
        shape = (rows, length, self.kv_heads, self.head_width)
        return [(np.zeros(shape, np.float32), np.zeros(shape, np.float32)) for _ in range(self.layers)]

    def complete(self, prompts, most=120):
        """Greedy answers to a list of prompts (id lists), as texts. Shorter prompts are padded on the right; what
        the padding leaves in the cache is overwritten before anything looks at it."""
        lengths = np.array([len(p) for p in prompts])
        ids = np.zeros((len(prompts), lengths.max()), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, :len(prompt)] = prompt
        cache = self.cache(len(prompts), lengths.max() + most)
        positions = np.tile(np.arange(ids.shape[1]), (len(prompts), 1))
        logits = self.forward(ids, positions, cache)[np.arange(len(prompts)), lengths - 1]
        answers = [[] for _ in prompts]
        running = np.ones(len(prompts), bool)
        for step in range(most):
            best = logits.argmax(-1)
            running &= best != self.end
            for row in np.flatnonzero(running):
                answers[row].append(best[row])
            if not running.any():
                break
            logits = self.forward(best[:, None], (lengths + step)[:, None], cache)[:, 0]
        return [self.vocabulary.decode(answer) for answer in answers]

    def all_logits(self, ids):
        """Logits (length, vocabulary) of one sequence."""
        ids = np.asarray(ids)
        return self.forward(ids[None], np.arange(len(ids))[None], self.cache(1, len(ids)))[0]
