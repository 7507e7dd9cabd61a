# SPDX-License-Identifier: MIT
"""The network, as training sees it: a llama-style decoder with grouped heads and a tied output head.

Rotary pairs are neighbours (2i, 2i+1), which is what the GGUF architecture "llama" means, so weights are written
as they are. Parameter names are the GGUF tensor names without ".weight".
"""
import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F

CHUNK = 128


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int = 1024
    layers: int = 6
    width: int = 256
    feed_forward: int = 512
    heads: int = 8
    kv_heads: int = 2
    context: int = 1024
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5

    @property
    def head_width(self):
        return self.width // self.heads


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotary_table(shape, length, device):
    """cos and sin, each (length, 1, head_width / 2)."""
    steps = torch.arange(0, shape.head_width, 2, device=device) / shape.head_width
    angles = torch.arange(length, device=device)[:, None] * shape.rope_base ** -steps
    return angles.cos()[:, None], angles.sin()[:, None]


def rotate(x, table):
    """x: (rows, length, heads, head_width); each neighbouring pair turns by its position's angle."""
    cos, sin = table
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        kv_width = shape.kv_heads * shape.head_width
        self.attn_norm = RmsNorm(shape.width, shape.norm_epsilon)
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_v = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_norm = RmsNorm(shape.width, shape.norm_epsilon)
        self.ffn_gate = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_down = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x, table, mask):
        x = x + self.attention(self.attn_norm(x), table, mask)
        y = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))

    def attention(self, x, table, mask):
        """In pieces of CHUNK queries, so that nothing is computed for the keys after them."""
        s = self.shape
        rows, length, _ = x.shape
        group = s.heads // s.kv_heads
        q = rotate(self.attn_q(x).view(rows, length, s.heads, s.head_width), table) / math.sqrt(s.head_width)
        k = rotate(self.attn_k(x).view(rows, length, s.kv_heads, s.head_width), table).permute(0, 2, 3, 1)
        v = self.attn_v(x).view(rows, length, s.kv_heads, s.head_width).transpose(1, 2)
        q = q.view(rows, length, s.kv_heads, group, s.head_width).permute(0, 2, 3, 1, 4)
        out = []
        for start in range(0, length, CHUNK):
            end = min(start + CHUNK, length)
            # The query heads of a group are stacked into one product with their KV head.
            part = q[:, :, :, start:end].reshape(rows, s.kv_heads, -1, s.head_width)
            scores = (part @ k[..., :end]).view(rows, s.kv_heads, group, end - start, end)
            weights = F.softmax(scores + mask[:, None, None, start:end, :end], -1)
            mixed = weights.view(rows, s.kv_heads, -1, end) @ v[:, :, :end]
            out.append(mixed.view(rows, s.kv_heads, group, end - start, s.head_width))
        out = torch.cat(out, 3).permute(0, 3, 1, 2, 4)
        return self.attn_output(out.reshape(rows, length, s.width))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = RmsNorm(shape.width, shape.norm_epsilon)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(parameter, std=0.04 / math.sqrt(2 * shape.layers) if last else 0.04)

    def forward(self, ids, segments):
        """ids, segments: (rows, length). A token sees only earlier tokens of its own segment."""
        length = ids.shape[1]
        same = segments[:, :, None] == segments[:, None, :]
        seen = same & torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
        mask = torch.zeros(seen.shape, device=ids.device).masked_fill_(~seen, -1e9)
        table = rotary_table(self.shape, length, ids.device)
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, table, mask)
        return self.output_norm(x) @ self.token_embd.weight.T
