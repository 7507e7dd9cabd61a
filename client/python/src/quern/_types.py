# SPDX-License-Identifier: MIT
"""What comes back: pieces of output, their end, and how the pool is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Message = Mapping[str, str]
"""A message of a chat: {"role": "user", "content": "…"}; `tool_calls`, JSON, `tool_call_id` and
`thought` where there are."""

Prompt = str | Sequence[int] | Sequence[Message]
"""A text, token ids, or messages that go through the model's chat template."""


class Logprob(NamedTuple):
    """A token and the natural logarithm of its probability, before penalties and filters."""

    id: int
    logprob: float
    piece: bytes = b""
    """What it stands for, with the parameter `pieces`: bytes of the text, perhaps a part of a character, or the name of
    a token that is none of a text."""


@dataclass(frozen=True)
class End:
    """How a request ended."""

    reason: str
    """`stop`, `length`, `cancelled`, `deadline` or `error`."""
    error: str = ""
    """With the reason `error`: its name in the protocol."""
    text: str = ""
    """What a person should read of it."""
    retry_after_ms: int = 0
    """Of `overloaded`."""
    seed: int = 0
    """With the same request it makes the same output."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt's, how many the prefix cache had."""
    output_tokens: int = 0
    drafted_tokens: int = 0
    """Of drafts that were verified, by the worker that ended the request; with `--draft`."""
    accepted_tokens: int = 0
    """Of those, how many are part of the output."""
    queue_ms: float = 0.0
    """From arrival to a worker."""
    prefill_ms: float = 0.0
    """From there to the first token."""
    prepare_ms: float = 0.0
    """Of that, until its ids were known and checked."""
    wait_ms: float = 0.0
    """From there to its turn at the worker."""
    lookup_ms: float = 0.0
    """From there until what is cached of its prompt was found."""
    decode_ms: float = 0.0
    """From the first to the last token."""
    stop: str = ""
    """With the reason `stop`: the stop string that ended it, if one did."""
    limit: str = ""
    """With the reason `length`: which limit that was: `max_tokens`, `context` or `pool`."""
    lost: int = 0
    """Workers that died with this request, the parameter `lost` included. With `worker_lost`, 3 says that the request
    itself is the likely reason: do not resume it elsewhere."""


class Progress(NamedTuple):
    """How much of the prompt is read, in ids."""

    total: int
    cached: int
    read: int
    """Those that were cached included."""


@dataclass(frozen=True)
class Piece:
    """A part of a request's output. Text may lag behind the ids: whole characters only, and what may begin a stop
    string is held back."""

    text: str
    ids: tuple[int, ...]
    index: int
    """Of the first id in the output."""
    logprobs: tuple[tuple[Logprob, ...], ...] = ()
    """For each id: its own first, then the most likely, best first; empty unless asked for."""
    end: End | None = None
    """In the last piece."""
    embedding: tuple[float, ...] = ()
    """With the end of a request for one; or the scores of a model that ranks."""
    progress: Progress | None = None
    """With the parameter `progress`, in pieces without text that come before the output."""
    prompt_digest: bytes | None = None
    """Stands for the ids of the prompt: in the first piece of every worker that has the request. A program that may
    resume the request in another pool keeps it."""


@dataclass(frozen=True)
class Result:
    """A whole output."""

    text: str
    ids: tuple[int, ...]
    logprobs: tuple[tuple[Logprob, ...], ...]
    end: End


@dataclass(frozen=True)
class Embedding:
    """What a prompt means to the model, as a vector: texts are compared by the dot product of theirs."""

    vector: tuple[float, ...]
    """Of length one (Euclidean), in the direction of the mean of the model's final states."""
    end: End
    """What was counted: `prompt_tokens`, the times until it was computed."""


@dataclass(frozen=True)
class Ranking:
    """How well a document answers a query, as a model that ranks scores it."""

    scores: tuple[float, ...]
    """One for each label of the model. Of several: shares that sum to 1. One alone: as the model's head gives it."""
    end: End

    @property
    def score(self) -> float:
        """The one to sort by: the first."""
        return self.scores[0]


@dataclass(frozen=True)
class Model:
    """A model that the pool serves."""

    name: str
    digest: bytes
    context: int
    """Most tokens of prompt and output."""
    workers: int
    """That were ready when the session opened."""
    chat: bool
    """Has a chat template."""
    embedding: int = 0
    """Numbers of an embedding; 0: its workers make none."""
    ranks: bool = False
    """Those are the scores of a pair of texts (`Client.rank`): it embeds nothing and generates no text."""


@dataclass(frozen=True)
class Histogram:
    """How often a value was seen, since its worker's start."""

    bounds: tuple[float, ...]
    """Of the buckets, the bound itself included: seconds, rows, or shares up to 1. The last bucket has none."""
    counts: tuple[int, ...]
    sum: float
    """Of all values."""


@dataclass(frozen=True)
class Worker:
    """One worker of the pool. KV is counted in blocks."""

    name: str
    device: str
    model: str
    device_number: int
    """Of a GPU, its number on its host; then its UUID, the driver's version, and compute capability times ten."""
    device_uuid: str
    device_driver: str
    device_capability: int
    aliases: tuple[str, ...]
    """Other names of its model."""
    chat: bool
    """Its model has a chat template; else it continues texts."""
    tools: str
    """How its model writes calls of tools: `object`, `named` or `members`; empty: it calls none."""
    thinks: bool
    """The model thinks before it answers, as far as its chat template shows it."""
    dialect: str
    """How it calls tools and thinks: JSON, as `quern inspect` shows it; empty: not told."""
    digest: str
    """Of its model's file, 32 hexadecimal digits."""
    arithmetic: str
    choices: str
    """What its ids depend on beside that: `cpu avx2 kv=f16 weights=file`; with the same, they are the same."""
    sampling: str
    """What requests that do not say get, and who says so (pool, model or default): `temperature=0.6:model …`."""
    state: str
    """`absent`, `starting`, `loading`, `ready`, `draining` or `failed`."""
    pid: int
    incarnation: int
    restarts: int
    slots: int
    context: int
    embedding: int
    """Numbers of an embedding; 0: it makes none."""
    ranks: bool
    """Those are the scores of a pair of texts."""
    steps: int
    active: int
    waiting: int
    kv_free: int
    kv_total: int
    kv_block_bytes: int
    """Of one block; 0: not known yet."""
    kv_cached: int
    tokens: int
    cache_hits: int
    prefill_tokens: int
    evictions: int
    restores: int
    drafted: int
    """Tokens of drafts that were verified, with `--draft`."""
    accepted: int
    """Draft tokens accepted."""
    memory: int
    """Bytes that its device has taken for it; 0: not known yet. The next five are parts of it."""
    memory_kv: int
    """The KV cache."""
    memory_kv_held: int
    """Of the KV cache: blocks that sequences hold."""
    memory_states: int
    """States of recurrent layers, and their snapshots."""
    memory_weights: int
    memory_workspace: int
    """What steps work in. The rest of it is rounding."""
    memory_staging: int
    """Pinned memory of the host, beside `memory`."""
    memory_resident: int
    """What its process holds of the machine's memory."""
    memory_peak: int
    """The most that `memory` has been; likewise the next two."""
    memory_kv_held_peak: int
    memory_resident_peak: int
    device_free: int
    """Of the memory of its GPU; 0: it has none."""
    device_total: int
    launches: int
    """Kernels launched one by one, on a GPU."""
    recorded_launches: int
    """Steps launched as one recording."""
    refused_recordings: int
    """Sizes of decodes that its driver refused to record."""
    padding_rows: int
    """Computed for nothing, to fill a recording."""
    library_products: int
    """Products of matrices that cuBLASLt made."""
    ids_compared: int
    """Tokens that GPU and host have sampled, with `--host-sampling`."""
    ids_different: int
    """Of them, those that differ."""
    step_decode: Histogram
    """Seconds of steps that only decode; the next two: that only prefill, and that do both."""
    step_prefill: Histogram
    step_mixed: Histogram
    step_rows: Histogram
    """Rows of a step."""
    computed_rows: Histogram
    """The same with those that fill a recorded size."""
    token_gap: Histogram
    """Seconds between two tokens of an answer."""
    first_token: Histogram
    """Seconds from a request's arrival at the worker to its first token."""
    slots_used: Histogram
    """Shares of the slots that steps found in use."""
    kv_used: Histogram
    """Shares of the KV blocks that sequences held during steps."""
    tokens_per_s: float
    hit_rate: float
    reason: str
    """Why it failed."""


@dataclass(frozen=True)
class RequestStatus:
    """A request that has not ended."""

    id: str
    """Hexadecimal."""
    request_id: str
    """As its client calls it."""
    state: str
    """`queued`, `running` or `cancelling`."""
    worker: str
    """That has it; empty: none."""
    model: str
    """That it asks for; empty: any."""
    age_ms: int
    """Since it came."""
    tokens: int
    """Made so far."""
    moves: int
    """To another worker."""


@dataclass(frozen=True)
class Status:
    """How the pool is. Totals are since the broker's start."""

    boot: int
    draining: bool
    version: str
    sessions: int
    queued: int
    running: int
    admitted: int
    ended: int
    rejected: int
    moved: int
    tokens: int
    journal_bytes: int
    journal_limit: int
    """Bytes that the journal may have."""
    journal_waiting: int
    """Running requests that wait for room in it."""
    max_tokens: int
    """Most tokens of an answer; 0: the pool sets no limit."""
    uptime_s: int
    """Seconds since the pool was started; 0: not known."""
    supervisor_pid: int
    broker_pid: int
    gateway_pid: int
    """Of the gateway that the pool started; 0: it serves no HTTP, or none is there now."""
    workers: tuple[Worker, ...]
    requests: tuple[RequestStatus, ...] = ()
    """Of `requests`; else empty."""
