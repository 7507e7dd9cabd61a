# SPDX-License-Identifier: MIT
"""What is measured, and what is to be reached: a job is work that every engine does in turn, round by round, and its
figures are the rows of the table."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Figure:
    """One row. `key` names its value in what a measurement gives."""

    key: str
    work: str
    unit: str
    goal: float  # Quern's value ÷ the best peer's
    less_is_better: bool = False

    def reached(self, ratio):
        return ratio <= self.goal if self.less_is_better else ratio >= self.goal

    def best(self, values):
        return min(values) if self.less_is_better else max(values)


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    kind: str  # "single", "batch", "depth" or "serving"
    model: str  # the name of a file without its end
    figures: tuple
    clients: int = 0  # of "serving": how many ask at once,
    requests: int = 0  # how many requests each sends, one after the other,
    prompt: int = 0  # how many random ids each prompt has; 0: all have the same text
    new: int = 0  # how many tokens are made of each
    streamed: bool = False
    prefill: int = 128  # of "single": ids of a prompt


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much work a measurement is."""

    decode: int = 32  # ids that are decoded, one by one
    repetitions: int = 3  # of both within one measurement, which tells their median
    sequences: tuple = (8, 32)  # that decode at once
    batch_prompt: int = 16  # ids that each of them has before
    batch_decode: int = 32
    depth: int = 4096  # ids in the cache before others are decoded


# To see whether everything runs.
TINY = Sizes(decode=2, repetitions=1, batch_prompt=2, batch_decode=2, depth=64)


def _single(name, label, model, decode, prefill, ids=128):
    return Job(name, "single", model,
               (Figure("decode", f"{label} decode", "tok/s", decode),
                Figure("prefill", f"{label} prefill {ids}", "tok/s", prefill)), prefill=ids)


JOBS = (
    _single("1b-q4", "1B Q4_K_M", "llama-3.2-1b-Q4_K_M", 1.3, 1.5),
    _single("1b-q8", "1B Q8_0", "llama-3.2-1b-Q8_0", 1.2, 1.1),
    _single("0.5b-q4", "0.5B Q4_K_M", "qwen2.5-0.5b-Q4_K_M", 1.3, 1.5),
    _single("0.5b-q8", "0.5B Q8_0", "qwen2.5-0.5b-Q8_0", 1.3, 1.1),
    _single("qwen35", "Qwen3.5-4B, 8 layers, Q4_K_M", "qwen3.5-4b-8-layers-Q4_K_M", 1.2, 1.3, 512),
    _single("qwen35moe", "Qwen3.5-35B-A3B, 4 layers, Q4_K_M", "qwen3.5-35b-a3b-4-layers-Q4_K_M", 1.2, 1.3, 512),
    _single("gpt-oss", "gpt-oss-20b, 4 layers, MXFP4", "gpt-oss-20b-4-layers-MXFP4_MOE", 1.2, 1.3, 512),
    _single("gemma4", "Gemma-4-E4B, 12 layers, Q4_K_M", "gemma-4-e4b-12-layers-Q4_K_M", 1.2, 1.3, 512),
    _single("smollm2", "SmolLM2-135M Q4_1", "SmolLM2-135M-Q4_1", 1.2, 1.3, 512),
    _single("gemma3", "Gemma 3 270M Q4_K_M", "Gemma-3-270M-Q4_K_M", 1.2, 1.3, 512),
    Job("batch", "batch", "qwen2.5-0.5b-Q4_K_M",
        (Figure("8", "0.5B Q4_K_M, 8 sequences decoding", "tok/s", 2),
         Figure("32", "0.5B Q4_K_M, 32 sequences decoding", "tok/s", 2))),
    Job("depth", "depth", "llama-3.2-1b-Q4_K_M",
        (Figure("decode", "1B Q4_K_M decode at depth 4,096", "tok/s", 5),)),
    Job("pool", "serving", "qwen2.5-0.5b-Q4_K_M",
        (Figure("rate", "0.5B Q4_K_M served, 8 clients, 130 ids + 64 new", "tok/s", 2),
         Figure("first_ms", "the same, time to the first token, p50", "ms", 0.4, less_is_better=True)),
        clients=8, requests=2, prompt=130, new=64, streamed=True),
    Job("demo", "serving", "quern-demo-Q8_0",
        (Figure("rate", "demo model served, 16 clients, 128 new", "tok/s", 1.8),),
        clients=16, requests=16, new=128),
)


def tiny(job):
    """The job with hardly any work."""
    if job.kind == "serving":
        return dataclasses.replace(job, requests=1, prompt=min(job.prompt, 4), new=2)
    return dataclasses.replace(job, prefill=8)
