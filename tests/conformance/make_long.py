#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes long/: a model made for a short context, and what it computes far behind that when options stretch it.

qwen3.gguf says nothing of scaling. Each line of qwen3.case.json is an answer of reference_model.py, in float64, for the
options beside it: after how many ids, and the logits there, in qwen3.logits.f32. The ids come from the generator that
the case names, so that thousands need no file. conformance_long.c compares. Needs numpy, and a minute."""

import json
import pathlib

from model_files import gguf
from reference_model import VOCAB, Layer, Model

TRAINED = 2048
ENDS = 40, 2600, 8300  # within the context of the training, beyond it, and beyond what a file of 8,192 has
GENERATOR = {"multiplier": 6364136223846793005, "increment": 1442695040888963407, "first": 1, "shift": 33}

# What options say, and the same in numbers of the reference.
OPTIONS = (
    ({"rope-scaling": "yarn", "rope-scale": "8"}, {}),
    ({"rope-scaling": "yarn", "rope-scale": "16", "yarn-orig-ctx": "1024"}, {"trained": 1024, "stretch": 16.0}),
    ({"rope-scaling": "yarn", "rope-scale": "8", "rope-freq-base": "50000", "yarn-beta-fast": "20", "yarn-beta-slow": "2",
      "yarn-attn-factor": "0.9"}, {"yarn": (20, 2), "theta": 5e4, "magnitude": 0.9}),
)


def model(**numbers):
    """Always the same weights, since they are drawn before anything is computed."""
    theta = numbers.get("theta", 1e6)
    layer = lambda i: Layer(theta=theta, qk_norm=True, stretch=numbers.get("stretch", 1.0))
    return Model("qwen3", 1100, "F32", **{"theta": 1e6, "heads": 2, "kv": 1, "dim": 16, "layers": 2, "layer": layer,
                                          "context": TRAINED} | numbers)


def ids():
    state, found = GENERATOR["first"], []
    for _ in range(max(ENDS)):
        state = (state * GENERATOR["multiplier"] + GENERATOR["increment"]) % 2**64
        found.append((state >> GENERATOR["shift"]) % VOCAB)
    return found


def main():
    out = pathlib.Path(__file__).with_name("long")
    out.mkdir(exist_ok=True)
    plain = model()
    (out / "qwen3.gguf").write_bytes(gguf(plain.pairs(), plain.tensors))
    rows = []
    for _, numbers in OPTIONS:
        logits = model(**{"stretch": 8.0, "yarn": (32, 1), "trained": TRAINED} | numbers).logits(ids())
        rows += [logits[end - 1] for end in ENDS]
    case = {"generator": GENERATOR, "ends": ENDS, "options": [options for options, _ in OPTIONS]}
    (out / "qwen3.case.json").write_text(json.dumps(case) + "\n")
    (out / "qwen3.logits.f32").write_bytes(b"".join(row.astype("<f4").tobytes() for row in rows))


if __name__ == "__main__":
    main()
