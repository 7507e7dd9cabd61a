# SPDX-License-Identifier: MIT
"""Perplexity on a text, with logits from the numpy reader or from the engine itself (any format it can load)."""
import pathlib
import subprocess
import tempfile

import numpy as np


def perplexity(ids, logits_of, window=512):
    """exp of the mean loss, and how many tokens counted. Each window's second half counts: all have some context."""
    half, losses = window // 2, []
    for start in range(0, len(ids) - window, half):
        piece = np.array(ids[start:start + window + 1])
        logits = logits_of(piece[:-1]).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        losses.append((np.log(np.exp(logits).sum(-1)) - logits[np.arange(window), piece[1:]])[half:])
    return float(np.exp(np.concatenate(losses).mean())), sum(map(len, losses))


def engine_logits(quern, model):
    """Logits of `quern logits`, as a function of ids."""
    def logits_of(ids):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "logits"
            subprocess.run([quern, "logits", model, "--tokens", ",".join(map(str, ids)), "--all", "--out", out],
                           check=True, stderr=subprocess.DEVNULL)
            return np.fromfile(out, "<f4").reshape(len(ids), -1)
    return logits_of
