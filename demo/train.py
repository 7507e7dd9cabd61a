#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the demo model, in the background if you like: it can be stopped, continued and resumed at any time.

    train.py --out DIR [--steps N] [--tokens N] [--threads N] [--device cuda]

Every few minutes DIR/checkpoint.pt is replaced; a new start with the same DIR goes on from there.
"""
import argparse
import dataclasses
import math
import os
import pathlib
import time

# Threads that spin at barriers starve each other on a machine that has other work: 10 times slower when measured.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import torch  # noqa: E402  (reads the variables above)
from torch.nn import functional as F  # noqa: E402

from batches import batch  # noqa: E402
from model import Model, Shape  # noqa: E402
from optimizer import optimizers  # noqa: E402
from vocabulary import Vocabulary  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the checkpoint and the log")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--tokens", type=int, default=6144, help="tokens of a step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--matrix-rate", type=float, default=0.02)
    parser.add_argument("--other-rate", type=float, default=0.003)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=None,
                        help="16-bit products (default: if the processor multiplies them, which doubles the speed)")
    parser.add_argument("--save-every", type=int, default=100)
    args = parser.parse_args()
    if args.bf16 is None:
        args.bf16 = args.device != "cpu" or "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    return args


def rate(step, steps):
    """Warm up for 40 steps, stay, then go down to nothing over the last 60 %."""
    down = (steps - step) / (0.6 * steps)
    return min((step + 1) / 40, 1.0, 0.02 + 0.98 * down)


def loss_of(model, batch_, bf16):
    ids, targets, weights, segments = batch_
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=bf16):
        logits = model(ids, segments)
    losses = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    weights = weights.flatten()
    answers = weights == 1.0
    return (losses * weights).sum() / weights.sum(), losses.detach()[answers].mean().item()


def save(path, model, optimizers_, step, seconds, tokens):
    state = {"shape": dataclasses.asdict(model.shape), "model": model.state_dict(), "step": step, "seconds": seconds,
             "tokens": tokens, "optimizers": [o.state_dict() for o in optimizers_]}
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    os.replace(fresh, path)


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    checkpoint = args.out / "checkpoint.pt"
    vocabulary = Vocabulary.load()
    model = Model(Shape(vocabulary=len(vocabulary.pieces))).to(args.device)
    optimizers_ = optimizers(model, args.matrix_rate, args.other_rate, args.bf16)
    peaks = [[group["lr"] for group in o.param_groups] for o in optimizers_]
    step = seconds = tokens = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=args.device)
        model.load_state_dict(state["model"])
        for o, o_state in zip(optimizers_, state["optimizers"]):
            o.load_state_dict(o_state)
        step, seconds, tokens = state["step"], state["seconds"], state["tokens"]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, from step {step}", flush=True)

    while step < args.steps:
        started = time.monotonic()
        for o, peak in zip(optimizers_, peaks):
            for group, lr in zip(o.param_groups, peak):
                group["lr"] = lr * rate(step, args.steps)
        batch_ = [part.to(args.device) for part in batch(vocabulary, args.seed, step, args.tokens)]
        loss, answer_loss = loss_of(model, batch_, args.bf16)
        for o in optimizers_:
            o.zero_grad(set_to_none=True)
        loss.backward()
        for o in optimizers_:
            o.step()
        step += 1
        took = time.monotonic() - started
        seconds += took
        used = int((batch_[2] > 0).sum())
        tokens += used
        if step % 10 == 0 or step <= 5:
            print(f"step {step} loss {loss.item():.4f} answers {answer_loss:.4f} rows of {batch_[0].shape[1]} "
                  f"{used / took:.0f} tokens/s, {tokens / 1e6:.2f} M tokens in {seconds / 60:.1f} min", flush=True)
        if step % args.save_every == 0 or step == args.steps:
            save(checkpoint, model, optimizers_, step, seconds, tokens)


if __name__ == "__main__":
    main()
