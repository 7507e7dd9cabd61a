# SPDX-License-Identifier: MIT
"""Results: pieces of output, their end, and the status of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Message = Mapping[str, str]
"""A message of a chat: {"role": "user", "content": "…"}, with optional `tool_calls` (JSON), `tool_call_id` and
`thought`."""

Prompt = str | Sequence[int] | Sequence[Message]
"""A text, token ids, or messages that go through the model's chat template."""


class Logprob(NamedTuple):
    """A token and the natural logarithm of its probability, before penalties and filters."""

    id: int
    logprob: float
    piece: bytes = b""
    """With the parameter `pieces`: the token's bytes in the text, possibly part of a character, or the name of a
    control token."""


@dataclass(frozen=True)
class End:
    """How a request ended."""

    reason: str
    """`stop`, `length`, `cancelled`, `deadline` or `error`."""
    error: str = ""
    """With the reason `error`: the error's name in the protocol."""
    text: str = ""
    """A message for people."""
    retry_after_ms: int = 0
    """With `overloaded`: when to try again."""
    seed: int = 0
    """The same request with this seed gives the same output."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens found in the prefix cache."""
    output_tokens: int = 0
    drafted_tokens: int = 0
    """Draft tokens verified by the worker that ended the request; with `--draft`."""
    accepted_tokens: int = 0
    """Draft tokens that became part of the output."""
    queue_ms: float = 0.0
    """Time from arrival to assignment to a worker."""
    prefill_ms: float = 0.0
    """Time from the assignment to the first token."""
    prepare_ms: float = 0.0
    """Part of `prefill_ms`: until the ids of the prompt were known and checked."""
    wait_ms: float = 0.0
    """The next part: until its turn at the worker."""
    lookup_ms: float = 0.0
    """The next part: until cached parts of its prompt were found."""
    decode_ms: float = 0.0
    """Time from the first to the last token."""
    stop: str = ""
    """With the reason `stop`: the stop string that ended it, if any."""
    limit: str = ""
    """With the reason `length`: the limit reached, `max_tokens`, `context` or `pool`."""
    lost: int = 0
    """Workers that died while they ran this request, including those of the parameter `lost`. With `worker_lost`, 3
    means that the request itself is the likely cause: do not resume it elsewhere."""


class Progress(NamedTuple):
    """How much of the prompt has been processed, in ids."""

    total: int
    cached: int
    read: int
    """Includes those that were cached."""


@dataclass(frozen=True)
class Piece:
    """A part of a request's output. Text may lag behind the ids: it has whole characters only, and a possible beginning
    of a stop string is held back."""

    text: str
    ids: tuple[int, ...]
    index: int
    """Position of the first id in the output."""
    logprobs: tuple[tuple[Logprob, ...], ...] = ()
    """For each id: its own first, then the most likely, best first; empty unless requested."""
    end: End | None = None
    """Only in the last piece."""
    embedding: tuple[float, ...] = ()
    """In the last piece of a request for an embedding; with a model that ranks, the scores."""
    progress: Progress | None = None
    """With the parameter `progress`, in pieces without text that come before the output."""
    prompt_digest: bytes | None = None
    """Digest of the prompt's ids, in the first piece from every worker that runs the request. Keep it to resume the
    request in another pool."""


@dataclass(frozen=True)
class Result:
    """A whole output."""

    text: str
    ids: tuple[int, ...]
    logprobs: tuple[tuple[Logprob, ...], ...]
    end: End


@dataclass(frozen=True)
class Embedding:
    """The embedding of a prompt. Compare texts by the dot product of their vectors."""

    vector: tuple[float, ...]
    """The mean of the model's final states, normalized to length one (Euclidean)."""
    end: End
    """Has `prompt_tokens` and the times until it was computed."""


@dataclass(frozen=True)
class Ranking:
    """How well a document answers a query, according to a model that ranks."""

    scores: tuple[float, ...]
    """One for each label of the model. Several labels: shares that sum to 1. One: the output of the model's head."""
    end: End

    @property
    def score(self) -> float:
        """The first score, the one to sort by."""
        return self.scores[0]


@dataclass(frozen=True)
class Model:
    """A model that the pool serves."""

    name: str
    digest: bytes
    context: int
    """Maximum tokens of prompt and output together."""
    workers: int
    """Workers that were ready when the session opened."""
    chat: bool
    """Whether it has a chat template."""
    embedding: int = 0
    """Numbers of an embedding; 0: embeddings are not available."""
    ranks: bool = False
    """The model scores pairs of texts (`Client.rank`); it makes no embeddings and generates no text."""


@dataclass(frozen=True)
class Histogram:
    """Counts of observed values since the worker's start."""

    bounds: tuple[float, ...]
    """Inclusive upper bounds of the buckets: seconds, rows, or shares up to 1. The last bucket has none."""
    counts: tuple[int, ...]
    sum: float
    """Sum of all values."""


@dataclass(frozen=True)
class Worker:
    """One worker of the pool. KV is counted in blocks."""

    name: str
    device: str
    model: str
    device_number: int
    """A GPU's number on its host. The next three: its UUID, the driver's version, and compute capability times ten."""
    device_uuid: str
    device_driver: str
    device_capability: int
    aliases: tuple[str, ...]
    """Other names of its model."""
    chat: bool
    """Its model has a chat template; otherwise it only continues texts."""
    tools: str
    """How its model writes tool calls: `object`, `named` or `members`; empty: it does not call tools."""
    thinks: bool
    """The model thinks before it answers, according to its chat template."""
    dialect: str
    """How it calls tools and thinks: JSON, as shown by `quern inspect`; empty: not known."""
    digest: str
    """Digest of its model's file, 32 hexadecimal digits."""
    arithmetic: str
    """What its ids depend on besides the file: `cpu avx2 kv=f16 weights=file`. With equal values, ids are equal."""
    choices: str
    """The measurements by which it chose kernels, in words."""
    sampling: str
    """Defaults of sampling parameters, each with its source (pool, model or default): `temperature=0.6:model …`."""
    state: str
    """`absent`, `starting`, `loading`, `ready`, `draining` or `failed`."""
    pid: int
    incarnation: int
    restarts: int
    slots: int
    context: int
    embedding: int
    """Numbers of an embedding; 0: not available."""
    ranks: bool
    """Its model scores pairs of texts."""
    steps: int
    active: int
    waiting: int
    kv_free: int
    kv_total: int
    kv_block_bytes: int
    """Bytes of one block; 0: not known yet."""
    kv_cached: int
    tokens: int
    cache_hits: int
    prefill_tokens: int
    evictions: int
    restores: int
    drafted: int
    """Draft tokens verified, with `--draft`."""
    accepted: int
    """Draft tokens accepted."""
    memory: int
    """Bytes that it has allocated on its device; 0: not known yet. The next five are parts of it."""
    memory_kv: int
    """The KV cache."""
    memory_kv_held: int
    """Part of the KV cache: blocks that sequences hold."""
    memory_states: int
    """States of recurrent layers, and their snapshots."""
    memory_weights: int
    memory_workspace: int
    """Work space of steps. The remainder of `memory` is rounding."""
    memory_staging: int
    """Pinned host memory, not part of `memory`."""
    memory_resident: int
    """Host memory that its process holds."""
    memory_peak: int
    """Peak of `memory`; the next two are the peaks of `memory_kv_held` and `memory_resident`."""
    memory_kv_held_peak: int
    memory_resident_peak: int
    device_free: int
    """Free memory of its GPU; 0: it has no GPU."""
    device_total: int
    launches: int
    """Kernels launched one by one, on a GPU."""
    recorded_launches: int
    """Steps launched as one recording."""
    refused_recordings: int
    """Decode sizes that its driver refused to record."""
    padding_rows: int
    """Rows computed only to fill a recorded size."""
    library_products: int
    """Matrix products computed by cuBLASLt."""
    ids_compared: int
    """Tokens sampled by both GPU and host, with `--host-sampling`."""
    ids_different: int
    """Tokens that GPU and host sampled differently."""
    step_decode: Histogram
    """Seconds of steps that only decode; the next two: of those that only prefill, and that do both."""
    step_prefill: Histogram
    step_mixed: Histogram
    step_rows: Histogram
    """Rows of a step."""
    computed_rows: Histogram
    """The same, including rows that fill a recorded size."""
    token_gap: Histogram
    """Seconds between two tokens of an answer."""
    first_token: Histogram
    """Seconds from a request's arrival at the worker to its first token."""
    slots_used: Histogram
    """Shares of the slots in use during steps."""
    kv_used: Histogram
    """Shares of the KV blocks held by sequences during steps."""
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
    """The name that its client gave it."""
    state: str
    """`queued`, `running` or `cancelling`."""
    worker: str
    """The worker that runs it; empty: none."""
    model: str
    """The model that it requests; empty: any."""
    age_ms: int
    """Time since its arrival."""
    tokens: int
    """Tokens generated so far."""
    moves: int
    """How often it moved to another worker."""


@dataclass(frozen=True)
class Status:
    """The status of a pool. Totals are since the broker's start."""

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
    """Limit of the journal in bytes."""
    journal_waiting: int
    """Running requests that wait for room in the journal."""
    max_tokens: int
    """Maximum tokens of an answer; 0: the pool sets no limit."""
    uptime_s: int
    """Seconds since the pool was started; 0: not known."""
    supervisor_pid: int
    broker_pid: int
    gateway_pid: int
    """The gateway that the pool started; 0: none is running."""
    workers: tuple[Worker, ...]
    requests: tuple[RequestStatus, ...] = ()
    """Filled by `requests`; otherwise empty."""
